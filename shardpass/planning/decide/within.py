"""The cheapest splits that keep a limit of memory, with a bound: a search for the price of a byte.

Problem: minimise the price of all splits where at no moment more than ``limit`` bytes are alive.

Source: Lagrangian relaxation (Geoffrion 1974). Bytes alive cost ``c`` seconds each, and the tables are solved with that
charge. For every ``c`` the least of ``price + c * (bytes - limit)`` is a bound: splits within the limit pay nothing. A
greater ``c`` gives splits that hold less.

1. Without a charge. Where these splits keep the limit, they are the answer.
2. The charge grows until splits keep the limit (``GROWS`` times; where none do, the answer is what holds least).
3. Between a charge that is too low and one that is high enough, the next is where both splits cost the same; it ends
   where that finds no others, where the best is ``CLOSE`` to the bound, or after ``STEPS``.
4. What a charge cannot tell apart, one place can: each place is given its split without the limit, if all fits still.

Moments: a charge is on the average of those moments that have been heaviest in splits above the limit, as other values
live together once the first are split.

Example, weights of 8 GiB that may be whole or in eighths, for 1 ms more, and activations likewise of 4 GiB for 4 ms,
limit 6 GiB: with c = 0.5 ms a GiB weights are split, as 7 GiB at that price are worth more than 1 ms; activations are
not. 5 GiB keep the limit, and the bound is 1 ms - 0.5 * 1 GiB.

Complexity: 2 + GROWS + STEPS solutions, and one for each of ``PLACES``, with all arguments fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from shardpass.planning.decide.problem import Answer, Charge, Problem
from shardpass.planning.solve.network import Table

GROWS = 5  # times that the charge is raised
GROWTH = 8
STEPS = 6
PLACES = 6  # that are given back, the largest
CLOSE = 5e-3  # of the bound: splits that cost no more above it are not sought again
SAME = 1e-9  # a part of a price that is rounding


def within(problem: Problem, ties: Sequence[Table], limit: int | None, places: Sequence[Sequence[int]]) -> Answer:
    """Return the cheapest splits within ``limit`` that the search reaches; if it reaches none, the splits that need
    the least memory.

    ``places``: groups of the engine's values, each split by one annotation. ``least`` of the answer bounds all answers
    within the limit.
    """
    free = problem.solve(ties=ties)
    if limit is None or free.peak <= limit:
        return free
    return _Search(problem, ties, limit, free).run(places)


class _Search:
    """One search. ``low``: the last splits above the limit; ``best``: the cheapest within it."""

    def __init__(self, problem: Problem, ties: Sequence[Table], limit: int, free: Answer) -> None:
        self.problem, self.ties, self.limit = problem, ties, limit
        self.low, self.best = free, free
        self.bound, self.why = free.least, free.why
        self.moments: dict[int, None] = {}
        self.charge = Charge(0.0, ())

    def run(self, places: Sequence[Sequence[int]]) -> Answer:
        self._above(self.low)
        seconds = self.low.price / self.low.peak  # whatever the limit, so that the least is reached again
        high = self.low
        for _ in range(GROWS):
            high = self._solve(seconds)
            if high.peak <= self.limit:
                break
            self._above(high)
            self.best = min(self.best, high, key=lambda one: one.peak)
            seconds *= GROWTH
        else:
            return self.best
        self.best = high
        for _ in range(STEPS):
            if self._is_close():
                break
            more, less = self._alive(self.low), self._alive(high)
            if more <= less or high.price <= self.low.price:
                break
            seconds = (high.price - self.low.price) / (more - less)
            middle = self._solve(seconds)
            price = middle.price + seconds * self._alive(middle)
            if price >= (self.low.price + seconds * more) * (1 - SAME):
                break
            if middle.peak <= self.limit:
                high = middle
                self.best = min(self.best, high, key=lambda one: one.price)
            else:
                self._above(middle)
        self._give_back(places)
        return replace(self.best, least=min(self.bound, self.best.price), why=self.why)

    def _above(self, answer: Answer) -> None:
        self.low = answer
        self.moments[int(self.problem.alive(answer.sizes).argmax())] = None

    def _is_close(self) -> bool:
        return self.best.price <= self.bound * (1 + CLOSE)

    def _alive(self, answer: Answer) -> float:
        """Return the bytes to which the charge applies."""
        return float(self.problem.alive(answer.sizes)[list(self.moments)].mean())

    def _solve(self, seconds: float) -> Answer:
        self.charge = Charge(seconds, tuple(self.moments))
        answer = self.problem.solve(None, self.ties, self.charge, self.low)
        bound = answer.least + seconds * (self._unsplit() - self.limit)
        if math.isfinite(bound) and bound > self.bound:
            self.bound, self.why = bound, answer.why or "the limit of memory is kept by a price for each byte"
        return answer

    def _unsplit(self) -> float:
        """Return the bytes alive to which no charge applies, as nothing may split them."""
        return self.problem.uncharged(self.charge)

    def _give_back(self, places: Sequence[Sequence[int]]) -> None:
        low, fixed = self.low, {index: self.best.splits[index] for place in places for index in place}
        unlike = [place for place in places if any(low.splits[index] != fixed[index] for index in place)]
        for place in unlike[:PLACES]:
            if self._is_close():
                break
            tried = {**fixed, **{index: low.splits[index] for index in place}}
            answer = self.problem.solve(tried, self.ties, self.charge, self.best)
            if answer.peak <= self.limit and answer.price < self.best.price:
                self.best, fixed = answer, tried
