"""Machines: public measurements, stages worked out by hand, and that every file can be read."""

import datetime
import tomllib

import pytest

from shardpass.cost.collective import KINDS, Axis, Collective
from shardpass.cost.links import Switch
from shardpass.cost.machine import FOLDER, MACHINES, Machine, Work, find_machine, from_table

GB = 10**9


def speed(machine, kind, *axes, whole=64 * GB):
    """Bytes that a device receives a second: what nccl-tests calls the bus bandwidth."""
    collective = Collective(kind, tuple(axes), whole)
    return collective.received / find_machine(machine).seconds(collective)


@pytest.mark.parametrize(
    ("machine", "kind", "axes", "measured"),
    [
        # NVIDIA/nccl#1218: 32 hosts of 8 H100, 2 GB
        ("h100", "all_gather", (Axis(256),), 200e9),
        ("h100", "all_reduce", (Axis(256),), 340e9),
        # NVIDIA/nccl-tests#212: one host, NVLink SHARP; other kinds reach 370 of 450
        ("h100", "all_reduce", (Axis(8),), 480e9),
        ("h100", "all_gather", (Axis(8),), 370e9),
        # Google's page of the v5p: 1,200 GB/s both ways over 3 dimensions
        ("v5p", "all_gather", (Axis(16),), 200e9),
        ("v5p", "all_reduce", (Axis(16, 256), Axis(16, 16), Axis(16)), 600e9),
    ],
)
def test_public_figures_come_out(machine, kind, axes, measured):
    assert speed(machine, kind, *axes, whole=2 * GB) == pytest.approx(measured, rel=0.25)


def test_a_gather_over_hosts_is_done_in_stages():
    """8 GB on 32 hosts of 8: 1 GB over each device's card, then 8 GB inside."""
    seconds = find_machine("h100").seconds(Collective("all_gather", (Axis(256),), 8 * GB))
    assert seconds == pytest.approx(25e-6 + 31 / 32 / 50 + 8 * 7 / 8 / 450)


def test_a_sum_over_hosts_goes_in_chunks():
    seconds = find_machine("h100").seconds(Collective("all_reduce", (Axis(256),), 8 * GB))
    assert seconds == pytest.approx(25e-6 + max(2 * 31 / 32 / 50, 2 * 8 * 7 / 8 / 480))


def test_a_group_with_one_device_a_host_has_one_card():
    """data=32, model=8: over data a group has a device in each host, and its neighbours use the other cards."""
    h100 = find_machine("h100")
    over_data = h100.seconds(Collective("all_gather", (Axis(32, 8),), 8 * GB))
    assert over_data == pytest.approx(15e-6 + 8 * 31 / 32 / 50)
    assert h100.seconds(Collective("all_gather", (Axis(8),), 8 * GB)) == pytest.approx(10e-6 + 8 * 7 / 8 / 450)


def test_an_exchange_over_hosts_sends_most_blocks_over_the_cards():
    """Of 256 blocks 248 go to other hosts, while 7 go inside."""
    seconds = find_machine("h100").seconds(Collective("all_to_all", (Axis(256),), 8 * GB))
    assert seconds == pytest.approx(15e-6 + 8 * 248 / 256 / 50)


def test_a_permute_pays_for_the_outermost_link():
    assert find_machine("h100").seconds(Collective("collective_permute", (Axis(16),), GB)) == pytest.approx(
        15e-6 + 1 / 50
    )


def test_groups_that_lie_across_blocks_are_joined_by_what_all_of_them_share():
    """Groups of 16 in racks of 72: the fifth has 8 devices in one rack and 8 in the next."""
    seconds = find_machine("gb200").seconds(Collective("all_gather", (Axis(16),), 8 * GB))
    assert seconds == pytest.approx(25e-6 + 1 / 2 / 50 + 8 * 7 / 8 / 900)
    whole_rack = find_machine("gb200").seconds(Collective("all_gather", (Axis(72),), 72 * GB))
    assert whole_rack == pytest.approx(10e-6 + 71 / 900)


def test_slices_are_joined_by_the_network_of_the_data_centre():
    """2 slices of 64: half of a 64th of the array over each chip's share of the network, then a torus of 4x4x4."""
    machine = find_machine("v5p-slices")
    gather = Collective("all_gather", (Axis(2, 64), Axis(4, 16), Axis(4, 4), Axis(4)), 64 * GB)
    hops = 5e-6 + 6e-6
    assert machine.seconds(gather) == pytest.approx(50e-6 + 1 / 2 / 6.25 + hops + 64 * 63 / 64 / 600)


