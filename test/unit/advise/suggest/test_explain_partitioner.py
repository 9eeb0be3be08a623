"""The program of another partitioner: compiled in a process of its own, a Compiled, a file, stdin; held to HLO."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.cli.explain import main
from shardpass.diagnostics import ShardpassError
from shardpass.ir import jax_private
from tools.bench.hlo_traffic import traffic

MESH = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
DEVICES = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SHAPES = (
    {"up": jax.ShapeDtypeStruct((3, 16, 64), jnp.float32), "down": jax.ShapeDtypeStruct((3, 64, 16), jnp.float32)},
    jax.ShapeDtypeStruct((32, 16), jnp.float32),
)
SPECS = ({"up": P(None, None, "model"), "down": P(None, "model")}, P("data"))

# each layer sums a tile of 8 x 16 f32 over model, forward and backward
ACTIVATION = 2 * (32 // 4) * 16 * 4 * 1 // 2
# and of each weight the gradient, 16 x 32, over data
GRADIENT = 2 * 16 * 32 * 4 * 3 // 4
LOSS = 2 * 4 * 3 // 4
RECEIVED = 3 * (2 * ACTIVATION + 2 * GRADIENT) + LOSS


def layer(x: Any, p: Any) -> Any:
    h = jax.nn.relu(x @ p["up"])
    return x + h @ p["down"]


def loss(params: Any, x: Any) -> Any:
    x, _ = jax.lax.scan(lambda x, p: (layer(x, p), None), x, params)
    return jnp.mean(x**2)


def step(params: Any, x: Any) -> Any:
    value, gradients = jax.value_and_grad(loss)(params, x)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def jitted(mesh: Any) -> Any:
    over = jax.tree.map(lambda spec: NamedSharding(mesh, spec), SPECS, is_leaf=lambda one: isinstance(one, P))
    return jax.jit(step, in_shardings=over, out_shardings=(NamedSharding(mesh, P()), over[0]))


@pytest.fixture(scope="module")
def compiled() -> Any:
    return jitted(DEVICES).lower(*SHAPES).compile()


@pytest.fixture(scope="module")
def asked() -> Any:
    """XLA's program, of shapes over a mesh without devices."""
    return shardpass.explain(
        step, *SHAPES, mesh=MESH, in_shardings=SPECS, out_shardings=(P(), SPECS[0]), partitioner="xla"
    )


def test_xlas_program_by_line(asked: Any) -> None:
    assert asked.total_bytes_received == RECEIVED
    assert (asked.partitioner, asked.devices, asked.mesh) == ("xla", 8, (("data", 4), ("model", 2)))
    assert all(row.place.file == __file__ for row in asked.rows)
    lines = {Path(__file__).read_text().splitlines()[row.place.line - 1].strip() for row in asked.rows}
    assert lines == {'h = jax.nn.relu(x @ p["up"])', 'return x + h @ p["down"]', "return jnp.mean(x**2)"}
    totals = {axes: sum(r.bytes_received for r in asked.rows if r.axes == (axes,)) for axes in ("data", "model")}
    assert totals == {"data": 6 * GRADIENT + LOSS, "model": 6 * ACTIVATION}
    assert asked.memory.arguments == 2 * 3 * 16 * 32 * 4 + 8 * 16 * 4
    assert "partitioned by XLA" in str(asked)


def test_what_compile_returns(asked: Any, compiled: Any) -> None:
    found = shardpass.explain(compiled)
    assert found.total_bytes_received == RECEIVED == traffic(compiled.as_text(), 8).bytes
    assert [row.axes for row in found.rows] == [row.axes for row in asked.rows]
    stats = compiled.memory_analysis()
    total = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    assert found.memory.total == total - stats.alias_size_in_bytes
    with pytest.raises(ShardpassError, match="SP806"):
        shardpass.explain(compiled, in_shardings=P())


def test_what_jit_returns(asked: Any) -> None:
    found = shardpass.explain(jitted(DEVICES), *SHAPES, partitioner="xla")
    assert [(row.place, row.axes, row.bytes_received) for row in found.rows] == [
        (row.place, row.axes, row.bytes_received) for row in asked.rows
    ]


def test_donated_arguments_are_results() -> None:
    donating = jax.jit(lambda x: x + 1, in_shardings=NamedSharding(DEVICES, P("data")), donate_argnums=0)
    found = shardpass.explain(donating, SHAPES[1], partitioner="xla")
    assert found.memory.donated == found.memory.results == 8 * 16 * 4


@pytest.mark.parametrize("form", ["text", "proto", "stdin", "in Python"])
def test_files(form: str, compiled: Any, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    text = compiled.as_text()
    file = tmp_path / "train.hlo"
    file.write_bytes(jax_private.hlo_text_to_proto(text) if form == "proto" else text.encode())
    if form == "in Python":
        found = json.loads(shardpass.explain(text, mesh=MESH).json())
    else:
        if form == "stdin":
            monkeypatch.setattr(
                "sys.stdin", SimpleNamespace(buffer=io.BytesIO(file.read_bytes()), isatty=lambda: False)
            )
        assert main(["-" if form == "stdin" else str(file), "--json", "--mesh", "data=4,model=2"]) == 0
        found = json.loads(capsys.readouterr().out)
    assert found["total_bytes_received"] == RECEIVED
    assert {tuple(one["axes"]) for one in found["collectives"]} == {("data",), ("model",)}
    assert all(one["file"] == __file__ for one in found["collectives"])
    assert "memory" not in found  # a file says nothing of it


def test_hlo_before_optimisations_is_partitioned_first(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "step.hlo"
    file.write_text(jitted(DEVICES).lower(*SHAPES).as_text(dialect="hlo", debug_info=True))
    assert main([str(file), "--partitioner", "xla", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["total_bytes_received"], found["partitioner"]) == (RECEIVED, "xla")
    assert main([str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["partitioner"] == "shardpass"


def test_shardys_program() -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ w

    given = jax.ShapeDtypeStruct((64, 128), jnp.float32), jax.ShapeDtypeStruct((128, 32), jnp.float32)
    found = shardpass.explain(
        product, *given, mesh=MESH, in_shardings=(P(None, "data"), P("data")), out_shardings=P(), partitioner="shardy"
    )
    assert found.total_bytes_received == 2 * 64 * 32 * 4 * 3 // 4
    assert {(row.kind, row.axes) for row in found.rows} == {("all_reduce", ("data",))}
    assert found.rows[0].place.file == __file__
    assert "Shardy" in found.rows[0].reason


def test_the_page_says_whose_program_it_is(asked: Any, tmp_path: Path) -> None:
    asked.html(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert re.search(r'"partitioned": ?", partitioned by XLA"', page)


def test_what_is_of_shardpass_alone_is_refused(asked: Any, compiled: Any, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(ShardpassError, match="SP140"):
        shardpass.explain(compiled, hints=True)
    with pytest.raises(ShardpassError, match="SP140"):
        shardpass.explain(step, *SHAPES, mesh=MESH, in_shardings=SPECS, partitioner="gspmd")
    file = tmp_path / "train.hlo"
    file.write_text(compiled.as_text())
    assert main([str(file), "--hints"]) == 1
    assert capsys.readouterr().err.count("SP140") == 1
