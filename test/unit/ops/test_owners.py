"""Families by name: the table says what the families define, and a family is loaded when it is met."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from shardpass.ops import owners, registry

pytestmark = pytest.mark.fresh_process  # a family that the process has loaded already defines nothing again

RECORD = """
import json, sys
from shardpass.ops import registry

ops, targets = {}, {}


def recorded(function, into):
    def record(names, *args, **kwargs):
        family = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
        into.update(dict.fromkeys([names] if isinstance(names, str) else names, family))
        return function(names, *args, **kwargs)
    return record


registry.define = recorded(registry.define, ops)
from shardpass.ops.families import custom_call
custom_call.define_target = recorded(custom_call.define_target, targets)
registry.table()
print(json.dumps([ops, targets]))
"""


def output(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_every_op_and_target_has_the_family_that_defines_it() -> None:
    """Name what a new family defines in ``shardpass/ops/owners.py``."""
    ops, targets = json.loads(output(RECORD))
    assert ops == owners.FAMILY_OF_OP
    assert targets == owners.FAMILY_OF_TARGET


def test_no_name_has_two_families() -> None:
    names = [f"{dialect}.{op}" for _, dialect, ops in owners.OPS for op in ops.split()]
    assert len(set(names)) == len(names)
    assert len(owners.FAMILY_OF_TARGET) == sum(len(targets.split()) for targets in owners.TARGETS.values())


def test_a_family_is_loaded_when_it_is_met() -> None:
    code = """
import sys
from shardpass.ops import registry
loaded = lambda: {name.rpartition(".")[2] for name in sys.modules if name.startswith("shardpass.ops.families.")}
assert loaded() == set(), loaded()
assert registry.find("stablehlo.add").cheap and registry.find("no.such_op") is None
print(*loaded())
assert registry.find("stablehlo.scatter") is not None
print("scatter" in loaded(), "convolution" in loaded())
"""
    assert output(code).split() == ["elementwise", "True", "False"]


def test_a_definition_from_outside_stands_though_ours_was_not_loaded() -> None:
    code = """
from shardpass.ops import registry
from shardpass.ops.families import custom_call
other = lambda op: None
registry.define("stablehlo.sort", other, note="another's")
assert registry.find("stablehlo.sort").read is other
registry.find("chlo.top_k"), registry.table()
assert registry.find("stablehlo.sort").read is other
custom_call.define_target("TopK", other)
registry.load("xla_targets")
assert custom_call._targets["TopK"] is other
assert custom_call.is_defined("lapack_strsm_ffi") and not custom_call.is_defined("nobody")
"""
    output(code)


def test_the_table_is_whole() -> None:
    assert set(owners.FAMILY_OF_OP) <= set(registry.table())
