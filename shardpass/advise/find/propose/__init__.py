"""The kinds of proposed edits, each implemented by an independent function of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shardpass.advise.find.propose import (
    alike,
    borders,
    casts,
    cuts,
    decided,
    mesh,
    names,
    states,
    unplaced,
    values,
    written,
)
from shardpass.advise.find.propose.program import Context, Edit


@dataclass(frozen=True)
class Kind:
    """A kind of edits.

    Attributes:
        name: of the kind.
        rank: of edits that save about the same, that of the lowest rank comes first.
        propose: yields the edits.
        together: whether, of edits of one price, that of the most places is tried first.
        trades: how many times the part of the memory that the edit saves it may take more time.
    """

    name: str
    rank: int
    propose: Callable[[Context], Iterator[Edit]]
    together: bool = False
    trades: float = 0.0


KINDS = (
    Kind("batch", 0, unplaced.batches),
    Kind("in_specs", 0, borders.borders),
    Kind("drop", 1, written.drops),
    Kind("lookup", 3, values.lookups),
    Kind("state", 1, states.counterparts, together=True),
    Kind("twin", 1, states.twins, together=True),
    Kind("stacked", 1, states.stacked, together=True, trades=1.5),
    Kind("frozen", 3, states.frozen, together=True, trades=10.0),
    Kind("cut", 2, cuts.cuts),
    Kind("chunks", 1, cuts.chunks),
    Kind("rename", 2, names.renames),
    Kind("order", 2, names.orders),
    Kind("result", 2, written.results),
    Kind("constraint", 2, written.constraints),
    Kind("argument", 3, written.arguments),
    Kind("shared", 2, alike.shared),
    Kind("family", 2, alike.families),
    Kind("aligned", 2, alike.aligned, together=True),
    Kind("cast", 2, casts.casts),
    Kind("zero", 3, states.zero),
    Kind("size", 3, states.sizes, together=True),
    Kind("value", 4, values.values),
    Kind("decided", 4, decided.decided),
    Kind("bank", 4, unplaced.banks),
    Kind("mesh", 5, mesh.shapes),
)
SPREAD = Kind("spread", 4, states.spread)  # of memory alone
