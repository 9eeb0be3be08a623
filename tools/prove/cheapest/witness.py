"""The cheapest plan of a small program, found without the search: by enumeration, or by an ILP and a descent from it.

``price_of`` is what is optimised: the search's own price of a plan, and the work of what the plan computes again.

1. ``enumerated``: every assignment of ``Space`` is planned. Exact, for some thousands of them.
2. ``descended``: from an assignment, one variable at a time is given each of its shardings, as long as that pays.
3. ``cheapest``: the ILP (``ilp``) gives a bound and the copies of each array; each value is then given one of its
   copies, what makes it or what takes it, and the plans of these assignments are priced. Where none costs what the
   bound says, few assignments are enumerated, and of many these and the search's descend. What comes out is a plan that
   can be had; where it costs what the bound says, it is the optimum.

Complexity: a plan of 12 ops takes about a millisecond; a descent plans each value's shardings some three times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from shardpass.planning.cost import price
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.planner import plan_program
from shardpass.planning.steps import BlockPlan, ConstraintPlan, LeftOutPlan, Recompute, SplitPlan, Step, WholePlan
from shardpass.sharding import Sharding
from tools.prove.cheapest.ilp import Cheapest, Solution, roots
from tools.prove.cheapest.options import Costs, work
from tools.prove.cheapest.space import Slot, Space, Variable

SAME = 1e-6  # prices that differ by less, relatively, are equal: HiGHS knows no more
ENUMERATED = 1000  # assignments, at most
SECONDS = 10.0  # for HiGHS

Chosen = dict[Variable, Sharding]


def price_of(plan: ProgramPlan) -> float:
    """The search's price, and the work of what is computed again, which that price does not count.

    Without it a plan could have the work of any cheap op for nothing: by holding its result under a sharding that
    nobody takes, so that every user computes it again and the op itself is left out.
    """
    again: float = sum(work(step.op.model.rule, step.local.split.count) for step in _again(plan.body) if step.op.model)
    return price(plan) + again


def _again(block: BlockPlan) -> Iterator[Recompute]:
    steps: list[Step] = []
    for plan in block.ops:
        if isinstance(plan, SplitPlan):
            steps += [step for operand in plan.operands for step in operand.steps]
        elif isinstance(plan, WholePlan):
            steps += [step for _, operand in plan.operands for step in operand.steps]
        elif isinstance(plan, ConstraintPlan):
            steps += plan.operand.steps
        elif isinstance(plan, LeftOutPlan):
            steps += plan.steps
    steps += [step for operand in block.returned if operand is not None for step in operand.steps]
    yield from (step for step in steps if isinstance(step, Recompute))


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
        self._known: dict[tuple[Sharding | None, ...], float] = {}
        self._variables = list(space.domains)

    def price(self, chosen: Chosen) -> float:
        key = tuple([chosen.get(variable) for variable in self._variables])
        if key not in self._known:
            self._known[key] = price_of(plan_program(self.program, self.space.shardings(chosen)))
        return self._known[key]

    # ---------------------------------------------------------------- 1

    def enumerated(self) -> Best:
        """Every assignment."""
        best: Best | None = None
        for row in itertools.product(*self.space.domains.values()):
            chosen = dict(zip(self._variables, row, strict=True))
            found = price_of(plan_program(self.program, self.space.shardings(chosen)))
            if best is None or found < best.price:
                best = Best(found, chosen, found, "enumerated")
        assert best is not None
        return best

    # ---------------------------------------------------------------- 2

    def descended(self, start: Chosen, enough: float) -> tuple[float, Chosen]:
        """One variable at a time, as long as that pays; not below ``enough``."""
        chosen, best = dict(start), self.price(start)
        moved = True
        while moved and not reached(best, enough):
            moved = False
            for variable in self.space.free:
                for sharding in self.space.domains[variable]:
                    other = {**chosen, variable: sharding}
                    found = self.price(other)
                    if found < best * (1 - SAME):
                        chosen, best, moved = other, found, True
                if reached(best, enough):
                    break
        return best, chosen

    # ---------------------------------------------------------------- 3

    def cheapest(self, *others: Chosen, seconds: float = SECONDS) -> Best:
        """The best plan found, from the ILP and from ``others`` (the search's), with the ILP's bound."""
        starts = list(others)
        below = min(map(self.price, starts), default=float("inf"))
        bound = 0.0
        try:
            solution = Cheapest(self.space, self.costs, below).solve(seconds)
        except TimeoutError:
            pass
        else:
            bound = solution.bound
            starts = [*self._starts(solution), *starts]
        found = min(((self.price(start), start) for start in starts), key=lambda one: one[0])
        if reached(found[0], bound):
            return Best(*found, bound, "ilp")
        if self.space.size <= ENUMERATED:
            return self.enumerated()
        found = min((self.descended(start, bound) for start in starts), key=lambda one: one[0])
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
