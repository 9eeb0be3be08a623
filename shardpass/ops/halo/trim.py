"""Slice the operand of a window op instead of padding it by a negative amount.

XLA mishandles some of it: its CPU client's convolution reads past an input with one side padded and the other
cut, and its simplifier takes a window of one element for the operand itself, whatever is cut, and ends the process.

Example: ``f32[5]`` under padding ``[-1, 2]`` is ``f32[4]``, the elements from the second on, under padding ``[0, 2]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ops.model import Shape
from shardpass.ops.tiles.boxes import zeros

Padding = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class NegativePadding:
    """Negative padding, applied to the operand as an ``hlo.pad`` by ``low``, ``high`` and ``interior`` before the op.

    ``padding`` and ``dilation`` remain for the op.
    """

    low: Shape
    high: Shape
    interior: Shape
    padding: Padding
    dilation: Shape

    @property
    def cuts(self) -> bool:
        """Whether any padding is negative."""
        return any((*self.low, *self.high))

    def of(self, value: Any, fill: Any | None = None) -> Any:
        """Cut the elements under negative padding from the operand. ``fill``: between elements; zero."""
        if not self.cuts:
            return value
        between = zeros(value.type.element_type) if fill is None else fill
        return hlo.pad(value, between, self.low, self.high, self.interior)


def trimmed(
    shape: Sequence[int], dims: Sequence[int], padding: Sequence[tuple[int, int]], dilation: Sequence[int]
) -> NegativePadding:
    """Separate the negative padding from the rest of ``padding`` and ``dilation``, along the dimensions ``dims``.

    Whole elements are cut, so that the op dilates what is left: with 31 places between two elements, padding of -40
    removes the elements at 0 and 32, and the next one, at 64, has 24 places before it. Where nothing would be left the
    places are cut, of an operand that is dilated first. ``shape``: of the operand.
    """
    low, high, interior = [0] * len(shape), [0] * len(shape), [0] * len(shape)
    left, steps = list(padding), list(dilation)
    for index, at in enumerate(dims):
        before, after = padding[index]
        if min(before, after) >= 0:
            continue
        step = dilation[index]
        whole = tuple(max(0, -(side // step)) for side in (before, after))
        if sum(whole) < shape[at]:
            low[at], high[at] = -whole[0], -whole[1]
            left[index] = (before + whole[0] * step, after + whole[1] * step)
        else:
            low[at], high[at], interior[at] = min(before, 0), min(after, 0), step - 1
            left[index], steps[index] = (max(before, 0), max(after, 0)), 1
    return NegativePadding(tuple(low), tuple(high), tuple(interior), tuple(left), tuple(steps))
