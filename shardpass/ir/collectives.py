"""The collectives of a per-device module: what each moves, over which axes, for which line, and why.

Bytes are those that one device receives from others (the greatest over devices), its own data not counted,
with tiles of the per-device program and g devices in a group:

    all_gather           result * (g-1)/g        every other device's part of the result
    all_to_all           operand * (g-1)/g       one block of each other device
    collective_permute   operand                 0 where every device sends to itself
    collective_broadcast operand
    reduce_scatter       operand * (g-1)/g       ring: one block of each other device, partly summed
    all_reduce           2 * operand * (g-1)/g   reduce_scatter, then all_gather

What stands in a loop's body is counted once, and marked. Cost: one walk over the module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.element_types import element_type
from shardpass.ir.locations import place_of
from shardpass.sharding import Mesh, parse_mesh
from shardpass.sharding.axes import part_name, refs

Ints = npt.NDArray[np.int64]

KINDS = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_broadcast",
    "collective_permute",
    "reduce_scatter",
)
OPS = frozenset(f"stablehlo.{kind}" for kind in KINDS)
_LOOPS = ("stablehlo.while", "stablehlo.scan")


@dataclass(frozen=True, slots=True)
class CollectiveUse:
    """One collective op. ``axes`` is "" where its groups follow no axes of the module's mesh."""

    kind: str
    axes: str  # 'x', or 'x,y', major to minor; sub-axes as x:(2)4
    operand: str  # types of the tiles, 'tensor<4x8xf32>'; several are joined with ', '
    result: str
    group_size: int  # of the greatest group; for a permute 2 where anything is moved
    bytes_received: int
    place: Place  # the user's line
    reason: str  # "" where the op says none
    in_loop: bool

    def __str__(self) -> str:
        over = f" over {self.axes}" if self.axes else ""
        where = f" at {self.place}" if self.place != NOWHERE else ""
        loop = ", each time round a loop" if self.in_loop else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.kind}{over}, {self.bytes_received} bytes{loop}{where}{reason}"

    def as_dict(self) -> dict[str, object]:
        """For JSON: plain values under the names of the fields; ``place`` as file, line, column."""
        fields: dict[str, object] = {name: getattr(self, name) for name in self.__slots__ if name != "place"}
        return {**fields, "file": self.place.file, "line": self.place.line, "column": self.place.column}


def collectives(module: Any) -> list[CollectiveUse]:
    """Every collective of ``module`` (a per-device ``ir.Module``), in the order of its text."""
    devices, mesh = _devices(module), _mesh(module)
    return [_use(op, in_loop, devices, mesh) for op, in_loop in _walk(module.operation, False)]


def total_bytes(uses: Sequence[CollectiveUse]) -> int:
    """Bytes received by a device in one run, every loop body counted once."""
    return sum(use.bytes_received for use in uses)


def _walk(operation: Any, in_loop: bool) -> Iterator[tuple[Any, bool]]:
    for region in operation.regions:
        for block in region:
            for view in block.operations:
                op = view.operation
                if op.name.removeprefix("stablehlo.") in KINDS:
                    yield op, in_loop  # its region is its reduction
                else:
                    yield from _walk(op, in_loop or op.name in _LOOPS)


def _use(op: Any, in_loop: bool, devices: int, mesh: Mesh | None) -> CollectiveUse:
    kind = op.name.removeprefix("stablehlo.")
    operands, results = [v.type for v in op.operands], [v.type for v in op.results]
    groups = _groups(op, kind, devices)
    said = _text(op, "shardpass.axes")
    return CollectiveUse(
        kind=kind,
        axes=said or ("" if mesh is None else axes_of_groups(mesh, groups, kind != "collective_permute")),
        operand=", ".join(map(str, operands)),
        result=", ".join(map(str, results)),
        group_size=groups.shape[1] if groups.size else 1,
        bytes_received=_received(kind, operands, results, groups),
        place=place_of(op.location),
        reason=_text(op, "shardpass.cause"),
        in_loop=in_loop,
    )


def _received(kind: str, operands: Sequence[Any], results: Sequence[Any], groups: Ints) -> int:
    size = groups.shape[1] if groups.size else 1
    others = Fraction(size - 1, size)
    if kind == "all_gather":
        return int(_bytes(results) * others)
    moved = _bytes(operands)
    if kind in ("collective_permute", "collective_broadcast"):
        return moved if size > 1 else 0
    return int(moved * others * (2 if kind == "all_reduce" else 1))


def _bytes(types: Sequence[Any]) -> int:
    return sum(
        element_type(str(kind.element_type)).bytes(prod(kind.shape))
        for kind in types
        if isinstance(kind, ir.RankedTensorType)
    )


def _groups(op: Any, kind: str, devices: int) -> Ints:
    """The groups that talk to one another, one a row, -1 past the end of a short one.

    Of a permute: the pairs of a source and another device as target.
    """
    if kind == "collective_permute":
        pairs: Ints = np.array(op.attributes["source_target_pairs"], dtype=np.int64).reshape(-1, 2)
        moves: Ints = pairs[pairs[:, 0] != pairs[:, 1]]
        return moves
    groups: Ints = np.array(op.attributes["replica_groups"], dtype=np.int64)
    return groups if groups.size else np.arange(devices, dtype=np.int64).reshape(1, -1)


def axes_of_groups(mesh: Mesh, groups: Ints, whole: bool = True) -> str:
    """The axes and sub-axes of ``mesh`` along which the devices of each row of ``groups`` differ.

    With ``whole``, each group must hold every device that these axes join, else the answer is "". The pairs
    of a permute use a part of the axes that they are named with.
    """
    if not groups.size or groups.min() < 0 or groups.max() >= mesh.size:
        return ""
    positions = mesh.position[groups]
    digits = [(s, n) for s, n in _prime_digits(mesh) if np.ptp(positions // s % n, axis=1).any()]
    if whole and prod(n for _, n in digits) != groups.shape[1]:
        return ""
    parts = [(ref, mesh.sizes[ref.name]) for ref in refs(mesh, digits) or ()]
    return ",".join(part_name(ref.name, ref.pre, ref.size or full, full) for ref, full in parts)


def _prime_digits(mesh: Mesh) -> Iterator[tuple[int, int]]:
    """The mesh position as digits of prime size, (stride, size), major to minor."""
    stride = mesh.size
    for size in mesh.shape:
        factor = 2
        while size > 1:
            while size % factor == 0:
                stride, size = stride // factor, size // factor
                yield stride, factor
            factor += 1


def _devices(module: Any) -> int:
    attributes = module.operation.attributes
    if "mhlo.num_partitions" not in attributes:
        return 1
    return int(ir.IntegerAttr(attributes["mhlo.num_partitions"]).value)


def _mesh(module: Any) -> Mesh | None:
    """The module's mesh, to name axes with; a text that is no mesh names none."""
    text = _text(module.operation, "shardpass.mesh")
    try:
        return parse_mesh(text) if text else None
    except ShardpassError:
        return None


def _text(op: Any, name: str) -> str:
    if name not in op.attributes:
        return ""
    attribute = op.attributes[name]
    return attribute.value if isinstance(attribute, ir.StringAttr) else str(attribute)
