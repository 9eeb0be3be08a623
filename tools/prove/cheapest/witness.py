"""The cheapest plan of a small program, found without the search: by enumeration, or by an ILP and a descent from it.

What is optimised is ``plans.price_of`` of the plan that the planner makes of an assignment.

1. ``enumerated``: every assignment of ``Space`` is planned. Exact, for some thousands of them.
2. ``descended``: from an assignment, one variable at a time is given each of its shardings, as long as that pays; then
   two of one op at a time.
3. ``cheapest``: the ILP (``ilp``) gives a bound and the copies of each array; each value is then given one of its
   copies, what makes it or what takes it, and the plans of these assignments are priced. Where none costs what the
   bound says, few assignments are enumerated, and of many these and the search's descend. What comes out is a plan that
   can be had; where it costs what the bound says, it is the optimum.

Complexity: a plan of 12 ops takes about a millisecond; a descent plans each value's shardings some three times.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from shardpass.sharding import Sharding
from tools.prove.cheapest.ilp import Cheapest, Solution, roots
from tools.prove.cheapest.options import Costs
from tools.prove.cheapest.plans import Plans
from tools.prove.cheapest.space import Slot, Space, Variable

SAME = 1e-6  # prices that differ by less, relatively, are equal: HiGHS knows no more
ENUMERATED = 1000  # assignments, at most
PLANS = 1000  # in a descent by pairs
SECONDS = 5.0  # for HiGHS

Chosen = dict[Variable, Sharding]


@dataclass(frozen=True)
class Best:
    """A price and the assignment that has it. ``bound``: no plan is below it (the price itself, if enumerated)."""

    price: float
    chosen: Chosen
    bound: float
    way: str

    @property
    def proved(self) -> bool:
        return reached(self.price, self.bound)


class Witness:
    """The prices of one program's assignments, each planned once."""

    def __init__(self, space: Space, costs: Costs) -> None:
        self.space, self.costs, self.program = space, costs, space.program
        self._plans = Plans(space.program, costs.clock.machine)
        self._known: dict[tuple[Sharding | None, ...], float] = {}
        self._variables = list(space.domains)

    def price(self, chosen: Chosen) -> float:
        key = tuple([chosen.get(variable) for variable in self._variables])
        if key not in self._known:
            self._known[key] = self._plans.price(self.space.shardings(chosen))
        return self._known[key]

    # ---------------------------------------------------------------- 1

    def enumerated(self) -> Best:
        """Every assignment."""
        best: Best | None = None
        for row in itertools.product(*self.space.domains.values()):
            chosen = dict(zip(self._variables, row, strict=True))
            found = self._plans.price(self.space.shardings(chosen))
            if best is None or found < best.price:
                best = Best(found, chosen, found, "enumerated")
        assert best is not None
        return best

    # ---------------------------------------------------------------- 2

    def descended(self, start: Chosen, enough: float) -> tuple[float, Chosen]:
        """One variable at a time, as long as that pays; not below ``enough``."""
        return self._descended(start, enough, [(variable,) for variable in self.space.free])

    def descended_by_pairs(self, start: Chosen, enough: float) -> tuple[float, Chosen]:
        """Two variables of one op at a time, too, for so many plans."""
        most = len(self._known) + PLANS
        best, chosen = self.price(start), start
        while not reached(best, enough):
            found, other = self._descended(chosen, enough, self._pairs(), most)
            found, other = self.descended(other, enough)
            if found >= best * (1 - SAME):
                break
            best, chosen = found, other
        return best, chosen

    def _pairs(self) -> list[tuple[Variable, ...]]:
        free = set(self.space.free)
        rows: list[tuple[Variable, ...]] = [(*op.operands, *op.results) for op in self.program.body.ops]
        rows += [(value, Slot(place)) for place, value in enumerate(self.program.body.returned)]
        pairs = (pair for row in rows for pair in itertools.combinations(dict.fromkeys(row), 2))
        return [pair for pair in dict.fromkeys(pairs) if free.issuperset(pair)]

    def _descended(
        self, start: Chosen, enough: float, together: Sequence[tuple[Variable, ...]], most: float = float("inf")
    ) -> tuple[float, Chosen]:
        """Gives the variables of each of ``together`` all their shardings, as long as that pays; ``most`` plans."""
        chosen, best = dict(start), self.price(start)
        moved = True
        while moved:
            moved = False
            for variables in together:
                for row in itertools.product(*map(self.space.domains.__getitem__, variables)):
                    other = {**chosen, **dict(zip(variables, row, strict=True))}
                    found = self.price(other)
                    if found < best * (1 - SAME):
                        chosen, best, moved = other, found, True
                if reached(best, enough) or len(self._known) > most:
                    return best, chosen
        return best, chosen

    # ---------------------------------------------------------------- 3

    def cheapest(self, *others: Chosen, seconds: float = SECONDS) -> Best:
        """The best plan found, from the ILP and from ``others`` (the search's); few assignments are enumerated."""
        found = self.by_ilp(*others, seconds=seconds)
        return found if found.proved or self.space.size > ENUMERATED else self.enumerated()

    def by_ilp(self, *others: Chosen, seconds: float = SECONDS) -> Best:
        """The best of what the ILP and ``others`` lead to, with the ILP's bound; 0 where HiGHS had no time for one."""
        bound, starts = 0.0, list(others)
        below = min(map(self.price, starts), default=float("inf"))
        with suppress(TimeoutError):
            solution = Cheapest(self.space, self.costs, below).solve(seconds)
            bound = solution.bound
            starts = [*self._starts(solution), *starts]
        found = min(((self.price(start), start) for start in starts), key=lambda one: one[0])
        if reached(found[0], bound):
            return Best(*found, bound, "ilp")
        found = min((self.descended(start, bound) for start in starts), key=lambda one: one[0])
        if not reached(found[0], bound):
            found = self.descended_by_pairs(found[1], bound)
        return Best(*found, bound, "descent")

    def _starts(self, solution: Solution) -> list[Chosen]:
        """Assignments that hold each value under one of its copies: what is made first, what is taken first."""
        return [self._start(solution, True), self._start(solution, False)]

    def _start(self, solution: Solution, made: bool) -> Chosen:
        root = roots(self.program)
        taken: dict[int, list[Sharding]] = {}
        for op in self.program.body.ops:
            for place, value in enumerate(op.operands):
                taken.setdefault(value, []).extend(solution.taken.get((op.number, place), ()))
        for place, sharding in solution.left.items():
            taken.setdefault(self.program.body.returned[place], []).append(sharding)
        chosen: Chosen = {}
        for variable, domain in self.space.domains.items():
            if isinstance(variable, Slot):
                chosen[variable] = solution.left.get(variable.place, domain[0])
                continue
            first, second = solution.made.get(root[variable], []), taken.get(variable, [])
            wishes = [*first, *second] if made or variable in self.program.body.arguments else [*second, *first]
            chosen[variable] = next((s for s in wishes if s in domain), domain[0])
        return chosen


def reached(price: float, bound: float) -> bool:
    """Whether the price is the bound, as far as HiGHS can tell."""
    return price <= bound * (1 + SAME)
