"""Routes a problem in assignments: slice, then one swap, then a permute, then gather.

Problem: bring the assignment ``source`` to ``target`` with few collectives, so that every device keeps all that its
source and target tile share. Rink et al. (section 7) search over tile shapes and assign axes afterwards; here the axes
are part of the state, and no search is needed.

State: a graph whose nodes are sub-dimensions, with an arc u -> v for each sub-axis that splits u before and v after. At
most one sub-axis splits a sub-dimension on either side, so the arcs make *cycles*, whose sub-dimensions stay split and
only change hands, and *paths*. A path is *open* at an end where its sub-axis is replicated there. At an end that is not
open the first sub-dimension becomes local, or the last one was local.

Cases, with sub-axes x, y, z of size 2, sub-dimensions A, B, C, D of size 2, and x:A for "x splits A":

1. A path open at its start: slice its first sub-axis on its last sub-dimension. x:- to x:A is a slice, and done.
   x:-, y:A to x:A, y:B is sliced to x:B, y:A, and the cycle x:B, y:A to x:A, y:B remains, on tiles of half the size.
2. A path open at its end: the same backwards. Its last sub-axis is gathered, from its first sub-dimension.
3. A path open at neither end: swap. Its first sub-axis takes the last sub-dimension, which is local, for the first one,
   which becomes local: an all_to_all. x:A to x:B is done by that. x:A, y:B to x:B, y:C becomes x:C, y:B, and the cycle
   x:C, y:B to x:B, y:C remains. All swaps of a problem are one all_to_all over the product of their sub-axes.
4. A cycle: x:A, y:B to x:B, y:A. One permute for all cycles.
5. A path open at both ends: x:-, y:A to x:A, y:- would be a permute of whole tiles. Beside a path of case 3 of the same
   size, z:C to z:D, the two are closed into one cycle: x is sliced on D, to which z comes, and y is gathered from C,
   which z leaves. What is left, x:D, y:A, z:C to x:A, y:C, z:D, is a permute of half a tile; no swap.
6. Without cycles no permute is needed, if each sub-axis waits until the sub-dimension that it wants is local: one
   all_to_all for each arc of the longest path (``Route.hops``). For x:A, y:B to x:B, y:C first y, then x.

Invariants: no tile between is greater than the source's or the target's. The swap and the permute need receive no more
than one tile together (``ops.ChunkRounds``), and then the whole plan meets the lower bound of the problem.

O(sub-axes squared).
"""

from __future__ import annotations

from dataclasses import dataclass

from shardpass.redistribute.candidates.sub_axes.assignments import REPLICATED, Assignment, SubAxisProblem


@dataclass(frozen=True, slots=True)
class Route:
    """The assignments between the steps.

    ``first``: after the slices; ``middle``: after the swap; ``last``: after the permute, before the gathers.
    """

    first: Assignment
    middle: Assignment
    last: Assignment
    swapped: tuple[int, ...]  # the sub-axes that swap, by the sub-dimension that they take

    @property
    def hops(self) -> tuple[Assignment, ...]:
        """Return the assignments from ``first`` to ``last`` if each sub-axis moves only once its target is unsplit
        (case 6).

        Empty if a cycle prevents some sub-dimension from becoming unsplit.
        """
        reached, now = [], self.first
        while now != self.last:
            after = tuple(t if t not in now else now[m] for m, t in enumerate(self.last))
            if after == now:
                return ()
            reached.append(after)
            now = after
        return tuple(reached)


def find_route(problem: SubAxisProblem) -> Route:
    """Find the route by cases 1 to 4."""
    return _completed(*_sliced_and_gathered(problem))


def find_routes(problem: SubAxisProblem) -> list[Route]:
    """Find that route, and where case 5 applies, also the route by case 5."""
    first, last = _sliced_and_gathered(problem)
    closed = _closed_into_cycles(problem, first, last)
    return [_completed(first, last), *([_completed(*closed)] if closed else [])]


def _sliced_and_gathered(problem: SubAxisProblem) -> tuple[Assignment, Assignment]:
    """Return the assignments after the slices and before the gathers (cases 1 and 2)."""
    first, last = list(problem.source), list(problem.target)
    for m in range(len(first)):
        if problem.source[m] == REPLICATED and problem.target[m] != REPLICATED:
            first[m] = _path_end(problem.target[m], problem.source, problem.target)
        if problem.target[m] == REPLICATED and problem.source[m] != REPLICATED:
            last[m] = _path_end(problem.source[m], problem.target, problem.source)
    return tuple(first), tuple(last)


def _closed_into_cycles(
    problem: SubAxisProblem, before: Assignment, after: Assignment
) -> tuple[Assignment, Assignment] | None:
    """Close paths that are open at both ends into cycles with paths that need a swap (case 5), if any."""
    first, last = list(before), list(after)
    open_starts = [
        m for m, t in enumerate(problem.target) if t != REPLICATED and problem.source[m] == first[m] == REPLICATED
    ]
    swapping = [m for m, t in enumerate(first) if t != REPLICATED and t not in last]
    for start in open_starts:
        size = problem.sub_axes.sizes[start]
        other = next((m for m in swapping if problem.sub_axes.sizes[m] == size), None)
        if other is None or start in problem.summed:
            continue
        swapping.remove(other)
        left, finish = first[other], _open_end(problem, start)
        first[start], last[finish] = _path_end(last[other], before, after), left
    return (tuple(first), tuple(last)) if tuple(first) != before else None


def _open_end(problem: SubAxisProblem, start: int) -> int:
    """Return the last sub-axis of the path that starts with the sub-axis ``start``; the last is replicated."""
    m = start
    while problem.target[m] != REPLICATED:
        m = problem.source.index(problem.target[m])
    return m


def _completed(first: Assignment, last: Assignment) -> Route:
    """Return the route between assignments whose paths are closed at both ends (case 3)."""
    middle = list(first)
    swapped = []
    for m, left in enumerate(first):
        if left != REPLICATED and left not in last:
            middle[m] = _path_end(last[m], first, last)
            swapped.append(m)
    swapped.sort(key=lambda m: middle[m])
    return Route(first, tuple(middle), last, tuple(swapped))


def _path_end(sub_dim: int, before: Assignment, after: Assignment) -> int:
    """Return the last sub-dimension of the path through ``sub_dim``: the first one unsplit in ``before``.

    REPLICATED if the path is open at its end.
    """
    while sub_dim != REPLICATED and sub_dim in before:
        sub_dim = after[before.index(sub_dim)]
    return sub_dim
