"""Chooses the points of a program to pin: those under which XLA's own program is cheapest, never above the plain one.

Problem: XLA keeps a constraint and decides all other shardings by itself. Where its resharding between two shardings
is poor (the windows of a convolution, lookups, experts), a constraint that is right in shardpass's plan costs more than
none. So a set of points is judged by the program that XLA compiles with it: bytes that a device receives, bytes of
temporaries and of all memory, seconds on the machine; none of these may be above the plain program's. The seconds of
a program for accelerators are those of a step in the order of its compiler.

Method. Each variant is compiled (``targets.compiler``), and nothing runs.

1. The set of all points is compiled. Where XLA's program then receives as little as shardpass's, and exceeds plain in
   nothing, or where shardpass's own receives no less than plain, that is the start. Otherwise a few sets of some sides
   and of some ops are compiled too, and the best is the start. The price of a set is the mean of its bytes and of its
   seconds beside plain, and ``PENALTY`` times what it exceeds plain by.
2. Where XLA's program takes more memory with all points than without, the shardings are decided again, at most
   ``TIGHTER`` times, within a limit that is lowered by as much, and the first sets of these points are compiled too.
3. Families of ops, and then halves, quarters, ... of what is left in program order, are left out of the best start
   where the price is no higher. So constraints that hurt go first, and those that XLA's propagation gives anyway after
   them. Where no set so far is better than none, the next start is treated alike.
4. The answer is the best of all sets that were seen and exceed plain in nothing: in the end none at all.

Invariant: the answer was compiled, or is empty. Complexity: at most ``most`` variants.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shardpass.advise.pin.points import ARGUMENT, COSTLY, OPERAND, RESULT, Decided, Point, pinned_module
from shardpass.cost.machine import Machine
from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import UNNAMED
from shardpass.ir.written import bytecode
from shardpass.report.hlo.explain import explain_hlo
from shardpass.targets.compiled import Compiled
from shardpass.targets.compiler import Compiler
from shardpass.targets.target import CPU, Target, cpu

MOST = 40  # variants of a program
NEAR = 0.0005  # of the price: a set with fewer points may have so much more
PENALTY = 4.0
TIGHTER = 2  # decisions within less memory
REACHED = 0.02  # of the bytes of shardpass's plan: so much more is as good
FEWER = 2  # sets of points of each of these


FAMILIES = {
    "convolution": "windows", "reduce_window": "windows", "select_and_scatter": "windows",
    "gather": "lookups", "scatter": "lookups", "dynamic_slice": "lookups", "dynamic_update_slice": "lookups",
    "dot_general": "products", "reduce": "reductions", "sort": "sorts", "while": "loops", "case": "loops",
    "transpose": "moves", "reshape": "moves", "broadcast_in_dim": "moves", "slice": "moves", "pad": "moves",
    "concatenate": "moves", "reverse": "moves",
}  # fmt: skip


@dataclass(frozen=True)
class Chosen:
    """The pins that make XLA's program cheapest, as ``choose`` returns them.

    Attributes:
        points: the points to pin, in program order.
        plain, pinned: XLA's programs without and with these points; ``seconds``: of both, as modelled.
        compiled: the number of variants that were compiled.
    """

    points: tuple[Point, ...]
    plain: Compiled
    pinned: Compiled
    seconds: tuple[float, float]
    compiled: int


@dataclass(frozen=True)
class Score:
    """The score of a set of points.

    Attributes:
        price: as the module describes; 1 for the plain program.
        excess: the greatest relative excess over the plain program's figures.
        seconds: modelled seconds on the machine.
    """

    price: float
    excess: float
    seconds: float


NONE = Score(math.inf, math.inf, math.inf)
Improved = Callable[[Compiled, float], None]  # takes a program, and its modelled seconds


def choose(
    module: Any,
    decided: Decided,
    machine: Machine,
    most: int = MOST,
    within: Callable[[int], Decided] | None = None,
    target: Target | None = None,
    improved: Improved = lambda program, seconds: None,
) -> Chosen:
    """Choose the points of ``decided`` to pin in ``module``; at most ``most`` variants are compiled.

    ``within``: decides again, with a limit of the bytes that are alive on a device; or raises ShardpassError.
    ``target``: the devices for which variants are compiled; by default virtual CPU devices.
    ``improved``: called with each program that is better than all before it.

    Raises ShardpassError (SP553, SP911) where XLA refuses ``module`` itself.
    """
    with Compiler(target or cpu(decided.mesh.size)) as compiler:
        return _Choosing(module, decided, machine, compiler, most, within, improved).run()


class _Choosing:
    """Searches the points of one program. State: the compiled variants by their points; None for one that XLA
    refused.
    """

    def __init__(
        self,
        module: Any,
        decided: Decided,
        machine: Machine,
        compiler: Compiler,
        most: int,
        within: Callable[[int], Decided] | None,
        improved: Improved,
    ) -> None:
        self.module, self.decided, self.machine, self.within = module, decided, machine, within
        self.improved = improved
        self.borders = tuple(decided.mesh.strides.values()) if decided.mesh.is_iota else ()
        self.compiler, self.most = compiler, most
        self.scores: dict[frozenset[Point], Score] = {}
        self.programs: dict[frozenset[Point], Compiled] = {}
        self.best: frozenset[Point] = frozenset()
        self.plain = self._build(self.best)
        self.plain_seconds = self._seconds(self.plain)
        self._keep(self.best, self.plain)

    def run(self) -> Chosen:
        starts = self._starts()
        gains = any(self.scores[start].price < 1 - NEAR for start in starts) or self.may_gain
        for start in sorted(starts, key=lambda start: (self.scores[start].price, len(start))):
            if gains:
                self._lean(start)
            if self.best:
                break
        points = tuple(sorted(self.best, key=lambda point: point.spot))
        seconds = self.plain_seconds, self.scores[self.best].seconds
        return Chosen(points, self.plain, self.programs[self.best], seconds, self.compiler.compiled)

    @property
    def may_gain(self) -> bool:
        """Whether shardpass's plan receives less than XLA's own program, by more than ``REACHED``."""
        return self.decided.plan.bytes_received * (1 + REACHED) < self.plain.bytes_scattered

    def _starts(self) -> list[frozenset[Point]]:
        """Compile the sets of points to start from; only the set of all points if that leaves nothing to gain."""
        sets = _starts(self.decided.points)
        starts = self._compiled(itertools.islice(sets, 1))
        if not starts or not self.may_gain:
            return starts
        first, own = starts[0], self.decided.plan.bytes_received
        if not self.scores[first].excess and self.programs[first].bytes_scattered <= own * (1 + REACHED):
            return starts  # XLA's program exceeds plain in no figure, and receives as little as shardpass's
        if self.within is not None:
            starts += self._tighter(self.within, starts[0])
        return starts + self._compiled(sets)

    def _compiled(self, starts: Iterable[Iterable[Point]]) -> list[frozenset[Point]]:
        """Compile sets of points until no variants are left, and return the sets that were compiled."""
        result = []
        for start in map(frozenset, starts):
            if self.left <= 0:
                break
            self.score(start)
            result.append(start)
        return result

    def _tighter(self, within: Callable[[int], Decided], every: frozenset[Point]) -> list[frozenset[Point]]:
        """Decide again with less memory: reduced by what XLA's program with ``every`` point needs beyond plain."""
        peak, starts = self.decided.plan.alive.peak, list[frozenset[Point]]()
        for _ in range(TIGHTER):
            program = self.programs.get(every)
            if program is None or self.left <= 0:
                break
            over = max(program.temporaries - self.plain.temporaries, program.memory - self.plain.memory)
            if over <= 0:
                break
            try:
                decided = within(peak - over)
            except ShardpassError:  # nothing is that small
                break
            peak = min(peak - over, decided.plan.alive.peak)
            fewer = self._compiled(itertools.islice(_starts(decided.points), FEWER))
            if not fewer:
                break
            starts, every = starts + fewer, fewer[0]
        return starts

    @property
    def left(self) -> int:
        return self.most - self.compiler.compiled

    def _lean(self, kept: frozenset[Point]) -> None:
        """Remove points from ``kept`` as long as the price does not rise; the result is ``self.best``."""
        least = self.score(kept).price

        def enough(rest: Sequence[Point]) -> bool:
            nonlocal least
            price = self.score(frozenset(rest)).price if rest and self.left > 0 else math.inf
            is_enough, least = price <= least + NEAR, min(least, price)
            return is_enough

        _needed(kept, _parts(kept), enough)

    def score(self, points: frozenset[Point]) -> Score:
        """Return the score of a set of points, compiling it if it is new; ``NONE`` if XLA refuses it."""
        if points not in self.scores:
            try:
                program = self._build(points)
            except ShardpassError:
                self.scores[points] = NONE
            else:
                self._keep(points, program)
        return self.scores[points]

    def _seconds(self, program: Compiled) -> float:
        """Model the seconds of a program: the order of XLA:CPU, which overlaps nothing, is nobody's."""
        if program.target.platform != CPU:
            report = explain_hlo(program.hlo, UNNAMED, mesh=self.decided.mesh, machine=self.machine)
            if report.schedule is not None:
                return report.schedule.seconds
        return program.seconds(self.machine, self.borders)

    def _keep(self, points: frozenset[Point], program: Compiled) -> None:
        plain, seconds = self.plain, self._seconds(program)
        sent, times = _ratio(program.bytes_scattered, plain.bytes_scattered), _ratio(seconds, self.plain_seconds)
        received = _ratio(program.bytes_received, plain.bytes_received)
        memory = _ratio(program.temporaries, plain.temporaries), _ratio(program.memory, plain.memory)
        excess = max(1.0, sent, times, received, *memory) - 1
        price = (sent + times) / 2 + PENALTY * excess
        self.scores[points], self.programs[points] = Score(price, excess, seconds), program
        if points and not excess:
            before = self.scores[self.best].price
            if price < before - NEAR or (price <= before + NEAR and len(points) < len(self.best)):
                self.best = points
                self.improved(program, seconds)

    def _build(self, points: frozenset[Point]) -> Compiled:
        with self.module.context:
            variant = bytecode(pinned_module(self.module, self.decided.mesh, points))
        return self.compiler.compile(variant)


