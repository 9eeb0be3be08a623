"""The cheapest shardings within a limit of memory, beside arithmetic and XLA's own account."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest

import shardpass
from shardpass.cost.chosen import identity
from shardpass.cost.machine import find_machine
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.context import parse_module
from shardpass.pipeline.plan import plan_module
from shardpass.pipeline.run import run_in_place
from shardpass.planning.decide.bound import LEAST_ALIKE
from shardpass.planning.decide.limited import decide_within
from shardpass.planning.plan.cost import price
from shardpass.program.read import read_program
from shardpass.redistribute.terms.limit import show_bytes

KIB = 2**10
STEP = """module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['d'=8]"} {
  func.func @main(%x: tensor<4096x256xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %w: tensor<256x256xf32>, %m: tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32>
    %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<256x256xf32>
    %n = stablehlo.add %m, %g : tensor<256x256xf32>
    %v = stablehlo.subtract %w, %n : tensor<256x256xf32>
    return %v, %n : tensor<256x256xf32>, tensor<256x256xf32>
  }
}"""  # noqa: E501  IR is not wrapped
TILE = 4096 // 8 * 256 * 4  # of x, and of y
WEIGHT = 256 * 256 * 4


def with_limit(text: str) -> object:
    return shardpass.run_pipeline(STEP, f"propagate{{fit={text}}}")


def test_a_limit_that_the_cheapest_keeps_changes_nothing() -> None:
    assert str(with_limit("1GiB")) == str(shardpass.run_pipeline(STEP, "propagate"))


def test_a_plan_keeps_the_limit_and_pays_for_it() -> None:
    free = plan_module(STEP)
    limit = free.alive.peak - WEIGHT // 2
    found = plan_module(with_limit(str(limit)))
    assert found.alive.peak <= limit < free.alive.peak
    assert found.bytes_received > free.bytes_received  # the weight is gathered, where it was held
    # x, y and the gradient are alive together, whatever is split
    assert found.alive.peak >= 2 * TILE + WEIGHT


def test_xla_counts_no_more_for_arguments_and_results() -> None:
    free, fit = (
        shardpass.compile(shardpass.run_pipeline(STEP, f"partition{{fit={text}}}")).memory_stats()
        for text in ("none", "1500KiB")
    )
    assert free.argument_size_in_bytes - fit.argument_size_in_bytes == WEIGHT - WEIGHT // 8


@pytest.mark.parametrize(("text", "effort"), [("1MiB", 1), ("1500KiB", 0)])
def test_what_cannot_be_kept_is_an_error_with_the_least_found(text: str, effort: int) -> None:
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(STEP, f"propagate{{fit={text} effort={effort}}}")
    (found,) = caught.value.diagnostics
    assert found.code == "SP804"
    least = int(found.remedy.split("at least ")[1].split()[0])
    assert least > 1024 * KIB
    if effort:  # what is said to be the least can be had
        assert plan_module(with_limit(str(least))).alive.peak <= least


LOOP = """module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['d'=8]"} {
  func.func @main(%y: tensor<8x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %v: tensor<64x4096xf32>, %w: tensor<4096x64xf32>) -> (tensor<8x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<10000000> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %a = %y) : tensor<i32>, tensor<8x64xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %h = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x4096xf32>) -> tensor<8x4096xf32>
      %t = stablehlo.tanh %h : tensor<8x4096xf32>
      %b = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<8x4096xf32>, tensor<4096x64xf32>) -> tensor<8x64xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %b : tensor<i32>, tensor<8x64xf32>
    }
    return %r#1 : tensor<8x64xf32>
  }
}"""  # noqa: E501  IR is not wrapped


def test_memory_is_kept_where_each_of_many_trips_pays_for_it() -> None:
    """Rows of y need both weights, 2 MiB; split weights an all_gather and a reduce_scatter of 2 KiB in 10^7 trips."""
    limit = 2 * 64 * 4096 * 4 // 2
    free = plan_module(shardpass.run_pipeline(LOOP, "propagate{machine=h100}"))
    fit = plan_module(shardpass.run_pipeline(LOOP, f"propagate{{machine=h100 fit={limit}}}"))
    assert free.alive.peak > 2 * limit > limit >= fit.alive.peak
    assert free.bytes_received == 0 < fit.bytes_received


PRODUCT = """module attributes {{mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['d'=8]"}} {{
  func.func @main(%x: tensor<8x8xf32>{}, %w: tensor<8x8xf32>{}) -> (tensor<8x8xf32>{}) {{
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %y : tensor<8x8xf32>
  }}
}}"""  # noqa: E501  IR is not wrapped


@pytest.mark.parametrize("machine", ["ideal", "cpu", "h100", "gb200", "v5e", "v5e-slices"])
def test_a_byte_above_the_limit_outweighs_all_seconds(machine: str) -> None:
    """Work of nanoseconds beside collectives of microseconds: no time that is saved is worth a byte."""
    said = [f' {{mhlo.sharding = "{{{one}}}"}}' for one in ("replicated", "devices=[8,1]<=[8]", "devices=[1,8]<=[8]")]
    plans = [plan_module(PRODUCT.format(*one), machine=machine) for one in product(said, repeat=3)]
    least = min(plan.alive.peak for plan in plans)
    dearest = max(plan.seconds() for plan in plans)
    assert least < max(plan.alive.peak for plan in plans)
    found = plan_module(
        shardpass.run_pipeline(PRODUCT.format("", "", ""), f"propagate{{machine={machine} fit={least}}}"),
        machine=machine,
    )
    assert found.alive.peak <= least
    assert found.seconds() <= dearest


def test_the_bound_within_a_limit_is_none_too_high() -> None:
    """Each split of the weight and of the moment, in rows, columns or none, is planned."""
    said = ["{replicated}", "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}"]
    texts = [
        STEP.replace("%w: tensor<256x256xf32>", f'%w: tensor<256x256xf32> {{mhlo.sharding = "{one}"}}').replace(
            "%m: tensor<256x256xf32>", f'%m: tensor<256x256xf32> {{mhlo.sharding = "{other}"}}'
        )
        for one, other in product(said, repeat=2)
    ]
    plans = [plan_module(text) for text in texts]
    limit = plan_module(STEP).alive.peak - WEIGHT // 2
    module = parse_module(STEP, "step.mlir")
    run_in_place(module, "shardpass-import")
    with module.context:
        program, _ = read_program(module, "import")
    decision = decide_within(limit, program, {}, 1)
    assert decision.memory == limit
    assert decision.bound is not None
    assert decision.bound.least is not None
    cheapest = min(price(plan) for plan in plans if plan.alive.peak <= limit)
    assert 0 < decision.bound.least <= cheapest * (1 + 1e-9)
    assert decision.bound.plan <= cheapest * (1 + 1e-9)


def test_the_bound_within_a_limit_is_of_equal_layers_that_are_alike() -> None:
    """Both updates take the same rows of x, and are one in the tables."""
    head, lines = STEP.split("    return")[0].split("    %y =")
    other = re.sub("%([ywmgnv])", r"%\1_", lines)
    kind = "tensor<256x256xf32>"
    head = head.replace(") -> (", f", %w_: {kind}, %m_: {kind}) -> ({kind}, {kind}, ")
    text = f"{head}%y ={lines}%y_ ={other}return %v, %n, %v_, %n_ : {', '.join([kind] * 4)} }} }}"
    limit = plan_module(text).alive.peak - WEIGHT // 2
    module = parse_module(text, "steps.mlir")
    run_in_place(module, "shardpass-import")
    with module.context:
        program, _ = read_program(module, "import")
    bound = decide_within(limit, program, {}, 1).bound
    assert bound is not None
    assert bound.alike
    assert str(bound).endswith(f"of {LEAST_ALIKE}")


# ---------------------------------------------------------------- the memory of the machine


def on_memory(size: float) -> str:
    """A machine that is "ideal" but for its memory."""
    return identity(replace(find_machine("ideal"), name="small", memory=float(size)))


def test_the_memory_of_the_machine_is_the_limit() -> None:
    """A plan within it is looked for as where the user says the limit, and reports say it."""
    free = plan_module(STEP)
    limit = free.alive.peak - WEIGHT // 2
    said = plan_module(with_limit(str(limit)))
    found = plan_module(STEP, machine=on_memory(limit))
    assert found.alive.peak <= limit
    assert (found.alive.peak, found.bytes_received) == (said.alive.peak, said.bytes_received)
    report = shardpass.explain(STEP, machine=on_memory(limit))
    assert report.memory_limit == limit
    assert f"of {limit / 2**20:.1f} MiB (" in " ".join(str(report).split())
    assert shardpass.explain(STEP, machine=on_memory(limit), memory_limit="none").memory_limit is None
    assert shardpass.explain(STEP).memory_limit is None  # of "ideal", which has no end


def test_the_user_says_another_limit() -> None:
    free = plan_module(STEP)
    machine = on_memory(free.alive.peak - WEIGHT // 2)
    found = plan_module(shardpass.run_pipeline(STEP, f"propagate{{machine={machine} fit=none}}"))
    assert found.alive.peak == free.alive.peak


@pytest.mark.parametrize("effort", [0, 1])
def test_a_program_that_fits_no_way_is_planned_with_a_remark(effort: int) -> None:
    """The user did not ask for a limit: the cheapest plan is made."""
    free = plan_module(shardpass.run_pipeline(STEP, f"propagate{{effort={effort}}}"))
    with collect() as seen:
        module = shardpass.run_pipeline(STEP, f"propagate{{machine={on_memory(2**20)} effort={effort}}}")
    (remark,) = [one for one in seen if one.code == "SP807"]
    assert f"need {show_bytes(free.alive.peak)}" in remark.message
    assert plan_module(module).alive.peak == free.alive.peak
