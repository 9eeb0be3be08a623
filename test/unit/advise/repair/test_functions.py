"""Functions of a process, in a process of its own: what is frozen there is not thawed here."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, sys, types
from shardpass.advise.repair.trace import functions

def make():
    def inside(): pass
    return inside

def show():
    print(sorted(one.__qualname__ for one in functions() if one.__qualname__ in WANTED))

WANTED = "Model.call", "make", "make.<locals>.inside"

class Model:
    def call(self): pass

module = types.ModuleType("model")
module.step = types.SimpleNamespace(parts=[make()])
sys.modules["model"] = module
{before}
late = make()
show()
{after}
show()
"""
FIRST = ["Model.call", "make", "make.<locals>.inside", "make.<locals>.inside"]


@pytest.mark.parametrize("before", ["", "gc.freeze()"])
@pytest.mark.parametrize(
    ("after", "second"),
    [
        ("later = make(); gc.freeze()", [*FIRST, "make.<locals>.inside"]),
        ("gc.unfreeze(); del late", FIRST[:-1]),
        ("del module.step", FIRST[:-1]),
    ],
)
def test_functions_are_listed_whether_or_not_they_are_frozen(before, after, second):
    program = PROGRAM.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(FIRST), str(second)]
