"""Rewrite a slice of an assembled array as slices of that array's parts, before propagation.

Problem. ``jnp.pad`` and two slices are how JAX's users write a stencil, ``concatenate`` and a slice a periodic one. The
array in between divides into other tiles than the arrays before and after it: on a mesh ``x=2``, ``pad(x)`` of 8 rows
has 10, so a device holds rows 0-4 of it, but rows 0-3 of ``x``. Most of the array would cross devices there and back.

Cases, for a slice and the op that made its operand, in one block; ``x`` has 8 elements:

1. All of the operand: ``x[0:8]`` is ``x``.
2. A slice of a slice: ``x[2:8][1:3]`` is ``x[3:5]``.
3. A slice of a pad, with unit strides and no interior padding: a pad by the padding that is left (negative where the
   slice cuts deeper): ``pad(x, 1, 1)[0:8]`` is ``pad(x, 1, -1)``; where no padding is left a slice of ``x``, or ``x``.
4. A slice of a concatenate, cut along it with unit stride: ``concat(x, y)[2:5]`` is ``x[2:5]``; where it meets several
   parts, a concatenate of their slices: ``concat(x, y)[4:12]`` is ``concat(x[4:8], y[0:4])``. Several parts are done
   only where they are of one array (the array was padded by itself), or where the concatenate has no other use; it
   would otherwise be built again for each slice.

An op with a sharding of the user stays, and so does an op outside of the slice's loop, which each trip would repeat.

State: ``SliceFolding.made``, the slices made so far, so that equal ones are one value.
Invariant: slices are given in program order, so the operand of a slice has been folded before.
Cost: O(slices, and parts of the arrays that they are cut from).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.annotations import ANNOTATIONS, SCOPE
from shardpass.ir.tensors import i64_array, ints, operation, shape_of


@dataclass(frozen=True, slots=True)
class Slice:
    """The slice ``value[start:limit:stride]``, in every dimension."""

    value: Any
    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(-(-(b - a) // t) for a, b, t in zip(self.starts, self.limits, self.strides, strict=True))

    @property
    def whole(self) -> bool:
        return self.shape == shape_of(self.value)

    def along(self, dim: int, value: Any, start: int, limit: int) -> Slice:
        """Return the same slice for ``value``, which has other elements along ``dim``."""
        starts, limits = list(self.starts), list(self.limits)
        starts[dim], limits[dim] = start, limit
        return Slice(value, tuple(starts), tuple(limits), self.strides)


def slice_of_all(value: Any) -> Slice:
    shape = shape_of(value)
    return Slice(value, (0,) * len(shape), shape, (1,) * len(shape))


class SliceFolding:
    """Folds the slices of one block, which are given in program order."""

    def __init__(self) -> None:
        self.made: dict[Slice, Any] = {}

    def fold(self, op: Any) -> None:
        """Replace and erase the slice ``op`` if one of the cases applies."""
        if any(name in op.attributes for name in ANNOTATIONS):
            return
        rows = (ints(op.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
        with ir.InsertionPoint(op), op.location:
            made = self._simpler(Slice(op.operands[0], *rows), op)
        if made is not None:
            op.results[0].replace_all_uses_with(made)
            op.erase()

    def _simpler(self, cut: Slice, op: Any) -> Any | None:
        """Build ``cut`` from the parts of the sliced array, before ``op``; return None if no case applies."""
        if cut.whole:
            return cut.value
        if isinstance(cut.value.owner, ir.Block):
            return None
        maker = operation(cut.value.owner)
        if maker.block != op.block or any(name in maker.attributes for name in ANNOTATIONS):
            return None
        if maker.name == "stablehlo.slice":
            return self._of_slice(cut, maker, op)
        if maker.name == "stablehlo.pad":
            return self._of_pad(cut, maker, op)
        if maker.name == "stablehlo.concatenate":
            return self._of_concatenate(cut, maker, op)
        return None

    def _built(self, cut: Slice, op: Any) -> Any:
        """Build the value of ``cut``: folded if a case applies, else a new ``stablehlo.slice``."""
        if cut not in self.made:
            made = self._simpler(cut, op)
            self.made[cut] = _slice(cut, op) if made is None else made
        return self.made[cut]

    def _of_slice(self, cut: Slice, maker: Any, op: Any) -> Any:
        first, steps = ints(maker.attributes["start_indices"]), ints(maker.attributes["strides"])
        rows = zip(first, steps, cut.starts, cut.strides, cut.shape, strict=True)
        starts = tuple(f + start * step if n else 0 for f, step, start, _, n in rows)
        strides = tuple(s * step for s, step in zip(cut.strides, steps, strict=True))
        limits = tuple(s + (n - 1) * t + 1 if n else 0 for s, t, n in zip(starts, strides, cut.shape, strict=True))
        return self._built(Slice(maker.operands[0], starts, limits, strides), op)

    def _of_pad(self, cut: Slice, maker: Any, op: Any) -> Any | None:
        value, padding = maker.operands
        shape = shape_of(value)
        low = tuple(p - s for p, s in zip(ints(maker.attributes["edge_padding_low"]), cut.starts, strict=True))
        high = tuple(n - at - m for n, at, m in zip(cut.shape, low, shape, strict=True))
        if any(ints(maker.attributes["interior_padding"])) or set(cut.strides) != {1}:
            return None
        if any(at <= -m or at >= n for at, n, m in zip(low, cut.shape, shape, strict=True)):
            return None  # nothing of the array is left
        if max(low) <= 0 and max(high) <= 0:
            limits = tuple(m + over for m, over in zip(shape, high, strict=True))
            return self._built(Slice(value, tuple(-at for at in low), limits, cut.strides), op)
        return _in_scope(hlo.pad(value, padding, *map(i64_array, (low, high, (0,) * len(shape)))), op)

    def _of_concatenate(self, cut: Slice, maker: Any, op: Any) -> Any | None:
        along = ir.IntegerAttr(maker.attributes["dimension"]).value
        first, last = cut.starts[along], cut.limits[along]
        if cut.strides[along] != 1 or not 0 < last - first < shape_of(cut.value)[along]:
            return None
        parts, begin = [], 0
        for value in maker.operands:
            size = shape_of(value)[along]
            start, limit = max(first - begin, 0), min(last - begin, size)
            if start < limit:
                parts.append((value, start, limit))
            begin += size
        if len(parts) == 1:
            return self._built(cut.along(along, *parts[0]), op)
        rooted = [_root(value, along, start, limit) for value, start, limit in parts]
        if len(list(maker.results[0].uses)) > 1 and len({root for root, _, _ in rooted}) > 1:
            return None
        row = []
        for root, start, limit in rooted:
            others = self._built(cut.along(along, root, 0, shape_of(root)[along]), op)
            row.append(self._built(slice_of_all(others).along(along, others, start, limit), op))
        return _in_scope(hlo.concatenate(row, along), op)


def _root(value: Any, along: int, start: int, limit: int) -> tuple[Any, int, int]:
    """Trace ``value[start:limit]`` along one dimension to the array that ``value`` is a slice of."""
    while not isinstance(value.owner, ir.Block) and operation(value.owner).name == "stablehlo.slice":
        maker = operation(value.owner)
        source, first = maker.operands[0], ints(maker.attributes["start_indices"])[along]
        others = [n for dim, n in enumerate(shape_of(source)) if dim != along]
        if others != [n for dim, n in enumerate(shape_of(value)) if dim != along]:
            break
        if ints(maker.attributes["strides"])[along] != 1:
            break
        value, start, limit = source, start + first, limit + first
    return value, start, limit


def _slice(cut: Slice, op: Any) -> Any:
    return _in_scope(hlo.slice(cut.value, *map(i64_array, (cut.starts, cut.limits, cut.strides))), op)


def _in_scope(value: Any, op: Any) -> Any:
    """Mark ``value``, which replaces ``op``, with the manual region of ``op``."""
    if SCOPE in op.attributes:
        operation(value.owner).attributes[SCOPE] = op.attributes[SCOPE]
    return value
