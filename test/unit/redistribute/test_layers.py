"""The layers that the docstring of ``shardpass.redistribute`` names hold for every import in the package."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shardpass.redistribute

ROOT = Path(shardpass.redistribute.__file__).parent
LAYERS = re.findall(r"^    (\w+)/?  +\S", shardpass.redistribute.__doc__, re.MULTILINE)
FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.name != "__init__.py")


def layer_of(module):
    """The number of the layer of ``shardpass.redistribute.<layer>...``."""
    return LAYERS.index(module.split(".")[2])


def imported(path):
    """The modules of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("shardpass.redistribute"):
            if node.module.count(".") == 1:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def test_the_docstring_names_every_layer():
    entries = {path.stem for path in ROOT.iterdir() if path.name[0] not in "_."}
    assert set(LAYERS) == entries


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_imports_go_down(path):
    own = LAYERS.index(path.relative_to(ROOT).parts[0].removesuffix(".py"))
    assert all(layer_of(module) <= own for module in imported(path))


def test_planning_loads_neither_mlir_nor_a_solver():
    code = """
import sys
from shardpass.redistribute import plan_redistribution
plan = plan_redistribution((8, 8), "f32", "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}")
assert plan.steps
assert not {name.split(".")[0] for name in sys.modules} & {"jax", "jaxlib", "scipy"}, sorted(sys.modules)
assert "stablehlo.all_to_all" in plan.to_module()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
