"""Sums over devices of sums over a dimension, in the other order.

Each device may sum its own elements first, and one collective then adds the devices' sums. Where the elements
themselves are partial results over some of the devices (a lookup in a split table, masked on each device), no tile is
a part of a sum of the whole program. Addition can be done in any order, so the elements are summed over those devices
first, which gives elements of the whole program, then along the dimension, then over the other devices:

    AR[x, y](z + sum_i t[i]) = AR[x](AR[y](z) + sum_i AR[y](t[i]))

``z`` is where the sum starts: 0 on some devices and -0 on others. Tried are the splits of each group into rows and
columns of one size, as the axes of a mesh give them. The order of additions is one that verdicts allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.ir.walk import operation
from shardpass.proving.relations.elements import neutral
from shardpass.proving.relations.evaluate import Site, Unknown
from shardpass.proving.relations.laws import NEUTRAL, Law
from shardpass.proving.relations.pieces import Content, Ints, Piece
from shardpass.proving.rules.contraction import reducer_of

REDUCE, ADD = "stablehlo.reduce", "stablehlo.add"
Summed = Callable[[Content, Ints], Sequence[Piece]]


def summed_inside_out(site: Site, index: int, rows: Ints, summed: Summed) -> Sequence[Piece] | None:
    """Return the sum of operand ``index`` over the groups ``rows``, [groups, size], in the other order.

    ``summed`` returns the sum of a content over groups, and raises Unknown where that is no value of the whole program.
    None where the operand is no sum, or where no split of the groups gives values of the whole program.
    """
    values = site.walk.values
    made = _op_of(site.op.operands[index])
    starts: list[Content] = []
    if made is not None and made.name == ADD:
        sides = [(op, v) for op, v in zip(map(_op_of, made.operands), made.operands[::-1], strict=True) if _reduces(op)]
        if len(sides) != 1:
            return None
        made, starts = sides[0][0], [values[sides[0][1]]]
    if not _reduces(made):
        return None
    elements, init = (values[v] for v in made.operands)
    starts.append(init)
    laws = [_starting(site, start) for start in starts]
    if not all(laws) or len(laws[-1]) != 1 or (len(laws) > 1 and laws[-1] != {NEUTRAL}):
        return None
    for inner, outer in _splits(rows):
        state = site.walk.state()
        try:
            first = [replace(c, pieces=tuple(summed(c, inner))) for c in (elements, starts[0])]
            return summed(site.walk.rules[REDUCE](Site(made, first, site.walk))[0], outer)
        except Unknown:
            site.walk.back_to(state)
    return None


def _op_of(value: Any) -> Any:
    """Return the op that computes ``value``; None for an argument of a block."""
    return None if hasattr(value.owner, "arguments") else operation(value.owner)


def _reduces(op: Any) -> bool:
    return op is not None and op.name == REDUCE and len(op.results) == 1 and reducer_of(op) == "add"


def _starting(site: Site, start: Content) -> set[Law]:
    """Return the laws by which a sum may start from the values of ``start``; the empty set where it may not."""
    dtype = element_type(start.element).dtype
    laws = {neutral(site.terms.splat(p.term), "add", start.element, dtype) for p in start.pieces}
    return set() if None in laws or not start.covered() else {law for law in laws if law}


def _splits(rows: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield groups within ``rows``, [groups, size], and those across them: all groups of both kinds together reach
    each member once.
    """
    size = rows.shape[1]
    for count in range(2, size):
        if size % count == 0:
            grid = rows.reshape(-1, size // count, count)
            across = np.swapaxes(grid, 1, 2)
            both = grid.reshape(-1, count), across.reshape(-1, size // count)
            yield from (both, both[::-1])
