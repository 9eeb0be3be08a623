"""Rules of other packages that raise, or give back what does not fit the op, are the fault of these packages."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass import ShardpassError, run_pipeline
from shardpass.ops import registry
from shardpass.ops.families import custom_call
from shardpass.ops.model import LocalPlan, OpModel, Pointwise
from shardpass.ops.registry import find
from shardpass.ops.splits.factors import RuleBuilder

PROGRAM = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> tensor<8x6xf32> {
    %0 = stablehlo.custom_call @border.test(%x) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
"""


def rule(dims=2, operands=1, factors=(0, 1)):
    build = RuleBuilder([dims] * operands, [2])
    for size in (8, 6):
        build.factor(size)
    for dim in range(2):
        build.operand(0, dim, factors[dim])
        build.result(0, dim, dim)
    return build.build()


@dataclass(frozen=True, eq=False)
class Planless(OpModel[Any]):
    rule: Any

    def plan(self, split):
        return {"tile": split.result_tile(0)}

    def emit(self, plan, site):
        return site.keep()


@dataclass(frozen=True, eq=False)
class Raises(Planless):
    def plan(self, split):
        raise IndexError("lost")


@dataclass(frozen=True, eq=False)
class Emits(OpModel[LocalPlan]):
    rule: Any
    what: Any

    def plan(self, split):
        return LocalPlan(split)

    def emit(self, plan, site):
        return self.what(site)


CASES = {
    "read raises": (lambda op: op.no_such_thing, "AttributeError"),
    "read gives text": (lambda op: "i j -> i j", "it gives a str, and not an OpModel or None"),
    "no rule": (lambda op: Planless(None), "rule is None, and not a Rule"),
    "a rule of two operands": (lambda op: Pointwise(rule(operands=2)), "its rule has 2 operands, and the op 1"),
    "a rule of three dimensions": (
        lambda op: Pointwise(rule(dims=3)),
        "its rule gives operand 0 3 dimensions, of which it has 2",
    ),
    "a factor that is not there": (
        lambda op: Pointwise(rule(factors=(0, 7))),
        "its rule gives operand 0 the factor 7, and has 2 factors",
    ),
    "plan gives a dictionary": (lambda op: Planless(rule()), "it gives a dict, and not a LocalPlan"),
    "plan raises": (lambda op: Raises(rule()), "IndexError: lost"),
    "emit gives None": (lambda op: Emits(rule(), lambda site: None), "emit gives None, and the op has 1 results"),
    "emit gives two": (
        lambda op: Emits(rule(), lambda site: [*site.keep(), *site.keep()]),
        "emit gives 2 values, and the op has 1 results",
    ),
    "emit gives an op": (
        lambda op: Emits(rule(), lambda site: [site.op]),
        "for result 0, and not a value of MLIR's",
    ),
    "emit gives the whole": (
        lambda op: Emits(rule(), lambda site: [site.op.results[0]]),
        "emit gives the shape (8, 6) for result 0, whose tile is (2, 6)",
    ),
}


@pytest.mark.parametrize(("read", "reason"), CASES.values(), ids=CASES)
def test_a_fault_of_another_package_is_named_as_its_own(monkeypatch, read, reason):
    monkeypatch.setitem(custom_call._targets, "border.test", read)
    with pytest.raises(ShardpassError) as caught:
        run_pipeline(PROGRAM, "partition")
    found = caught.value.diagnostics[0]
    assert found.code == "SP139"
    assert reason in found.message
    assert f" of {__name__}: " in found.message
    assert found.place.file == __file__
    assert "the fault is not in shardpass" in found.remedy


def test_what_fits_the_op_is_taken(monkeypatch):
    monkeypatch.setitem(custom_call._targets, "border.test", lambda op: Emits(rule(), lambda site: site.keep()))
    module = run_pipeline(PROGRAM, "partition")
    assert "@border.test" in str(module)
    assert "tensor<2x6xf32>" in str(module)


def expanded(monkeypatch, expand):
    """The program with stablehlo.cbrt written out by ``expand``, an op of another package's."""
    monkeypatch.setitem(registry._table, "stablehlo.cbrt", replace(find("stablehlo.cbrt"), expand=expand))
    return run_pipeline(PROGRAM.replace("stablehlo.custom_call @border.test(%x)", "stablehlo.cbrt %x"), "partition")


def negated(op):
    return hlo.NegOp(op.operands[0])


def no_value(op):
    raise ValueError("the rule is for rows: and has none")


def invalid(op):
    narrow = hlo.slice(op.operands[0], *map(ir.DenseI64ArrayAttr.get, ([0, 0], [8, 2], [1, 1])))
    kind = op.results[0].type
    return [hlo.NegOp(hlo.AbsOp(narrow, results=[kind]).result, results=[kind]).result]


def no_op(op):
    return [hlo.transpose(op.operands[0], ir.DenseI64ArrayAttr.get([5]))]


EXPANDS = {
    "raises ValueError": (no_value, "ValueError: the rule is for rows: and has none"),
    "raises KeyError": (lambda op: {}[op.name], "KeyError: 'stablehlo.cbrt'"),
    "builds what is no op": (no_op, "MLIRError"),
    "builds an invalid op": (
        invalid,
        "expand builds an invalid stablehlo.abs: 'stablehlo.abs' op ",
    ),
    "gives a value and no list": (lambda op: negated(op).result, "expand gives a OpResult, and the op has 1 results"),
    "gives two": (lambda op: [op.operands[0]] * 2, "expand gives 2 values, and the op has 1 results"),
    "gives text": (lambda op: "x", "expand gives a str for result 0, and not a value of MLIR's"),
    "gives another type": (
        lambda op: [hlo.constant(ir.DenseElementsAttr.get(np.zeros(2, np.float32)))],
        "expand gives tensor<2xf32> for result 0, which is tensor<8x6xf32>",
    ),
}


@pytest.mark.parametrize(("expand", "reason"), EXPANDS.values(), ids=EXPANDS)
def test_a_fault_of_another_packages_expand_is_named_as_its_own(monkeypatch, expand, reason):
    with pytest.raises(ShardpassError) as caught:
        expanded(monkeypatch, expand)
    found = caught.value.diagnostics[0]
    assert found.code == "SP139"
    assert reason in found.message
    assert f" of {__name__}: " in found.message
    assert found.place.file == __file__


@pytest.mark.parametrize("expand", [lambda op: [negated(op).result], lambda op: negated(op).results, lambda op: None])
def test_an_expand_that_fits_is_taken(monkeypatch, expand):
    text = str(expanded(monkeypatch, expand))
    assert ("stablehlo.negate" in text) != ("stablehlo.cbrt" in text)
