"""shardpass.explain takes a program in every form in which users have it, and says the same of each."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.cli.explain import main
from shardpass.cost.machine import find_machine
from shardpass.diagnostics import ShardpassError

MESH = AbstractMesh((8,), ("d",), axis_types=(AxisType.Auto,))
X, W = jax.ShapeDtypeStruct((64, 128), jnp.float32), jax.ShapeDtypeStruct((128, 32), jnp.float32)
SPECS = (P(None, "d"), P("d"))
RECEIVED = 2 * 64 * 32 * 4 * 7 // 8  # an all_reduce of the product


def product(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def lowered() -> Any:
    jitted = jax.jit(product, in_shardings=tuple(NamedSharding(MESH, spec) for spec in SPECS))
    return jitted.trace(X, W).lower(lowering_platforms=("cpu",))


def received(given: Any, *arguments: Any, **more: Any) -> int:
    found = shardpass.explain(given, *arguments, effort=0, **more)
    assert {(row.kind, row.axes) for row in found.rows} == {("all_reduce", ("d",))}
    assert all(row.place.file == __file__ for row in found.rows)
    return found.total_bytes_received


def test_a_function() -> None:
    assert received(product, X, W, mesh=MESH, in_shardings=SPECS) == RECEIVED


def test_what_lower_returns() -> None:
    assert received(lowered()) == RECEIVED


def test_what_jit_returns() -> None:
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    jitted = jax.jit(product, in_shardings=tuple(NamedSharding(mesh, spec) for spec in SPECS))
    assert received(jitted, X, W) == RECEIVED
    assert received(spj.partition(product, mesh=mesh, in_shardings=SPECS).lower(X, W)) == RECEIVED


def test_text_a_module_and_a_file(tmp_path: Path) -> None:
    text = lowered().as_text(debug_info=True)
    file = tmp_path / "product.mlir"
    file.write_text(text)
    assert received(text) == received(file) == received(str(file)) == RECEIVED
    assert received(lowered().compiler_ir("stablehlo")) == RECEIVED


def test_a_mesh_for_a_program_that_names_none() -> None:
    found = shardpass.explain(product, X, W, mesh=MESH)
    assert found.devices == 8
    assert shardpass.explain(product, X, W).devices == 1


def test_shardings_are_those_of_a_function() -> None:
    with pytest.raises(ShardpassError, match="SP806"):
        shardpass.explain(lowered(), in_shardings=SPECS)


def test_what_is_no_program() -> None:
    with pytest.raises(ShardpassError, match="SP801"):
        shardpass.explain(17)


def test_it_prints_shows_itself_and_writes_its_page(tmp_path: Path) -> None:
    found = shardpass.explain(product, X, W, mesh=MESH, in_shardings=SPECS, effort=0)
    assert str(found).startswith("product: 8 devices, d=8\n")
    found.html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "test_explain.py" in page
    shown = found._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == page
    assert html.unescape(re.search(r"<pre[^>]*>([^<]*)</pre>", shown)[1]) == str(found)
    read = json.loads(found.json())
    assert read["total_bytes_received"] == RECEIVED
    assert read["collectives"][0]["array"] == "x @ w"


def test_plans_and_shardings_show_themselves_as_tables() -> None:
    plan = shardpass.plan_redistribution((8, 8), "f32", "{devices=[2,2]<=[4]}", "{devices=[4,1]<=[4]}")
    assert "all_to_all" in plan._repr_html_()
    cells = plan.source._repr_html_()
    assert [cells.count(f">{device}</td>") for device in range(4)] == [1, 1, 1, 1]
    assert shardpass.parse_sharding("{replicated}")._repr_html_() == "<div><code>{replicated}</code></div>"
    found = shardpass.explain(product, X, W, mesh=MESH, in_shardings=SPECS, effort=0)
    assert "all_reduce" in found.plan._repr_html_()


def test_reprs_are_short_and_say_what_matters() -> None:
    plan = shardpass.plan_redistribution((8, 8), "f32", "{devices=[2,2]<=[4]}", "{devices=[4,1]<=[4]}")
    found = shardpass.explain(product, X, W, mesh=MESH, in_shardings=SPECS, effort=0, machine="h100")
    other = shardpass.explain(product, X, W, mesh=MESH, in_shardings=(P(), P()), effort=0, machine="h100")
    difference = found.diff(other)
    for shown, word in (
        (plan, "8x8xf32"), (found, "8 devices"), (found.plan, "on machine h100"), (find_machine("h100"), "h100"),
        (difference, f"{RECEIVED / 1024:.1f} KiB received before, 0 B after"),
    ):  # fmt: skip
        assert word in repr(shown)
        assert len(repr(shown)) < 250
        assert "\n" not in repr(shown)
    assert f">-{RECEIVED:,}<" in difference._repr_html_()
    assert ">hosts" not in find_machine("h100")._repr_html_()
    assert "450 GB/s" in find_machine("h100")._repr_html_()


HOSTS = AbstractMesh((2, 8), ("host", "chip"), axis_types=(AxisType.Auto,) * 2)
ROWS = jax.ShapeDtypeStruct((4096, 4096), jnp.float32)
GATHERED = {"mesh": HOSTS, "in_shardings": (P(("host", "chip")),), "out_shardings": P()}


def squashed(x: Any) -> Any:
    return jnp.tanh(x)


def test_a_machine_plans_what_it_times() -> None:
    """Where the links between hosts are slow, each device brings its share of the other host's rows, and no more."""
    as_it_is = shardpass.explain(squashed, ROWS, **GATHERED)
    assert [(row.kind, row.axes) for row in as_it_is.rows] == [("all_gather", ("host", "chip"))]
    found = shardpass.explain(squashed, ROWS, machine="pod", **GATHERED)
    assert found.profile == "pod"
    # a device of each pair brings its rows over its own card, and then both hosts' rows go round inside
    between, inside = 4096 * 4096 * 4 // 8 // 2 / 12.5e9, 4096 * 4096 * 4 * 7 // 8 / 150e9
    assert found.seconds == pytest.approx(25e-6 + between + 5e-6 + inside)


