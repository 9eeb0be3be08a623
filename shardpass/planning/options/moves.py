"""The changes that a search tries at one point: a factor of an op is split over an axis as far as that reaches, or not.

A move starts at a factor of one op and is carried on by ``propagation.spread``: the axis is given to all dimensions
that belong together, or removed from them; contractions hand it on or stop it. Some moves stay at their op (``Reach``).
Where a factor takes an axis far, propagation goes on: values that became free of the axis may take another.

Those ops are looked at first that receive most, as a conflict shows where the plan pays for it: an all_reduce of
activations, because weights' rows hold the axis that the batch wants, stands at a dot_general with the factors batch,
rows and columns. On d=8 its moves are: batch over d, columns over d, rows not over d.

Moves that change the same values alike are one; so are moves whose starts reach one another.

Complexity: O(factors x axes) moves an op, each O(what it reaches).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from shardpass.ops.splits.factors import Axes, DimAxes, Kind
from shardpass.propagation.engine import Propagation
from shardpass.propagation.spread import Place, Spreading


class Reach(enum.Enum):
    """How far a move is carried from the op at which it starts."""

    ACROSS = "to all dimensions that belong together, contractions among them"
    ALONG = "to all dimensions that belong together, up to contractions and reductions"
    OP = "to the values of the op"
    RESULTS = "to the results of the op"


FAR = (Reach.ACROSS, Reach.ALONG)
NEAR = (Reach.OP, Reach.RESULTS)
_CARRIED = {reach: (reach is Reach.ACROSS, reach in FAR) for reach in Reach}  # across contractions, beyond the op

Start = tuple[int, tuple[Place, ...], tuple[Place, ...]]  # a factor, its places, and those of results alone


@dataclass(frozen=True, slots=True)
class Move:
    """One change of splits. ``splits``: the new split of each value of the engine that changes.

    ``given``: whether the factor of the step takes ``axes`` or loses them.
    """

    step: int
    factor: int
    axes: Axes
    given: bool
    reach: Reach
    splits: Mapping[int, DimAxes]

    @property
    def settles(self) -> bool:
        """Whether propagation continues after the move. It does not where a factor lost axes, which it would
        take back at once.
        """
        return self.given and self.reach in FAR

    def message(self, engine: Propagation) -> str:
        """Describe the move to the user: "batch (f1 of stablehlo.dot_general, size 4096) over data"."""
        step = engine.steps[self.step]
        size = step.rule.factors[self.factor].size
        way = "split over" if self.given else "not split over"
        return f"{step.name}, factor of size {size}, {way} {engine.mesh.names(self.axes)}: {len(self.splits)} values"


class Moves:
    """Lists the moves of one program."""

    def __init__(self, engine: Propagation, axes: Iterable[Axes]) -> None:
        self.engine = engine
        self.axes = tuple(axes)
        self.spreading = Spreading(engine)
        self._seen: set[frozenset[tuple[int, DimAxes]]] = set()
        self._reached: dict[tuple[Axes, bool, bool], set[Place]] = {}  # by axes, whether given, and whether across
        self._starts: dict[int, list[Start]] = {}
        self._steps: dict[int | None, list[int]] = {}
        for number, step in enumerate(engine.steps):
            self._steps.setdefault(step.op, []).append(number)

    def begin(self) -> None:
        """Forget the moves that were listed, after the engine has moved to another point."""
        self._seen = set()
        self._reached = {}

    def of_op(self, op: int, reaches: Sequence[Reach]) -> Iterator[Move]:
        """Yield the moves that start at op number ``op`` and were not listed since ``begin``.

        Between moves the caller may change the engine's splits, and must restore them before it takes the next.
        """
        for number in self._steps.get(op, ()):
            ways = product(self._starts_of(number), self.axes, reaches, (True, False))
            for (factor, everywhere, results), axes, reach, given in ways:
                start = results if reach is Reach.RESULTS else everywhere
                splits = self._splits(start, axes, given, reach) if given or self._any_split(start, axes) else None
                if splits is not None:
                    yield Move(number, factor, axes, given, reach, splits)

    def _splits(self, start: tuple[Place, ...], axes: Axes, given: bool, reach: Reach) -> Mapping[int, DimAxes] | None:
        """Return the new splits of a move; None if nothing changes, or if a listed move makes the same change."""
        across, far = _CARRIED[reach]
        reached = self._reached.setdefault((axes, given, across), set()) if far else set()
        if not reached.isdisjoint(start):
            return None
        carry = self.spreading.spread if given else self.spreading.withdraw
        spread = carry(start, axes, across, far)
        reached |= spread.reached
        key = frozenset(spread.splits.items())
        if not key or key in self._seen:
            return None
        self._seen.add(key)
        return spread.splits

    def _any_split(self, places: Iterable[Place], axes: Axes) -> bool:
        """Return whether one of ``axes`` splits one of the dimensions at ``places``."""
        values = self.engine.values
        for value, dim in places:
            split = values[value].dims[dim]
            if split and not set(axes).isdisjoint(split):
                return True
        return False

    def _starts_of(self, number: int) -> list[Start]:
        """Return the factors of a step at which moves may start, with the dimensions of each."""
        starts = self._starts.get(number)
        if starts is None:
            factors = self.engine.steps[number].rule.factors
            starts = self._starts[number] = [
                (factor, self._places(number, factor, False), self._places(number, factor, True))
                for factor, about in enumerate(factors)
                if about.kind is not Kind.REPLICATED and about.size > 1
            ]
        return starts

    def _places(self, number: int, factor: int, results: bool) -> tuple[Place, ...]:
        """Return the dimensions of a step's values (or of its results alone) of which ``factor`` is the major
        factor.
        """
        step = self.engine.steps[number]
        maps = (*step.rule.operands, *step.rule.results)
        first = len(step.rule.operands) if results else 0
        return tuple(
            (step.values[place], dim)
            for place in range(first, len(maps))
            for dim, factors in enumerate(maps[place])
            if factors and factors[0] == factor
        )
