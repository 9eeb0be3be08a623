"""Copies of the user's module with other annotations, in the notation that the module has.

A copy differs in the annotations of the changes and in nothing else, so that what another
partitioner makes of the copy is what it makes of the program with the edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from shardpass.advise.place.marks import numbered_ops
from shardpass.advise.place.padding import pad_argument, pad_result
from shardpass.advise.place.sites import ARGUMENT, BORDER, CAST, CHUNKS, CONSTRAINT, CUT, MESH, RESULT, Site, piece_of
from shardpass.advise.place.specs import Spec
from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.constraints import Notation
from shardpass.ir.context import copy_module
from shardpass.ir.replica_groups import mesh_parts
from shardpass.ir.tensors import operation
from shardpass.ir.written import bytecode
from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.program.read import read_program
from shardpass.sharding import AxisRef, Mesh, Sharding

Signed = tuple[str, int, Sharding | None]  # ARGUMENT or RESULT, its place, and its annotation or none


@dataclass(frozen=True)
class Change:
    """A new annotation for ``site``: ``spec``, or none at all if that is None.

    ``padded``: the shape to which arguments or results are padded because ``spec`` does not divide theirs; None for no
    padding.
    """

    site: Site
    spec: Spec | None
    padded: tuple[int, ...] | None = None

    def sharding(self, mesh: Mesh) -> Sharding | None:
        """Return the new sharding over ``mesh``."""
        return None if self.spec is None else Sharding.tiled(mesh, self.spec)

    def dims(self, mesh: PrimeMesh) -> DimAxes | None:
        """Return the new split by parts of axes; None without one, or where ``mesh`` does not have its axes."""
        dims = [mesh.numbered([AxisRef(name) for name in axes]) for axes in self.spec or ()]
        return None if self.spec is None or None in dims else tuple(one for one in dims if one is not None)


def mesh_sizes(change: Change) -> tuple[tuple[str, int], ...]:
    """Return the axes of the mesh with their sizes after ``change``, of a site of kind MESH."""
    names = [name for (name,) in change.site.spec or ()]
    sizes = dict(zip(names, (size for size, _ in change.site.pieces), strict=True))
    return tuple((name, sizes[other]) for name, (other,) in zip(names, change.spec or (), strict=True))


def with_changes(module: Any, mesh: Mesh, changes: Sequence[Change]) -> bytes:
    """Return a copy of ``module`` with ``changes``, as bytecode."""
    copy = copy_module(module)
    with copy.context, ir.Location.unknown():
        writer = Writer(copy, mesh)
        writer.sign(signed(changes, mesh))
        for change in changes:
            if change.site.kind == MESH:
                resize(copy, mesh_sizes(change))
            sharding = change.sharding(mesh)
            for number, place in change.site.origins:
                if change.site.kind == CONSTRAINT:
                    writer.rewrite(number, sharding)
                elif change.site.kind == CHUNKS:
                    writer.chunk(number, change.site.pieces[0][1], change.site.cut)
                elif change.site.kind == CUT:
                    writer.cut(number, prod(dict(mesh.axes)[name] for name in (change.spec or ())[change.site.cut]))
                elif change.site.kind == CAST and sharding is not None:
                    writer.operand(number, place, sharding)
                elif sharding is not None:
                    writer.constrain(writer.ops[number].results[place], sharding)
        for change in changes:
            if change.padded is not None and change.spec is not None:
                pad = pad_argument if change.site.kind == ARGUMENT else pad_result
                for position in change.site.positions:
                    pad(main_of(copy), position, change.padded, change.spec, writer.notation, mesh)
        return bytecode(copy)


def resize(module: Any, sizes: Sequence[tuple[str, int]]) -> None:
    """Give the axes of the mesh of ``module`` other sizes, in the order of their names there."""
    for op in map(operation, module.body.operations):
        if op.name == "sdy.mesh":
            axes, ids = mesh_parts(op.attributes["mesh"])
            if [name for name, _ in axes] == [name for name, _ in sizes]:
                op.attributes["mesh"] = sdy.MeshAttr.get([sdy.MeshAxisAttr.get(*one) for one in sizes], list(ids))


def on_values(imported: Any, changes: Sequence[Change]) -> Any:
    """Return a copy of an imported module with ``changes`` applied.

    Changed values, identified by number, get sharding constraints; changed arguments and results get annotations.
    Changes of chunks and of region borders are ignored.
    """
    module = copy_module(imported)
    with module.context, ir.Location.unknown():
        program, handles = read_program(module, "propagate")
        mesh = program.mesh.mesh
        writer = Writer(module, mesh)
        for change in changes:
            sharding = change.sharding(mesh)
            if change.site.kind not in (ARGUMENT, RESULT, CHUNKS, BORDER, MESH) and sharding is not None:
                for number in change.site.values:
                    writer.constrain(handles.values[number], sharding)
        writer.sign(signed(changes, mesh))
    return module


def signed(changes: Iterable[Change], mesh: Mesh) -> Iterator[Signed]:
    """Yield the changes of arguments and results, for ``Writer.sign``."""
    for change in changes:
        if change.site.kind in (ARGUMENT, RESULT):
            yield from ((change.site.kind, position, change.sharding(mesh)) for position in change.site.positions)


class Writer:
    """Write shardings over ``mesh`` into ``module``, in place. Ops keep the numbers that they had at first.

    ``shardy``: as for ``Notation``. ``_operands``: the constraints of operands by value, sharding and block, for reuse.
    """

    def __init__(self, module: Any, mesh: Mesh, *, shardy: bool = False) -> None:
        self.module = module
        self.ops = dict(numbered_ops(module))  # before a mesh is added
        self.notation = Notation(module, mesh, shardy)
        self._operands: dict[tuple[Any, Sharding, Any], Any] = {}

    def sign(self, annotations: Iterable[Signed]) -> None:
        """Write the annotations of arguments and results into the signature."""
        signature, name = Signature(main_of(self.module)), self.notation.attribute
        for kind, position, sharding in annotations:
            row = (signature.arguments if kind == ARGUMENT else signature.results)[position]
            row.pop(name, None)
            if sharding is not None:
                row[name] = self.notation.value(sharding)
        signature.write()

    def rewrite(self, number: int, sharding: Sharding | None) -> None:
        """Change the sharding of the constraint that is op ``number``; None removes the constraint."""
        op = self.ops[number]
        if sharding is None:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        else:
            self.notation.rewrite(op, sharding)

    def cut(self, number: int, groups: int) -> None:
        """Make op ``number``, a slice along one dimension, take its part of each of ``groups`` equal parts of the
        operand, as though these had been stored in turn.
        """
        op = self.ops[number]
        piece = piece_of(op)
        assert piece is not None
        dim, (start, end) = piece
        kind, result = ir.RankedTensorType(op.operands[0].type), ir.RankedTensorType(op.results[0].type)
        split = [*kind.shape[:dim], groups, kind.shape[dim] // groups, *kind.shape[dim + 1 :]]
        starts, ends = [0] * len(split), list(split)
        starts[dim + 1], ends[dim + 1] = start // groups, end // groups
        with ir.InsertionPoint(op), op.location:
            whole = stablehlo.reshape(ir.RankedTensorType.get(split, kind.element_type), op.operands[0])
            part = stablehlo.slice(whole, starts, ends, [1] * len(split))
            op.results[0].replace_all_uses_with(stablehlo.reshape(result, part))
        op.erase()

    def chunk(self, number: int, count: int, dim: int) -> None:
        """Make op ``number``, a reshape into or from ``count`` chunks of rows, take each ``count``-th row for a chunk,
        or a part of dimension 1 (``dim``) of all rows.
        """
        op = self.ops[number]
        given, made = (ir.RankedTensorType(value.type) for value in (op.operands[0], op.results[0]))
        forward = made.shape[0] == count
        rows, *rest = given.shape if forward else made.shape
        split = [rows, count, rest[0] // count, *rest[1:]] if dim else [rows // count, count, *rest]
        parts = [split[1], split[0], *split[2:]]
        with ir.InsertionPoint(op), op.location:
            shape = ir.RankedTensorType.get(split if forward else parts, given.element_type)
            turned = stablehlo.transpose(stablehlo.reshape(shape, op.operands[0]), [1, 0, *range(2, len(split))])
            op.results[0].replace_all_uses_with(stablehlo.reshape(made, turned))
        op.erase()

    def constrain(self, value: Any, sharding: Sharding) -> None:
        """Constrain an argument of a block, or the result of an op, for all its users."""
        if isinstance(value.owner, ir.Block):
            where, location = ir.InsertionPoint.at_block_begin(value.owner), value.location
        else:
            owner = operation(value.owner)
            where, location = ir.InsertionPoint.after(owner), owner.location
        with where, location:
            made = self.notation.constraint(value, sharding)
        value.replace_all_uses_except(made.results[0], [made])

    def operand(self, number: int, place: int, sharding: Sharding) -> None:
        """Constrain an operand of op ``number``. Ops of a block share a constraint, so the first is to come first."""
        op = self.ops[number]
        value = op.operands[place]
        key = value, sharding, operation(op.parent).regions[0] if op.block is None else op.block
        if key not in self._operands:
            with ir.InsertionPoint(op), op.location:
                self._operands[key] = self.notation.constraint(value, sharding).results[0]
        op.operands[place] = self._operands[key]
