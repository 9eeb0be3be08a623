"""Assembly of an exchange's boxes: their order and places, and which of them must be masked.

Problem: every position has the boxes of all rounds, its own runs and those that it received, and wants a window of
them. A box is as long as the longest run of its round; the elements of a box beyond the run of a position are rubbish
there, and must not cover a run that lies there already. Invariant: the runs of one position never overlap
(``transfers``: every element has one owner).

Cases:

1. aligned: each box has one place on all positions that have a run in it, and no two places overlap: a concatenation.
   A roll by 10 of 32 elements on 4 positions: 2 elements from the second tile before, then 6 from the tile before;
2. otherwise box after box is put at a place of the position's own, in the order of their places, so that the next box
   covers the rubbish of the one before. ``x[1:7]`` of 7 elements and one element more, on 2 positions: the own box has
   3 elements and is put at 0; at position 1 its third element is rubbish. The received box has one element and is put
   at 3 at position 0, at 2 at position 1;
3. where the rubbish of a later box would cover a run of an earlier one, the later box is masked. 3 elements and 5 more
   on 2 positions: the last box brings the first of the 5 to place 3 of position 0; position 1 has no run in it.

Cost: O(count * boxes^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from shardpass.ops.halo.transfers import Exchange, Round, Table


@dataclass(frozen=True, slots=True)
class Box:
    """The boxes of one permute.

    Attributes:
        take: for each sender, where the box that it sends starts in its tile.
        put: for each receiver, where the received box starts in the window. Positions without a run have the number of
            the other positions where all of these are equal.
        masked: elements beyond a position's run must not overwrite the window.
    """

    round: Round
    take: Table
    put: Table
    masked: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """The boxes of a window, in the order in which they are written into its array."""

    boxes: tuple[Box, ...]
    length: int  # of the array that they are put into

    @property
    def aligned(self) -> bool:
        """Whether the window is a concatenation of the boxes, perhaps with gaps."""
        end = 0
        for box in self.boxes:
            if len(set(box.put)) > 1 or box.put[0] < end:
                return False
            end = box.put[0] + box.round.size
        return True


@lru_cache(maxsize=4096)
def placed(plan: Exchange, width: int) -> Placement:
    """Arrange the boxes of ``plan`` into a window of ``width`` elements."""
    rounds = sorted((*plan.kept, *plan.rounds), key=lambda r: r.place)
    puts = [_agreed(r.put, [p for p, extent in enumerate(r.extent) if extent]) for r in rounds]
    boxes = []
    for number, (r, put) in enumerate(zip(rounds, puts, strict=True)):
        senders = [q for q in r.source if q >= 0]
        masked = any(
            _meet((put[p] + r.extent[p], put[p] + r.size), (at[p], at[p] + earlier.extent[p]))
            for earlier, at in zip(rounds[:number], puts[:number], strict=True)
            for p in range(len(put))
        )
        boxes.append(Box(r, _agreed(r.take, senders), put, masked))
    return Placement(tuple(boxes), max([width, *(max(b.put) + b.round.size for b in boxes)]))


def _agreed(table: Table, matter: Sequence[int]) -> Table:
    """Return a constant table if all entries selected by ``matter`` are equal, else ``table``."""
    entries = {table[p] for p in matter}
    return table if len(entries) != 1 else (entries.pop(),) * len(table)


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return max(a[0], b[0]) < min(a[1], b[1])
