"""The campaigns of the redistribution fuzzer: which problems, and which laws and runs they are held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shardpass.redistribute import Plan
from tools.fuzz.random_redistribution import (
    SMALL_MESHES,
    exhaustive,
    exhaustive_problem,
    random_problem,
    whole_axes_problem,
)
from tools.prove import redistribution_laws as laws
from tools.prove import redistribution_runs as runs
from tools.prove.redistribution_arrays import ELEMENTS
from tools.prove.redistribution_problems import Problem

NUMPY_EVERY = 8  # of the problems that the simulator proves, how many go through NumPy too


@dataclass(frozen=True, slots=True)
class Campaign:
    """``problem``: by number. ``examine``: what kinds of problem it was; raises where a law does not hold.

    ``count``: how many are asked for by default. ``life``: how many a child does before it makes way for a new one.
    """

    problem: Callable[[int], Problem]
    examine: Callable[[Problem], list[str]]
    count: int
    life: int
    devices: bool = True


def simulate(problem: Problem) -> list[str]:
    plans, tags = laws.planned(problem)
    if problem.number % NUMPY_EVERY == 0:
        laws.evaluated(problem, plans)
        tags.append("on NumPy arrays")
    return tags


def execute(problem: Problem) -> list[str]:
    """Whole arrays, and device by device, by turns."""
    plan, tags = one_of(problem)
    if plan is not None:
        runs.run_on_xla(problem, plan, stacked=problem.number // 2 % 2 == 0)
    return [*tags, f"{problem.devices} devices"]


def interpret(problem: Problem) -> list[str]:
    plan, tags = one_of(problem)
    if plan is not None:
        runs.run_on_reference(problem, plan)
    return tags


def one_of(problem: Problem) -> tuple[Plan | None, list[str]]:
    """The plan of best on even numbers, of rink on odd ones; None where that refuses."""
    plans, tags = laws.planned(problem)
    planner = ("best", "rink")[problem.number % 2]
    return plans.get(planner), [*tags, planner, problem.element] if planner in plans else [*tags, "not run"]


def prove(problem: Problem) -> list[str]:
    plans, tags = laws.planned(problem)
    laws.evaluated(problem, plans)
    return tags


def prove_and_execute(problem: Problem) -> list[str]:
    plans, tags = laws.planned(problem)
    laws.evaluated(problem, plans)
    runs.run_on_xla(problem, plans["best"], stacked=False)
    return tags


def compare(problem: Problem) -> list[str]:
    plans, tags = laws.planned(problem)
    return [*tags, *runs.beside_shardy(problem, plans["best"])]


def runnable_problem(seed: int) -> Problem:
    """A random problem of few elements; four by four of every element type."""
    return random_problem(seed, 1 << 11, ELEMENTS[seed // 4 % len(ELEMENTS)])


def campaigns(xla: bool = True) -> dict[str, Campaign]:
    every = {
        f"exhaustive-{mesh}": Campaign(
            lambda number, mesh=mesh: exhaustive_problem(mesh, number),  # type: ignore[misc]
            prove_and_execute if xla else prove,
            exhaustive(mesh),
            300 if xla else 5000,
            xla,
        )
        for mesh in SMALL_MESHES
    }
    return {
        "simulator": Campaign(random_problem, simulate, 100_000, 5000, devices=False),
        "xla": Campaign(runnable_problem, execute, 2000, 250),
        "reference": Campaign(runnable_problem, interpret, 300, 50, devices=False),
        "shardy": Campaign(whole_axes_problem, compare, 400, 100),
        **every,
    }
