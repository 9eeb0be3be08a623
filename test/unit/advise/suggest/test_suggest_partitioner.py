"""Suggestions for XLA: the JAX program with all of them, compiled here, holds and sends what was promised."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.cli.suggest import main
from shardpass.diagnostics import ShardpassError
from tools.bench.hlo_traffic import traffic

EIGHT = Mesh(np.array(jax.devices()[:8]), ("data",), axis_types=(AxisType.Auto,))
F32 = jax.ShapeDtypeStruct
ARGUMENTS = ({"w1": F32((256, 1024), "float32"), "w2": F32((1024, 256), "float32")}, F32((512, 256), "float32"))
MIB = 1 << 20


def step(p: Any, x: Any) -> Any:
    def loss(p: Any) -> Any:
        return jnp.mean((jax.nn.relu(x @ p["w1"]) @ p["w2"]) ** 2)

    value, gradients = jax.value_and_grad(loss)(p)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, p, gradients)


def compiled(found: Any) -> Any:
    """The JAX program with the specs of ``found``, as XLA compiles it for the devices of this process."""
    said = {path: eval(one.spec, {"P": P}) for one in found.advice for path in one.paths}

    def over(root: str, tree: Any) -> Any:
        return jax.tree_util.tree_map_with_path(
            lambda path, leaf: NamedSharding(EIGHT, said[root + jax.tree_util.keystr(path)] if leaf.ndim else P()), tree
        )

    given = tuple(over(name, tree) for name, tree in zip(("p", "x"), ARGUMENTS, strict=True))
    made = over("result", jax.eval_shape(step, *ARGUMENTS))
    return jax.jit(step, in_shardings=given, out_shardings=made).lower(*ARGUMENTS).compile()


# whole, arguments, results and gradients are 6.5 MiB; a hidden activation in rows or columns over 8 is 256 KiB
@pytest.mark.parametrize("limit", [None, 4 * MIB, 3 * MIB])
def test_what_xla_compiles_is_what_is_promised(limit: int | None) -> None:
    found = shardpass.suggest(step, *ARGUMENTS, mesh=EIGHT, memory_limit=limit or "none", partitioner="xla")
    stats = compiled(found).memory_analysis()
    held = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    assert found.figures.memory == held - stats.alias_size_in_bytes <= (limit or held)
    assert found.figures.bytes == traffic(compiled(found).as_text(), 8).bytes
    paths = {path for one in found.advice for path in one.paths}
    assert paths == {"p['w1']", "p['w2']", "x", "result[1]['w1']", "result[1]['w2']"}
    specs = {path: one.spec for one in found.advice for path in one.paths}
    assert all(specs[f"p['{name}']"] == specs[f"result[1]['{name}']"] for name in ("w1", "w2"))
    assert "partitioned by XLA" in str(found)
    assert "carry" not in str(found)
    assert json.loads(found.json())["partitioner"] == "xla"


SQUARE = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
WRITTEN = {"w": P(None, "model"), "m": P(None, "model"), "x": P("data")}
SHAPES = {"w": (2048, 1024), "m": (2048, 1024), "x": (64, 2048)}


def momentum_step(w: Any, m: Any, x: Any) -> Any:
    m = 0.9 * m + jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.1 * m, m


def lowered_momentum(specs: Any, results: Any = None) -> Any:
    given = [F32(SHAPES[name], "float32", sharding=NamedSharding(SQUARE, specs[name])) for name in SHAPES]
    made = {} if results is None else {"out_shardings": tuple([NamedSharding(SQUARE, spec) for spec in results])}
    return jax.jit(momentum_step, **made).lower(*given)


@pytest.mark.parametrize("partitioner", ["xla", "shardpass"])
def test_what_the_user_wrote_is_questioned_where_nothing_beside_it_fits(partitioner: str) -> None:
    """w and m, as arguments and results over model alone, are 4 times 4 MiB: 10 MiB need a split over data."""
    found = shardpass.suggest(lowered_momentum(WRITTEN), memory_limit=10 * MIB, partitioner=partitioner)
    assert found.figures.memory <= 10 * MIB < found.figures_before.memory
    changed = {one.paths[0]: one for one in found.advice if one.kind == "argument"}
    assert changed
    for name, one in changed.items():
        assert [tuple(eval(text, {"P": P})) for text in one.instead] == [(*WRITTEN[name], None, None)[:2]]
        assert one.spec not in one.instead
        assert f"in place of {one.instead[0]}" in str(found)
    if partitioner == "xla":
        specs = WRITTEN | {name: eval(one.spec, {"P": P}) for name, one in changed.items()}
        results = [eval(one.spec, {"P": P}) for one in found.advice if one.kind == "result"]
        stats = lowered_momentum(specs, results).compile().memory_analysis()
        held = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
        assert found.figures.memory == held


def test_what_the_user_wrote_stays_where_it_fits() -> None:
    found = shardpass.suggest(lowered_momentum(WRITTEN), memory_limit=64 * MIB, partitioner="xla")
    assert {one.kind for one in found.advice} == {"result"}
    assert not any(one.instead for one in found.advice)


def test_the_least_is_that_of_both_doors() -> None:
    with pytest.raises(ShardpassError, match="SP804") as error:
        shardpass.suggest(lowered_momentum(WRITTEN), memory_limit=1000, partitioner="xla")
    # over all eight devices, each of the four matrices is 1 MiB; over model alone, these are 16 MiB
    least = int(str(error.value).split("limit to at least ")[1].split()[0])
    assert 4 * MIB <= least < 10 * MIB


def test_nothing_fits_and_the_least_is_said() -> None:
    with pytest.raises(ShardpassError, match="SP804"):
        shardpass.suggest(step, *ARGUMENTS, mesh=EIGHT, memory_limit=1000, partitioner="xla")


def test_a_program_in_words_of_gspmd(tmp_path: Any, capsys: Any) -> None:
    """The command, and a module whose argument is annotated by mhlo.sharding: that stays, and no Shardy is mixed in."""
    file = tmp_path / "m.mlir"
    file.write_text(
        """
        module attributes {mhlo.num_partitions = 8 : i32} {
          func.func @main(%x: tensor<1024x64xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %w: tensor<64x64xf32>)
              -> tensor<1024x64xf32> {
            %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
                : (tensor<1024x64xf32>, tensor<64x64xf32>) -> tensor<1024x64xf32>
            return %0 : tensor<1024x64xf32>
          }
        }"""
    )
    assert main([str(file), "--partitioner", "xla", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {path for one in found["annotations"] for path in one["paths"]} == {"%w", "result 0"}
    # rows of x and of the result, and w whole
    assert found["after"]["memory"] == 128 * 64 * 4 * 2 + 64 * 64 * 4
    assert found["after"]["bytes"] == 0


def test_another_partitioner_is_refused() -> None:
    with pytest.raises(ShardpassError, match="SP140"):
        shardpass.suggest(step, *ARGUMENTS, mesh=EIGHT, partitioner="gspmd")


def test_a_mesh_without_devices_has_the_usual_machine_and_its_memory(monkeypatch: Any) -> None:
    monkeypatch.delenv("SHARDPASS_MACHINE", raising=False)
    found = shardpass.suggest(step, *ARGUMENTS, mesh=AbstractMesh((8,), ("data",)))
    assert "machine='h100'" in found.propagate or "machine=h100" in found.propagate
    assert found.memory_limit == 80 * 10**9
    free = shardpass.suggest(step, *ARGUMENTS, mesh=AbstractMesh((8,), ("data",)), memory_limit="none")
    assert free.memory_limit is None
