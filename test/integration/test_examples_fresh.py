"""The files under examples/ are what the programs under examples/programs lower to today."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_examples", ROOT / "tools" / "make_examples.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_examples"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_examples_are_not_stale():
    # in a process of its own: the tool sets JAX options that other tests must not see
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_examples.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    checked = {line.split(":")[0] for line in run.stdout.splitlines() if line.endswith(": ok")}
    assert checked == {f"examples/{path.name}" for path in EXAMPLES.glob("*.mlir")}


CHANGES = [
    (
        "an argument's sharding",
        '"{devices=[4,2]<=[8] last_tile_dim_replicate}"} loc',
        '"{replicated}"} loc',
        "signature",
    ),
    (
        "a constraint",
        '= "", mhlo.sharding = "{devices=[4,1,2]<=[8]',
        '= "", mhlo.sharding = "{devices=[2,1,4]<=[8]',
        "constraints",
    ),
    ("an op", "stablehlo.negate", "stablehlo.sign", "ops"),
]


def test_check_compares_numbers_of_another_version(tool):
    text = (EXAMPLES / "mlp_train_step.mlir").read_text()
    old = text.replace(text.split(" with jax ")[1].split(".\n")[0], "0.9.0", 1)
    assert tool.differences(old, text) == []
    changed = old.replace("stablehlo.negate", "stablehlo.sign")
    assert {row.split(":")[0] for row in tool.differences(changed, text)} == {"numbers"}


@pytest.mark.parametrize(("what", "old", "new", "said"), CHANGES, ids=[row[0] for row in CHANGES])
def test_check_sees_a_change(tool, what, old, new, said):
    text = (EXAMPLES / "mlp_train_step.mlir").read_text()
    # as if this JAX had made it, so that ops are compared under any version
    text = text.replace(text.split(" with jax ")[1].split(".\n")[0], tool.jax.__version__, 1)
    changed = text.replace(old, new)
    assert changed != text, what
    assert tool.differences(text, text) == []
    assert [row.split(":")[0] for row in tool.differences(changed, text)] == [said]


def test_no_path_of_a_machine():
    for path in EXAMPLES.glob("*.mlir"):
        for line in path.read_text().splitlines():
            assert 'loc("/' not in line, f"{path.name}: {line}"