@pytest.mark.parametrize("kind", KINDS)
def test_the_ideal_machine_has_the_latency_of_512_bytes(kind):
    ideal = find_machine("ideal")
    assert ideal.seconds(Collective(kind, (Axis(8),), 8)) == pytest.approx(
        (512 + Collective(kind, (Axis(8),), 8).received) / 50e9
    )
    assert ideal.seconds(Collective(kind, (Axis(1),), 8)) == 0.0


def test_work_is_bounded_by_flops_or_by_memory():
    h100 = find_machine("h100")
    n = 8192
    product = Work(2 * n**3, "bf16", 3 * 2 * n**2)
    assert h100.seconds(product) == pytest.approx(2 * n**3 / 989.4e12)
    addition = Work(n**2, "f32", 3 * 4 * n**2)
    assert h100.seconds(addition) == pytest.approx(3 * 4 * n**2 / 3.35e12)


def test_a_kernel_takes_some_least_time_and_the_vector_unit_its_elements():
    """XLA:TPU expects 1,865 cycles of a sum of f32[16, 16] on a v5e, and 1,208,896 of one of 8192 x 8192 squares."""
    v5e, clock, n = find_machine("v5e"), 1.5e9, 8192
    assert v5e.seconds(Work(256, "f32", 3 * 4 * 256, 256)) == pytest.approx(1865 / clock, rel=0.05)
    assert v5e.seconds(Work(n**2, "f32", 4 * n**2, n**2)) == pytest.approx(1_208_896 / clock, rel=0.05)
    assert v5e.seconds(Work(256, "f32", 3 * 4 * 256)) < 1e-8  # a part of another kernel
    assert find_machine("h100").seconds(Work(256, "f32", 3 * 4 * 256, 256)) < 1e-8


def test_a_kernel_that_waits_for_memory_takes_longer_by_each_wait():
    """XLA:TPU expects 4,476 cycles of a product of f32[16, 16] on a v5p, and 4,974 of f32[256, 256]."""
    v5p, clock = find_machine("v5p"), 1.75e9
    for n, cycles in ((16, 4476), (256, 4974)):
        square = Work(2 * n**3, "f32", 3 * 4 * n**2, waits=2, product=True)
        assert v5p.seconds(square) == pytest.approx(cycles / clock, rel=0.1)
    thin = Work(2 * 64 * 4096**2, "bf16", 2 * (2 * 64 * 4096 + 4096**2), 4096**2, 2, product=True)
    assert v5p.seconds(thin) == pytest.approx(96_928 / clock, rel=0.3)  # a quarter of it without the elements


@pytest.mark.parametrize(
    ("element", "rate"),
    [
        ("bf16", 989.4e12),
        ("f8E4M3FN", 1978.9e12),
        ("ui8", 1978.9e12),
        ("complex<f32>", 494.7e12),
        ("i32", 494.7e12),  # of the next wider type
        ("i4", 1978.9e12),
        ("i64", 66.9e12),
    ],
)
def test_every_element_type_has_a_rate(element, rate):
    assert find_machine("h100").rate(element) == rate


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_says_where_its_numbers_come_from(name):
    machine = find_machine(name)
    assert machine.name == name
    assert machine.sources
    assert all(isinstance(source.date, datetime.date) and source.where for source in machine.sources)
    assert machine.memory > 0 < machine.memory_bandwidth


def test_the_machines_that_are_promised_are_there():
    gpus, tpus = {"a100", "h100", "h200", "b200", "gb200", "mi300x"}, {"v5e", "v5p", "v6e"}
    assert {"ideal", "cpu"} | gpus | tpus | {f"{tpu}-slices" for tpu in tpus} == set(MACHINES)


def test_tiers_must_grow():
    table = tomllib.loads((FOLDER / "h100.toml").read_text())
    assert isinstance(from_table(table), Machine)
    with pytest.raises(ValueError, match="the last one all"):
        from_table({**table, "links": table["links"][:1]})
    with pytest.raises(ValueError, match="joins more devices"):
        from_table({**table, "links": table["links"][::-1]})
    assert [type(link) for link in find_machine("h100").links] == [Switch, Switch]
