"""Copies of the user's module with other annotations, in the notation that the module has.

A copy differs in the annotations of the changes and in nothing else, so that what another
partitioner makes of the copy is what it makes of the program with the edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.advise.places.padding import pad_argument, pad_result
from shardpass.advise.places.sites import ARGUMENT, CONSTRAINT, RESULT, Site, Spec
from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.constraints import Notation
from shardpass.ir.context import copy_module
from shardpass.ir.tensors import operation
from shardpass.ir.walk import every_op
from shardpass.ir.written import bytecode
from shardpass.sharding import Mesh, Sharding


@dataclass(frozen=True)
class Change:
    """A new annotation for ``site``: ``spec``, or none at all if that is None.

    ``padded``: the shape to which arguments or results are padded because ``spec`` does not divide theirs; None for no
    padding.
    """

    site: Site
    spec: Spec | None
    padded: tuple[int, ...] | None = None


def with_changes(module: Any, mesh: Mesh, changes: Sequence[Change]) -> bytes:
    """Returns a copy of ``module`` with ``changes``, as bytecode."""
    copy = copy_module(module)
    with copy.context, ir.Location.unknown():
        ops = list(every_op(copy.operation))  # before a mesh is added
        notation = Notation(copy, mesh)
        signature = Signature(main_of(copy))
        for change in changes:
            site = change.site
            if site.kind in (ARGUMENT, RESULT):
                rows = signature.arguments if site.kind == ARGUMENT else signature.results
                for position in site.positions:
                    rows[position].pop(notation.attribute, None)
                    if change.spec is not None:
                        rows[position][notation.attribute] = notation.value(Sharding.tiled(mesh, change.spec))
            for number, place in site.origins:
                _at(notation, mesh, ops[number], place, change)
        signature.write()
        for change in changes:
            if change.padded is not None and change.spec is not None:
                pad = pad_argument if change.site.kind == ARGUMENT else pad_result
                for position in change.site.positions:
                    pad(main_of(copy), position, change.padded, change.spec, notation, mesh)
        return bytecode(copy)


def _at(notation: Notation, mesh: Mesh, op: Any, place: int, change: Change) -> None:
    if change.site.kind == CONSTRAINT:
        if change.spec is None:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        else:
            notation.rewrite(op, Sharding.tiled(mesh, change.spec))
        return
    assert change.spec is not None
    value, block = op.results[place], op.block
    inside = list(block.operations)
    following = inside[[operation(one) for one in inside].index(op) + 1]
    with ir.InsertionPoint(following), op.location:
        made = notation.constraint(value, Sharding.tiled(mesh, change.spec))
    value.replace_all_uses_except(made.results[0], made)
