#!/usr/bin/env python
"""The search for the cheapest shardings, held to the exact optimum on small random programs.

    python -m tools.prove.optimum --programs 300 --seed 0          seeds 0 to 299, today's default effort
    python -m tools.prove.optimum --programs 300 --effort 2 --json found.json
    python -m tools.prove.optimum --show 17                        one program, both assignments and both plans
    python -m tools.prove.optimum --programs 20 --sub-axes         axes may be taken apart too

Each program (tools/prove/cheapest/random_programs.py) has up to 12 ops on a mesh of 2 axes. Its optimum is over all
assignments of shardings to values that keep what the user fixed, and the price is that of the plan which the planner
makes of an assignment (tools/prove/cheapest/witness.py). A line for each program: the search's price over the best
known, and whether that is proved to be the optimum; where it is not, the bound that no plan can be below.

Ctrl-C says what was found so far.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.pipeline.run import run_pipeline
from shardpass.planning.planner import plan_program
from shardpass.planning.search import starts
from shardpass.program.program import Program
from shardpass.program.read import read_program
from shardpass.program.shardings import Shardings
from shardpass.sharding import Sharding
from tools.prove.cheapest.options import Costs
from tools.prove.cheapest.random_programs import Example, random_program
from tools.prove.cheapest.space import Domains, Slot, Variable, space_of
from tools.prove.cheapest.witness import SAME, SECONDS, Best, Chosen, Witness

CLOSE = 1.05


def searched(program: Program, effort: int) -> Shardings:
    """What the search takes: the one place that knows how it is called. Examples have no barriers."""
    return starts(program, {}, effort)[0].found.shardings


@dataclass(frozen=True)
class Outcome:
    """One program: the search's price, the best known, and the bound below which no plan is."""

    seed: int
    style: str
    mesh: str
    ops: int
    free: int  # values and results of main that nobody fixed
    search: float
    best: float
    bound: float
    proved: bool
    way: str  # where the best was found
    seconds: float  # the search's are not among them

    @property
    def ratio(self) -> float:
        return self.search / self.best if self.best else 1.0

    def __str__(self) -> str:
        known = "" if self.proved else f"  (bound {self.bound / self.best:.4f})"
        return (
            f"{self.seed:6} {self.mesh:9} {self.style:15} {self.ops:2} ops {self.free:2} free "
            f"{self.search:14.0f} / {self.best:14.0f} = {self.ratio:7.4f}{known}"
        )


@dataclass(frozen=True)
class Found:
    """What is known of one program: the two assignments and their prices."""

    example: Example
    program: Program
    searched: Chosen
    best: Best
    outcome: Outcome


class Examiner:
    """Programs one after the other; what moves and ops cost is kept for each mesh."""

    def __init__(self, effort: int, sub_axes: bool = False, seconds: float = SECONDS) -> None:
        self.effort, self.sub_axes, self.seconds = effort, sub_axes, seconds
        self._costs: dict[PrimeMesh, Costs] = {}

    def costs(self, mesh: PrimeMesh) -> Costs:
        if mesh not in self._costs:
            self._costs[mesh] = Costs(mesh, Domains(mesh, self.sub_axes))
        return self._costs[mesh]

    def examine(self, example: Example) -> Found:
        program = read(example.text)
        chosen = searched(program, self.effort)
        began = time.perf_counter()
        costs = self.costs(program.mesh)
        space = space_of(program, costs.domains)
        witness = Witness(space, costs)
        said = space.chosen(chosen)
        best = witness.cheapest(said, seconds=self.seconds)
        outcome = Outcome(
            example.seed,
            example.style,
            " ".join(f"{name}={size}" for name, size in example.mesh),
            program.count,
            len(space.free),
            witness.price(said),
            best.price,
            best.bound,
            best.proved,
            best.way,
            round(time.perf_counter() - began, 3),
        )
        return Found(example, program, said, best, outcome)


def read(text: str) -> Program:
    """The facts of a program that was imported."""
    module = run_pipeline(text, "import")
    with module.context:
        return read_program(module, "propagate")[0]


# ---------------------------------------------------------------- told


