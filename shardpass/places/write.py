"""Copies of the user's module with other annotations, in the notation that the module has.

A copy differs in the annotations of the changes and in nothing else, so that what another
partitioner makes of the copy is what it makes of the program with the edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.constraints import Notation
from shardpass.ir.context import copy_module
from shardpass.ir.tensors import operation
from shardpass.ir.written import bytecode
from shardpass.places.marks import numbered_ops
from shardpass.places.padding import pad_argument, pad_result
from shardpass.places.sites import ARGUMENT, CONSTRAINT, RESULT, Site
from shardpass.places.specs import Spec
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
        writer = Writer(copy, mesh)
        writer.sign(changes)
        for change in changes:
            for number, place in change.site.origins:
                if change.site.kind == CONSTRAINT:
                    writer.rewrite(number, change.spec)
                elif change.spec is not None:
                    writer.result(number, place, change.spec)
        for change in changes:
            if change.padded is not None and change.spec is not None:
                pad = pad_argument if change.site.kind == ARGUMENT else pad_result
                for position in change.site.positions:
                    pad(main_of(copy), position, change.padded, change.spec, writer.notation, mesh)
        return bytecode(copy)


class Writer:
    """Writes shardings over ``mesh`` into ``module``, in place. Ops are known by the numbers that they had at first.

    ``shardy``: as for ``Notation``. ``_operands``: the constraints of operands by value, sharding and block, for reuse.
    """

    def __init__(self, module: Any, mesh: Mesh, *, shardy: bool = False) -> None:
        self.module, self.mesh = module, mesh
        self.ops = dict(numbered_ops(module))  # before a mesh is added
        self.notation = Notation(module, mesh, shardy)
        self._operands: dict[tuple[Any, Spec, Any], Any] = {}

    def sign(self, changes: Iterable[Change]) -> None:
        """Writes the annotations of arguments and results into the signature."""
        signature = Signature(main_of(self.module))
        for change in changes:
            if change.site.kind in (ARGUMENT, RESULT):
                rows = signature.arguments if change.site.kind == ARGUMENT else signature.results
                for position in change.site.positions:
                    rows[position].pop(self.notation.attribute, None)
                    if change.spec is not None:
                        rows[position][self.notation.attribute] = self.notation.value(self._sharding(change.spec))
        signature.write()

    def rewrite(self, number: int, spec: Spec | None) -> None:
        """Gives the constraint that is op ``number`` another spec; removes it if that is None."""
        op = self.ops[number]
        if spec is None:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        else:
            self.notation.rewrite(op, self._sharding(spec))

    def argument(self, place: int, spec: Spec) -> None:
        """Constrains an argument of main, for all its users."""
        block = operation(main_of(self.module)).regions[0].blocks[0]
        value = block.arguments[place]
        self._constrain(value, spec, ir.InsertionPoint.at_block_begin(block), value.location)

    def result(self, number: int, place: int, spec: Spec) -> None:
        """Constrains a result of op ``number``, for all its users."""
        op = self.ops[number]
        self._constrain(op.results[place], spec, ir.InsertionPoint.after(op), op.location)

    def operand(self, number: int, place: int, spec: Spec) -> None:
        """Constrains an operand of op ``number``. Ops of a block share a constraint, so the first is to come first."""
        op = self.ops[number]
        value = op.operands[place]
        key = value, spec, operation(op.parent).regions[0] if op.block is None else op.block
        if key not in self._operands:
            with ir.InsertionPoint(op), op.location:
                self._operands[key] = self.notation.constraint(value, self._sharding(spec)).results[0]
        op.operands[place] = self._operands[key]

    def _constrain(self, value: Any, spec: Spec, where: Any, location: Any) -> None:
        with where, location:
            made = self.notation.constraint(value, self._sharding(spec))
        value.replace_all_uses_except(made.results[0], [made])

    def _sharding(self, spec: Spec) -> Sharding:
        return Sharding.tiled(self.mesh, spec)
