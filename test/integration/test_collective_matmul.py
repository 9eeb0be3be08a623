"""A weight-gathered layer, forward and backward, with its products in turn with the collectives.

Witnesses: the unpartitioned program on one device, and the memory that XLA's compiler reports.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.cli import explain as command
from shardpass.cost.chosen import chosen
from shardpass.diagnostics import collect
from shardpass.jax.hook import for_jax
from shardpass.pipeline.plan import plan_module
from shardpass.runtime import compile_single
from shardpass.runtime.compare import compare
from shardpass.runtime.hlo import added_by_xla
from shardpass.runtime.hlo_traffic import received

SHAPES = (256, 1024), (1024, 256), (256, 256)  # two weights, a batch
MESHES = [(8, 1), (4, 2), (2, 4)]
forms = pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])


@cache
def lowered(shape: tuple[int, int], backward: bool) -> str:
    mesh = jax.make_mesh(shape, ("x", "y"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])

    def over(*spec):
        return NamedSharding(mesh, P(*spec))

    pinned = jax.lax.with_sharding_constraint

    def layer(weights, x):
        one, other = pinned(weights[0], over(None, "y")), pinned(weights[1], over("y", None))
        hidden = pinned(jax.nn.relu(x @ one), over("x", "y"))
        return pinned(hidden @ other, over("x", None))

    def loss(weights, x):
        return (layer(weights, x) ** 2).mean()

    one, other, given = (jax.ShapeDtypeStruct(s, jnp.float32) for s in SHAPES)
    weights, batch = (over("x", "y"), over("y", "x")), over("x", None)
    function, out = (jax.grad(loss), weights) if backward else (layer, batch)
    jitted = jax.jit(function, in_shardings=(weights, batch), out_shardings=out)
    return str(jitted.lower((one, other), given).as_text(debug_info=True))


def partitioned(shape, backward, options=""):
    with collect() as remarks:
        module = shardpass.run_pipeline(lowered(shape, backward), f"partition{options}")
    return module, remarks


def arguments():
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(shape) / 16).astype(np.float32) for shape in SHAPES]


@forms
@pytest.mark.parametrize("shape", MESHES, ids=str)
def test_equal_to_one_device(shape, backward):
    module, remarks = partitioned(shape, backward, "{matmul-loops=all}")
    assert any(remark.code == "SP310" for remark in remarks)
    executable = shardpass.compile(module)
    found = executable(*arguments())
    expected = compile_single(lowered(shape, backward))(*arguments())
    wrong = [str(d) for d in compare(found, expected) if not d.passed]
    assert not wrong
    assert added_by_xla(executable.hlo_text(), module) == []


def test_no_gathered_weight_is_made_and_memory_falls():
    """Over 8 devices each of the two weights would be gathered: 1 MiB each."""
    plain, _ = partitioned((8, 1), False)
    in_turn, _ = partitioned((8, 1), False, "{matmul-loops=all matmul-one-way}")
    assert "all_gather" in str(plain)
    assert "all_gather" not in str(in_turn)
    held = [shardpass.compile(module).memory_stats().temp_size_in_bytes for module in (plain, in_turn)]
    assert held[1] < 0.5 * held[0]


def test_off_unless_asked_for():
    module, remarks = partitioned((8, 1), False)
    assert "collective_permute" not in str(module)
    assert not [remark for remark in remarks if remark.code in ("SP310", "SP311", "SP312")]


def test_inside_jax():
    """An open result of 12 rows is still given whole axes, which divide it; the weight goes round in tiles."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:8])

    def function(x, w):
        return jax.lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("x", None)))[:12] * 2

    split = P("x", None)
    step = spj.partition(function, mesh=mesh, in_shardings=(split, split), pipeline="partition{matmul-loops=all}")
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 64), (64, 32)))
    np.testing.assert_allclose(np.asarray(step(x, w)), (x @ w)[:12] * 2, rtol=1e-5, atol=1e-5)
    assert "collective_permute" in str(step.lower(x, w).partitioned)
    assert "shardpass-whole-axes,shardpass-check" in for_jax("partition{matmul-loops=all}")


# ---------------------------------------------------------------- the plan


@forms
@pytest.mark.parametrize("which", ["all", "memory", "default", "h100"])
@pytest.mark.parametrize("shape", MESHES, ids=str)
def test_what_the_plan_lists_is_what_is_built(shape, backward, which):
    """As many loops, over arrays of the same bytes, as the pass finds; and XLA's permutes move these bytes."""
    plan = plan_module(lowered(shape, backward), matmul_loops=which)
    module, remarks = partitioned(shape, backward, f"{{matmul-loops={which}}}")
    built = [str(remark) for remark in remarks if remark.code == "SP310"]
    assert "SP313" not in [remark.code for remark in remarks]
    assert len(built) == len(plan.loops)
    for loop in plan.loops:
        cost = loop.price(loop.machine)
        held = f"a device needs {loop.resident_bytes} bytes for it instead of {loop.pair.bytes}"
        seconds = f"modelled time {cost.in_turn * 1e6:.1f} us instead of {cost.apart * 1e6:.1f} us"
        found = next(told for told in built if f"{loop.kind} of " in told and held in told and seconds in told)
        built.remove(found)
    assert "shardpass.in_turn" not in str(module)
    hlo = shardpass.compile(module).hlo_text()
    planned = [sent for sent in plan.collectives if sent.loop is not None]
    moved = sum(sent.bytes * sent.times for sent in planned)
    assert received(hlo, 8).bytes.get("collective_permute", 0) == moved
    assert moved == sum(
        len(loop.pair.parts) * loop.pair.bytes * (loop.pair.count - 1) // loop.pair.count for loop in plan.loops
    )


