"""The gathers that end a route: one all_gather for all sub-axes.

1. Along one dimension that grows by its most major sub-dimensions, as it is: the compilers of accelerators lay out the
   tile for it, and what reads the result takes it so.
2. In front, where several dimensions grow or their minor parts: the tile is seen with a new axis in front, gathered
   along that, and transposed once.
3. XLA's CPU client gathers every inner dimension in front, from a copy of the tile. There (``gathers_by_pieces``) form
   2 or an all_to_all of copies takes the place of form 1, unless pieces are short.
"""

from __future__ import annotations

import math

from shardpass.cost.collective import bytes_received
from shardpass.redistribute.candidates.sub_axes.assignments import REPLICATED, SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.local_layout import LocalLayout, isolated, restored
from shardpass.redistribute.candidates.sub_axes.route import Route
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.steps import StepKind

SHORT_RUN = 32  # bytes: XLA puts pieces as short in place itself better than a transpose does


def gather(problem: SubAxisProblem, route: Route, builder: Builder) -> None:
    """Build one all_gather over all sub-axes that do not split the target."""
    gathered = [m for m, t in enumerate(route.last) if t != REPLICATED and problem.target[m] == REPLICATED]
    if not gathered:
        return
    gathered.sort(key=lambda m: route.last[m])
    groups = problem.sub_axes.groups(gathered)
    size = groups.shape[1]
    coming = [route.last[m] for m in gathered]
    names = problem.sub_axes.names(gathered)
    tile, full = builder.tile, problem.tile(problem.target)
    dim = problem.leading_dim(problem.target, coming)
    by_pieces = builder.prices.gathers_by_pieces
    if dim is not None and (not by_pieces or math.prod(tile[:dim]) == 1 or builder.bytes(tile[dim:]) <= SHORT_RUN):
        builder.all_gather(dim, groups)
        return
    local = problem.local(problem.target)
    rest = [run for run in isolated(problem, local, coming).runs if run[0] not in coming]
    lead = (1, *(n for n in LocalLayout(tuple(rest), problem.sizes).shape if n > 1))
    in_front: list[ops.Op] = [] if lead == tile else [ops.Reshape(lead)]
    in_front.append(ops.AllGather(0, groups, names))
    in_front += restored(problem, local, coming, (size, *lead[1:]), full)
    forms = [in_front]
    if dim is not None:
        forms.append([ops.AllGather(dim, groups, names, by_pieces=True)])
    program = builder.cheapest(forms)
    kind = StepKind.ALL_GATHER if program is in_front else StepKind.ALL_TO_ALL
    builder.step(kind, program, groups, full, bytes_received(kind, builder.bytes(tile) * size, size), names)
