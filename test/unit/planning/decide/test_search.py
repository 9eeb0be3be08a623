"""The cheapest of several propagations: weights and batch over one axis, nothing said of what lies between."""

from __future__ import annotations

import numpy as np
import pytest

import shardpass
from shardpass.cost.machine import Machine, find_machine
from shardpass.diagnostics import collect
from shardpass.ir.collectives import collectives, total_bytes
from shardpass.passes import partition
from shardpass.pipeline.named import NAMED
from shardpass.planning.decide.search import Decision, decide
from shardpass.planning.options.choose import Decided
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.program.program import Program
from shardpass.program.shardings import Shardings
from shardpass.program.table import table_of
from tools.bench.expert_programs import FORMS, lowered
from tools.bench.real_programs import real_programs
from tools.bench.underspecified_programs import PROGRAMS

ROWS = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
LAYERS, BATCH, WIDTH = 3, 512, 64


def layers() -> str:
    """``x = tanh(x @ w)`` three times: x f32[512,64] and each w f32[64,64] in rows over eight devices."""
    x, w = f"tensor<{BATCH}x{WIDTH}xf32>", f"tensor<{WIDTH}x{WIDTH}xf32>"
    weights = ", ".join(f"%w{i}: {w} {ROWS}" for i in range(LAYERS))
    body = "\n".join(
        f"""%d{i} = stablehlo.dot_general %x{i}, %w{i}, contracting_dims = [1] x [0] : ({x}, {w}) -> {x}
        %x{i + 1} = stablehlo.tanh %d{i} : {x}"""
        for i in range(LAYERS)
    )
    main = f"func.func @main({weights}, %x0: {x} {ROWS}) -> {x}"
    return f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} {{ {body} return %x{LAYERS} : {x} }} }}"


def partitioned(effort: int) -> object:
    with collect():
        pipeline = NAMED["partition"].replace("shardpass-propagate", f"shardpass-propagate{{effort={effort}}}")
        return shardpass.run_pipeline(layers(), pipeline)


def test_weights_are_gathered_where_that_is_cheaper() -> None:
    """Each w is 16 KiB, of which a device receives 7/8; no device receives anything of x."""
    searched = total_bytes(collectives(partitioned(1)))
    assert searched == LAYERS * WIDTH * WIDTH * 4 * 7 // 8
    assert searched <= total_bytes(collectives(partitioned(0)))


def test_what_is_computed_is_the_same() -> None:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH for _ in range(LAYERS)]
    x = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
    expected = x
    for w in weights:
        expected = np.tanh(expected @ w)
    for effort in (0, 1):
        (found,) = shardpass.compile(partitioned(effort))(*weights, x)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-6)


def decided(text: str) -> Decision:
    with collect():
        module = shardpass.run_pipeline(text, "shardpass-import")
        with module.context:
            return decide(table_of(module, "propagate").program, {}, 1)


def row_split(*ops: str) -> str:
    """``ops`` on %a and %b, f32[64,64] in rows over eight devices; the last makes %z."""
    kind = "tensor<64x64xf32>"
    main = f"func.func @main(%a: {kind} {ROWS}, %b: {kind} {ROWS}) -> ({kind} {ROWS})"
    return f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} {{ {' '.join(ops)} return %z : {kind} }} }}"


def test_a_search_ends_at_the_least_sum() -> None:
    """Rows stay where they are: nothing is received, each device works on an eighth, and no split can do better."""
    decision = decided(row_split("%z = stablehlo.add %a, %b : tensor<64x64xf32>"))
    assert decision.tried == 1  # propagation's plan
    assert {str(one) for one in decision.shardings.of.values()} == {"{devices=[8,1]<=[8]}"}


def test_a_search_goes_on_above_the_least_sum() -> None:
    """Propagation splits the contractions, as weights are in rows; all values at once, nothing but weights moves."""
    decision = decided(layers())
    assert decision.changes
    assert decision.changes[-1].after < decision.changes[0].before / 2


@pytest.mark.parametrize("machine", ["ideal", "h100", "v5p"])
@pytest.mark.parametrize("name", ["transformer_megatron", "transformer_scanned", "lstm_train"])
def test_no_effort_is_dearer_than_a_lower_one(name: str, machine: str) -> None:
    """By the price of the finished plan of the whole program."""
    text, on = real_programs()[name].lower().text, find_machine(machine)
    prices = []
    for effort in (0, 1):
        with collect():
            module = shardpass.run_pipeline(text, "shardpass-import")
            with module.context:
                program = table_of(module, "propagate").program
                prices.append(price(plan_program(program, decide(program, {}, effort, on).shardings, machine=on)))
    assert prices[1] <= prices[0]


def test_the_plan_that_was_decided_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes of one run share the plan that the search chose, which is what its shardings alone make."""
    planned = []

    def counted(program: Program, shardings: Shardings, decided: Decided, machine: Machine) -> ProgramPlan:
        planned.append(program)
        return plan_program(program, shardings, decided, machine=machine)

    monkeypatch.setattr(partition, "plan_program", counted)
    partitioned(1)
    assert planned == []
    partitioned(0)
    assert len(planned) == 1
    kind = "tensor<64x64xf32>"
    product = f"%z = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}"
    for text in (layers(), row_split(product)):
        decision = decided(text)
        assert decision.plan is not None
        assert str(decision.plan) == str(plan_program(decision.plan.program, decision.shardings))


def test_sums_wait_as_the_built_module_joins_them() -> None:
    """Logits of a target wait in propagation's plan only where all summands do. Beside a whole one they would complete
    over more devices behind the loss, 10 us later than the passes behind propagation do.
    """
    text = lowered(FORMS["tied_embedding"])
    alone, decided = (shardpass.explain(text, machine="h100", effort=effort).schedule for effort in (0, 1))
    assert alone is not None
    assert decided is not None
    assert decided.seconds <= alone.seconds * (1 + 1e-9)


def test_sums_wait_beside_whole_summands_where_that_pays() -> None:
    """Of a loss over a split vocabulary one sum over both axes serves for two, 10 us each."""
    text, h100 = PROGRAMS["tied_vocabulary_loss"].in_form("free").lower().text, find_machine("h100")
    with collect():
        module = shardpass.run_pipeline(text, "shardpass-import")
        with module.context:
            program = table_of(module, "propagate").program
            shardings = [decide(program, {}, effort, h100).shardings for effort in (0, 1)]
            alone, decided = (plan_program(program, each, machine=h100) for each in shardings)
    assert decided.makespan < 0.85 * alone.makespan
