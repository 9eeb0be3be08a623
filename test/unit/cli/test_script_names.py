"""Names of functions are refused before a script runs only where nothing could make them."""

from pathlib import Path

import pytest

from shardpass.cli import explain
from shardpass.cli.script_names import check_name, file_of_module, functions_of
from shardpass.diagnostics import ShardpassError

JIT = "import jax\n\n@jax.jit\ndef step(x):\n    return x\n\nstep(1.0)\n"
MAKES = {
    "a definition": "def stepp(x): pass",
    "a nested definition": "def make():\n    def stepp(x): pass\n    return stepp",
    "a class": "class stepp: pass",
    "an assignment": "stepp = jax.jit(lambda x: x)",
    "an attribute": "step.stepp = 1",
    "an import": "from lib import stepp",
    "an import under a name": "from lib import other as stepp",
    "a star": "from lib import *",
    "a module": "import lib",
    "a module in a function": "def late():\n    import lib",
    "a quoted name": 'step.__dict__["stepp"] = 1',
    "a name that is set": 'step.__name__ = "st" + "epp"',
    "executed text": 'exec("def st" + "epp(): pass")',
    "a module by name": 'import importlib\nimportlib.import_module("l" + "ib")',
    "a module that is not there yet": 'import sys\nsys.path.insert(0, "elsewhere")\nimport hidden',
    "a text that does not parse": "def (",
}
MAKES_NOT = {
    "nothing": "",
    "a longer name": "def stepp2(x): pass",
    "a method eval": "step.eval()",
    "the main guard": 'if __name__ == "__main__":\n    pass',
    "a library of Python": "import os.path, json\nfrom collections import abc",
    "a library without JAX": "import numpy as np",
    "a module without it": "import other",
    "a comment": "# stepp is what we once had",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("lib.py").write_text("def stepp(x): pass\n")
    Path("other.py").write_text("def loss(x): pass\n")
    return tmp_path


@pytest.mark.parametrize("kind", MAKES)
def test_names_that_something_can_make_are_run(folder, kind):
    Path("train.py").write_text(f"{JIT}{MAKES[kind]}\n")
    check_name("train.py", "stepp")


@pytest.mark.parametrize("kind", MAKES_NOT)
def test_names_that_nothing_makes_are_refused(folder, kind):
    Path("train.py").write_text(f"{JIT}{MAKES_NOT[kind]}\n")
    with pytest.raises(ShardpassError, match="did you mean step") as raised:
        check_name("train.py", "stepp")
    assert raised.value.code == "SP145"


def test_functions_of_libraries_count(folder):
    Path("train.py").write_text("import jax, jax.numpy as jnp\njnp.linalg.norm(jnp.ones(3))\n")
    for name in ("norm", "_lambda_", "_unnamed_wrapped_function_"):
        check_name("train.py", name)
    with pytest.raises(ShardpassError, match="the functions here: none"):
        check_name("train.py", "step")


def test_modules_are_found_without_being_imported(folder):
    Path("pkg/sub").mkdir(parents=True)
    for name, text in (("__init__", "raise SystemExit"), ("train", "from .lib import step"), ("lib", JIT)):
        Path(f"pkg/{name}.py").write_text(text)
    Path("pkg/sub/__init__.py").write_text("")
    Path("pkg/sub/__main__.py").write_text("from ..lib import step")
    assert Path(file_of_module("pkg.train", ["."])).samefile("pkg/train.py")
    assert Path(file_of_module("pkg.sub", ["."])).samefile("pkg/sub/__main__.py")
    assert file_of_module("pkg.none", ["."]) is None
    assert file_of_module("pkg.train.more", ["."]) is None
    check_name("pkg/train.py", "step")
    check_name("pkg/sub/__main__.py", "step")
    with pytest.raises(ShardpassError, match="did you mean step"):
        check_name("pkg/train.py", "stop")


def test_a_package_without_a_file_inside_of_one_that_has_it(folder: Path) -> None:
    for path in ("lib2/__init__.py", "lib2/configs/default.py"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("def stepp(x): pass\n" if "default" in path else "")
    Path("train.py").write_text(f"from lib2.configs import default\n{JIT}")
    assert file_of_module("lib2.configs.default", [str(folder)]) == str(folder / "lib2/configs/default.py")
    check_name("train.py", "stepp")


@pytest.mark.parametrize(
    ("text", "jitted"),
    [
        ("@jax.jit\ndef step(x): pass", ["step"]),
        ("@partial(jax.jit, donate_argnums=0)\ndef step(x): pass", ["step"]),
        ("@nnx.jit(donate_argnums=0)\ndef step(x): pass", ["step"]),
        ("@eqx.filter_jit\ndef step(x): pass", ["step"]),
        ("def step(x): pass\nrun = jax.jit(step, donate_argnums=0)", ["step"]),
        ("def loss(x): pass\n@jit\ndef step(x): pass\ndef make():\n    return jit(evaluate)", ["step", "evaluate"]),
        ("@jax.vmap\ndef step(x): pass\njax.grad(step)\njax.jit(lambda x: x)", []),
        ("def (", []),
    ],
)
def test_jitted_functions_are_found_without_running(folder, text, jitted):
    Path("train.py").write_text(text)
    assert functions_of("train.py")[0] == jitted


def test_a_script_alone_is_refused_with_its_jitted_functions(folder, capsys):
    Path("train.py").write_text(f"{JIT}def loss(x): pass\n")
    assert explain.main(["train.py"]) == 1
    assert "as in train.py:step; jitted here: step\n" in capsys.readouterr().err
    Path("train.py").write_text("def loss(x): pass\n")
    assert explain.main(["train.py"]) == 1
    assert "as in train.py:loss; defined here: loss\n" in capsys.readouterr().err


def test_the_example_is_a_step_where_several_functions_are_jitted(folder, capsys):
    Path("train.py").write_text(f"{JIT}@jax.jit\ndef evaluate(x): pass\n")
    assert explain.main(["train.py"]) == 1
    assert "as in train.py:step; jitted here: step, evaluate\n" in capsys.readouterr().err
