"""Build halos: a tile becomes the window that its position needs, as ``plans`` decided.

A window may leave the array: beyond its borders, and in the padding of a dimension that does not divide. Where the op
can see such elements, they are overwritten with a given value at the end. A value of zero often stands there
already, because a device that no one sends to receives zeros from a ``collective_permute``.

Example: 7 elements on 2 positions, tiles of 4, and windows of one element more at both sides. Position 0 wants the
elements -1 to 4, position 1 the elements 3 to 7, in windows of 6. Element -1 lies before the array, and element 7 is
padding of the last tile.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import retype, shape_of, splat
from shardpass.ops.halo.moving import Along
from shardpass.ops.halo.plans import Halo, Line, Strategy, WindowSlide
from shardpass.ops.halo.rounds import run_exchange
from shardpass.ops.halo.strips import StripLayout
from shardpass.ops.halo.transfers import Window
from shardpass.ops.model import Site
from shardpass.ops.tiles.boxes import cut_at, grow, is_zero, zeros
from shardpass.ops.tiles.positions import compare, numbers, spread


def extend(site: Site, value: Any, halo: Halo, fill: Any | None) -> Any:
    """Build the window of each position from ``value``, the tile.

    ``fill``: the scalar that stands where the window leaves the array; None: anything may stand there.
    """
    along, window, choice = Along(site, halo.line), halo.window, halo.choice
    below, above = window.leaves_below(), window.leaves_above(halo.size)
    fill = fill if below or above else None
    if choice is None:
        shape = list(shape_of(value))
        shape[halo.line.dim] = window.width
        return zeros(value.type.element_type, shape) if fill is None else spread(fill, shape)
    if choice.strategy is Strategy.GATHER:
        windows = _gathered(along, value, window)
    elif choice.strategy is Strategy.ROUNDS:
        windows = run_exchange(along, value, choice.exchange, window.width)
    else:
        windows = _beside(along, value, choice.layout)
        if fill is not None and is_zero(fill) and not choice.layout.shared:
            # a device that no one sends to received zeros: only the padding of the last tile is left to overwrite
            below, above = False, above and halo.size % halo.line.count > 0
    return overwrite_outside(site, windows, halo.line, halo.size, window, fill, below=below, above=above)


def fitted(site: Site, value: Any, plan: WindowSlide, fill: Any) -> Any:
    """Pad and slice the windows in ``value`` for the op that slides along it. ``fill``: between elements.

    Runs after the exchanges of all dimensions, which work on elements alone, without places between them.
    """
    if plan.fit is None:
        return value
    line, fit = plan.halo.line, plan.fit
    value = grow(value, line.dim, fit.low, fit.high, fill, fit.interior)
    return cut_at(value, line.dim, Along(site, line).number(fit.start), fit.width)


def overwrite_outside(
    site: Site,
    value: Any,
    line: Line,
    size: int,
    window: Window,
    fill: Any | None,
    *,
    below: bool = True,
    above: bool = True,
) -> Any:
    """Overwrite ``value`` (windows) with ``fill`` where its index is outside of the array.

    ``below``, ``above``: whether the elements before and after the array matter.
    """
    below = below and any(s < 0 for s in window.start)
    above = above and any(s + window.width > size for s in window.start)
    if fill is None or not (below or above):
        return value
    shape = shape_of(value)
    kind = numbers(max(size, max(map(abs, window.start)) + window.width))
    start = Along(site, line).number(window.start, kind)
    index = hlo.add(hlo.iota(retype(kind, shape), line.dim), spread(start, shape))
    inside = None
    for bound, direction, matters in ((0, "GE", below), (size, "LT", above)):
        if matters:
            on_this_side = compare(direction, index, splat(index.type, bound))
            inside = on_this_side if inside is None else hlo.and_(inside, on_this_side)
    return hlo.select(inside, value, spread(fill, shape))


def _beside(along: Along, value: Any, layout: StripLayout) -> Any:
    """Build each position's window: receive the strips, concatenate them, and slice the window from the result.

    A strip that no device sends is filled with zeros.
    """
    received: dict[int, Any] = {}
    for shipment in layout.shipments:
        box = along.permute(along.slice_at(value, shipment.take, shipment.size), shipment.source)
        for number, first in shipment.strips:
            received[number] = along.cut(box, first, first + layout.strips[number].length)
    pieces = []
    for number, strip in enumerate(layout.strips):
        if strip.distance == 0:
            pieces.append(along.cut(value, strip.first, strip.first + strip.length))
        else:
            pieces.append(received[number] if number in received else along.zeros(value, strip.length))
    joined, dim = along.joined(pieces), along.line.dim
    joined = grow(joined, dim, 0, max(0, layout.length - shape_of(joined)[dim]))
    return along.slice_at(joined, layout.offsets, layout.width)


def _gathered(along: Along, value: Any, window: Window) -> Any:
    """Gather the whole dimension, and slice each position's window from it."""
    whole, dim = along.gather(value), along.line.dim
    low = max(0, -min(window.start))
    high = max(0, max(window.start) + window.width - shape_of(whole)[dim])
    whole = grow(whole, dim, low, high)
    return cut_at(whole, dim, along.number([s + low for s in window.start]), window.width)