def test_the_command_takes_a_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gather.mlir"
    sharding = '{mhlo.sharding = "{devices=[16,1]<=[16]}"}'
    rows = "tensor<4096x4096xf32>"
    result = f'{rows} {{mhlo.sharding = "{{replicated}}"}}'
    body = f"%0 = stablehlo.tanh %x : {rows} return %0 : {rows}"
    mesh = """shardpass.mesh = "mesh['host'=2,'chip'=8]", mhlo.num_partitions = 16 : i32"""
    file.write_text(
        f"module attributes {{{mesh}}} {{ func.func @main(%x: {rows} {sharding}) -> ({result}) {{ {body} }} }}"
    )
    printed = {}
    for words in (("--machine", "pod"), ()):
        assert main([str(file), "--json", *words]) == 0
        printed[words] = json.loads(capsys.readouterr().out)
    assert printed["--machine", "pod"]["profile"] == "pod" != printed[()]["profile"]
    assert printed["--machine", "pod"]["seconds"] != printed[()]["seconds"]
    assert main([str(file), "--machine", "abacus"]) == 1
    assert "SP901" in capsys.readouterr().err


def test_the_command_compares_two_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.mlir", tmp_path / "b.mlir"
    first.write_text(lowered().as_text(debug_info=True))
    whole = jax.jit(product, in_shardings=(NamedSharding(MESH, P("d")), NamedSharding(MESH, P())))
    second.write_text(whole.trace(X, W).lower(lowering_platforms=("cpu",)).as_text(debug_info=True))
    assert main([str(first), "--effort", "0", "--diff", str(second)]) == 0
    shown = capsys.readouterr().out
    assert "-14.0 KiB" in shown  # RECEIVED goes
    words = " ".join(shown.split())
    assert "went: test_explain.py:" in words
    assert "1 x all_reduce over d: x @ w" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trips", "many"], "'many' is not a number of trips"),
        (["--group-by", "moon"], "invalid choice: 'moon'"),
    ],
)
def test_bad_usage(arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "product.mlir"
    file.write_text(lowered().as_text(debug_info=True))
    assert main([str(file), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_limit_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "product.mlir"
    file.write_text(lowered().as_text(debug_info=True))
    assert main([str(file), "--memory-limit", "plenty"]) == 1
    assert "SP412" in capsys.readouterr().err


@pytest.mark.parametrize("door", [shardpass.explain, shardpass.suggest])
def test_an_option_of_jit_is_named(door: Any) -> None:
    """Unless the function takes an argument of that name."""
    with pytest.raises(ShardpassError) as raised:
        door(squashed, ROWS, static_argnums=1, mesh=HOSTS)
    assert raised.value.code == "SP808"
    assert "`static_argnums` is an option of jax.jit" in str(raised.value)
    assert "jax.jit(squashed, static_argnums=...)" in str(raised.value)

    def cast(x: Any, device: Any) -> Any:
        return x * device

    assert shardpass.explain(cast, ROWS, device=2.0, mesh=HOSTS).rows == ()
