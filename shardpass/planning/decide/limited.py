"""Find the cheapest shardings whose arrays fit into the memory of a device.

Problem: as ``search``, under a limit of bytes alive at once. Replication is cheap in bytes received and expensive in
memory, so the cheapest shardings may be those of a plan that no device can hold.

1. The cheapest shardings without a limit. Where their plan keeps it, they are the answer.
2. The tables of the folded program, solved within the limit (``within``), which gives a bound too.
3. The plan of that solution holds copies that reshards make, of which the tables do not know. Where it breaks the
   limit, the tables are solved again with the limit lower by the excess, at most ``ROUNDS`` times; the last time with
   no memory allowed at all, which finds the least.
4. Propagation alone is a candidate, where its plan keeps the limit: no effort gives a more expensive plan than a lower
   one.

Example on d=8, a perceptron with Adam, weights of 8 MiB: replicated weights and moments take 24 MiB, batch over d costs
8 MiB of all-reduce. With a limit of 16 MiB bytes have a price, and at some price the tables split weights and moments:
3 MiB of arguments, gathered weights and scattered gradients.

Complexity: that of ``within``, and one plan of the whole program, a round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from shardpass.cost.machine import IDEAL, Machine
from shardpass.diagnostics import report
from shardpass.diagnostics.table_suggest import DOES_NOT_FIT, LIMIT_TOO_LOW
from shardpass.planning.decide.bound import Bound
from shardpass.planning.decide.problem import Problem
from shardpass.planning.decide.search import Decision, SearchChange, decide
from shardpass.planning.decide.within import within
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.plan.task import Task
from shardpass.program.program import Program
from shardpass.program.shardings import Shardings
from shardpass.propagation.program import Propagated
from shardpass.redistribute.terms.limit import show_bytes

ROUNDS = 4  # times that the limit is tightened for copies that plans make


@dataclass(frozen=True)
class Fitting:
    """Shardings of the whole program, their plan, and how near they are to the best within the limit."""

    shardings: Shardings
    plan: ProgramPlan
    bound: Bound

    @property
    def peak(self) -> int:
        """The greatest number of bytes alive at once on a device in the plan."""
        return self.plan.alive.peak


def fitting(problem: Problem, limit: int) -> Fitting:
    """Return the cheapest shardings whose plan stays within ``limit`` bytes; if no plan does, those with the lowest
    peak.
    """
    task = problem.task
    index, arguments = problem.propagated.index, task.folded.program.body.arguments
    places = [[index[value]] for value in arguments if value in index]

    def planned(shardings: Shardings, bound: Callable[[float], Bound]) -> Fitting:
        plan = plan_program(task.program, shardings, task.decided, machine=task.machine)
        return Fitting(shardings, plan, bound(price(plan)))

    tried: list[Fitting] = []
    allowed, best = limit, None
    for left in reversed(range(ROUNDS)):
        answer = within(problem, (), allowed, places)
        best = best or answer  # within the limit itself
        if problem.left_out:
            bound = partial(Bound, why=problem.left_out)
        else:
            alike = task.folded.folds
            bound = partial(Bound.of, price=answer.price, least=best.least, why=best.why, alike=alike)
        tried.append(planned(problem.shardings(answer), bound))
        over = tried[-1].peak - limit
        if over <= 0:
            break
        allowed = max(0, allowed - over) if left > 1 else 0
    alone = Propagated(task.program, task.barriers).shardings
    first = planned(alone, partial(Bound, why="propagation alone is cheaper within the limit"))
    fit = [each for each in (*tried, first) if each.peak <= limit]
    return min(fit, key=lambda each: each.plan.makespan) if fit else min(tried, key=lambda each: each.peak)


def decide_within(
    limit: int,
    program: Program,
    barriers: Mapping[int, str],
    effort: int,
    machine: Machine = IDEAL,
    *,
    settle_results: bool = False,
    asked: bool = True,
) -> Decision:
    """Decide as ``decide``, with at most ``limit`` bytes alive at once on a device in the plan.

    Returns the cheapest shardings if they keep the limit. If none do, raises ShardpassError (SP804) with the least
    bytes that any plan reached; if nobody ``asked`` for the limit, a remark says so and the cheapest shardings are
    returned. ``effort`` 0 looks for no others.
    """
    free = decide(program, barriers, effort, machine, settle_results=settle_results)
    cheapest = plan_program(program, free.shardings, machine=machine)
    if cheapest.alive.peak <= limit:
        return free
    least = cheapest.alive.peak
    if effort:
        problem = Problem(Task.of(replace(program, memory=limit), barriers, effort, machine))
        fit = fitting(problem, limit)
        if fit.peak <= limit:
            message = f"all values, to hold {show_bytes(fit.peak)} in place of {show_bytes(least)}"
            steps = *free.changes, SearchChange(message, price(cheapest), fit.bound.plan)
            return replace(
                free,
                shardings=fit.shardings,
                changes=steps,
                searched=problem.propagated,
                decided=None,
                find_bound=lambda: fit.bound,
                memory=limit,
                plans=None,
            )
        least = min(least, fit.peak)
    if asked:
        raise LIMIT_TOO_LOW.error(limit=show_bytes(limit), least=show_bytes(least), bytes=least)
    shown = [show_bytes(size) for size in (limit, least, cheapest.alive.peak)]
    report(DOES_NOT_FIT.at(machine=machine.name, limit=shown[0], least=shown[1], cheapest=shown[2]))
    return free