def test_memory_and_time_in_the_plan():
    """Over 8 devices, by arithmetic. Tiles of a weight have 2**17 bytes, and four of them are held of each.

    A gathered weight has 1 MiB. Arguments (the weights' tiles and x f32[32,256]) and the result f32[32,256] have memory
    throughout; while the second product runs, the hidden values f32[32,1024] are alive beside them.
    """
    tile, hidden, row = 2**17, 32 * 1024 * 4, 32 * 256 * 4
    arguments = 2 * tile + row
    text = lowered((8, 1), False)
    apart, in_turn = (plan_module(text, matmul_loops=which, machine="default") for which in ("off", "all"))
    assert apart.loops is None
    # x @ w1: its rows are contracted, so that a term of hidden's size is held beside the sum
    assert [loop.resident_bytes for loop in in_turn.loops] == [4 * tile + hidden, 4 * tile]
    first, second = arguments + row + 4 * tile + 2 * hidden, arguments + row + 4 * tile + hidden
    assert in_turn.alive.peak == max(first, second)
    assert apart.alive.peak >= arguments + 8 * tile + hidden
    # the machine default: 10 us and 50 GB/s; the products take longer than their tiles
    collective = 10e-6 + 7 * tile / 50e9
    assert apart.seconds() == pytest.approx(2 * collective)
    # a block takes a tile and hidden values whole, and an eighth of a row of 256: the contracted one, or the result
    touched = tile + hidden + row // 8
    for loop in in_turn.loops:
        cost = loop.price(loop.machine)
        assert cost.collective == pytest.approx(collective)
        hop = 10e-6 + tile / 50e9
        each = max(2 * 32 * 1024 * 256 / 8 / loop.machine.rate("f32"), touched / loop.machine.memory_bandwidth)
        rounds = [max(hop, blocks * each) for blocks in (2, 2, 2, 1)]
        assert cost.in_turn == pytest.approx(each + sum(rounds))
    beside = sum(loop.price(loop.machine).beside for loop in in_turn.loops)
    assert in_turn.seconds() == pytest.approx(beside)


def test_the_total_of_an_explanation_counts_what_loops_take_beyond_their_products():
    """The forward layer over 8 devices, by arithmetic: 7 permutes of a tile each, which pass behind products."""
    tile, hidden, row, work = 2**17, 32 * 1024 * 4, 32 * 256 * 4, 2 * 32 * 1024 * 256
    found = shardpass.explain(lowered((8, 1), False), matmul_loops="all", machine="default")
    machine = found.plan.loops[0].machine
    hop = 10e-6 + tile / 50e9
    each = max(work / 8 / machine.rate("f32"), (tile + hidden + row // 8) / machine.memory_bandwidth)
    in_turn = each + sum(max(hop, blocks * each) for blocks in (2, 2, 2, 1))
    product = max(work / machine.rate("f32"), (8 * tile + hidden + row) / machine.memory_bandwidth)
    assert found.seconds == pytest.approx(2 * (in_turn - product))
    assert found.seconds == pytest.approx(sum(row.seconds for row in found.rows))
    assert found.seconds < 0.75 * 2 * 7 * hop  # the permutes one after the other
    for loop in found.loops:
        assert (loop.op, loop.axes, loop.steps, loop.bytes_each) == ("dot_general", ("x",), 7, tile)
        assert loop.in_turn == pytest.approx(in_turn)
        assert loop.apart == pytest.approx(10e-6 + 7 * tile / 50e9 + product)


@pytest.mark.parametrize("profile", ["default", "h100"])
@pytest.mark.parametrize("shape", MESHES)
@forms
def test_times_of_loops_that_are_built_are_those_of_the_plan(shape, backward, profile):
    """The plan adds up its loops; the module joins the first permutes, one a direction, of loops of the same tile."""
    found = shardpass.explain(lowered(shape, backward), matmul_loops="all", machine=profile)
    inside = sum(row.seconds for row in found.rows if row.kind == "collective_permute")
    assert found.loops
    machine = chosen(profile)
    planned = sum(loop.price(machine).beside for loop in found.plan.loops)
    joined = sum(2 * loop.beside / loop.steps * (loop.products - 1) for loop in found.loops)
    assert (planned - joined) * (1 - 1e-9) <= inside <= planned * (1 + 1e-9)


SCATTERED = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<256x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"},
                  %w: tensor<1024x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<256x1024xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
    return %0 : tensor<256x1024xf32>
  }
}
"""


def test_a_sum_that_is_scattered_in_turn():
    found = shardpass.explain(SCATTERED, matmul_loops="all", machine="default")
    (loop,) = found.loops
    assert (loop.kind, loop.steps, loop.bytes_each) == ("reduce_scatter", 3, 256 * 1024 * 4 // 4)
    permutes = sum(row.seconds for row in found.rows if row.kind == "collective_permute")
    machine = found.plan.loops[0].machine  # the product takes tiles of 256 x 256 and 256 x 1024
    touched = (256 * 256 + 2 * 256 * 1024) * 4
    product = max(2 * 256 * 256 * 1024 / machine.rate("f32"), touched / machine.memory_bandwidth)
    assert permutes == pytest.approx(loop.in_turn - product)
    exchange = 10e-6 + 256 * 256 * 4 * 3 / 4 / 50e9  # of x, three of its four blocks
    assert found.seconds == pytest.approx(exchange + permutes)


def test_the_plans_memory_beside_xlas():
    """XLA's buffers of the forward layer: within a third of the plan, and falling as the plan says."""
    found = []
    for which in ("off", "all"):
        plan = plan_module(lowered((8, 1), False), matmul_loops=which)
        stats = shardpass.compile(partitioned((8, 1), False, f"{{matmul-loops={which}}}")[0]).memory_stats()
        xla = stats.temp_size_in_bytes + stats.argument_size_in_bytes + stats.output_size_in_bytes
        assert 0.67 * xla < plan.alive.peak < 1.33 * xla
        found.append((plan.alive.peak, xla))
    assert found[1][0] < 0.6 * found[0][0]
    assert found[1][1] < 0.6 * found[0][1]


