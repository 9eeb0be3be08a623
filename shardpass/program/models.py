"""Caches the models of ops, as equal ops share a model and building one takes tens of microseconds.

Two ops are equal where name, operand and result types, attributes and regions are. Families whose ``read`` looks
further (``OpDef.context_free`` is False), and ops whose regions take values from outside, are read each time. State:
one table a program, as MLIR's types and attributes are unique within a context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardpass.ir.annotations import DECIDED, PINNED, SCOPE, SHARDING
from shardpass.ir.tensors import operation
from shardpass.ops.border import checked_model
from shardpass.ops.model import OpModel
from shardpass.ops.registry import OpDef

NOT_FACTS = frozenset({SHARDING, SCOPE, PINNED, *DECIDED})  # they say how this op is split, not what it does


class Models:
    """The models of the ops of one program; equal ops share a model."""

    def __init__(self) -> None:
        self._known: dict[Any, OpModel[Any] | None] = {}

    def of(self, op: Any, entry: OpDef, types: Sequence[Any]) -> OpModel[Any] | None:
        """Return the model of ``op``; None if it is computed whole. ``types``: of its operands and results."""
        if not entry.context_free:
            return checked_model(entry.read(op), entry.read, op)
        key = (entry.name, *types, *_attributes(op), *_regions(op))
        if key not in self._known:
            self._known[key] = checked_model(entry.read(op), entry.read, op)
        return self._known[key]


def _attributes(op: Any) -> list[Any]:
    attributes = op.attributes
    if not len(attributes):
        return []
    out: list[Any] = []
    for name in attributes:  # by name: an access by place ends the process on elements of a complex type
        if name not in NOT_FACTS:
            try:
                out += [name, attributes[name]]
            except TypeError:  # the bindings cannot hand it out (jaxlib 0.10.2)
                return [op]
    return out


def _regions(op: Any) -> list[Any]:
    """Describe the regions of ``op``: each inner op by name, attributes and the positions of its operands."""
    if not len(op.regions):
        return []
    out: list[Any] = []
    places: dict[Any, int] = {}
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                places[argument] = len(places)
            for inner in map(operation, block.operations):
                out += [inner.name, *(places.get(value, -1) for value in inner.operands), *_attributes(inner)]
                out += [result.type for result in inner.results]
                for result in inner.results:
                    places[result] = len(places)
                out += _regions(inner)
            out.append("end")
    return out
