"""Show the bytes between senders and receivers as a table, or as an SVG with lines from senders to receivers.

Where there are many devices, neighbouring ids are drawn together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardpass.diagnostics.printable import as_html
from shardpass.redistribute.between.plan import TransferPlan
from shardpass.redistribute.terms.limit import show_bytes

MOST = 16  # rows and columns
ROW, TOP, LEFT, WIDE, LETTER = 26, 64, 110, 420, 7


@dataclass(frozen=True, eq=False)
class Traffic:
    """``bytes[i, j]`` go from the devices ``senders[i]`` to the devices ``receivers[j]``, named as texts."""

    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    bytes: NDArray[np.float64]


def traffic(plan: TransferPlan, most: int = MOST) -> Traffic:
    """Return the bytes between all senders and receivers, in groups of neighbours beyond ``most``."""
    sent = [wave.sent for wave in plan.waves]
    ends = [np.concatenate([np.empty(0, np.int64), *(getattr(s, end) for s in sent)]) for end in ("sender", "receiver")]
    bits = np.concatenate([np.empty(0, np.int64), *(s.message_bits for s in sent)])
    (senders, i), (receivers, j) = (_grouped(devices, most) for devices in ends)
    table = np.zeros((len(senders), len(receivers)))
    np.add.at(table, (i, j), bits / 8)
    return Traffic(senders, receivers, table)


def _grouped(devices: NDArray[np.int64], most: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the names of groups, and the group of each entry."""
    ids, place = np.unique(devices, return_inverse=True)
    size = max(1, -(-len(ids) // most))
    groups = [ids[k : k + size].tolist() for k in range(0, len(ids), size)]
    names = tuple(str(group[0]) if len(group) == 1 else f"{group[0]}..{group[-1]}" for group in groups)
    return names, place.reshape(-1) // size


def transfers_svg(plan: TransferPlan) -> str:
    """Draw senders on the left and receivers on the right; the width of a line is proportional to its bytes."""
    drawn = traffic(plan)
    heads = str(plan).splitlines()
    head, price = heads[0], heads[-2].strip()
    high = TOP + ROW * max(len(drawn.senders), len(drawn.receivers), 1) + 20
    width = max(2 * LEFT + WIDE, LETTER * max(len(head), len(price)) + 40)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{high}" font-family="sans-serif">',
        f'<rect width="{width}" height="{high}" fill="white"/>',
        _text(20, 22, head, "start"),
        _text(20, 42, price, "start"),
    ]
    most = max(float(drawn.bytes.max(initial=0)), 1.0)
    for (i, j), size in np.ndenumerate(drawn.bytes):
        if size:
            ends = f'x1="{LEFT}" y1="{_height(i)}" x2="{LEFT + WIDE}" y2="{_height(j)}"'
            title = f"{drawn.senders[i]} to {drawn.receivers[j]}: {show_bytes(round(size))}"
            parts.append(
                f'<line {ends} stroke="#80b1d3" stroke-width="{max(0.5, 8 * size / most):.1f}" stroke-opacity="0.8">'
                f"<title>{as_html(title)}</title></line>"
            )
    for names, totals, x, anchor in (
        (drawn.senders, drawn.bytes.sum(axis=1), LEFT - 8, "end"),
        (drawn.receivers, drawn.bytes.sum(axis=0), LEFT + WIDE + 8, "start"),
    ):
        for k, (name, total) in enumerate(zip(names, totals.tolist(), strict=True)):
            parts.append(_text(x, _height(k) + 4, f"{name} ({show_bytes(round(total))})", anchor))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _height(row: int) -> int:
    return TOP + ROW * row + ROW // 2


def _text(x: float, y: float, content: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="12" text-anchor="{anchor}">{as_html(content)}</text>'
