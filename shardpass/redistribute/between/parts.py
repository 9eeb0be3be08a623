"""Cut boxes so that each share has its number of bytes.

Invariants: the parts of all shares of a demand are its cells, each element once. Cells are cut between arrays where
several have the same box, then along rows, then within a row: a run of elements in row-major order is at most
2 * rank - 1 boxes. Where a row is a small part of the cell, cuts are at whole rows.

Example: 7 of the 12 elements of a 3x4 box are row 0 and the first 3 elements of row 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from shardpass.redistribute.between.cells import Cell
from shardpass.redistribute.between.sides import Box

COARSE = 128  # rows of a box; with more, cuts are between rows


def split(cells: Sequence[Cell], amounts: Sequence[float]) -> list[list[Cell]]:
    """Split ``cells`` into as many lists as ``amounts``, in the ratio of ``amounts``."""
    parts: list[list[Cell]] = []
    left = list(reversed(cells))
    total, due, given = sum(cell.bits for cell in cells), 0.0, 0
    whole = sum(amounts)
    for number, amount in enumerate(amounts):
        due += amount
        wanted = total if number == len(amounts) - 1 else round(total * due / whole)
        part: list[Cell] = []
        while left and given < wanted:
            cell = left.pop()
            if given + cell.bits > wanted:
                first, rest = _cut(cell, wanted - given)
                left += reversed(rest)
                if not first:
                    break
                part += first
                given += sum(one.bits for one in first)
                break
            part.append(cell)
            given += cell.bits
        parts.append(part)
    return parts


def _cut(cell: Cell, size: int) -> tuple[list[Cell], list[Cell]]:
    """Cut about ``size`` bits off ``cell``. Returns them and the rest."""
    each = cell.elements * cell.width
    arrays, within = divmod(size, each)
    first = [Cell(cell.arrays[:arrays], cell.box, cell.width)] if arrays else []
    one, others = cell.arrays[arrays : arrays + 1], cell.arrays[arrays + 1 :]
    rest = [Cell(others, cell.box, cell.width)] if others else []
    count = _rounded(cell.box, round(within / cell.width))
    before, behind = (
        [Cell(one, box, cell.width) for box in run(cell.box, *ends)] for ends in ((0, count), (count, cell.elements))
    )
    return [*first, *before], [*behind, *rest]


def _rounded(box: Box, count: int) -> int:
    """Round ``count`` elements to whole rows, where the box has many."""
    start, stop = box
    for dim in range(len(start)):
        if stop[dim] - start[dim] > 1:
            row = math.prod(stop[k] - start[k] for k in range(dim + 1, len(start)))
            return round(count / row) * row if stop[dim] - start[dim] >= COARSE else count
    return count


def run(box: Box, first: int, last: int) -> Iterator[Box]:
    """Yield the elements ``first`` to ``last`` of ``box`` in row-major order, as boxes."""
    start, stop = box
    if first >= last:
        return
    if not start or last - first == math.prod(b - a for a, b in zip(start, stop, strict=True)):
        yield box
        return
    row = math.prod(b - a for a, b in zip(start[1:], stop[1:], strict=True))
    inner = start[1:], stop[1:]
    top, over = divmod(first, row)
    bottom, under = divmod(last, row)
    if over:
        ending = last - top * row if bottom == top else row
        for a, b in run(inner, over, ending):
            yield (start[0] + top, *a), (start[0] + top + 1, *b)
        if bottom == top:
            return
        top += 1
    if top < bottom:
        yield (start[0] + top, *inner[0]), (start[0] + bottom, *inner[1])
    if under:
        for a, b in run(inner, 0, under):
            yield (start[0] + bottom, *a), (start[0] + bottom + 1, *b)
