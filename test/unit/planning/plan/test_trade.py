"""What a cheaper plan may receive and store beyond that of propagation alone."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.cost.chosen import chosen
from shardpass.cost.machine import IDEAL
from shardpass.cost.material import MATERIAL, MOST
from shardpass.pipeline.plan import plan_module
from shardpass.planning.decide import search
from shardpass.planning.decide.search import TRADED, decide
from shardpass.planning.plan import trade
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.trade import Trade, joined_makespan
from shardpass.program.table import table_of
from tools.bench.underspecified_programs import PROGRAMS

SUMS = """
module attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%x: tensor<16x8xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"},
                  %a: tensor<64x64xf32> {mhlo.sharding = "{replicated}"})
      -> (tensor<8xf32> {mhlo.sharding = "{replicated}"}, tensor<8xf32> {mhlo.sharding = "{replicated}"},
          tensor<64xf32> {mhlo.sharding = "{replicated}"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
    %m = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [0]
        : (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
    %p = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %q = stablehlo.dot_general %p, %a, contracting_dims = [1] x [0]
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %r = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    return %s, %m, %r : tensor<8xf32>, tensor<8xf32>, tensor<64xf32>
  }
}
"""


def placed(mesh, spec, *shape):
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(mesh, spec))


def descent():
    """20 steps of gradient descent: 19 starts less if every device has all rows."""

    def run(w, x, y):
        return jax.lax.fori_loop(0, 20, lambda _, w: w - 0.1 * x.T @ (jax.nn.sigmoid(x @ w) - y), w)

    mesh = Mesh(np.array(jax.devices()[:8]), ("d",))
    return run, (placed(mesh, P(), 64), placed(mesh, P("d"), 256, 64), placed(mesh, P("d"), 256))


def perceptron():
    """A training step of two layers: a sum of each gradient, or one gather of the batch."""

    def loss(weights, x):
        first, second = weights
        return jnp.mean((jnp.tanh(x @ first) @ second) ** 2)

    def step(weights, x):
        return jax.tree.map(lambda old, slope: old - 0.1 * slope, weights, jax.grad(loss)(weights, x))

    mesh = Mesh(np.array(jax.devices()[:8]), ("d",))
    weights = placed(mesh, P(), 32, 64), placed(mesh, P(), 64, 8)
    return step, (weights, placed(mesh, P("d"), 256, 32))


def head():
    """A training step of an embedding, a layer and a head, with whole results: gathering all three saves starts."""

    def loss(weights, tokens, targets):
        rows, layer, last = weights[0][tokens], *weights[1:]
        rows, layer, last = (array.astype(jnp.bfloat16) for array in (rows, layer, last))
        scores = (jnp.tanh(rows @ layer) @ last).astype(jnp.float32)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), targets[:, None], -1))

    def step(weights, tokens, targets):
        value, slopes = jax.value_and_grad(loss)(weights, tokens, targets)
        return jax.tree.map(lambda old, slope: old - 0.1 * slope, weights, slopes), value

    mesh = Mesh(np.array(jax.devices()[:8]), ("d",))
    weights = placed(mesh, P("d"), 256, 64), placed(mesh, P(None, "d"), 64, 64), placed(mesh, P(None, "d"), 64, 256)
    tokens = jax.ShapeDtypeStruct((128,), np.int32, sharding=NamedSharding(mesh, P("d")))
    return jax.jit(step, out_shardings=NamedSharding(mesh, P())), (weights, tokens, tokens)


def decided(text, effort, machine):
    module = shardpass.run_pipeline(text, "shardpass-import")
    with module.context:
        return decide(table_of(module, "propagate").program, {}, effort, chosen(machine), settle_results=True)


def rematerialized():
    """A layer computed again in its backward pass: two weights of 16 MiB, gathered before each pass."""

    def layer(x, weights):
        up, down = weights
        return kept(kept(x) + jax.nn.silu(x @ up) @ down)

    def kept(x):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("d")))

    def loss(weights, x):
        return jnp.mean(jax.checkpoint(layer)(x, weights) ** 2)

    mesh = Mesh(np.array(jax.devices()[:8]), ("d",))
    weights = placed(mesh, P("d"), 1024, 4096), placed(mesh, P("d"), 4096, 1024)
    step = jax.jit(jax.grad(loss), out_shardings=tuple(weight.sharding for weight in weights))
    return step.lower(weights, placed(mesh, P("d"), 8192, 1024)).as_text()


def test_the_whole_plan_decides_and_not_that_of_the_fold():
    """On h100 the fold prices the cheaper shardings above propagation's."""
    plain, plan = decided(rematerialized(), 1, "h100").plans
    once = 2 * 1024 * 4096 * 4 * 7 // 8
    assert abs(plain.bytes_received - 3 * once) <= 64  # two gathers, a reduce_scatter, and the sum of the loss
    assert abs(plan.bytes_received - 2 * once) <= 64
    assert price(plan) < price(plain)


def test_a_plan_that_does_not_fit_the_machine_is_refused():
    """Weights gathered once stay for the backward pass: 68 MiB of temporaries for 52, beside 28 MiB of arguments."""
    machine = chosen("h100")
    plain, plan = decided(rematerialized(), 1, "h100").plans
    assert plan.alive.peak > plain.alive.peak
    between = replace(machine, memory=plain.alive.peak)
    module = shardpass.run_pipeline(rematerialized(), "shardpass-import")
    with module.context:
        decision = decide(table_of(module, "propagate").program, {}, 1, between, settle_results=True)
    assert decision.plans is None
    assert decision.bound.why == TRADED


@pytest.mark.parametrize("make", [descent, perceptron])
def test_a_saving_of_starts_raises_no_temporaries(make):
    function, arguments = make()
    decision = decided(jax.jit(function).lower(*arguments).as_text(), 1, "cpu")
    if decision.plans is not None:
        plain, plan = decision.plans
        assert plan.alive.temporaries <= MOST * plain.alive.temporaries
        assert plan.bytes_received <= plain.bytes_received


def test_between_a_plan_that_stores_too_much_and_propagation_are_others(monkeypatch):
    """Where one array is gathered for starts, the rest of the plan is kept without it."""
    function, arguments = head()
    text = function.lower(*arguments).as_text()
    plain, plan = decided(text, 1, "cpu").plans
    assert plan.alive.temporaries <= MOST * plain.alive.temporaries
    assert plan.makespan < plain.makespan * (1 - MATERIAL)
    monkeypatch.setattr(search, "LIGHTER", 0)
    assert decided(text, 1, "cpu").bound.why == TRADED


def test_a_trade_is_stated_with_its_reason():
    """Two sums of 8 columns cost two starts of 70 us, and a gather of 16x8 one: 512 - 64 bytes, for 2 x 32 x 7/4."""
    decision = decided(SUMS, 1, "cpu")
    assert decision.trade is not None
    plain, plan = decision.plans
    assert (len(plain.collectives), len(plan.collectives)) == (2, 1)
    assert (plain.bytes_received, plan.bytes_received) == (2 * 2 * 32 * 7 // 8, 512 * 7 // 8)
    assert decision.trade.received == 448 - 112
    assert decision.trade.latency
    assert decision.trade.saved > MATERIAL


@pytest.mark.parametrize(
    ("received", "peak", "seconds", "starts", "expected"),
    [
        (110, 100, 0.96, False, True),  # 4% for bytes
        (110, 100, 0.94, False, False),  # 6% for them
        (100, 110, 0.96, False, True),  # 4% for memory
        (110, 90, 0.96, False, False),  # and memory is freed
        (90, 110, 0.96, False, False),  # and fewer bytes are received
        (110, 90, 0.96, True, True),  # starts decide: no exchange of one for the other
        (90, 110, 0.96, True, True),
        (90, 90, 0.96, True, False),
        (90, 121, 0.96, False, True),  # 4% for more than a fifth of the memory
        (90, 121, 0.94, False, False),
    ],
)
def test_what_a_small_saving_may_spend(monkeypatch, received, peak, seconds, starts, expected):
    def plan(received, peak, seconds):
        alive = SimpleNamespace(peak=peak, temporaries=10)
        facts = {"bytes_received": received, "stored": peak, "makespan": seconds, "price": seconds}
        return SimpleNamespace(alive=alive, machine=IDEAL, **facts)

    monkeypatch.setattr(trade, "saves_starts", lambda plain, plan: starts)
    assert trade.refused(plan(100, 100, 1.0), plan(received, peak, seconds)) == expected


GATHERED_LAST = """
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<512x64xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"},
                  %a: tensor<64x256xf32> {mhlo.sharding = "{replicated}"},
                  %b: tensor<256x64xf32> {mhlo.sharding = "{replicated}"},
                  %w: tensor<64x64xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
      -> (tensor<512x64xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %p = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0]
        : (tensor<512x64xf32>, tensor<64x256xf32>) -> tensor<512x256xf32>
    %q = stablehlo.dot_general %p, %b, contracting_dims = [1] x [0]
        : (tensor<512x256xf32>, tensor<256x64xf32>) -> tensor<512x64xf32>
    %r = stablehlo.dot_general %q, %w, contracting_dims = [1] x [0]
        : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
    return %r : tensor<512x64xf32>
  }
}
"""


def test_a_plan_is_charged_for_gathers_that_run_first():
    """XLA's CPU client gathers the last weight before all else, and keeps it beside the first two products."""
    products, weight = 256 * (256 + 64) * 4, 64 * 64 * 4
    for machine, expected in (("h100", products), ("cpu", products + weight)):
        assert plan_module(GATHERED_LAST, machine=machine).alive.temporaries == expected
    compiled = shardpass.compile(shardpass.run_pipeline(GATHERED_LAST, "partition"))
    assert compiled.memory_stats().temp_size_in_bytes == pytest.approx(products + weight, abs=512)


def test_the_report_states_a_trade():
    report = shardpass.explain(SUMS, machine="cpu")
    assert "336 B" in str(report)
    assert "latency decided" in str(report)
    trade = json.loads(report.json())["decision"]["trade"]
    assert (trade["received"], trade["latency"]) == (336, True)


def test_the_words_of_a_trade():
    assert str(Trade(0, 2048, 0.25, latency=False)) == (
        "the plan stores 2048 B more than propagation alone, and saves 25% of its time"
    )


@pytest.mark.parametrize("name", ["cpu", "h100", "v5p"])
def test_collectives_that_start_at_once(name):
    machine = chosen(name)
    for before, after in zip(machine.links, machine.starting_at_once.links, strict=True):
        assert after.start([8]) == 0
        assert after.seconds("all_gather", 1 << 20, [8]) == before.seconds("all_gather", 1 << 20, [8])
    assert replace(machine.starting_at_once, links=machine.links) == machine


def gathers(*rows):
    """Return a program that adds up, on each device, an array of each number of ``rows`` of 8 floats."""
    kinds = [f"tensor<{number}x8xf32>" for number in rows]
    split = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
    whole = '{mhlo.sharding = "{replicated}"}'
    arguments = ", ".join(f"%a{place}: {kind} {split}" for place, kind in enumerate(kinds))
    lines = "\n".join(
        f"""%c{place} = stablehlo.custom_call @Sharding(%a{place}) {{mhlo.sharding = "{{replicated}}"}}
            : ({kind}) -> {kind}
        %s{place} = "stablehlo.sort"(%c{place}) <{{dimension = 0 : i64, is_stable = true}}> ({{
          ^bb0(%l: tensor<f32>, %r: tensor<f32>):
            %less = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %less : tensor<i1>
        }}) : ({kind}) -> {kind}"""
        for place, kind in enumerate(kinds)
    )
    results = ", ".join(f"{kind} {whole}" for kind in kinds)
    values = ", ".join(f"%s{place}" for place in range(len(kinds)))
    return f"""module attributes {{mhlo.num_partitions = 8 : i32}} {{
      func.func @main({arguments}) -> ({results}) {{
        {lines}
        return {values} : {", ".join(kinds)}
      }}
    }}"""


@pytest.mark.parametrize(
    ("rows", "starts"),
    [((256, 8, 8), 1), ((64, 64), 0), ((4096, 64, 64), 1), ((4096, 64, 64, 64), 1), ((4096, 64, 64, 64, 64), 2)],
)
def test_starts_that_join_saves(rows, starts):
    """Beside the 128 KiB of 4096 rows, a part in 32 is room for two arrays of 2 KiB, and not for three. There is always
    room for 512 bytes.
    """
    plan = plan_module(gathers(*rows), machine="h100")
    (start,) = {
        sent.seconds(plan.machine) - sent.seconds(plan.machine.starting_at_once)
        for sent in plan.collectives
        if sent.bytes < 2**14
    }
    assert plan.makespan - joined_makespan(plan) == pytest.approx(starts * start)
    built = str(shardpass.run_pipeline(gathers(*rows), "partition{machine=h100}"))
    assert built.count('"stablehlo.all_gather"') == len(rows) - starts


@pytest.mark.parametrize("form", ["free", "expert"])
def test_a_start_that_goes_anyway_is_no_saving(form):
    """Norms gathered once before a loop save starts in a plan; in the module they travel with weights."""
    text = PROGRAMS["scan_fsdp"].in_form(form).lower().text
    before, after = (shardpass.explain(text, machine="h100", effort=effort).schedule.seconds for effort in (0, 1))
    assert after <= before
