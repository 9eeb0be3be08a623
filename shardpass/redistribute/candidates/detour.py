"""Where the digits of a dimension do not nest (halves against thirds): by way of a state that leaves it whole.

A dimension *clashes* where the sizes of its digits in the source and in the target differ at some place; from there on
its digits are of two kinds, and a device that holds one of either kind holds no digit of the other. But a dimension
that is whole on every device has the digits that one likes. So the way has two halves, each a ``DigitProblem``: in the
first the clashing digits of the source leave, in the second those of the target come. A mesh digit that has nowhere to
go yet *parks*: it takes a digit carved out of what no one splits.

Invariants: no tile is greater than the source's or the target's, as both halves keep their own promise and the tile
between them is no greater than the source's. Each half costs the exchange that it has. None where there is no room to
park. O(digits squared).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from shardpass.redistribute.candidates.digit_forms import FREE, DigitProblem, HeldDigits, TensorDigit
from shardpass.redistribute.problem.problem import Problem

Place = tuple[int, int]  # a digit: dimension, and place among its digits, major to minor
NOWHERE: Place = (-1, -1)
MOST_PADDED = 9 / 8  # times a dimension, to make room


Halves = tuple[DigitProblem, DigitProblem]


def detours(problem: Problem, shape: tuple[int, ...]) -> list[Halves]:
    """Ways in two halves; ``shape`` is the padded shape that both tilings divide.

    One parks what must, and the second half may need a permute; one parks whatever moves, and it does not.
    """
    held = HeldDigits.of(problem, len(shape))
    if held is None or held.partial or all(held.nests(i) for i in range(len(shape))):
        return []
    found = []
    for park_all in (False, True):
        middle = _Middle(held, shape)
        between = middle.between(park_all)
        if between is not None:
            first = middle.half(0, middle.places[0], between)
            found.append((first, middle.half(1, between, middle.places[1])))
    return found


def roomier(problem: Problem, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """``shape`` with room for all mesh digits to park, on its greatest dimension that neither side splits."""
    counts = zip(problem.source.tiling.counts, problem.target.tiling.counts, strict=True)
    whole = [i for i, pair in enumerate(counts) if pair == (1, 1)]
    if not whole:
        return None
    dim = max(whole, key=lambda i: shape[i])
    room = math.prod(digit.size for digit in problem.names.digits)
    padded = -(-shape[dim] // room) * room
    return (*shape[:dim], padded, *shape[dim + 1 :]) if padded <= MOST_PADDED * shape[dim] else None


@dataclass
class _Middle:
    """Says where each mesh digit is between the halves; ``parks`` grows as room is asked for."""

    held: HeldDigits
    shape: tuple[int, ...]
    parks: list[list[int]] = field(init=False)  # sizes, per dimension
    places: tuple[list[Place], list[Place]] = field(init=False)  # by mesh digit, of source and target

    def __post_init__(self) -> None:
        self.parks = [[] for _ in self.shape]
        self.places = (self._places(self.held.sides[0]), self._places(self.held.sides[1]))

    def _places(self, side: Sequence[Sequence[int]]) -> list[Place]:
        out = [NOWHERE] * len(self.held.names.digits)
        for i, axes in enumerate(side):
            for place, m in enumerate(axes):
                out[m] = (i, place)
        return out

    def _common(self, dim: int) -> int:
        """How many digits of ``dim`` are the same in both halves: all, unless it clashes."""
        source, target = self.held.sizes(dim)
        if self.held.nests(dim):
            return max(len(source), len(target))
        return next(k for k, (a, b) in enumerate(zip(source, target, strict=False)) if a != b)

    def _clashes(self, place: Place) -> bool:
        return place != NOWHERE and place[1] >= self._common(place[0])

    def between(self, park_all: bool) -> list[Place] | None:
        """Where each mesh digit is once the clashing dimensions are whole; None for lack of room.

        One that must move goes at once to where the target wants it if nobody is there, one that has to wait parks.
        One that is sliced is sliced now, for the smaller tile.
        """
        source, target = self.places
        out = list(source)
        for m, (here, there) in enumerate(zip(source, target, strict=True)):
            can_go = there != NOWHERE and not self._clashes(there) and there not in source
            if can_go:
                out[m] = there
            elif self._clashes(here) or (here != there and (park_all or here == NOWHERE)):
                room = self._park(self.held.names.digits[m].size)
                if room is None and here != NOWHERE:
                    return None
                out[m] = here if room is None else room
        return out

    def _park(self, size: int) -> Place | None:
        """Room for a digit of ``size``: on a dimension that nobody splits, if there is one."""
        source, target = self.held.sides
        dims = [i for i in range(len(self.shape)) if self.held.nests(i) and self._rest(i) % size == 0]
        if not dims:
            return None
        best = min(dims, key=lambda i: (len(source[i]) + len(target[i]), i))
        self.parks[best].append(size)
        return best, self._common(best) + len(self.parks[best]) - 1

    def _rest(self, dim: int) -> int:
        return self.shape[dim] // math.prod([*max(self.held.sizes(dim), key=len), *self.parks[dim]])

    def half(self, side: int, before: Sequence[Place], after: Sequence[Place]) -> DigitProblem:
        """The problem from ``before`` to ``after``, its digits those of the source (0) or the target (1)."""
        digits: list[TensorDigit] = []
        first = []
        for i, n in enumerate(self.shape):
            first.append(len(digits))
            kinds = self.held.sizes(i)
            sizes = [*(max(kinds, key=len) if self.held.nests(i) else kinds[side]), *self.parks[i]]
            digits += [TensorDigit(i, size) for size in [*sizes, n // math.prod(sizes)]]
        states = [
            tuple(FREE if place == NOWHERE else first[place[0]] + place[1] for place in places)
            for places in (before, after)
        ]
        names = self.held.names
        return DigitProblem(len(self.shape), tuple(digits), names, states[0], states[1], (), self.held.kept)
