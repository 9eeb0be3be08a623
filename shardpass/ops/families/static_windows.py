"""Updates of a window at a constant place, rewritten as a pad before propagation: the border update of a stencil.

Problem. ``x.at[1:-1].set(u)`` is how JAX's users keep the border of a grid. It lowers to a scatter or a
dynamic_update_slice, whose update is needed whole along a dimension that it cuts: on 8 devices each would receive
nearly all of ``u``. But the place is known, so each device needs what falls into its tile: its own part of ``u``,
moved by one element. That is what a pad does.

Cases, for ``x`` of 8 elements and ``u`` of 6 at position 1:

1. dynamic_update_slice, or a scatter that overwrites: ``select(1 <= iota < 7, pad(u, 1, 1), x)``.
2. A scatter that combines: ``x + pad(u, 1, 1)``, padded with what changes nothing (-0.0 for a sum; +0.0 would turn
   -0.0 around).

Only where the update is at least ``PART`` of the array: the op touches the update alone, these touch the array. A
scatter is one of these where it has one window, inside of the array; of a dynamic_update_slice the position is clamped.

O(1) ops an op.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.known_integers import known_integers
from shardpass.ir.tensors import i64_array, retype, shape_of, splat
from shardpass.ops.indexing.dimension_numbers import IndexedDims
from shardpass.ops.reducers import combiner_of
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.masking import identity_text

PART = 1 / 2
_COMBINE = {"add": hlo.add, "multiply": hlo.multiply, "maximum": hlo.maximum, "minimum": hlo.minimum}


def updated_slice(op: Any) -> list[Any] | None:
    """Expand a dynamic_update_slice by case 1."""
    target, update, *positions = op.operands
    known = [known_integers(position) for position in positions]
    if any(position is None for position in known) or not _worthwhile(target, update):
        return None
    rows = zip(known, shape_of(target), shape_of(update), strict=True)
    starts = [min(max(int(position), 0), n - s) for position, n, s in rows if position is not None]
    return [_overwritten(target, update, starts)]


def scattered(op: Any) -> list[Any] | None:
    """Expand a scatter by case 1 or 2."""
    if len(op.operands) != 3:
        return None
    target, indices, update = op.operands
    starts = _starts(op, target, indices, update)
    if starts is None or not _worthwhile(target, update):
        return None
    overwrites, combiner, element = _overwrites(op), combiner_of(op), target.type.element_type
    text = at.nothing_text(element) if overwrites or combiner == "add" else identity_text(combiner, element)
    if text is None or not (overwrites or combiner in _COMBINE) or (combiner == "add" and str(element) == "i1"):
        return None
    window = hlo.reshape(retype(update.type, _window(op, target, update)), update)
    if overwrites:
        return [_overwritten(target, window, starts)]
    return [_COMBINE[combiner](target, _padded(target, window, starts, text))]


def _worthwhile(target: Any, update: Any) -> bool:
    """Return whether the update is large enough, and of the target's element type, as a pad requires."""
    shape = shape_of(target)
    if target.type.element_type != update.type.element_type:
        return False
    return 0 < prod(shape) * PART <= prod(shape_of(update))


def _window(op: Any, target: Any, update: Any) -> tuple[int, ...]:
    """Return the shape of the window, with all dimensions of the target."""
    dims, sizes = IndexedDims.of_scatter(op), shape_of(update)
    walked = dims.walked(len(shape_of(target)))
    return tuple(sizes[walked[d]] if d in walked else 1 for d in range(len(shape_of(target))))


def _starts(op: Any, target: Any, indices: Any, update: Any) -> list[int] | None:
    """Return where the single window begins, inside of the target; None for several windows or an unknown place."""
    dims = IndexedDims.of_scatter(op)
    known = known_integers(indices)
    if known is None or known.size != len(dims.index_map) or dims.operand_batching:
        return None
    starts = [0] * len(shape_of(target))
    for dim, start in zip(dims.index_map, known.reshape(-1), strict=True):
        starts[dim] = int(start)
    rows = zip(starts, _window(op, target, update), shape_of(target), strict=True)
    return starts if all(0 <= start <= n - size for start, size, n in rows) else None


def _overwrites(op: Any) -> bool:
    """Return whether the body returns the update unchanged."""
    block = op.regions[0].blocks[0]
    (*body, end) = block.operations
    return not body and end.operands[0] == block.arguments[1]


def _padded(target: Any, update: Any, starts: Sequence[int], text: str) -> Any:
    high = [n - a - s for n, a, s in zip(shape_of(target), starts, shape_of(update), strict=True)]
    nothing = splat(retype(target.type, ()), text)
    return hlo.pad(update, nothing, *map(i64_array, (starts, high, [0] * len(high))))


def _overwritten(target: Any, update: Any, starts: Sequence[int]) -> Any:
    shape, mask = shape_of(target), None
    for dim, (start, size, n) in enumerate(zip(starts, shape_of(update), shape, strict=True)):
        if size == n:
            continue
        kind = at.numbers(n, [n])
        along = hlo.subtract(hlo.iota(kind, 0), splat(kind, start))
        inside = hlo.broadcast_in_dim(at.i1(shape), at.within(along, size), i64_array([dim]))
        mask = inside if mask is None else hlo.and_(mask, inside)
    if mask is None:
        return update
    return hlo.select(mask, _padded(target, update, starts, at.nothing_text(target.type.element_type)), target)
