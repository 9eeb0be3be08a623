"""Distributed types, the notation of Rink et al. (section 2.1): ``[32{"x"}128, 64{"y","z"}512, 10]`` over a mesh.

Each dimension is written as its tile size, the axes that split it in braces from minor to major, and its global size; a
dimension that is not split is one number. Tile size times axis sizes is the global size, so the notation cannot express
a dimension that its axes do not divide. Sub-axes, ``"x":(1)2``, are an addition of ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.errors import fault
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.reader import Reader, tokens_of
from shardpass.sharding.notes import Kind
from shardpass.sharding.quoting import STRING, mlir_quoted, mlir_unquoted

_TOKENS = tokens_of(rf"\d+|{STRING}|[A-Za-z_]\w*")


def _number(read: Reader) -> int:
    at, digits = read.place, read.match(r"\d+", "a number")
    if len(digits) > 18:
        raise fault(table.INTEGER_RANGE, read.text, at, len(digits), value=digits)
    return int(digits)


def _axis(read: Reader) -> AxisRef:
    name = read.match(rf"{STRING}|[A-Za-z_]\w*", "the name of an axis")
    name = mlir_unquoted(name[1:-1]) if name[0] in "\"'" else name
    if not read.next(":"):
        return AxisRef(name)
    read.take("(")
    pre = _number(read)
    read.take(")")
    return AxisRef(name, pre, _number(read))


def parse_distributed_type(text: str, mesh: Mesh) -> tuple[Sharding, tuple[int, ...]]:
    """Parse the sharding and the global shape of a distributed type over ``mesh``.

    Raises:
        ShardingParseError: the text is none, or a tile size times its axes is not the global size.
        ShardingError: an axis that the mesh has not, or one that is used twice.
    """
    read = Reader(text, _TOKENS)
    read.take("[")
    dims: list[tuple[AxisRef, ...]] = []
    shape: list[int] = []
    for _ in read.several("]"):
        at, size = read.place, _number(read)
        axes: list[AxisRef] = []
        if read.next("{"):
            for _ in read.several("}"):
                axes.append(mesh.ref(_axis(read)))
            tile, size = size, _number(read)
            parts = math.prod(map(mesh.ref_size, axes))
            if tile * parts != size:
                raise fault(table.TILE_SIZE, text, at, tile=tile, parts=parts, product=tile * parts, size=size)
        dims.append(tuple(reversed(axes)))
        shape.append(size)
    read.end()
    return Sharding.tiled(mesh, dims), tuple(shape)


def distributed_type_text(sharding: Sharding, shape: Sequence[int]) -> str:
    """Format the distributed type of an array of ``shape``.

    Raises:
        ShardingError: the notation has no form for it: no mesh, partial sums, manual axes, a size that does not divide.
    """
    mesh, counts = sharding.mesh, sharding.tile_counts(len(shape))
    if sharding.kind in (Kind.MAXIMAL, Kind.MANUAL, Kind.UNKNOWN, Kind.UNREDUCED):
        raise table.CANNOT_SAY.error(notation="a distributed type", what=f"{{{sharding.kind}}}")
    for what, axes in (("partial sums", sharding.unreduced), ("manual axes", sharding.manual or sharding.maximal_axes)):
        if axes:
            raise table.CANNOT_SAY.error(notation="a distributed type", what=what)
    out = []
    for k, (size, count) in enumerate(zip(shape, counts, strict=True)):
        if size % count:
            raise table.CANNOT_SAY.error(notation="a distributed type", what=f"a size of {size} in {count} tiles")
        if mesh is None or not sharding.dims or not sharding.dims[k]:
            out.append(str(size))
            continue
        names = ",".join(mlir_quoted(a.name) + a.part for a in reversed(sharding.dims[k]))
        out.append(f"{size // count}{{{names}}}{size}")
    return f"[{', '.join(out)}]"
