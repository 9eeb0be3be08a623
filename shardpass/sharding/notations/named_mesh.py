"""XLA's mesh text, the first part of the named form (V3): ``mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0))``.

``str(mesh)`` prints the text, and ``parse_mesh`` reads it. XLA's parser lets meshes through that have no meaning (sizes
below 1, an iota of other devices); ``MeshText.problem`` reports these faults.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.digits import Ints
from shardpass.sharding.errors import ShardingError, ShardingParseError, placed
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.notations.source import Source
from shardpass.sharding.notations.trees import Node, first_offset, pieces, trees
from shardpass.sharding.notations.xla_iota import canonical
from shardpass.sharding.xla_text import comma_separated, list_text, mesh_text

_AXIS = r"'([A-Za-z_][A-Za-z0-9_]*)'=([1-9][0-9]{0,8})"
_PLAIN = re.compile(rf"mesh\[{_AXIS}(?:,{_AXIS})*\]", re.ASCII)
_ONE = re.compile(_AXIS, re.ASCII)


@lru_cache(maxsize=4096)
def parse_mesh(text: str) -> Mesh:
    """Parse XLA's V3 text, ``mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0))``; device ids may count up.

    Raises:
        ShardingParseError: ``text`` is no such mesh.
    """
    mesh = _plain(text)
    return _parsed(text) if mesh is None else mesh


def _plain(text: str) -> Mesh | None:
    """Parse a mesh of plain axis names only; None if the text needs the grammar."""
    if _PLAIN.fullmatch(text) is None:
        return None
    axes = _ONE.findall(text)
    return Mesh(axes) if len(dict(axes)) == len(axes) else None


def _parsed(text: str) -> Mesh:
    from shardpass.sharding.notations.syntax import parse_tree  # with it lark, which most programs never need

    source = Source(text, strict=True)
    written = mesh_of_tree(source, parse_tree(text, "mesh_only"))
    problem = written.problem(source, 0)
    if problem is not None:
        raise problem
    return written.mesh(source, 0)


@dataclass(frozen=True, slots=True)
class MeshText:
    """The parts of a mesh in its textual form.

    Attributes:
        axes: name and size of each axis.
        iota: shape and transpose of an iota of device ids; None where they are a list, or left out.
        order: the device ids in mesh order; None where they are left out, or the iota has no meaning.
    """

    axes: tuple[tuple[str, int], ...]
    iota: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    order: Ints | None = None

    @property
    def size(self) -> int:
        return math.prod(size for _, size in self.axes)

    def problem(self, source: Source, at: int) -> ShardingParseError | None:
        """Describe the fault of a mesh that XLA's parser accepts; None for a valid mesh."""
        for name, size in self.axes:
            if size < 1:
                return source.contradiction(
                    at, f"axis {name!r} has the size {size}", "give each axis a size of at least 1"
                )
        if self.iota is not None:
            shape, perm = self.iota
            if sorted(perm) != list(range(len(shape))):
                return source.fault(table.TRANSPOSE, at, perm=comma_separated(perm), last=len(shape) - 1)
            if math.prod(shape) != self.size:
                hint = "write an iota that lists each device of the mesh once"
                return source.fault(table.IOTA_SIZE, at, tiles=self.size, devices=math.prod(shape), hint=hint)
        return None

    def mesh(self, source: Source, at: int) -> Mesh:
        """Make the mesh of a text without problem.

        Raises:
            ShardingParseError: an axis twice, or device ids that are no permutation.
        """
        try:
            return Mesh(self.axes, self.order)
        except ShardingError as error:
            raise placed(error, source.text, at) from None

    def canonical_text(self, mesh: Mesh, source: Source, at: int) -> str:
        """Format ``mesh``, read from this text, as XLA does: listed ids stay a list, unless they count up."""
        if self.order is None or self.iota is not None:
            return str(mesh)
        if mesh.is_iota:
            raise source.contradiction(at, "the device ids are 0, 1, 2.. already", "leave out device_ids")
        return mesh_text(self.axes, list_text(self.order))

    def text_without_meaning(self) -> str | None:
        """Format a mesh with a problem as XLA does; None for a device list, for which XLA ends the process."""
        if self.iota is None:
            return None if self.order is not None else mesh_text(self.axes)
        shape, perm = canonical(list(self.iota[0]), list(self.iota[1]))
        if len(shape) < 2:
            return mesh_text(self.axes)
        return mesh_text(self.axes, f"[{comma_separated(shape)}]T({comma_separated(perm)})")


def mesh_of_tree(source: Source, tree: Node) -> MeshText:
    """Read the parts of the mesh in the parse tree of a mesh, or of a named sharding.

    Raises:
        ShardingParseError: device ids without axes, or an iota that is not well formed.
    """
    axes: list[tuple[str, int]] = []
    for part in tree.iter_subtrees_topdown():
        if part.data == "mesh_axis":
            name, size = pieces(part)
            axes.append((source.string(name), source.one(size)))
    for part in trees(tree):
        if part.data.startswith("ids_") and not axes:
            raise source.contradiction(
                first_offset(part), "a mesh without axes has no device ids", "leave out device_ids"
            )
        if part.data == "ids_list":
            listed = [token for token in pieces(part) if token.type == "INTS"]
            return MeshText(tuple(axes), None, source.ints(listed[0]) if listed else np.array([], dtype=np.int64))
        if part.data == "ids_iota":
            return _with_iota(MeshText(tuple(axes)), *_iota(source, part))
    return MeshText(tuple(axes))


def _with_iota(written: MeshText, shape: tuple[int, ...], perm: tuple[int, ...]) -> MeshText:
    if sorted(perm) != list(range(len(shape))) or min(shape) < 1 or math.prod(shape) != written.size:
        return MeshText(written.axes, (shape, perm))
    grid = np.arange(math.prod(shape)).reshape(shape).transpose(perm)
    return MeshText(written.axes, (shape, perm), grid.reshape(-1))


def _iota(source: Source, part: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    tokens = pieces(part)
    shape = source.tuple(tokens[1])
    if (len(shape) == 1) != (len(tokens) == 2):
        hint = "write T(..) after an iota of several dimensions, and none after an iota of one"
        at = tokens[1].end_pos
        raise source.fault(
            table.SYNTAX, at, expected="T(..)" if len(shape) > 1 else "')'", found="something else", hint=hint
        )
    perm = source.tuple(tokens[3]) if len(shape) > 1 else (0,)
    if any(not 0 <= p < len(shape) for p in perm) or len(perm) != len(shape):
        shown = comma_separated(perm)
        raise source.fault(table.TRANSPOSE, tokens[3].start_pos, len(shown), perm=shown, last=len(shape) - 1)
    return shape, perm
