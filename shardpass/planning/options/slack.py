"""Measure the independent work beside each edge of a program, which can hide communication on that edge.

The *slack* of an edge is the work of its block that is neither before its source nor after its target: a gather of a
weight that enters the block has the slack of everything that is not after the product that takes it; an exchange
between two layers has that of parallel branches alone; a gradient that nothing reads has all that does not lead to it.

An op of a folded program stands for many, each edge with its own slack: at most ``FEW`` of them, each the mean of a
group, in which more fits than into its members.

Work is the least of each op: what can be hidden beside more work than that, the work itself takes longer. So with the
least work no plan is shorter than what its communication adds beyond the slacks (``Search.least``). What a loop or
branch takes from outside, or completes, may be sent outside: its slack is the greater of both.

Example: ``y = (x @ u) @ v``, of products that take 2 s each: v has the slack of 2 s, u and the product between none.

Complexity: O(ops^2) bits, for the ops before and after each op.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardpass.planning.price.fold import Folded
from shardpass.planning.solve.network import Costs
from shardpass.program.program import Block, Op, Program

FEW = 8
ROWS = 512  # sets of ops that are weighed at once

Samples = NDArray[np.float64] | None  # None: nothing can be hidden
Edges = dict[tuple[int, int], list[float]]


def hidden(costs: Costs, slack: Samples, weight: float) -> Costs:
    """Return ``costs`` of one run, where the part that fits into ``slack`` counts only by ``weight``."""
    if slack is None or weight >= 1:
        return costs
    finite = np.where(np.isfinite(costs), costs, 0.0)
    fits = sum([np.minimum(finite, one) for one in slack.tolist()]) / len(slack)
    return np.asarray(costs - (1 - weight) * fits)


class Slack:
    """Slacks in seconds of the edges of a folded program.

    ``work``: seconds of the ops of the whole program; ``least``: of one run of an op of the folded one, where known.
    """

    def __init__(
        self, program: Program, folded: Folded, work: Mapping[int, float], least: Mapping[int, float] | None = None
    ) -> None:
        self.work, self.folded, self.least = work, folded, least or {}
        self._operands: Edges = {}
        self._shared: dict[int, dict[int, float]] = {}
        self._results: dict[int, list[float]] = {}
        self._returned: dict[int, list[float]] = {}
        self._block(program.body, 1, {}, 0.0)

    def operand(self, op: int, value: int) -> Samples:
        """Return the samples for the reshard of ``value`` to ``op``."""
        return _few(self._operands.get((op, value), ()))

    def shared(self, value: int) -> Samples:
        """Return the samples for one reshard of ``value`` that serves all ops that read it."""
        return _few(self._shared.get(value, {}).values())

    def result(self, op: int) -> Samples:
        """Return the samples for the reshards of the results of ``op`` to their readers."""
        return _few(self._results.get(op, ()))

    def returned(self, value: int) -> Samples:
        """Return the samples for the reshard of ``value`` to a result of main."""
        return _few(self._returned.get(value, ()))

    def _seconds(self, op: Op, runs: int) -> float:
        once = self.work.get(op.number, 0.0) / runs
        return 0.0 if op.blocks else min(once, self.least.get(self.folded.ops.get(op.number, -1), once))

    def _block(self, block: Block, runs: int, outside: Mapping[int, float], after_all: float) -> None:
        """Read a block. ``outside``: slacks of what the block takes from outside, around it; ``after_all``: of what
        it completes, for one run.
        """
        ops = block.ops
        seconds = np.array([self._seconds(op, runs) for op in ops])
        makers = {value: place for place, op in enumerate(ops) for value in op.results}
        before, following = [0] * len(ops), [0] * len(ops)  # sets of ops, as bits
        users: list[list[int]] = [[] for _ in ops]
        for place, op in enumerate(ops):
            made = {makers[value] for value in _reads(op) if value in makers}
            for maker in made:
                users[maker].append(place)
                before[place] |= before[maker]
            before[place] |= 1 << place
        for place in reversed(range(len(ops))):
            for user in users[place]:
                following[place] |= following[user]
            following[place] |= 1 << place
        earlier, later = _weighed(before, seconds), _weighed(following, seconds)
        after = _weighed([each ^ (1 << place) for place, each in enumerate(following)], seconds)
        total = float(seconds.sum())

        def source(value: int) -> float:
            return earlier[makers[value]] if value in makers else 0.0

        for place, op in enumerate(ops):
            rep = self.folded.ops.get(op.number)
            if rep is not None:
                for value in op.operands:
                    slack = max(total - source(value) - later[place], outside.get(value, 0.0))
                    self._operands.setdefault((rep, self.folded.of[value]), []).append(slack)
                    shared = self._shared.setdefault(self.folded.of[value], {})
                    shared[value] = min(slack, shared.get(value, slack))
                done = total - earlier[place] - after[place]
                self._results.setdefault(rep, []).append(max(done, after_all))
            trips = (op.trips or 1) if op.is_loop else 1
            captured = {
                value: max(total - source(value) - later[place], outside.get(value, 0.0))
                for value in (op.captured if op.blocks else ())
            }
            for inner in op.blocks:
                self._block(
                    inner, runs * trips, captured, max(total - earlier[place] - after[place], after_all) / trips
                )
        for value in block.returned:
            self._returned.setdefault(self.folded.of[value], []).append(max(total - source(value), after_all))


def _reads(op: Op) -> set[int]:
    """Return the values that ``op`` reads, those that its blocks read from outside included."""
    read = {*op.operands, *op.captured}
    for block in op.blocks:
        inside = {value for each in block.ops for value in _reads(each)} | set(block.returned)
        made = {value for each in block.ops for value in each.results}
        read |= inside - made - set(block.arguments)
    return read


def _weighed(sets: Sequence[int], seconds: NDArray[np.float64]) -> list[float]:
    """Return the seconds of each set of ops."""
    count = len(seconds)
    width = (count + 7) // 8
    out: list[float] = []
    for first in range(0, len(sets), ROWS):
        rows = b"".join(each.to_bytes(width, "little") for each in sets[first : first + ROWS])
        bits: Any = np.frombuffer(rows, np.uint8).reshape(-1, width)
        out += (np.unpackbits(bits, axis=1, count=count, bitorder="little") @ seconds).tolist()
    return out


def _few(slacks: Iterable[float]) -> Samples:
    every: NDArray[np.float64] = np.sort(np.maximum(0.0, np.array([*slacks])))
    if not len(every) or every[-1] <= 0:
        return None
    if len(every) <= FEW:
        return every
    means: NDArray[np.float64] = np.repeat(every, FEW).reshape(FEW, -1).mean(axis=1)
    return means
