"""What is said of examined programs: a summary, and one program in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardpass.cost.machine import IDEAL, Machine
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.plan.planner import plan_program
from shardpass.sharding import Sharding
from tools.prove.cheapest.examine import Found, Outcome
from tools.prove.cheapest.space import Slot
from tools.prove.cheapest.witness import SAME

CLOSE = 1.05


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """All together, then by what is annotated."""
    if not outcomes:
        yield "no program"
        return
    proved = sum(one.proved for one in outcomes) / len(outcomes)
    near = sum(one.best <= CLOSE * one.bound for one in outcomes) / len(outcomes)
    yield f"{len(outcomes)} programs: {_shares(outcomes)}"
    yield f"  the best known is proved to be the optimum on {proved:.1%}, and to be within 5% of it on {near:.1%}"
    below = [one.seed for one in outcomes if one.best < one.bound * (1 - 10 * SAME)]
    if below:
        yield f"  a plan is below its bound, as it splits what the bound does not, or the bound is wrong: seeds {below}"
    if refuted := [one.seed for one in outcomes if one.is_refuted]:
        yield f"  a plan is below the bound of the decision: seeds {refuted}"
    for style in sorted({one.style for one in outcomes}):
        some = [one for one in outcomes if one.style == style]
        yield f"  {style:15} {len(some):4} programs: {_shares(some)}"


def _shares(outcomes: Sequence[Outcome]) -> str:
    equal = sum(one.ratio <= 1 + SAME for one in outcomes) / len(outcomes)
    close = sum(one.ratio <= CLOSE for one in outcomes) / len(outcomes)
    worst = max(outcomes, key=lambda one: one.ratio)
    return f"equal on {equal:.1%}, within 5% on {close:.1%}, worst {worst.ratio:.4f} (seed {worst.seed})"


def told(found: Found, machine: Machine = IDEAL) -> Iterator[str]:
    """The program, both assignments, and the plans they make."""
    program = found.program
    names = {value: f"%a{place}" for place, value in enumerate(program.body.arguments)}
    for op in program.body.ops:
        names |= {value: f"{op.number}: {op.name.removeprefix('stablehlo.')}" for value in op.results}
    yield found.example.text
    yield f"{'':24} {'type':>20}  {'search':28} optimum"
    for variable in found.space.domains:
        name = f"result {variable.place}" if isinstance(variable, Slot) else names[variable]
        array = found.space.array(variable)
        one, other = (
            _shown(chosen.get(variable), program.mesh, array.rank) for chosen in (found.searched, found.best.chosen)
        )
        yield f"{name:24} {array!s:>20}  {one:28} {other}{'' if one == other else '   <-'}"
    for title, chosen in (("search", found.searched), ("optimum", found.best.chosen)):
        yield f"\n{title}: {plan_program(program, found.space.shardings(chosen), machine=machine)}"
    yield f"\n{found.outcome}"


def _shown(sharding: Sharding | None, mesh: PrimeMesh, rank: int) -> str:
    if sharding is None:
        return "as it is held"
    dims = mesh.dims(sharding, rank)
    return str(sharding) if dims is None else "[" + ", ".join("{" + mesh.names(axes) + "}" for axes in dims) + "]"
