"""Every form that shardpass-opt writes: another reader takes it, and it computes the same as the text does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir.dialects import stablehlo

import shardpass
from shardpass.cli import opt
from shardpass.ir.doors import Format, format_of

KINDS = {
    "stablehlo": Format.TEXT,
    "bytecode": Format.BYTECODE,
    "vhlo": Format.PORTABLE,
    "vhlo=1.0.0": Format.PORTABLE,
    "hlo": Format.HLO_TEXT,
}
TABLE = np.arange(1000, dtype=np.float32).reshape(8, 125)


def step(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.sum(x @ y + TABLE, 1), x


@pytest.fixture(scope="module")
def text() -> str:
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    rows, columns = NamedSharding(mesh, P(None, "x")), NamedSharding(mesh, P("x"))
    lowered = jax.jit(step, in_shardings=(rows, columns)).lower(jnp.zeros((8, 4)), jnp.zeros((4, 125)))
    return lowered.as_text(debug_info=True)


@pytest.fixture
def values() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(-4, 4, (8, 4)).astype(np.float32), rng.integers(-4, 4, (4, 125)).astype(np.float32)


def emitted(text: str, form: str, folder: Path, *pipeline: str) -> bytes:
    source, target = folder / "in.mlir", folder / "out"
    source.write_text(text)
    assert opt.main([str(source), *pipeline, "--emit", form, "-o", str(target)]) == 0
    return target.read_bytes()


@pytest.mark.parametrize("form", KINDS)
def test_a_form_is_read_again_and_computes_the_same(
    form: str, text: str, values: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    data = emitted(text, form, tmp_path)
    assert format_of(data) is KINDS[form]
    summed, same = shardpass.compile(shardpass.run_pipeline(data, "partition"))(*values)
    np.testing.assert_array_equal(np.asarray(summed), (values[0] @ values[1] + TABLE).sum(1))
    np.testing.assert_array_equal(np.asarray(same), values[0])


@pytest.mark.parametrize("form", [form for form in KINDS if form != "hlo"])  # HLO has no word for what arguments are of
def test_a_partitioned_module_runs_from_each_form(
    form: str, text: str, values: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    data = emitted(text, form, tmp_path, "partition")
    summed, _ = shardpass.compile(shardpass.run_pipeline(data, "canonicalize"))(*values)
    np.testing.assert_array_equal(np.asarray(summed), (values[0] @ values[1] + TABLE).sum(1))


def test_hlo_text_says_how_many_partitions_run_it(text: str, tmp_path: Path) -> None:
    """And has every constant in full: XLA's printer leaves large ones out unless asked."""
    hlo = emitted(text, "hlo", tmp_path, "partition").decode()
    first = hlo.splitlines()[0]
    assert first.startswith("HloModule jit_step")
    assert first.endswith(", num_partitions=4")
    assert re.search(r"all-(reduce|gather)\(|reduce-scatter\(", hlo)
    assert "{...}" not in hlo
    assert "999" in hlo


def test_an_artefact_is_of_the_version_asked_for(text: str, tmp_path: Path) -> None:
    for form, version in (("vhlo", stablehlo.get_current_version()), ("vhlo=1.0.0", "1.0.0")):
        assert f"StableHLO_v{version}\0".encode() in emitted(text, form, tmp_path)[:40]


@pytest.mark.parametrize("form", ["vhlo=0.1.0", "vhlo=999.0.0"])
def test_a_version_that_is_not_written(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("module {}")
    assert opt.main([str(path), "--emit", form, "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert f"of version {form.removeprefix('vhlo=')} [SP134]" in said
    assert f"to {stablehlo.get_current_version()}" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("form", "reason", "remedy"),
    [("vhlo", "failed to serialize", "no word for ops of chlo"), ("hlo", "`main` function", "--emit stablehlo")],
)
def test_what_cannot_be_said(
    form: str, reason: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.mlir"
    square = "%0 = chlo.square %x : tensor<2xf32> -> tensor<2xf32>"
    path.write_text(f"func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {{\n{square}\nreturn %0 : tensor<2xf32>\n}}")
    assert opt.main([str(path), "--emit", form, "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "[SP133]" in said
    assert reason in said
    assert remedy in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["hlo=1.0.0", "", "vhlo=", "vhlo=1", "mhlo"])
def test_no_such_form_is_bad_usage(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["m.mlir", "--emit", form]) == 2
    assert "is none of stablehlo, bytecode, vhlo, vhlo=1.8.0, hlo" in capsys.readouterr().err


CRAMPED = """
import resource, sys
from shardpass.cli.opt import main
from shardpass.ir import written
written.LARGE = 1  # by way of files
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("form", ["vhlo", "hlo"])
@pytest.mark.parametrize("part", [0, 0.5, 0.99])
def test_files_without_room(form: str, part: float, text: str, tmp_path: Path) -> None:
    """All of it or an error: a file that takes a part only, and a Python that does not say so, are no reason."""
    whole = emitted(text, form, tmp_path)
    target = tmp_path / "target"
    target.write_bytes(b"as before")
    arguments = [str(int(len(whole) * part)), str(tmp_path / "in.mlir"), "--emit", form, "-o", str(target)]
    done = subprocess.run(
        [sys.executable, "-c", CRAMPED, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 1
    assert re.search(r"\[SP1(21|33)\]", done.stderr), done.stderr
    assert "internal" not in done.stderr
    assert target.read_bytes() == b"as before"
