"""What plans cost: the machine's collectives and the local work, by hand."""

import math

import pytest
from support.machines import switched

from shardpass.cost.collective import Axis, Collective
from shardpass.cost.machine import find_machine
from shardpass.redistribute import plan_redistribution


def test_a_plan_costs_its_steps_and_its_copies():
    """An all_to_all of rows to columns takes 7 of 8 blocks; the two passes through memory are what is beside.

    The tile is [1, 8]: one row is cut into pieces of one element, which are joined along the row and then turned.
    """
    machine = switched("slow copies", 1.0, 10.0, 5.0, runs=math.inf, elements=20.0, places=math.inf)
    plan = plan_redistribution((8, 8), "i8", "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}", machine=machine)
    assert [s.kind for s in plan.steps] == ["all_to_all"]
    assert plan.seconds == pytest.approx(1.0 + 7 / 10 + 2 * 8 / 5 + 2 * 8 / 20)


@pytest.mark.parametrize("axis", ["host", "chip"])
def test_an_exchange_costs_the_links_of_its_axis(axis):
    """The same exchange between hosts of 4 or inside of them."""
    mesh = "mesh['host'=4,'chip'=4]"
    hosts = switched("hosts", 1e-4, 1e9, math.inf, blocks=((4, 1e-5, 5e10),))
    ends = f"{{{mesh}, [{{'{axis}'}}, {{}}]}}", f"{{{mesh}, [{{}}, {{'{axis}'}}]}}"
    plan = plan_redistribution((1024, 1024), "f32", *ends, machine=hosts)
    latency, bandwidth = (1e-4, 1e9) if axis == "host" else (1e-5, 5e10)
    assert plan.seconds == pytest.approx(latency + 1024 * 256 * 4 * 3 / 4 / bandwidth)


def test_gathers_of_a_torus_use_the_rings_of_all_their_mesh_axes():
    """An array split over two axes of 16 comes by two rings: the machine says how long, and the plan takes it."""
    mesh = "mesh['x'=16,'y'=16]"
    v5p = find_machine("v5p")
    plan = plan_redistribution((4096, 4096), "bf16", f"{{{mesh}, [{{'x','y'}}, {{}}]}}", "{replicated}", machine=v5p)
    assert [s.kind for s in plan.steps] == ["all_gather"]
    gather = Collective("all_gather", (Axis(16, 16), Axis(16)), 4096 * 4096 * 2)
    assert plan.seconds >= v5p.seconds(gather)
    assert plan.seconds == pytest.approx(v5p.seconds(gather), rel=0.2)  # local copies beside


def test_the_paper_counts_bytes_alone():
    plan = plan_redistribution((64, 64), "f32", "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}", machine="paper")
    assert plan.seconds == plan.bytes_received
