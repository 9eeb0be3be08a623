"""A permute of the small source tile, so that no local copy turns the large target tile.

Problem: what leaves a dimension by a swap is local after it, and what is gathered comes around it. Where the leaving
sub-dimension stood outside of a gathered one, the gather ends with a transpose of the whole target tile. On machines
that copy about as fast as they send (``COPIES``) a permute of the source tile is cheaper: it brings the parts into an
order in which all that is gathered stands outside of all that leaves.

State: the assignment after the slices (``route.first``); of each dimension its *tail*, the sub-dimensions that the
target does not split. Cases:

1. A tail in which a swapped sub-axis stands before a gathered one: the gathered ones come first, each group in its
   order. The tail is cut anew, as the sizes may be other ones in the new order.
2. Another tail stays as it is; without any of the first kind there is no such plan.

Example: f32[128, 128, 192] on a=2, b=2, c=2, from [{b, a, c}, {}, {}] to [{}, {}, {a}]. At once: a leaves, c and b are
gathered; rows come in the order b, c, a and are turned to b, a, c, an array of 6 MB. Ordered first: a permute of 1.5 MB
to [{b, c, a}, {}, {}], after which the gathered parts stand one after another as they are to be.

Invariants: tiles are those of the route without it. O(sub-axes squared), and O(devices) for the permute.
"""

from __future__ import annotations

from dataclasses import replace

from shardpass.cost.machine import Machine
from shardpass.redistribute.candidates.sub_axes.assignments import REPLICATED, SubAxisProblem, SubDim
from shardpass.redistribute.candidates.sub_axes.common_tile import Ends
from shardpass.redistribute.candidates.sub_axes.route import Route, find_route

COPIES = 4  # times as fast as the links: a machine that copies faster than that gains nothing by a permute


def ordered_first(problem: SubAxisProblem, machine: Machine) -> Ends | None:
    """Returns the problems before and after the permute; None where it saves no transpose, or no expensive one."""
    if problem.summed or machine.memory_bandwidth > COPIES * machine.links[-1].most:
        return None
    route = find_route(problem)
    sub_dims, source = list(problem.sub_dims), list(route.first)
    for dim in range(problem.rank) if route.swapped else ():
        tail = _tail(problem, route, dim)
        ordered = sorted(tail, key=lambda m: m in route.swapped)
        start = min((route.first[m] for m in tail), default=0)
        for place, m in enumerate(ordered):
            source[m] = start + place
            sub_dims[start + place] = SubDim(dim, problem.sub_axes.sizes[m])
    if tuple(source) == route.first:
        return None
    after = replace(problem, sub_dims=tuple(sub_dims), source=tuple(source))
    return replace(problem, target=route.first), after


def _tail(problem: SubAxisProblem, route: Route, dim: int) -> list[int]:
    """Returns the sub-axes that split the end of ``dim`` which the target leaves whole, if all of them leave it."""
    kept = [t for t in problem.target if t != REPLICATED and problem.sub_dims[t].dim == dim]
    splitting = sorted((t, m) for m, t in enumerate(route.first) if t != REPLICATED and problem.sub_dims[t].dim == dim)
    tail = [m for t, m in splitting if t > max(kept, default=-1)]
    gathered = {m for m in tail if route.last[m] == route.first[m] and problem.target[m] == REPLICATED}
    return tail if all(m in route.swapped or m in gathered for m in tail) else []
