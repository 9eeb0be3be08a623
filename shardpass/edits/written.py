"""Copies of the user's module with other annotations, in the notation that the module has.

A module of Shardy's has ``sdy.sharding`` and ``sdy.sharding_constraint``; one of GSPMD's ``mhlo.sharding`` and
``custom_call @Sharding``. A copy differs in the annotations of the changes and in nothing else, so that what another
partitioner makes of the copy is what it makes of the program with the edit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.edits.sites import ARGUMENT, CONSTRAINT, RESULT, Site, Spec
from shardpass.ir import annotations as names
from shardpass.ir.context import copy_module
from shardpass.ir.replica_groups import meshes_of
from shardpass.ir.tensors import operation
from shardpass.ir.walk import every_op
from shardpass.ir.written import bytecode
from shardpass.sharding import AxisRef, Mesh, Sharding
from shardpass.sharding.quoting import mlir_quoted

_SDY_SHARDING = "sdy.sharding"


@dataclass(frozen=True)
class Change:
    """An annotation in another form: ``spec`` at ``site``; None: no annotation."""

    site: Site
    spec: Spec | None


class Notation:
    """How ``module`` writes shardings over ``mesh``. ``name``: of Shardy's mesh; None in GSPMD's notation."""

    def __init__(self, module: Any, mesh: Mesh) -> None:
        self.mesh = mesh
        known = {name: one for name, one in meshes_of(module).items() if isinstance(one, Mesh)}
        self.name = next((name for name, one in known.items() if one.axes == mesh.axes), next(iter(known), None))

    @property
    def attribute(self) -> str:
        """The name of the attribute on arguments and results."""
        return names.SHARDING if self.name is None else _SDY_SHARDING

    def value(self, spec: Spec) -> Any:
        """The attribute that says ``spec``, in the current context."""
        if self.name is None:
            dims = tuple(tuple(map(AxisRef, axes)) for axes in spec)
            return ir.StringAttr.get(str(Sharding.tiled(self.mesh, dims)))
        return ir.Attribute.parse(f"#sdy.sharding<@{self.name}, {_dims(spec)}>")

    def constrained(self, value: Any, spec: Spec) -> Any:
        """A constraint of ``value`` at the current insertion point; the op."""
        if self.name is None:
            made = names.make_custom_call(names.CONSTRAINT, value, value.type, {names.SHARDING: self.value(spec)})
            return operation(made.owner)
        return ir.Operation.create(
            "sdy.sharding_constraint",
            results=[value.type],
            operands=[value],
            attributes={"sharding": self.value(spec)},
        )

    def rewrite(self, constraint: Any, spec: Spec) -> None:
        """Says ``spec`` on an op that is a constraint."""
        constraint.attributes[names.SHARDING if self.name is None else "sharding"] = self.value(spec)


def with_changes(module: Any, mesh: Mesh, changes: Iterable[Change]) -> bytes:
    """A copy of ``module`` with ``changes``, as bytecode; ``module`` stays as it is."""
    copy = copy_module(module)
    with copy.context, ir.Location.unknown():
        notation = Notation(copy, mesh)
        ops = list(every_op(copy.operation))
        signature = names.Signature(names.main_of(copy))
        for change in changes:
            site = change.site
            if site.kind in (ARGUMENT, RESULT):
                rows = signature.arguments if site.kind == ARGUMENT else signature.results
                for position in site.positions:
                    rows[position].pop(notation.attribute, None)
                    if change.spec is not None:
                        rows[position][notation.attribute] = notation.value(change.spec)
            for number, place in site.origins:
                _at(notation, ops[number], place, change)
        signature.write()
        return bytecode(copy)


def _at(notation: Notation, op: Any, place: int, change: Change) -> None:
    if change.site.kind == CONSTRAINT:
        if change.spec is None:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        else:
            notation.rewrite(op, change.spec)
        return
    assert change.spec is not None
    value, block = op.results[place], op.block
    inside = list(block.operations)
    following = inside[[operation(one) for one in inside].index(op) + 1]
    with ir.InsertionPoint(following), op.location:
        made = notation.constrained(value, change.spec)
    value.replace_all_uses_except(made.results[0], made)


def _dims(spec: Spec) -> str:
    return f"[{', '.join('{' + ', '.join(map(mlir_quoted, axes)) + '}' for axes in spec)}]"
