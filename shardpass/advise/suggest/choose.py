"""The fewest annotations under which a program becomes as cheap as its best splits.

Problem: a solution (``problem``) splits every value; a user wants to write a few annotations. Of the places that can be
annotated (``places``), a small set is wanted from which the passes come within ``NEAR`` of the best price, and in which
each annotation saves something.

1. Arguments. An argument that propagation reaches from other annotations needs no annotation: the fewest annotations
   are kept from which propagation gives all arguments the solution's shardings (``keep.fewest``). This step solves
   nothing.
2. Where these are not enough, as the passes would decide otherwise about open arguments or values between, those places
   are added whose split differs there: of arguments first, then of results and lines, the largest first.
3. Changes are left out, the smallest arrays first and many at once, and the tables are solved with their places
   open. Where that changes less than ``NEAR`` they go.
4. Each of those that stay is left out alone: the difference is what it saves, and orders the list.

In all of this a set is enough only where its solution keeps the limit that ``trials`` has, if any.

Example on d=8, a perceptron's training step under a limit: of w1, b1, w2, x and y, saying x and w1 may be enough, as
y meets x's product, and each update has the sharding of its weight.

Invariant: no annotation of the result saves nothing. Complexity: O(k log(n / k)) propagations, and
TRIALS + O(k) trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shardpass.advise.place.keep import fewest
from shardpass.advise.place.sites import Site
from shardpass.advise.place.write import Change
from shardpass.advise.suggest.places import sayable, slots
from shardpass.advise.suggest.trials import Trial, Trials
from shardpass.ops.splits.factors import DimAxes
from shardpass.planning.decide.problem import Answer, Problem

NEAR = 5e-3  # the part of the best price that annotations may miss
TRIALS = 8  # sets that are tried for fewer annotations, of the first outcome

TrialOf = Callable[[Sequence[Change]], Trial]


@dataclass(frozen=True)
class Chosen:
    """An annotation, and how much the price (seconds) and the memory (bytes) would rise without it alone."""

    annotation: Change
    saves_price: float
    saves_memory: float


def choose(
    trials: Trials, answer: Answer, arguments: Sequence[Site], others: Callable[[], Sequence[Site]]
) -> tuple[Chosen, ...]:
    """Return the chosen annotations, greatest savings first. ``others``: results and lines, if arguments do
    not suffice.
    """
    every = [as_in(trials.problem, answer, site) for site in arguments]
    trials.enough *= 1 + NEAR

    def mended(trial_of: TrialOf, kept: Sequence[Change], every: list[Change]) -> list[Change]:
        kept = _mended(trial_of, trials, kept, every)
        if trials.is_enough(trial_of(kept)):
            return kept
        return _mended(trial_of, trials, kept, [as_in(trials.problem, answer, site) for site in others()])

    kept = mended(trials.placed, _carried(trials, every), every)
    best = trials.placed(kept)
    trials.enough, trials.limit = max(trials.enough, best.cost * (1 + NEAR)), max(trials.limit, best.peak)
    left = iter(range(TRIALS))
    largest = sorted(kept, key=lambda one: -one.site.bytes)
    few = fewest(lambda some: next(left, None) is not None and trials.is_enough(trials.placed(some)), largest)
    return _what_they_save(trials, mended(trials.of, few, [*kept, *every]))


def as_in(problem: Problem, answer: Answer, site: Site) -> Change:
    """Return the annotation of ``site`` with the split that most of its values have in ``answer``, as JAX can
    write it.
    """
    counts: Counter[DimAxes] = Counter(answer.splits[index] for index in slots(problem, site))
    dims = counts.most_common(1)[0][0] if counts else ((),) * site.array.rank
    return Change(site, sayable(dims, site.array.shape, problem.task.program.mesh))


def _carried(trials: Trials, every: Sequence[Change]) -> list[Change]:
    """Return a minimal subset of ``every`` from which propagation splits all other arguments as ``every`` has them."""
    split = [one for one in every if any(one.spec or ())]
    indices = {one: slots(trials.problem, one.site) for one in split}
    target = {index: trials.dims(one) for one in split for index in indices[one]}

    def is_enough(some: Sequence[Change]) -> bool:
        reached = trials.reached(some)
        return all(reached[i] == target[i] for one in split if one not in some for i in indices[one])

    return fewest(is_enough, split)


def _mended(trial_of: TrialOf, trials: Trials, kept: Sequence[Change], every: Sequence[Change]) -> list[Change]:
    """Add to ``kept`` annotations of ``every`` that differ from the splits of its trial, until the cost is low
    enough.
    """
    kept = list(kept)
    while not trials.is_enough(trial := trial_of(kept)):
        splits = {one: {trial.splits[index] for index in slots(trials.problem, one.site)} for one in every}
        unlike = [one for one, own in splits.items() if one not in kept and own - {trials.dims(one)}]
        if not unlike and not kept:  # any annotation names the mesh, and the passes split the values between
            unlike = list(every)
        if not unlike:
            break
        kept += unlike
    return kept


def _what_they_save(trials: Trials, kept: Sequence[Change]) -> tuple[Chosen, ...]:
    """Return the annotations of ``kept`` that save something, greatest savings first."""

    def saves_nothing(trial: Trial, whole: Trial) -> bool:
        return trials.order(trial) <= trials.order(whole) and trial.cost <= max(whole.cost, trials.enough)

    out: list[Change] = sorted(kept, key=lambda one: one.site.bytes)
    without: dict[Change, Trial] = {}
    whole = trials.of(out)
    for one in tuple(out):
        rest = [other for other in out if other is not one]
        without[one] = trials.placed(rest)
        if saves_nothing(without[one], whole):
            without[one] = trials.of(rest)
        if saves_nothing(without[one], whole):
            out, whole = rest, without[one]
    order = sorted(out, key=lambda one: trials.order(without[one]), reverse=True)
    return tuple([Chosen(one, without[one].price - whole.price, without[one].peak - whole.peak) for one in order])
