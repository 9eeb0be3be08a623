"""The files under examples/ are what the programs under examples/programs lower to today."""

import subprocess
from pathlib import Path

import pytest

from tools.docs import make_examples
from tools.processes import environment, module_command

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def test_examples_are_not_stale():
    # in a process of its own: the tool sets JAX options that other tests must not see
    run = subprocess.run(
        module_command("tools.docs.make_examples", "--check"),
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
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


def test_check_compares_numbers_of_another_version():
    text = (EXAMPLES / "mlp_train_step.mlir").read_text()
    old = text.replace(text.split(" with jax ")[1].split(".\n")[0], "0.9.0", 1)
    assert make_examples.differences(old, text) == []
    changed = old.replace("stablehlo.negate", "stablehlo.sign")
    assert {row.split(":")[0] for row in make_examples.differences(changed, text)} == {"numbers"}


@pytest.mark.parametrize(("what", "old", "new", "said"), CHANGES, ids=[row[0] for row in CHANGES])
def test_check_sees_a_change(what, old, new, said):
    text = (EXAMPLES / "mlp_train_step.mlir").read_text()
    # as if this JAX had made it, so that ops are compared under any version
    text = text.replace(text.split(" with jax ")[1].split(".\n")[0], make_examples.jax.__version__, 1)
    changed = text.replace(old, new)
    assert changed != text, what
    assert make_examples.differences(text, text) == []
    assert [row.split(":")[0] for row in make_examples.differences(changed, text)] == [said]


def test_no_path_of_a_machine():
    for path in EXAMPLES.glob("*.mlir"):
        for line in path.read_text().splitlines():
            assert 'loc("/' not in line, f"{path.name}: {line}"
