"""Distributed types, the notation of Rink et al. (section 2.1): ``[32{"x"}128, 64{"y","z"}512, 10]`` over a mesh.

Each dimension is written as its tile size, the axes that split it in braces from minor to major, and its global size; a
dimension that is not split is one number. Tile size times axis sizes is the global size, so the notation cannot express
a dimension that its axes do not divide. Sub-axes, ``"x":(1)2``, are an addition of ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.errors import ShardingParseError, fault
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind
from shardpass.sharding.quoting import STRING, mlir_quoted, mlir_unquoted

_TOKEN = re.compile(rf"\s*(\d+|{STRING}|[\[\]{{}},:()]|[A-Za-z_]\w*|.)", re.ASCII | re.DOTALL)


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [(m[1], m.start(1)) for m in _TOKEN.finditer(text)]
        self.at = 0

    @property
    def word(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    @property
    def place(self) -> int:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)

    def fault(self, expected: str) -> ShardingParseError:
        actual = repr(self.word) if self.word else "the end of the text"
        return fault(table.SYNTAX, self.text, self.place, expected=expected, found=actual, hint="")

    def take(self, *wanted: str) -> str:
        if self.word not in wanted:
            raise self.fault(" or ".join(map(repr, wanted)))
        self.at += 1
        return self.tokens[self.at - 1][0]

    def number(self) -> int:
        if not self.word.isdigit():
            raise self.fault("a number")
        if len(self.word) > 18:
            raise fault(table.INTEGER_RANGE, self.text, self.place, len(self.word), value=self.word)
        self.at += 1
        return int(self.tokens[self.at - 1][0])

    def axis(self) -> AxisRef:
        quoted = len(self.word) > 1 and self.word[0] in "\"'"
        if not (quoted or self.word.isidentifier()):
            raise self.fault("the name of an axis")
        name = mlir_unquoted(self.word[1:-1]) if quoted else self.word
        self.at += 1
        if self.word != ":":
            return AxisRef(name)
        self.take(":")
        self.take("(")
        pre = self.number()
        self.take(")")
        return AxisRef(name, pre, self.number())


def parse_distributed_type(text: str, mesh: Mesh) -> tuple[Sharding, tuple[int, ...]]:
    """Parse the sharding and the global shape of a distributed type over ``mesh``.

    Raises:
        ShardingParseError: the text is none, or a tile size times its axes is not the global size.
        ShardingError: an axis that the mesh has not, or one that is used twice.
    """
    tokens = _Tokens(text)
    tokens.take("[")
    dims: list[tuple[AxisRef, ...]] = []
    shape: list[int] = []
    while tokens.word != "]":
        if shape:
            tokens.take(",")
        at, size = tokens.place, tokens.number()
        axes: list[AxisRef] = []
        if tokens.word == "{":
            tokens.take("{")
            while tokens.word != "}":
                if axes:
                    tokens.take(",")
                axes.append(mesh.ref(tokens.axis()))
            tokens.take("}")
            tile, size = size, tokens.number()
            parts = math.prod(map(mesh.ref_size, axes))
            if tile * parts != size:
                raise fault(table.TILE_SIZE, text, at, tile=tile, parts=parts, product=tile * parts, size=size)
        dims.append(tuple(reversed(axes)))
        shape.append(size)
    tokens.take("]")
    if tokens.word:
        raise tokens.fault("the end")
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