def summary(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "no program"
    total = len(outcomes)
    equal = sum(one.ratio <= 1 + SAME for one in outcomes)
    close = sum(one.ratio <= CLOSE for one in outcomes)
    proved = sum(one.proved for one in outcomes)
    worst = max(outcomes, key=lambda one: one.ratio)
    certain = sum(one.search <= one.bound * (1 + SAME) for one in outcomes)
    return (
        f"{total} programs: equal on {equal / total:.1%}, within 5% on {close / total:.1%}, "
        f"worst {worst.ratio:.4f} (seed {worst.seed}); "
        f"the optimum is proved on {proved / total:.1%}, the search's is it on {certain / total:.1%}"
    )


def by_style(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for style in sorted({one.style for one in outcomes}):
        some = [one for one in outcomes if one.style == style]
        equal = sum(one.ratio <= 1 + SAME for one in some)
        close = sum(one.ratio <= CLOSE for one in some)
        worst = max(some, key=lambda one: one.ratio)
        yield (
            f"  {style:15} {len(some):4} programs: equal {equal / len(some):6.1%}, within 5% {close / len(some):6.1%}, "
            f"worst {worst.ratio:8.4f} (seed {worst.seed})"
        )


def told(found: Found) -> Iterator[str]:
    """The program, both assignments, and the plans they make."""
    program = found.program
    yield found.example.text
    yield f"{'':8} {'type':>20}  {'search':28} optimum"
    variables: list[Variable] = [*range(len(program.arrays)), *map(Slot, range(len(program.body.returned)))]
    names = {value: f"%a{place}" for place, value in enumerate(program.body.arguments)}
    names |= {
        value: f"{op.number}: {op.name.removeprefix('stablehlo.')}" for op in program.body.ops for value in op.results
    }
    for variable in variables:
        value = program.body.returned[variable.place] if isinstance(variable, Slot) else variable
        name = f"result {variable.place}" if isinstance(variable, Slot) else names[value]
        rank = program.array(value).rank
        one, other = (shown(chosen.get(variable), program.mesh, rank) for chosen in (found.searched, found.best.chosen))
        yield f"{name:24} {program.array(value)!s:>20}  {one:28} {other}{'' if one == other else '   <-'}"
    for title, chosen in (("search", found.searched), ("optimum", found.best.chosen)):
        plan = plan_program(program, space_of(program, Domains(program.mesh)).shardings(chosen))
        yield f"\n{title}: {plan}"
    yield f"\n{found.outcome}"


def shown(sharding: Sharding | None, mesh: PrimeMesh, rank: int) -> str:
    if sharding is None:
        return "as it is held"
    dims = mesh.dims(sharding, rank)
    return str(sharding) if dims is None else "[" + ", ".join("{" + mesh.names(axes) + "}" for axes in dims) + "]"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300, help="how many (300)")
    parser.add_argument("--seed", type=int, default=0, help="the first (0)")
    parser.add_argument("--effort", type=int, default=1, help="of the search (1)")
    parser.add_argument("--json", type=Path, help="where to write every outcome")
    parser.add_argument("--show", type=int, metavar="SEED", help="one program, its assignments and plans")
    parser.add_argument("--sub-axes", action="store_true", help="axes may be taken apart: slower")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for HiGHS, a program ({SECONDS:g})")
    args = parser.parse_args()
    examiner = Examiner(args.effort, args.sub_axes, args.seconds)
    if args.show is not None:
        print("\n".join(told(examiner.examine(random_program(args.show)))))
        return 0
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    seeds = range(args.seed, args.seed + args.programs)
    outcomes: list[Outcome] = []
    try:
        for seed in track(seeds, "programs", console=console, transient=True, disable=not console.is_terminal):
            outcomes.append(examiner.examine(random_program(seed)).outcome)
            print(outcomes[-1], flush=True)
    except KeyboardInterrupt:
        print("stopped")
    if args.json:
        args.json.write_text(json.dumps([asdict(one) | {"ratio": one.ratio} for one in outcomes], indent=1) + "\n")
    print(summary(outcomes))
    print("\n".join(by_style(outcomes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
