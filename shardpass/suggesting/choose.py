"""The fewest annotations under which a program becomes as cheap as a search found it.

Problem: a search gives every value a sharding; a user wants to write a few. Of the places where a sharding can be said
(``places``), a smallest set is wanted from which propagation and the default search come within ``NEAR`` of the best.

Source: QuickXplain (Junker 2004), which finds a minimal set that satisfies a test in O(k log(n / k)) tests for k of n
members, and prefers members that stand early.

Cases:

1. Pools, each added to those before: arguments that are split; those that are whole; results; lines. The first sum of
   pools that suffices is searched; where none does, what the best of them reaches is the aim.
2. Each annotation that is left is left out once. Where that changes less than ``NEAR`` it goes; else the difference is
   what it saves, and orders the list.

Example on d=8, a perceptron's training step under a limit: of w1, b1, w2, x and y, saying x and w1 may be enough, as
y meets x's product, and each update has the sharding of its weight.

Invariant: no annotation of the result saves nothing. Complexity: O(k log(n / k)) trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.program.shardings import Shardings
from shardpass.sharding import Sharding
from shardpass.suggesting.places import RESULT, Group
from shardpass.suggesting.specs import sayable
from shardpass.suggesting.trials import Annotation, Trials

NEAR = 0.01  # the part of the best price that annotations may miss


@dataclass(frozen=True)
class Chosen:
    """An annotation and what it saves: how much price and memory rise where it alone is left out."""

    annotation: Annotation
    saves_price: float
    saves_memory: float


def choose(
    trials: Trials, found: Shardings, aim: float, pools: Sequence[Callable[[], Sequence[Group]]]
) -> tuple[Chosen, ...]:
    """The annotations, those that save most first. ``aim``: the cost of ``found``."""
    wanted: list[Annotation] = []
    whole: list[Annotation] = []
    best: tuple[float, list[Annotation]] | None = None
    for pool in pools:
        here = [_said(group, found, trials.task.program.mesh) for group in pool()]
        split = [one for one in here if any(one.dims)]
        whole += [one for one in here if not any(one.dims)]
        for members in ([*wanted, *split], [*wanted, *split, *whole]):
            cost = trials.of(members).cost
            if best is None or cost < best[0]:
                best = cost, members
            if cost <= aim * (1 + NEAR):
                break
        wanted += split
        if best is not None and best[0] <= aim * (1 + NEAR):
            break
    if best is None:
        return ()
    enough = max(aim, best[0]) * (1 + NEAR)
    return _what_matters(trials, _fewest(lambda some: trials.of(some).cost <= enough, best[1]), enough)


def _said(group: Group, found: Shardings, mesh: PrimeMesh) -> Annotation:
    """What ``found`` says of most of the group's values, as JAX can say it."""
    counts: Counter[DimAxes] = Counter()
    for value in group.values:
        sharding = found.results[value] if group.kind == RESULT else found.of.get(value)
        dims = mesh.dims(sharding or Sharding.replicated(), group.array.rank)
        counts[sayable(dims or ((),) * group.array.rank, group.array.shape, mesh)] += 1
    return Annotation(group, counts.most_common(1)[0][0])


def _fewest(enough: Callable[[Sequence[Annotation]], bool], members: Sequence[Annotation]) -> list[Annotation]:
    """A minimal part of ``members`` that is ``enough``; all, where they are not enough together."""

    def explain(given: list[Annotation], fresh: bool, rest: Sequence[Annotation]) -> list[Annotation]:
        if fresh and enough(given):
            return []
        if len(rest) == 1:
            return list(rest)
        half = len(rest) // 2
        early, late = rest[:half], rest[half:]
        of_late = explain([*given, *early], bool(early), late)
        of_early = explain([*given, *of_late], bool(of_late), early)
        return [*of_early, *of_late]

    if not members or enough([]):
        return []
    return explain([], False, members)


def _what_matters(trials: Trials, members: Iterable[Annotation], enough: float) -> tuple[Chosen, ...]:
    """What each of ``members`` saves, most first, without those that save nothing."""
    kept = list(members)
    while True:
        with_all = trials.of(kept)
        without = [trials.of([other for other in kept if other is not one]) for one in kept]
        idle = [k for k, trial in enumerate(without) if trial.cost <= max(enough, with_all.cost)]
        if not idle:
            break
        del kept[min(idle, key=lambda k: without[k].cost)]
    return what_they_save(trials, kept, with_all.price, with_all.peak)


def what_they_save(trials: Trials, kept: Sequence[Annotation], price: float, peak: float) -> tuple[Chosen, ...]:
    """``kept``, those that save most first. ``price``, ``peak``: what they lead to together."""
    without = [trials.of([other for other in kept if other is not one]) for one in kept]
    order = sorted(range(len(kept)), key=lambda k: -without[k].cost)
    return tuple([Chosen(kept[k], without[k].price - price, without[k].peak - peak) for k in order])
