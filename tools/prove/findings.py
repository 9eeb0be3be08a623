"""The findings about one sample, and the helpers that both questions of the rule prover need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.ir.annotations import main_of
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import operation
from shardpass.ops.registry import find
from shardpass.ops.splits import assign as assignment
from shardpass.ops.splits.factors import Rule
from tools.prove.rule_samples.sample import Sample
from tools.values import Array


@dataclass(slots=True)
class Findings:
    """What a sample's rule was found to be."""

    sample: Sample
    runs: int = 0
    unsaid: int = 0  # splits that some operand or result cannot say: they do not divide
    incorrect: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def rule_of(sample: Sample) -> Rule | None:
    module = parse_module(sample.text())
    with module.context:
        op = the_op(module, sample)
        entry = find(sample.op)
        return entry.rule(op) if entry else None


def the_op(module: Any, sample: Sample) -> Any:
    """The op under test: the last one before the return."""
    ops = [operation(o) for o in main_of(module).regions[0].blocks[0].operations]
    found = ops[-2]
    assert found.name == sample.op
    return found


def agree(got: Array, want: Array, rough: bool) -> bool:
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if not rough:
        return bool(np.array_equal(got, want))
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    rate = 0.02 if want.dtype.itemsize == 2 else 1e-5
    return bool(np.allclose(got.astype(wide), want.astype(wide), rtol=rate, atol=rate, equal_nan=True))


F32 = element_type("f32")


def sides_of(sample: Sample, rule: Rule) -> list[assignment.Side]:
    """Operands made in the module's body (initial values) are scalars."""
    shapes = [t.shape for t in sample.operands] + [()] * len(sample.more) + [t.shape for t in sample.results]
    maps = (*rule.operands, *rule.results)
    return [assignment.Side(s, m, ((),) * len(s), F32) for s, m in zip(shapes, maps, strict=True)]
