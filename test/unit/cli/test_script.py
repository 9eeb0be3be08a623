"""``train.py:step`` in the place of a module, codes in the place of a module, and words that are nearly right."""

import json
import subprocess
from pathlib import Path

import pytest

from shardpass.cli import explain, opt
from shardpass.cli.common import argument_parser
from shardpass.cli.script import is_script
from shardpass.diagnostics.core import codes
from shardpass.redistribute import plan_redistribution
from tools.processes import environment, module_command

ROWS = 32
SCRIPT = f"""
import argparse
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

@jax.jit
def step(x):
    print("traced")
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P()))

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default={ROWS})
    rows = parser.parse_args().rows
    auto = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=auto)
    x = jax.device_put(jnp.ones((rows, 64)), NamedSharding(mesh, P("data", "model")))
    try:
        step(x).block_until_ready()
    except Exception:
        raise SystemExit("caught") from None
    open("ran", "w").close()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def command(script: Path, *words: str, devices: int = 8) -> subprocess.CompletedProcess[str]:
    where = {**environment(), "JAX_NUM_CPU_DEVICES": str(devices), "XLA_FLAGS": ""}
    return subprocess.run(
        module_command("shardpass", *words), capture_output=True, text=True, cwd=script.parent, env=where, check=False
    )


@pytest.mark.parametrize("rows", [ROWS, 2 * ROWS])
def test_the_program_of_a_function_of_a_script(script: Path, rows: int) -> None:
    what = "train.py:step" if rows == ROWS else f"train.py:step --rows {rows}"
    done = command(script, "explain", what, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)  # what the script prints is not in it
    assert "traced" in done.stderr
    gathers = [row for row in report["collectives"] if row["kind"] == "all_gather"]
    assert {row["line"] for row in gathers} == {SCRIPT[: SCRIPT.index("with_sharding")].count("\n") + 1}
    assert sum(row["bytes_each"] for row in gathers) == rows * 64 * 4 * 7 // 8  # all but the device's own eighth
    assert not (script.parent / "ran").exists(), "the step ran"


@pytest.mark.parametrize("jitted", ["forward", "lambda x: forward(x)", "Model().__call__"])
def test_a_variable_that_is_a_jitted_function_of_another_name(script: Path, jitted: str) -> None:
    text = SCRIPT.replace("@jax.jit\ndef step(x):", "def forward(x):")
    model = "class Model:\n    def __call__(self, x):\n        return forward(x)\n\n"
    script.write_text(text.replace("if __name__", f"{model}step = jax.jit({jitted})\nif __name__"))
    done = command(script, "check", "train.py:step", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert not (script.parent / "ran").exists(), "the step ran"


LIBRARY = """
import jax, jax.numpy as jnp

def jitted(function):
    def around(*arguments):
        return function(*arguments)
    made = jax.jit(around)
    return WRAPPED

@jitted
def init(x):
    return x + 1

@jitted
def step(x):
    return x * 2

step(init(jnp.ones(3)))
"""


@pytest.mark.parametrize("wrapped", ["made", "lambda *arguments: made(*arguments)"])
def test_a_function_that_a_library_wraps_is_known_by_its_own_name(wrapped: str, tmp_path: Path) -> None:
    """JAX calls the programs of ``init`` and ``step`` by the name of the function around them."""
    path = tmp_path / "train.py"
    path.write_text(LIBRARY.replace("WRAPPED", wrapped))
    done = command(path, "opt", "train.py:step")
    assert done.returncode == 0, done.stderr
    assert "stablehlo.multiply" in done.stdout
    assert "stablehlo.add" not in done.stdout


def test_faults_of_the_script_have_places(script: Path) -> None:
    done = command(script, "explain", "train.py:step", devices=1)
    line = SCRIPT[: SCRIPT.index("make_mesh")].count("\n") + 1
    assert done.returncode == 1
    assert f"train.py:{line}: error: " in done.stderr
    assert "SP141" in done.stderr
    done = command(script, "check", "train.py:stop")
    assert done.returncode == 1
    assert "SP145" in done.stderr
    assert "did you mean step?" in done.stderr
    assert "traced" not in done.stderr
    done = command(script, "check", "train.py:rows")
    assert done.returncode == 1
    assert "SP142" in done.stderr
    assert "step" in done.stderr.rpartition("compiled ")[2]
    assert (script.parent / "ran").exists()
    done = command(script, "explain", "train.py")
    assert done.returncode == 1
    assert "SP146" in done.stderr
    assert "train.py:step" in done.stderr
    done = command(script, "explain", "train.py:step 'a")
    assert done.returncode == 1
    assert "SP141" in done.stderr
    done = command(script, "explain", "nowhere.py:step")
    assert done.returncode == 1
    assert "SP120" in done.stderr
    assert "nowhere.py: " in done.stderr


def test_an_error_of_types_is_quoted_and_names_the_command_that_repairs_it(tmp_path: Path) -> None:
    """JAX adds notes to its exceptions, which are not their text."""
    script = tmp_path / "typed.py"
    script.write_text("""
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
with jax.set_mesh(mesh):
    left, right = jax.device_put(jnp.ones((4, 4)), P(None, "x")), jax.device_put(jnp.ones((4, 4)), P("x"))
    step = jax.jit(lambda a, b: a @ b)
    step(left, right)
""")
    done = command(script, "explain", "typed.py:step", devices=2)
    assert done.returncode == 1
    assert "ShardingTypeError: Contracting dimensions are sharded" in done.stderr
    assert "`shardpass suggest typed.py:step`" in done.stderr
    assert "internal frames" not in done.stderr


def test_a_file_of_that_name_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_script("a.py:f")
    assert is_script("a/b.py:A.f --x 1")
    assert is_script("python -m a.b:f --x 1")
    assert not is_script("a.mlir")
    assert not is_script("a.py")
    Path("a.py:f").write_text("module {}")
    assert not is_script("a.py:f")


def test_a_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for row in codes():
        assert explain.main([row.id]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"{row.id} ({row.severity})")
        assert row.explanation in shown
    assert explain.main(["SP000"]) == 1
    assert "SP143" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("main", "words", "near"),
    [
        (opt.main, ["--print-ir-after-all"], "--mlir-print-ir-after-all"),
        (explain.main, ["x.mlir", "--group-by", "lines"], "line"),
        (explain.main, ["x.mlir", "--memory-limits", "1GiB"], "--memory-limit"),
    ],
)
def test_near_words_are_offered(main, words, near, capsys) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.rstrip().endswith(f"did you mean {near}?")


def test_a_module_is_one_word_of_every_command_line() -> None:
    parser = argument_parser("run", "", "")
    parser.add_argument("module")
    parser.add_argument("pipeline", nargs="?")
    args = parser.parse_args(["-m", "pkg.train:step --batch 8", "partition"])
    assert (args.module, args.pipeline) == ("python -m pkg.train:step --batch 8", "partition")
    assert is_script(args.module)


def test_element_types_have_numpys_names() -> None:
    plans = [plan_redistribution((8,), name, "{devices=[4]<=[4]}", "{replicated}") for name in ("float32", "f32")]
    assert plans[0].bytes_received == plans[1].bytes_received == 8 * 4 * 3 // 4
