"""Build a swap as one all_to_all: sub-axes move from the sub-dimensions they split to unsplit sub-dimensions.

The all_to_all cuts the local array along one axis and joins what comes along one axis. There are five forms, by where
the sub-dimensions stand in the local array; a *leaving* one is local before and split after, a *coming* one the
reverse. Each moves the same bytes; the form with the least local work wins (``program.local_work``).

1. Directly, where the leaving ones are the most major of one dimension and the coming ones become the most major of one
   dimension, in the order of their sub-axes. f32[8, 8] from [{x}, {}] to [{}, {x}], x=4: the tile 2x8 is cut in four
   2x2 along dimension 1 and joined to 8x2 along dimension 0. One op; always chosen for small tiles, where the number
   of ops decides.
2. In place: a transpose brings the leaving ones to where the coming ones will stand, which are the most major of one
   dimension. The pieces are joined along it in long runs, and nothing follows.
3. In front: a transpose brings the leaving ones to the front, and another the coming ones to their places. The other
   dimensions are merged where that is possible.
4. In front, with the other dimensions as they are: a slice, padding or transpose that goes before is then read without
   divisions. Where none does, form 3 takes no more.
5. By slices, where the leaving ones are the most major of one dimension, and a profile says that it pays: each block is
   a separate slice, so that the blocks are joined along the axis on which they come. XLA's CPU client cuts them in
   loops without divisions. f32[8, 8] above: four slices 2x2, joined along dimension 0. The tile is cut as it is, where
   the coming ones lead a dimension; or as rows of blocks, after which form 3's second transpose comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shardpass.cost.collective import bytes_received
from shardpass.redistribute.candidates.sub_axes.assignments import Assignment, SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.local_layout import isolated, rearranged, restored
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.steps import StepKind

SMALL = 1 << 14  # bytes: of tiles as small the number of ops decides
MOST_SLICES = 16  # blocks that are cut one by one: more make programs long


def swap(problem: SubAxisProblem, before: Assignment, after: Assignment, builder: Builder) -> None:
    """Build one all_to_all for all sub-axes that move to another, until now unsplit, sub-dimension."""
    swapped = sorted((m for m, t in enumerate(after) if t != before[m]), key=lambda m: after[m])
    leaving, coming = tuple(after[m] for m in swapped), tuple(before[m] for m in swapped)
    exchange = _Exchange(
        problem,
        builder.tile,
        problem.tile(after),
        problem.local(before),
        problem.local(after),
        leaving,
        coming,
        problem.sub_axes.groups(swapped),
        problem.sub_axes.names(swapped),
    )
    split, concat = problem.leading_dim(before, leaving), problem.leading_dim(after, coming)
    moved, count = builder.bytes(builder.tile), exchange.groups.shape[1]
    if split is not None and concat is not None and moved <= SMALL:
        forms = [exchange.along(split, concat)]
    else:
        forms = [] if concat is None else [exchange.in_place(concat)]
        forms += [exchange.in_front(whole=True)]
        forms += [exchange.in_front(whole=False)] if builder.is_rearranged else []
        forms += [] if split is None or concat is None else [exchange.along(split, concat)]
    if split is not None and moved > SMALL and count <= MOST_SLICES and builder.prices.cuts_by_slices:
        as_it_is = [] if concat is None or split == concat else [exchange.by_slices(split, concat)]
        by_rows = [] if builder.is_rearranged else [exchange.by_rows(split)]
        forms += [*as_it_is, *by_rows]
    program = builder.cheapest(forms)
    received = bytes_received(StepKind.ALL_TO_ALL, moved, count)
    builder.step(StepKind.ALL_TO_ALL, program, exchange.groups, exchange.target, received, exchange.names)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """An all_to_all of ``groups`` from the tile ``source`` to the tile ``target``.

    ``local`` and ``final``: the local sub-dimensions before and after; ``leaving`` and ``coming``: by sub-axis.
    """

    problem: SubAxisProblem
    source: tuple[int, ...]
    target: tuple[int, ...]
    local: list[int]
    final: list[int]
    leaving: tuple[int, ...]
    coming: tuple[int, ...]
    groups: IntArray
    names: tuple[str, ...]

    def along(self, split: int, concat: int) -> list[ops.Op]:
        """Build one all_to_all from dimension ``split`` to dimension ``concat`` (form 1)."""
        return [ops.AllToAll(split, concat, self.groups, self.names)]

    def in_place(self, dim: int) -> list[ops.Op]:
        """Build form 2, where the coming sub-dimensions lead the dimension ``dim``."""
        layout = isolated(self.problem, self.local, self.leaving)
        first = self.final.index(self.coming[0])
        standing = [*self.final[:first], *self.leaving, *self.final[first + len(self.coming) :]]
        of_run = {run[0]: a for a, run in enumerate(layout.runs)}
        order = [of_run[t] for t in standing if t in of_run]
        return [*rearranged(self.source, layout, order, self.target), *self.along(dim, dim)]

    def by_slices(self, split: int, concat: int) -> list[ops.Op]:
        """Build form 5, of the tile unchanged."""
        return [ops.AllToAll(split, concat, self.groups, self.names, by_slices=True)]

    def by_rows(self, split: int) -> list[ops.Op]:
        """Build form 5, of rows of blocks: merge the dimensions before ``split``, and merge the others."""
        rows, count = math.prod(self.source[:split]), self.groups.shape[1]
        grid = (1, rows, math.prod(self.source[split:]))
        came = (count, rows, grid[2] // count)
        return [
            ops.Reshape(grid),
            ops.AllToAll(2, 0, self.groups, self.names, by_slices=True),
            *restored(self.problem, self.final, self.coming, came, self.target),
        ]

    def in_front(self, *, whole: bool) -> list[ops.Op]:
        """Build form 3; with ``whole``, form 4, where neighbours stay separate axes."""
        layout = isolated(self.problem, self.local, self.leaving)
        lead = [layout.runs.index((t,)) for t in self.leaving]
        rest = [a for a in range(len(layout.runs)) if a not in lead]
        sizes = [layout.shape[a] for a in rest if layout.shape[a] > 1]
        shape = (self.groups.shape[1], *sizes)
        return [
            *rearranged(self.source, layout, [*lead, *rest], shape, whole=whole),
            ops.AllToAll(0, 0, self.groups, self.names),
            *restored(self.problem, self.final, self.coming, shape, self.target),
        ]
