"""Recipes by which people split programs, as starts of a search: batch first, and weights over the same axes or others.

Problem: where nothing is annotated, greedy propagation leaves all arrays whole, and some good points are several moves
away from there, none of which pays alone (weights split over the axis that the batch holds, FSDP).

Arguments are told apart by how they are used:

1. A weight is a right operand of a product or convolution, the table of a lookup, or has the type of a result (what a
   training step takes and returns: parameters, moments).
2. Of the others, the batch: arrays whose leading dimension is that of the largest of these.

A recipe names axes for the batch, and axes for weights: none, the batch's own, the others, or the others on one
dimension and the batch's on another. The batch takes part first, then the weights, each over its largest dimension that
divides; or, of weights with three dimensions or more, over the first: where weights are stacked, that is the experts.
What the user fixed keeps its word.

Example, data=4, model=2: batch over data and weights over model, each weight's largest dimension; w[64,256] is split
over its columns, w[256,64] over its rows, as in Megatron.

Complexity: O(subsets of the axes) recipes, of which each is one propagation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.planning.moves import whole_axes
from shardpass.program.program import NOTHING_SAID, Op, Program, Said

MOST_AXES = 3  # beyond these, subsets are the single axes and all
SMALL_PART = 1000  # a weight of less than this part of all arguments is left to propagation
TAKES_WEIGHTS = ("stablehlo.dot_general", "stablehlo.convolution")
HANDS_ON = frozenset(f"stablehlo.{name}" for name in ("convert", "transpose", "reshape", "custom_call"))
LOOKUPS = ("stablehlo.gather", "stablehlo.dynamic_slice")


@dataclass(frozen=True)
class Start:
    """A recipe: its name for people, and the program with what it says of arguments."""

    told: str
    program: Program


def starts(program: Program) -> Iterator[Start]:
    """The recipes of ``program`` on its mesh."""
    axes = [one for one in whole_axes(program.mesh) if program.mesh.count(one) > 1]
    batch, weights = roles(program)
    for chosen in _subsets(axes):
        rest = [one for one in axes if one not in chosen]
        for others in _ways(chosen, rest):
            seen: list[dict[int, Said]] = [program.said]
            for leading in (False, True):
                said = dict(program.said)
                for value in batch:
                    _say(said, program, value, [(0, chosen)], 0)
                for value in weights:
                    _say(said, program, value, _dims(program, value, others, leading), 1)
                if said not in seen:
                    seen.append(said)
                    yield Start(_told(program, chosen, others, leading), replace(program, said=said))


def _told(program: Program, batch: Sequence[Axes], weights: Sequence[Sequence[Axes]], leading: bool) -> str:
    named = " and ".join(_names(program, group) for group in weights) or "nothing"
    return f"batch over {_names(program, batch)}, weights over {named}" + (", experts first" if leading else "")


def roles(program: Program) -> tuple[list[int], list[int]]:
    """(batch, weights) among the arguments of which the user says nothing."""
    of_weights = right_operands(program, LOOKUPS)
    results = {program.arrays[value] for value in program.body.returned}
    free = [
        v
        for v in program.body.arguments
        if (a := program.arrays[v]) is not None and a.rank and program.said.get(v, NOTHING_SAID).sharding is None
    ]
    weights = [v for v in free if v in of_weights or program.arrays[v] in results]
    others = [v for v in free if v not in set(weights)]
    total = sum(program.array(v).bytes for v in program.body.arguments if program.arrays[v] is not None)
    large = [v for v in weights if program.array(v).bytes * SMALL_PART >= total]
    leading = [v for v in others if program.array(v).rank > 1] or others
    if not leading:
        return [], large
    size = program.array(max(leading, key=lambda v: program.array(v).bytes)).shape[0]
    return [v for v in others if program.array(v).shape[0] == size], large


def _subsets(axes: Sequence[Axes]) -> Iterator[tuple[Axes, ...]]:
    """All axes first, then fewer."""
    for count in range(len(axes), 0, -1):
        if len(axes) <= MOST_AXES or count in (1, len(axes)):
            yield from combinations(axes, count)


def _ways(batch: Sequence[Axes], rest: Sequence[Axes]) -> Iterator[tuple[tuple[Axes, ...], ...]]:
    """The groups of axes over which weights are split, each over a dimension of its own."""
    yield ()
    yield (tuple(batch),)
    if rest:
        yield (tuple(rest),)
        yield (tuple(rest), tuple(batch))
        yield ((*batch, *rest),)


def _dims(
    program: Program, value: int, groups: Sequence[Sequence[Axes]], leading: bool
) -> list[tuple[int, Sequence[Axes]]]:
    """For each group the largest dimension that it divides and that none before it took.

    ``leading``: where there are three dimensions or more, the first such dimension.
    """
    shape = program.array(value).shape
    out: list[tuple[int, Sequence[Axes]]] = []
    for group in groups:
        count = program.mesh.count(_joined(group))
        taken = {dim for dim, _ in out}
        dims = [d for d, n in enumerate(shape) if d not in taken and n and n % count == 0]
        if dims:
            first = leading and len(shape) > 2
            out.append((dims[0] if first else max(dims, key=lambda d: (shape[d], -d)), group))
    return out


def _say(
    said: dict[int, Said], program: Program, value: int, wanted: Sequence[tuple[int, Sequence[Axes]]], priority: int
) -> None:
    array = program.array(value)
    dims: list[Axes] = [()] * array.rank
    for dim, group in wanted:
        taken = list(group)
        while taken and array.shape[dim] % program.mesh.count(_joined(taken)):
            taken.pop()
        dims[dim] = _joined(taken)
    split: DimAxes = tuple(dims)
    if any(split):
        said[value] = Said(program.mesh.sharding(split), priorities=(priority,) * array.rank if priority else ())


def _joined(group: Sequence[Axes]) -> Axes:
    return tuple(axis for axes in group for axis in axes)


def _names(program: Program, group: Sequence[Axes]) -> str:
    return program.mesh.names(_joined(group))


def right_operands(program: Program, lookups: Sequence[str] = ()) -> set[int]:
    """Values that are right operands of products, or that only conversions and moves lie between.

    ``lookups``: ops whose first operand counts too.
    """
    source: dict[int, int] = {}
    found: set[int] = set()

    def origin(value: int) -> int:
        return source.get(value, value)

    def look(op: Op) -> None:
        if op.name in HANDS_ON and op.operands:
            source.update((result, origin(op.operands[0])) for result in op.results)
        elif op.name in TAKES_WEIGHTS:
            found.add(origin(op.operands[1]))
        elif op.name in lookups:
            found.add(origin(op.operands[0]))

    for op in program.body.every_op():
        look(op)
    return found
