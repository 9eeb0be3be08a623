"""Trace the operand of a product back to an all_gather.

Problem. An all_gather along another dimension than the leading one is written as an all_gather of a new leading
dimension, a transpose and a reshape; users transpose and convert the gathered array. The loop needs the tile that each
device contributes, in the shape that the product needs.

State. ``dim`` is the dimension that holds the tiles of the group one after the other: its index is ``k * size + r``,
``k`` the place in the group and ``r`` the index inside a tile. It is followed forward through the ops between.

Cases, 4 devices, a tile ``[256, 128]`` gathered along its columns:

1. reshape to ``[1, 256, 128]`` and all_gather along 0: ``[4, 256, 128]``, ``dim`` is 0;
2. transpose ``[1, 0, 2]``: ``[256, 4, 128]``, ``dim`` is 1; the tile's own transpose is ``[256, 1, 128]``;
3. reshape to ``[256, 512]``: before ``dim`` stand 256 elements, and before dimension 1 of the result too: ``dim`` is 1,
   and the tile's own reshape is ``[256, 128]``. A reshape that cuts the tiles' order (``[512, 256]``) ends the search;
4. convert: of the tile.

Cost: the ops between, few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints, operation, retype, shape_of
from shardpass.planning.price.loops import reshaped

ALL_GATHER = "stablehlo.all_gather"
BETWEEN = ("stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose")


@dataclass(frozen=True, slots=True)
class Gathered:
    """A value computed from the all_gather ``gather`` by the ops ``between``; its tiles lie along ``dim``."""

    gather: Any
    between: tuple[Any, ...]
    dim: int
    count: int

    def tile(self) -> Any:
        """Apply the ops ``between`` to this device's own tile, at the current insertion point."""
        value = self.gather.operands[0]
        dim = self.gather.attributes["all_gather_dim"].value
        for op in self.between:
            after = _followed(op, dim, self.count)
            assert after is not None
            with op.location:
                if op.name == "stablehlo.transpose":
                    value = hlo.transpose(value, list(ints(op.attributes["permutation"])))
                else:
                    kind = op.results[0].type
                    shape = [n // self.count if k == after else n for k, n in enumerate(kind.shape)]
                    made = hlo.convert if op.name == "stablehlo.convert" else hlo.reshape
                    value = made(retype(kind, shape), value)
            dim = after
        return value


def gathered(value: Any, count: int | None = None) -> Gathered | None:
    """Trace ``value`` to an all_gather of one operand; None unless it is a concatenation of a group's tiles."""
    between: list[Any] = []
    while not isinstance(value.owner, ir.Block):
        op = operation(value.owner)
        if op.name == ALL_GATHER:
            return _from(op, tuple(reversed(between)))
        if op.name not in BETWEEN:
            return None
        between.append(op)
        value = op.operands[0]
    return None


def _from(gather: Any, between: tuple[Any, ...]) -> Gathered | None:
    if len(gather.operands) != 1:
        return None
    dim = gather.attributes["all_gather_dim"].value
    before, after = shape_of(gather.operands[0])[dim], shape_of(gather.results[0])[dim]
    if not before:
        return None
    count = after // before
    for op in between:
        followed = _followed(op, dim, count)
        if followed is None:
            return None
        dim = followed
    return Gathered(gather, between, dim, count)


def _followed(op: Any, dim: int, count: int) -> int | None:
    """Return the dimension of ``op``'s result along which the tiles lie; None if there is none."""
    if op.name == "stablehlo.transpose":
        return ints(op.attributes["permutation"]).index(dim)
    if op.name == "stablehlo.convert":
        return dim
    return reshaped(shape_of(op.operands[0]), shape_of(op.results[0]), dim, count)
