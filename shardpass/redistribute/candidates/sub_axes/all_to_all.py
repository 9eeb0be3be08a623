"""A swap as one all_to_all: sub-axes let go of the sub-dimensions that they split and take local ones.

The all_to_all cuts the local array along one axis and joins what comes along one axis. Three forms, by where the
sub-dimensions stand in the local array; a *leaving* one is local before and split after, a *coming* one the reverse:

1. Directly, where the leaving ones are the most major of one dimension and the coming ones become the most major of one
   dimension, in the order of their sub-axes. f32[8, 8] from [{x}, {}] to [{}, {x}], x=4: the tile 2x8 is cut in four
   2x2 along dimension 1 and joined to 8x2 along dimension 0.
2. In place, where the leaving ones stand side by side: the coming ones take their places, and a transpose brings them
   to their own. Two axes that leave two dimensions for others are such a case.
3. In front: a transpose brings the leaving ones to the front of the array, and another the coming ones to their places.

Form 1 is taken only where XLA joins long runs, since it copies short ones slowly; the other two give it such runs.
"""

from __future__ import annotations

import math

from shardpass.redistribute.candidates.sub_axes.assignments import Assignment, SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.local_layout import LocalLayout, isolated, rearranged, restored
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.steps import StepKind

LONG_RUN = 256  # bytes: pieces that are joined in runs as long need no help


def swap(problem: SubAxisProblem, before: Assignment, after: Assignment, builder: Builder) -> None:
    """One all_to_all for all sub-axes that split another sub-dimension after it; each of these is local before."""
    swapped = sorted((m for m, t in enumerate(after) if t != before[m]), key=lambda m: after[m])
    groups = problem.sub_axes.groups(swapped)
    leaving, coming = [after[m] for m in swapped], [before[m] for m in swapped]
    whole, tile = builder.tile, problem.tile(after)
    names = problem.sub_axes.names(swapped)
    split, concat = problem.leading_dim(before, leaving), problem.leading_dim(after, coming)
    local = problem.local(before)
    first = local.index(leaving[0])
    program: list[ops.Op]
    if split is not None and concat is not None and _joins_well(whole, tile, split, concat, builder):
        program = [ops.AllToAll(split, concat, groups, names)]
    elif local[first : first + len(leaving)] == leaving:
        program = _swap_in_place(problem, local, first, coming, after, groups, names)
    else:
        program = _swap_in_front(problem, builder.tile, local, leaving, coming, after, groups, names)
    moved = builder.bytes(whole)
    builder.step(StepKind.ALL_TO_ALL, program, groups, tile, moved - moved // groups.shape[1], names)


def _joins_well(before: tuple[int, ...], after: tuple[int, ...], split: int, concat: int, builder: Builder) -> bool:
    """Whether XLA joins the pieces along ``concat`` in long runs, and does not cut them along the last dimension."""
    run = builder.bytes((before[concat], *after[concat + 1 :]))
    in_front = math.prod(after[:concat]) == 1
    return math.prod(before[split + 1 :]) > 1 and (in_front or run >= LONG_RUN)


def _swap_in_place(
    problem: SubAxisProblem,
    local: list[int],
    first: int,
    coming: list[int],
    after: Assignment,
    groups: IntArray,
    names: tuple[str, ...],
) -> list[ops.Op]:
    """Form 2. XLA cuts the pieces and joins them along one axis, in long runs; the transpose goes with the joining."""
    size = groups.shape[1]
    ahead, behind = local[:first], local[first + len(coming) :]
    left, right = (math.prod(problem.sizes[t] for t in part) for part in (ahead, behind))
    grid, axis = ((size, right), 0) if left == 1 else ((left, size, right), 1)
    mixed = [*ahead, *coming, *behind]
    stands = LocalLayout(tuple((t,) for t in mixed), problem.sizes)
    order = [mixed.index(t) for t in problem.local(after)]
    return [
        ops.Reshape(grid),
        ops.AllToAll(axis, axis, groups, names),
        *rearranged(grid, stands, order, problem.tile(after)),
    ]


def _swap_in_front(
    problem: SubAxisProblem,
    tile: tuple[int, ...],
    local: list[int],
    leaving: list[int],
    coming: list[int],
    after: Assignment,
    groups: IntArray,
    names: tuple[str, ...],
) -> list[ops.Op]:
    """Form 3."""
    layout = isolated(problem, local, leaving)
    lead = [layout.runs.index((t,)) for t in leaving]
    rest = [a for a in range(len(layout.runs)) if a not in lead]
    shape = (groups.shape[1], *(layout.shape[a] for a in rest if layout.shape[a] > 1))
    return [
        *rearranged(tile, layout, [*lead, *rest], shape),
        ops.AllToAll(0, 0, groups, names),
        *restored(problem, problem.local(after), coming, shape, problem.tile(after)),
    ]
