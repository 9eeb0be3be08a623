"""Plans for clashing tilings (halves against thirds) through an assignment that leaves the dimension whole.

Problem: from some place on, the sub-axes that split a dimension have other sizes in the source than in the target. No
refinement of the dimension has both as leading parts, so no one list of sub-dimensions serves both sides. But a
dimension that is whole on every device can be refined as either side likes.

Two halves, each a ``SubAxisProblem``: in the first, the clashing sub-axes of the source leave their dimensions; in the
second, those of the target arrive. In between, each sub-axis is at a *place* (dimension, number of the sub-dimension):

1. It goes at once to where the target wants it, if that place does not clash and nobody splits it in the source.
2. It stays, if its place does not clash and it need not move.
3. Else it *parks*: it splits a sub-dimension that is cut for it from what nobody splits.

What could go at once may also go in the second half, where its place does not clash. f32[8, 6, 6, 8] on a=2, d=2, c=3,
b=2, from [{}, {a}, {c}, {b, d}] to [{a, d}, {c}, {}, {b}]: a has to leave dimension 1 first. Two exchanges, {a, d} and
then {c}, receive 3/4 + 2/3 = 17/12 of a tile; {a} and then {c, d}, 1/2 + 5/6 = 16/12.

Example: f32[120, 120, 120] on x=2, y=3, from [{x}, {y}, {}] to [{y}, {x}, {}]. Dimensions 0 and 1 clash from their
first places on (2 against 3, 3 against 2). In between both sub-axes park on dimension 2, [{}, {}, {x, y}]; each half is
one all_to_all. The paper's plan receives 1.3 times the bytes.

Invariants: no tile is greater than the source's or the target's, as both halves keep that and the tile in between is no
greater than the source's. None where there is no room to park. O(sub-axes squared).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from shardpass.redistribute.candidates.sub_axes.assignments import REPLICATED, Splits, SubAxisProblem, SubDim
from shardpass.redistribute.problem.problem import Problem


class MoveTime(Enum):
    """When sub-axes move that need not move in the first half."""

    EARLY = "in the first half, where their place is free"
    PARKED = "in the first half; all others that move park"
    LATE = "in the second half"


Place = tuple[int, int]  # a sub-dimension: its dimension, and its number there, major to minor
NOWHERE: Place = (-1, -1)
Halves = tuple[SubAxisProblem, SubAxisProblem]


def detours(problem: Problem, shape: tuple[int, ...]) -> list[Halves]:
    """Return at most three pairs of problems, to an assignment in between and from it; ``shape`` is the padded shape
    that both tilings divide.

    The first parks (splits an unsplit dimension by) only the sub-axes that must park, and its second half may need a
    permute; the second parks all that move, and needs none; the third moves only those that must move.
    """
    splits = Splits.of(problem, len(shape))
    if splits is None or splits.summed or all(splits.nest(i) for i in range(len(shape))):
        return []
    out: dict[tuple[Place, ...], Halves] = {}
    for moves in MoveTime:
        middle = _Middle(splits, shape)
        between = middle.between(moves)
        if between is not None and tuple(between) not in out:
            first = middle.half(0, middle.places[0], between)
            out[tuple(between)] = first, middle.half(1, between, middle.places[1])
    return list(out.values())


@dataclass
class _Middle:
    """The place of each sub-axis between the halves; ``parks`` grows as sub-axes park."""

    splits: Splits
    shape: tuple[int, ...]
    parks: list[list[int]] = field(init=False)  # the sizes of the sub-dimensions cut for parking, per dimension
    places: tuple[list[Place], list[Place]] = field(init=False)  # by sub-axis, in source and target

    def __post_init__(self) -> None:
        self.parks = [[] for _ in self.shape]
        self.places = (self._places(self.splits.sides[0]), self._places(self.splits.sides[1]))

    def _places(self, side: Sequence[Sequence[int]]) -> list[Place]:
        out = [NOWHERE] * len(self.splits.sub_axes.parts)
        for i, splitting in enumerate(side):
            for number, m in enumerate(splitting):
                out[m] = (i, number)
        return out

    def _common(self, dim: int) -> int:
        """Count the sub-dimensions of ``dim`` that are the same in both halves: all, unless the dimension clashes."""
        source, target = self.splits.sizes(dim)
        if self.splits.nest(dim):
            return max(len(source), len(target))
        return next(k for k, (a, b) in enumerate(zip(source, target, strict=False)) if a != b)

    def _clashes(self, place: Place) -> bool:
        return place != NOWHERE and place[1] >= self._common(place[0])

    def between(self, moves: MoveTime) -> list[Place] | None:
        """Return the place of each sub-axis once the clashing dimensions are whole; None without enough room.

        A sub-axis that is replicated in the source is sliced now, for the smaller tile.
        """
        source, target = self.places
        out = list(source)
        for m, (here, there) in enumerate(zip(source, target, strict=True)):
            can_go = there != NOWHERE and not self._clashes(there) and there not in source
            must_go = self._clashes(here) or here == NOWHERE
            if can_go and (must_go or moves is not MoveTime.LATE):
                out[m] = there
            elif self._clashes(here) or (here != there and (moves is MoveTime.PARKED or here == NOWHERE)):
                room = self._park(self.splits.sub_axes.sizes[m])
                if room is None and here != NOWHERE:
                    return None
                out[m] = here if room is None else room
        return out

    def _park(self, size: int) -> Place | None:
        """Find room for a sub-axis of ``size`` on a dimension that neither side splits; None without room."""
        source, target = self.splits.sides
        dims = [i for i in range(len(self.shape)) if self.splits.nest(i) and self._rest(i) % size == 0]
        if not dims:
            return None
        best = min(dims, key=lambda i: (len(source[i]) + len(target[i]), i))
        self.parks[best].append(size)
        return best, self._common(best) + len(self.parks[best]) - 1

    def _rest(self, dim: int) -> int:
        """Return the size of the last sub-dimension of ``dim``, from which more can be cut."""
        return self.shape[dim] // math.prod([*max(self.splits.sizes(dim), key=len), *self.parks[dim]])

    def half(self, side: int, before: Sequence[Place], after: Sequence[Place]) -> SubAxisProblem:
        """Return the problem from ``before`` to ``after``; clashing dimensions are refined for ``side``."""
        sub_dims: list[SubDim] = []
        first = []
        for i, n in enumerate(self.shape):
            first.append(len(sub_dims))
            both = self.splits.sizes(i)
            sizes = [*(max(both, key=len) if self.splits.nest(i) else both[side]), *self.parks[i]]
            sub_dims += [SubDim(i, size) for size in [*sizes, n // math.prod(sizes)]]
        source, target = (
            tuple(REPLICATED if place == NOWHERE else first[place[0]] + place[1] for place in places)
            for places in (before, after)
        )
        sub_axes, kept = self.splits.sub_axes, self.splits.kept
        return SubAxisProblem(len(self.shape), tuple(sub_dims), sub_axes, source, target, (), kept)
