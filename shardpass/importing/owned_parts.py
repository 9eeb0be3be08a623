"""Represent a whole array as summands: each device has its own part, and zeros elsewhere.

Problem. ``reshard(x, P(unreduced={"y"}))`` makes a partial sum over y of an array that is whole, or split over y. JAX
defines the summand of each device, which ``addressable_data`` shows: the elements that the device had before, and zeros
for those of other devices. Of an array that y does not split the first device along y keeps all.

    [a b c d] split over y=2       ->  [a b 0 0], [0 0 c d]
    [a b c d] whole along y=2      ->  [a b c d], [0 0 0 0]

Method. A dimension that axes of the partial sum split is cut into its tiles: [N] -> [n, N/n], one dimension of size n
for each axis. Those of the partial sum's axes become dimensions of summands (in place, nothing moves), each is
broadcast along a new dimension in the place where it was, and a mask keeps the diagonal:

    [n, k]  ->  broadcast [n, n', k], kept where the indices in n and n' are equal  ->  [n, N]

Along an axis that splits nothing the summand of index 0 is kept. So it is, as in Shardy, where a dimension changes its
sharding by more than the loss of its last axes to the partial sum: tiles are moved first. O(1) ops for each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, retype, shape_of, splat
from shardpass.ops.tiles.boxes import zeros
from shardpass.ops.tiles.positions import every
from shardpass.sharding import AxisRef, Mesh, Sharding

Axes = tuple[AxisRef, ...]


def count_of(mesh: Mesh, axes: Sequence[AxisRef]) -> int:
    return Sharding.tiled(mesh, (tuple(axes),)).tile_counts(1)[0]


@dataclass(frozen=True, slots=True)
class _Digit:
    """A dimension of the cut array. ``axis``: the device axis that splits it; None for the dimension within a tile."""

    size: int
    axis: AxisRef | None = None


def owning_axes(split: Axes, wanted: Axes, axes: Axes) -> Axes:
    """Return the last axes in ``split`` that are moved to the partial sum, so that ``wanted`` remain.

    Those keep their parts in place.
    """
    rest = len(split)
    while rest and split[rest - 1] in axes:
        rest -= 1
    return split[rest:] if split[:rest] == wanted else ()


def owned_parts(value: Any, mesh: Mesh, dims: Sequence[Axes], wanted: Sequence[Axes], summed: Axes, axes: Axes) -> Any:
    """Build the summands of ``value`` over ``axes`` at the insertion point: [devices along axes, *shape].

    ``value`` holds the summands over ``summed`` already, an array [devices along summed, *shape] where there are any;
    ``dims`` split ``shape``, and ``wanted`` split it afterwards.
    """
    shape = shape_of(value)[1:] if summed else shape_of(value)
    if axes == summed:
        return value
    owning = [owning_axes(split, left, axes) for split, left in zip(dims, wanted, strict=True)]
    digits = [_digits(mesh, *row) for row in zip(shape, dims, owning, strict=True)]
    padded = tuple(prod(digit.size for digit in row) for row in digits)
    lead = [_Digit(count_of(mesh, (axis,)), axis) for axis in summed]
    rows = [digit for row in digits for digit in row]
    parts = _reshape(_padded(value, shape, padded), [digit.size for digit in (*lead, *rows)])
    # from here: one dimension for each of axes, then all of rows
    counts = [count_of(mesh, (axis,)) for axis in axes]
    places = [axes.index(digit.axis) for digit in lead if digit.axis in axes]
    places += [
        axes.index(digit.axis) if digit.axis in axes and digit.axis is not None else len(axes) + index
        for index, digit in enumerate(rows)
    ]
    spread = hlo.broadcast_in_dim(
        retype(value.type, (*counts, *(digit.size for digit in rows))), parts, i64_array(places)
    )
    kept = _mask(shape_of(spread), axes, summed, rows)
    masked = hlo.select(kept, spread, zeros(spread.type.element_type, spread.type.shape))
    return _cut_back(_reshape(masked, (prod(counts), *padded)), shape)


def _digits(mesh: Mesh, size: int, split: Axes, owning: Axes) -> list[_Digit]:
    """Cut a dimension of ``size`` into digits; ``owning``: the last of the axes that ``split`` the dimension."""
    if not owning:
        return [_Digit(size)]
    counts = [count_of(mesh, (axis,)) for axis in split]
    tile = -(-size // prod(counts))
    rest = len(split) - len(owning)
    return [*map(_Digit, counts[:rest]), *map(_Digit, counts[rest:], owning), _Digit(tile)]


def _mask(shape: tuple[int, ...], axes: Axes, summed: Axes, rows: Sequence[_Digit]) -> Any:
    """Build a mask of the elements that each device keeps: its own part along each axis, part 0 along others."""
    kind = ir.RankedTensorType.get(list(shape), ir.IntegerType.get_signless(32))
    owners = {digit.axis: len(axes) + index for index, digit in enumerate(rows) if digit.axis is not None}
    return every(
        hlo.compare(
            hlo.iota(kind, place),
            hlo.iota(kind, owners[axis]) if axis in owners else splat(kind, 0),
            hlo.ComparisonDirectionAttr.get("EQ"),
        )
        for place, axis in enumerate(axes)
        if axis not in summed
    )


def _reshape(value: Any, shape: Sequence[int]) -> Any:
    return value if tuple(shape) == shape_of(value) else hlo.reshape(retype(value.type, shape), value)


def _padded(value: Any, shape: tuple[int, ...], padded: tuple[int, ...]) -> Any:
    if shape == padded:
        return value
    lead = len(shape_of(value)) - len(shape)
    none = i64_array([0] * (lead + len(shape)))
    high = i64_array([0] * lead + [b - a for a, b in zip(shape, padded, strict=True)])
    return hlo.pad(value, zeros(value.type.element_type), none, high, none)


def _cut_back(value: Any, shape: tuple[int, ...]) -> Any:
    count = shape_of(value)[0]
    if shape_of(value)[1:] == shape:
        return value
    start, step = i64_array([0] * (len(shape) + 1)), i64_array([1] * (len(shape) + 1))
    return hlo.slice(value, start, i64_array([count, *shape]), step)