def _ratio(ours: float, theirs: float) -> float:
    return 1.0 if ours == theirs else ours / theirs if theirs else math.inf


def _starts(points: Sequence[Point]) -> Iterator[Iterable[Point]]:
    """Yield the sets of points to begin with, without duplicates and empty sets."""
    seen: set[frozenset[Point]] = {frozenset()}
    filters: tuple[Callable[[Point], bool], ...] = (
        lambda point: True,
        lambda point: point.called in COSTLY or point.spot.side == ARGUMENT,
        lambda point: point.spot.side != OPERAND,
        lambda point: not point.backward,
        lambda point: point.called in COSTLY and point.spot.side == RESULT,
        lambda point: point.spot.side == OPERAND,
        lambda point: point.spot.side == ARGUMENT,
    )
    for keeps in filters:
        start = frozenset(filter(keeps, points))
        if start not in seen:
            seen.add(start)
            yield start


def _parts(points: Iterable[Point]) -> Iterator[Collection[Point]]:
    """Yield the sets of points to remove: families of ops by side and direction, then shorter and shorter runs."""
    ordered = sorted(points, key=lambda point: point.spot)
    families: dict[tuple[str, str, bool], list[Point]] = {}
    for point in ordered:
        family = FAMILIES.get(point.called.removeprefix("stablehlo."), "others")
        families.setdefault((family, point.spot.side, point.backward), []).append(point)
    if len(families) > 1:
        yield from map(frozenset, sorted(families.values(), key=len, reverse=True))
    yield from map(frozenset, _runs(ordered))


def _needed(
    members: Iterable[Point], parts: Iterable[Collection[Point]], enough: Callable[[Sequence[Point]], bool]
) -> list[Point]:
    """Return ``members`` without each of ``parts`` without which the others are ``enough``, in the order of ``parts``.

    With all single members at the end of ``parts``, and ``enough`` true of each larger set too, no member can go.
    """
    kept = list(members)
    for part in parts:
        rest = [one for one in kept if one not in part]
        if len(rest) < len(kept) and enough(rest):
            kept = rest
    return kept


def _runs(members: Sequence[Point]) -> Iterator[Sequence[Point]]:
    """Yield all of ``members``, then their halves, quarters, ... and each alone."""
    length = len(members)
    while length:
        yield from (members[start : start + length] for start in range(0, len(members), length))
        length = -(-length // 2) if length > 1 else 0
