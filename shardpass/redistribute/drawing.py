"""A plan as SVG: the array after each step, every cell with the devices that have it (figures 2 to 4 of Rink et al.).

Two dimensions are drawn, those that are split most; along all others the picture is the cut at index 0. Cells are not
to scale: each dimension is cut where any tile begins or ends. Of an array without elements no cells are drawn.
"""

from __future__ import annotations

import itertools

import numpy as np

from shardpass.diagnostics.printable import as_html
from shardpass.redistribute.plan import Plan
from shardpass.redistribute.program.state import State
from shardpass.redistribute.stages import Intervals, covered, drawn_dimensions, stages

PANEL, GAP, TOP, MOST_CELLS = 260, 50, 116, 32
LETTER = 7  # the width of one, about
MOST_TESTS = 1 << 19  # of a device against a cell, per panel
_PALETTE = ("#8dd3c7", "#ffffb3", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#fccde5")


def plan_svg(plan: Plan) -> str:
    """Draw the SVG document, as text."""
    shown = stages(plan)
    dims = drawn_dimensions(plan)
    extent = "x".join(map(str, (*plan.shape, plan.element_type)))
    heads = [f"{extent} from {plan.source}", f"to {plan.target}"]
    width = max(len(shown) * (PANEL + GAP), LETTER * max(map(len, heads))) + GAP
    height = TOP + PANEL + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(GAP, 24, heads[0], 13),
        _text(GAP, 44, heads[1], 13),
        _text(GAP, 64, f"{plan.bytes_received} bytes received, at least {plan.lower_bound_bytes}", 12),
    ]
    for k, stage in enumerate(shown):
        x = GAP + k * (PANEL + GAP)
        parts.append(_text(x, TOP - 24, stage.title, 13))
        parts.append(_text(x, TOP - 9, stage.axes, 11))
        parts += _panel(x, stage.state, plan.shape, dims)
        if k:
            y = TOP + PANEL / 2
            parts.append(f'<path d="M{x - GAP + 8} {y} h{GAP - 20} m-6 -5 l6 5 l-6 5" stroke="black" fill="none"/>')
    rows, columns = (f"dimension {d}" if d is not None else "one cell" for d in dims)
    parts.append(_text(GAP, TOP + PANEL + 30, f"down: {rows}; across: {columns}; numbers are devices", 11))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(x: int, state: State, shape: tuple[int, ...], dims: tuple[int | None, int | None]) -> list[str]:
    if 0 in shape:
        return [_text(x, TOP + 20, "no elements: nothing to draw", 11)]
    devices = [d for d in range(len(state.base)) if state.real[d]]
    cover = {(d, i): covered(state, d, i) for d in devices for i in range(len(shape))}
    seen = [
        d for d in devices if all(any(a <= 0 < b for a, b in cover[d, i]) for i in range(len(shape)) if i not in dims)
    ]
    cuts = [_cuts(shape, i, [cover[d, i] for d in seen]) if i is not None else [0, 1] for i in dims]
    if any(len(c) > MOST_CELLS + 1 for c in cuts):
        return [_text(x, TOP + 20, f"more than {MOST_CELLS} tiles along a dimension: not drawn", 11)]
    if len(seen) * (len(cuts[0]) - 1) * (len(cuts[1]) - 1) > MOST_TESTS:
        return [_text(x, TOP + 20, f"{len(seen)} devices on this many tiles: not drawn", 11)]
    out = []
    high, wide = PANEL / (len(cuts[0]) - 1), PANEL / (len(cuts[1]) - 1)
    for r, c in itertools.product(range(len(cuts[0]) - 1), range(len(cuts[1]) - 1)):
        holders = [
            d
            for d in seen
            if all(
                i is None or any(a <= cuts[side][k] < b for a, b in cover[d, i])
                for side, (i, k) in enumerate(zip(dims, (r, c), strict=True))
            )
        ]
        fill = _PALETTE[holders[0] % len(_PALETTE)] if holders else "#ffffff"
        place = f'x="{x + c * wide:.1f}" y="{TOP + r * high:.1f}" width="{wide:.1f}" height="{high:.1f}"'
        out.append(f'<rect {place} fill="{fill}" stroke="black" stroke-width="0.5"/>')
        size = min(12.0, high * 0.7, wide * 1.6 / max(1, len(_short(holders))))
        out.append(
            f'<text x="{x + (c + 0.5) * wide:.1f}" y="{TOP + (r + 0.5) * high + size / 3:.1f}" '
            f'font-size="{size:.1f}" text-anchor="middle">{_short(holders)}</text>'
        )
    return out


def _cuts(shape: tuple[int, ...], dim: int, covers: list[Intervals]) -> list[int]:
    edges = {edge for intervals in covers for interval in intervals for edge in interval}
    return sorted({0, shape[dim], *(e for e in edges if 0 < e < shape[dim])})


def _short(devices: list[int]) -> str:
    """Format device numbers with runs as ranges: 0-3 8."""
    runs: list[list[int]] = []
    for d in np.sort(devices).tolist():
        if runs and runs[-1][1] == d - 1:
            runs[-1][1] = d
        else:
            runs.append([d, d])
    return " ".join(str(a) if a == b else f"{a} {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)


def _text(x: float, y: float, content: str, size: int) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}">{as_html(content)}</text>'
