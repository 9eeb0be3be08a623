"""One program examined: what the search finds, beside the cheapest plan that is known.

``searched`` is the one place that knows how the search is called.

The cheapest plan takes a second to find and the search milliseconds, so an ``Outcome`` keeps the assignment behind it:
given the outcome of an earlier run (``known``), only the search runs again. The assignment is priced anew all the same,
and where its price is another than it was (the planner has changed), the program is examined from the beginning.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any

from shardpass.cost.machine import IDEAL, Machine
from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.pipeline.run import run_pipeline
from shardpass.planning.decide.search import Decision, decide
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.planner import plan_program
from shardpass.program.program import Program
from shardpass.program.read import read_program
from tools.prove.cheapest.options import Costs
from tools.prove.cheapest.random_programs import Example
from tools.prove.cheapest.space import Domains, Space, space_of
from tools.prove.cheapest.witness import SAME, SECONDS, Best, Chosen, Witness


def searched(program: Program, effort: int, machine: Machine = IDEAL) -> Decision:
    """The decision. Examples have no barriers."""
    return decide(program, {}, effort, machine)


def read(text: str) -> Program:
    """The facts of a program, once it is imported."""
    module = run_pipeline(text, "import")
    with module.context:
        return read_program(module, "propagate")[0]


@dataclass(frozen=True)
class Outcome:
    """One program: the price of the decision's plan, the best known, and the witness's bound below which no plan is.

    ``least``: what the decision states that no sharding falls below in the model of its tables; None where it states
    nothing. ``free``: values and results of main that nobody fixed. ``way``: how the best was found. ``seconds``: of
    finding it.
    ``assignment``: the best's sub-axes by variable, in the order of ``Space.domains``.
    """

    seed: int
    style: str
    mesh: str
    ops: int
    free: int
    search: float
    least: float | None
    best: float
    bound: float
    way: str
    seconds: float
    assignment: tuple[DimAxes | None, ...]

    @property
    def ratio(self) -> float:
        return self.search / self.best if self.best else 1.0

    @property
    def proved(self) -> bool:
        """Whether the best is the optimum."""
        return self.best <= self.bound * (1 + SAME)

    @property
    def is_refuted(self) -> bool:
        """Whether a plan costs less than the decision states that any may."""
        return self.least is not None and min(self.search, self.best) < self.least * (1 - SAME)

    def __str__(self) -> str:
        known = "" if self.proved else f"  (bound {self.bound / self.best:.4f})"
        return (
            f"{self.seed:6} {self.mesh:9} {self.style:15} {self.ops:2} ops {self.free:2} free "
            f"{self.search * 1e6:12.3f} us / {self.best * 1e6:12.3f} us = {self.ratio:7.4f}{known}"
        )

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Outcome:
        """From what ``asdict`` made, as JSON keeps it."""
        assignment = tuple(None if dims is None else tuple(tuple(axes) for axes in dims) for dims in row["assignment"])
        return cls(
            **{name: row[name] for name in cls.__dataclass_fields__ if name != "assignment"}, assignment=assignment
        )


@dataclass(frozen=True)
class Found:
    """The two assignments of one program, and what they cost."""

    example: Example
    program: Program
    space: Space
    searched: Chosen
    best: Best
    outcome: Outcome


class Examiner:
    """Programs one after the other; what moves and ops cost is kept for each mesh."""

    def __init__(self, effort: int, sub_axes: bool = False, seconds: float = SECONDS, machine: Machine = IDEAL) -> None:
        self.effort, self.sub_axes, self.seconds, self.machine = effort, sub_axes, seconds, machine
        self._costs: dict[PrimeMesh, Costs] = {}

    def costs(self, mesh: PrimeMesh) -> Costs:
        if mesh not in self._costs:
            self._costs[mesh] = Costs(mesh, Domains(mesh, self.sub_axes), self.machine)
        return self._costs[mesh]

    def examine(self, example: Example, known: Outcome | None = None) -> Found:
        """``known``: of the same program, from an earlier run."""
        program = read(example.text)
        costs = self.costs(program.mesh)
        space = space_of(program, costs.domains)
        witness = Witness(space, costs)
        decision = searched(program, self.effort, self.machine)
        plan = plan_program(program, decision.shardings, machine=self.machine)
        said = space.chosen(decision.shardings)
        began = time.perf_counter()
        best = None if known is None else _as_known(known, witness, said)
        if best is None:
            best = witness.cheapest(said, seconds=self.seconds)
        seconds = round(time.perf_counter() - began, 3)
        outcome = Outcome(
            example.seed,
            example.style,
            " ".join(f"{name}={size}" for name, size in example.mesh),
            program.count,
            len(space.free),
            price(plan),
            None if decision.bound is None else decision.bound.least,
            best.price,
            best.bound,
            best.way,
            seconds,
            _written(best.chosen, space),
        )
        return Found(example, program, space, said, best, outcome)


def _written(chosen: Chosen, space: Space) -> tuple[DimAxes | None, ...]:
    out = []
    for variable in space.domains:
        sharding = chosen.get(variable)
        out.append(None if sharding is None else space.program.mesh.dims(sharding, space.array(variable).rank))
    return tuple(out)


def _as_known(known: Outcome, witness: Witness, said: Chosen) -> Best | None:
    """The best of an earlier run, or the search's where that is better now; None where it is no answer any more."""
    space = witness.space
    if len(known.assignment) != len(space.domains):
        return None
    pairs = zip(space.domains, known.assignment, strict=True)
    chosen = {variable: space.program.mesh.sharding(dims) for variable, dims in pairs if dims is not None}
    if any(len(domain) == 1 and chosen.get(variable) != domain[0] for variable, domain in space.domains.items()):
        return None
    if not isclose(witness.price(chosen), known.best, rel_tol=SAME, abs_tol=SAME):
        return None
    if witness.price(said) < known.best:
        return Best(witness.price(said), said, min(known.bound, witness.price(said)), "search")
    return Best(known.best, chosen, known.bound, known.way)
