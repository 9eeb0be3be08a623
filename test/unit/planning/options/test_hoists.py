"""What no trip of a loop changes is brought before the loop: once, by the bytes of one gather.

``h`` is [64, 256] and ``w`` [256, 256], both in rows over four devices; each of 128 trips multiplies ``h`` by ``w``.
One gather of ``w`` receives three quarters of its 262,144 bytes. The whole program on one device is the witness.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.differential import check_text

import shardpass
from shardpass.cost.machine import IDEAL
from shardpass.pipeline.plan import plan_module
from shardpass.planning.decide.search import decide
from shardpass.planning.options.hoists import PART
from shardpass.planning.plan.planner import plan_program
from shardpass.program.table import table_of

H, W = "tensor<64x256xf32>", "tensor<256x256xf32>"
ROWS = '{mhlo.sharding = "{devices=[4,1]<=[4]}"}'
ONE_GATHER = 256 * 256 * 4 * 3 // 4
PRODUCT = f"%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({H}, {W}) -> {H}"
TRIPS = 128
PARTITIONED = "builtin.module(shardpass-import,shardpass-propagate,shardpass-partition)"


def loop(body: str, trips: int = TRIPS, name: str = "") -> str:
    """A ``while`` that counts; ``body`` makes %y of %x."""
    at = [f"%{one}{name}" for one in "ictj"]
    count, state = "tensor<i32>", f"tensor<i32>, {H}"
    return f"""
        %n{name} = stablehlo.constant dense<{trips}> : {count}
        %r{name}:2 = stablehlo.while({at[0]} = %z, %x{name} = %h{name}) : {state}
          cond {{
            {at[1]} = stablehlo.compare LT, {at[0]}, %n{name} : ({count}, {count}) -> tensor<i1>
            stablehlo.return {at[1]} : tensor<i1>
          }} do {{
            {at[3]} = stablehlo.add {at[0]}, %o : {count}
            {body}
            {at[2]} = stablehlo.tanh %y{name} : {H}
            stablehlo.return {at[3]}, {at[2]} : {state}
          }}"""


def program(body: str) -> str:
    return f"""
    module attributes {{mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=4]"}} {{
      func.func @main(%h: {H} {ROWS}, %w: {W} {ROWS}) -> ({H} {ROWS}) {{
        %z = stablehlo.constant dense<0> : tensor<i32>
        %o = stablehlo.constant dense<1> : tensor<i32>
        {body}
        return %r#1 : {H}
      }}
    }}"""


def before_loop(text: str) -> str:
    """What is built before the loop, where changes of sharding are still calls."""
    return str(shardpass.run_pipeline(text, PARTITIONED)).split("stablehlo.while")[0]


def arguments() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((64, 256)).astype(np.float32), (rng.standard_normal((256, 256)) / 64).astype(np.float32)


def test_a_captured_weight_is_gathered_once() -> None:
    text = program(loop(PRODUCT))
    assert plan_module(text).bytes_received == ONE_GATHER
    outcome = check_text(text, arguments())
    assert [(use.kind, use.times) for use in outcome.collectives] == [("all_gather", 1)]


def test_out_of_two_loops_at_once() -> None:
    inner = loop(PRODUCT.replace("%x", "%xi").replace("%y", "%yi"), 4, "i")
    body = f"%hi = stablehlo.negate %x : {H} {inner} %y = stablehlo.negate %ri#1 : {H}"
    text = program(loop(body, 3))
    assert plan_module(text).bytes_received == ONE_GATHER
    check_text(text, arguments())


WHOLE = '{mhlo.sharding = "{{replicated}}"}'
GATHERED = f"stablehlo.custom_call @Sharding({{}}) {{{WHOLE}}} : ({W}) -> {W}"
PASSED = f"stablehlo.optimization_barrier {{}} : {W}"


def test_what_a_constraint_gathers_is_gathered_once() -> None:
    text = program(loop(f"%g = {GATHERED.format('%w')} {PRODUCT.replace('%w', '%g')}"))
    assert plan_module(text).bytes_received == ONE_GATHER
    outcome = check_text(text, arguments())
    assert [(use.kind, use.times) for use in outcome.collectives] == [("all_gather", 1)]


@pytest.mark.parametrize("effort", [0, 1])
@pytest.mark.parametrize(
    "body",
    [
        f"%v = {PASSED.format('%w')} {PRODUCT.replace('%w', '%v')}",
        f"%g = {GATHERED.format('%w')} %v = {PASSED.format('%g')} {PRODUCT.replace('%w', '%v')}",
        f"%v = {PASSED.format('%w')} %g = {GATHERED.format('%v')} {PRODUCT.replace('%w', '%g')}",
    ],
    ids=["the product's", "constrained before", "constrained behind"],
)
def test_a_barrier_in_the_loop_keeps_the_copy_there(body: str, effort: int) -> None:
    """As ``jax.checkpoint`` has it: the gathered weight is made for each trip, and gone after it, after all passes."""
    text = program(loop(body))
    later = PARTITIONED.replace("propagate", f"propagate{{effort={effort}}}")[:-1] + ",shardpass-defer,shardpass-hoist)"
    built = str(shardpass.run_pipeline(text, later)).split("stablehlo.while")[0]
    assert "shardpass.redistribute(%arg1)" not in before_loop(text)
    assert "shardpass.redistribute(%arg1)" not in built
    check_text(text, arguments())


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_any_number_of_trips(trips: int) -> None:
    check_text(program(loop(PRODUCT, trips)), arguments())


def test_a_branch_in_a_loop_brings_what_it_takes() -> None:
    """The branch may not be taken, so its copy is made in it."""
    branch = f"""
        %e = stablehlo.compare EQ, %i, %o : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %y = "stablehlo.if"(%e) ({{
          %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({H}, {W}) -> {H}
          stablehlo.return %a : {H}
        }}, {{
          stablehlo.return %x : {H}
        }}) : (tensor<i1>) -> {H}"""
    text = program(loop(branch))
    check_text(text, arguments())
    assert "shardpass.redistribute(%arg1)" not in before_loop(text)


@pytest.mark.parametrize(("memory", "times"), [(PART * 256 * 256 * 4, 1), (PART * 256 * 256 * 4 - 1, TRIPS)])
def test_copies_take_a_part_of_the_memory(memory: int, times: int) -> None:
    """The copy of ``w`` has 262,144 bytes: a byte less, and it is made in the loop."""
    module = shardpass.run_pipeline(program(loop(PRODUCT)), "shardpass-import")
    with module.context:
        table = table_of(module, "propagate")
        shardings = decide(table.program, {}, 1).shardings
        plan = plan_program(table.program, shardings, machine=replace(IDEAL, memory=memory))
    assert [(one.kind, one.times) for one in plan.collectives] == [("all_gather", times)]
