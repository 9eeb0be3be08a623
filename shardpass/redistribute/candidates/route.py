"""Which way to go in digits: slice, then one exchange, then gather.

Settled digits need no search. A mesh digit that holds in the target what is local in the source is sliced there
at once; one that is free in the target, and holds what is local there, is gathered last. What remains are arcs:
mesh digit m holds u before and v after. Followed from end to end the arcs make cycles, whose digits stay on the
mesh and only change hands, and chains u0 -> u1 -> ... -> uk, in which u0 becomes local and uk was.

* A chain that begins free (u0 is no digit) is first sliced on uk, one that ends free is gathered on u0: both
  become cycles, of a smaller tile.
* A chain is the exchange ``u0 -> uk`` on its first mesh digit, followed by a cycle.

So any redistribution is: slice to ``first``; all_to_all on the digits ``exchange``; permute to ``last``;
gather. The received bytes of the permute and the all_to_all together need be no more than one tile
(``ChunkRounds``), and then the whole plan meets the lower bound of the problem: each device keeps all that its
source and target tile share.

A chain that is free at both ends would be a permute of whole tiles. Where another needs an exchange, the two can be
tied into one cycle (``routes``): slice on what the other comes to, gather from what it leaves.

Chains alone need no permute: peeled from their local end, one link of each at a time, they take an all_to_all for
each link of the longest (``stages``). That is fewer steps than rounds of many chunks, of few more bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardpass.redistribute.candidates.digit_forms import FREE, Assignment, DigitProblem


@dataclass(frozen=True, slots=True)
class Route:
    """``first``: after the slices. ``middle``: after the exchange of ``exchange``. ``last``: before the gathers."""

    first: Assignment
    middle: Assignment
    last: Assignment
    exchange: tuple[int, ...]  # mesh digits, by the tensor digit that they will hold

    @property
    def stages(self) -> tuple[Assignment, ...]:
        """The states from ``first`` to ``last`` where every mesh digit waits until the tensor digit it wants is local.

        Empty where some never is, because of a cycle.
        """
        found, now = [], self.first
        while now != self.last:
            after = tuple(t if t not in now else now[m] for m, t in enumerate(self.last))
            if after == now:
                return ()
            found.append(after)
            now = after
        return tuple(found)


def route(problem: DigitProblem) -> Route:
    """The one route that keeps everything that can be kept. O(digits squared)."""
    return _completed(*_ends(problem))


def routes(problem: DigitProblem) -> list[Route]:
    """That, and where chains can be tied, the route of tied chains."""
    first, last = _ends(problem)
    tied = _tied(problem, first, last)
    return [_completed(first, last), *([_completed(*tied)] if tied else [])]


def _ends(problem: DigitProblem) -> tuple[Assignment, Assignment]:
    """The states after the slices and before the gathers."""
    first, last = list(problem.source), list(problem.target)
    for m in range(len(first)):
        if problem.source[m] == FREE and problem.target[m] != FREE:
            first[m] = _end(problem.target[m], problem.source, problem.target)
        if problem.target[m] == FREE and problem.source[m] != FREE:
            last[m] = _end(problem.source[m], problem.target, problem.source)
    return tuple(first), tuple(last)


def _tied(problem: DigitProblem, before: Assignment, after: Assignment) -> tuple[Assignment, Assignment] | None:
    """Chains that are free at both ends, each tied to a chain that needs an exchange, into a cycle.

    The free mesh digit is sliced on what the other chain comes to, and the one that ends free is gathered from what the
    other chain leaves: no more bytes than in rounds, on a smaller tile, and no exchange.
    """
    first, last = list(before), list(after)
    open_ended = [m for m, t in enumerate(problem.target) if t != FREE and problem.source[m] == first[m] == FREE]
    exchanged = [m for m, t in enumerate(first) if t != FREE and t not in last]
    for start in open_ended:
        size = problem.names.digits[start].size
        other = next((m for m in exchanged if problem.names.digits[m].size == size), None)
        if other is None or start in problem.partial:
            continue
        exchanged.remove(other)
        held, finish = first[other], _finish(problem, start)
        first[start], last[finish] = _end(last[other], before, after), held
    return (tuple(first), tuple(last)) if tuple(first) != before else None


def _finish(problem: DigitProblem, start: int) -> int:
    """The mesh digit at the end of the chain that starts with ``start``: it ends free."""
    m = start
    while problem.target[m] != FREE:
        m = problem.source.index(problem.target[m])
    return m


def _completed(first: Assignment, last: Assignment) -> Route:
    middle = list(first)
    exchange = []
    for m, held in enumerate(first):
        if held != FREE and held not in last:
            middle[m] = _end(last[m], first, last)
            exchange.append(m)
    exchange.sort(key=lambda m: middle[m])
    return Route(first, tuple(middle), last, tuple(exchange))


def _end(digit: int, before: Assignment, after: Assignment) -> int:
    """Where the chain through ``digit`` ends: who holds it in ``before`` holds another in ``after``, and so on.

    The first that nobody holds in ``before``; FREE where a holder holds nothing in ``after``.
    """
    while digit != FREE and digit in before:
        digit = after[before.index(digit)]
    return digit