def test_the_plan_is_told(tmp_path, capsys):
    text = lowered((8, 1), False)
    told = str(plan_module(text, matmul_loops="all"))
    assert "2 in turn with products" in told
    assert "in place of all_gather, in turn with 2, both ways round: holds 640.0 KiB for 1.0 MiB" in told
    assert "in turn" not in str(plan_module(text))
    file = tmp_path / "layer.mlir"
    file.write_text(text)
    assert command.main([str(file), "--matmul-loops", "all"]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert "products in turn with a collective" in report
    assert "1 product with all_gather: holds 640.0 KiB for 1.0 MiB" in report
    found = shardpass.explain(text, matmul_loops="all")
    assert [loop.resident_bytes for loop in found.loops] == [5 * 2**17, 4 * 2**17]
    assert '"products_in_turn"' in found.json()
    assert found.memory.total < shardpass.explain(text).memory.total


def test_the_plan_of_a_function_has_its_loops():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:8])
    split = P("x", None)

    def plan(pipeline):
        function = spj.partition(lambda x, w: x @ w, mesh=mesh, in_shardings=(split, split), pipeline=pipeline)
        return function.lower(np.ones((16, 64), np.float32), np.ones((64, 32), np.float32)).plan

    assert plan("partition").loops is None
    assert plan("partition{matmul-loops=default}").loops == ()  # a product this small does not pay
    assert len(plan("partition{matmul-loops=all}").loops) == 1


def test_collectives_that_the_user_wrote_are_none_of_the_plan():
    """In a shard_map; the pass decides on them, by the option that the pipeline was given."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:8])

    def function(x, w):
        return jax.lax.all_gather(x, "x", axis=0, tiled=True) @ w

    manual = jax.shard_map(function, mesh=mesh, in_specs=(P("x"), P()), out_specs=P(), check_vma=False)
    x, w = np.arange(64.0, dtype=np.float32).reshape(8, 8), np.ones((8, 4), np.float32)
    text = jax.jit(manual).lower(x, w).as_text()
    assert plan_module(text, matmul_loops="all").loops == ()
    with collect() as remarks:
        module = shardpass.run_pipeline(text, "partition{matmul-loops=all}")
    assert [remark.code for remark in remarks if remark.code.startswith("SP31")] == ["SP310", "SP312"]
    np.testing.assert_allclose(np.asarray(shardpass.compile(module)(x, w)[0]), x @ w, rtol=1e-6)


def test_a_loop_that_a_later_pass_undoes_is_told():
    """Of two plans of one text: the marks of the product stay where the gather is gone."""
    with collect():
        module = shardpass.run_pipeline(
            lowered((8, 1), False),
            "shardpass-import,shardpass-propagate,shardpass-partition{matmul-loops=all}",
        )
    assert str(module).count('shardpass.in_turn = "all_gather 1"') == 2
    assert "shardpass.in_turn = 2 : i64" in str(module)
    with collect() as remarks:  # nothing is gathered yet
        left = shardpass.run_pipeline(str(module), "shardpass-collective-matmul")
    assert [remark.code for remark in remarks] == ["SP313", "SP313"]
    assert "in_turn" not in str(left)
