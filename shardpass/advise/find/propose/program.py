"""The facts about a program that proposers use: its sites, its axes, and which results update which arguments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from shardpass.advise.find.propose.specs import Axes, axes_of, divides, whole
from shardpass.advise.place.sites import ARGUMENT, RESULT, Site, Sites
from shardpass.advise.place.specs import Spec
from shardpass.advise.place.write import Change
from shardpass.diagnostics import Place
from shardpass.program.program import Array
from shardpass.sharding import Sharding

Edit = tuple[Change, ...]
T = TypeVar("T")

ROOT = re.compile(r"^[^\[.]*")
_FIRST_INDEX = re.compile(r"^\[\d+\]")


@dataclass(frozen=True)
class Context:
    """A program for proposers.

    ``lines``: those that send most, in descending order. ``arrays``: the names of the arrays that collectives send.
    ``now``, ``decided``: the shardings of values, by number, as propagated and as shardpass decides them.
    """

    sites: Sites
    lines: Sequence[Place] = ()
    arrays: Collection[str] = ()
    now: Mapping[int, Sharding] = field(default_factory=dict)
    decided: Mapping[int, Sharding] = field(default_factory=dict)

    @cached_property
    def axes(self) -> Axes:
        """The axes that split anything, with their sizes."""
        return {name: size for name, size in self.sites.program.mesh.mesh.axes if size > 1}

    @cached_property
    def updated(self) -> Mapping[Site, Site]:
        """By result, the argument that the result updates."""
        return dict(_updates(self.sites))

    @cached_property
    def state_types(self) -> frozenset[Array]:
        """The types of the results; an argument of another type is not a state."""
        return frozenset(site.array for site in self.sites.results)

    @cached_property
    def batch_axes(self) -> frozenset[str]:
        """The axes that split the first dimension of arguments that are not states."""
        batches = (site for site in self.sites.arguments if site.spec and site.array not in self.state_types)
        return frozenset(name for site in batches for name in (site.spec or ((),))[0])

    @cached_property
    def values(self) -> tuple[Site, ...]:
        """The values at ``lines`` that have a name and no constraint, in the order of the program."""
        return tuple(sorted(self.sites.values(self.lines, several=True), key=lambda site: min(site.values)))

    def with_results(self, site: Site, spec: Spec, padded: tuple[int, ...] | None = None) -> Edit:
        """Return the edit of an argument together with the results that update the argument."""
        return Change(site, spec, padded), *self.results_of(site, spec, padded)

    def results_of(self, site: Site, spec: Spec, padded: tuple[int, ...] | None = None) -> Iterator[Change]:
        """Yield the changes that give the results that update ``site``, an argument, its new ``spec``."""
        for result, argument in self.updated.items():
            if argument is site and result.spec is not None and result.spec == site.spec:
                yield Change(result, spec, padded)

    def spec_in(
        self, site: Site, shardings: Mapping[int, Sharding], results: Sequence[Sharding | None] = ()
    ) -> Spec | None:
        """Return the spec that most values of ``site`` have; None where whole axes do not express or divide it.

        ``results``: the shardings of main's results.
        """
        counts: Counter[Spec] = Counter()
        rank = site.array.rank
        if site.kind == RESULT:
            shardings_of = [results[position] for position in site.positions if position < len(results)]
        else:
            shardings_of = [shardings.get(value) for value in site.values]
        for sharding in shardings_of:
            spec = whole(sharding, rank, self.sites.program)
            if spec is not None:
                counts[spec] += 1
        most = counts.most_common(1)[0][0] if counts else None
        return most if most is not None and divides(most, site.array.shape, self.axes) else None

    def is_batch(self, site: Site) -> bool:
        """Return whether ``site`` is an argument that nothing splits and no result updates."""
        return site.kind == ARGUMENT and not axes_of(site.spec) and site.array not in self.state_types


def _updates(sites: Sites) -> Iterator[tuple[Site, Site]]:
    """Yield results with the arguments that they update: of one type and one end of the path, paired in order.

    Of ``step(params, mu, nu)`` that returns three trees, the second is the new ``mu``. The first indices of a result
    are those of tuples of trees, or of the one list that is returned.
    """
    alike: dict[tuple[Array, str], list[Site]] = {}
    for argument in sites.arguments:
        for name in argument.names:
            alike.setdefault((argument.array, ROOT.sub("", name, count=1)), []).append(argument)
    for result in sites.results:
        path = result.names[0].removeprefix("result")
        while not (left := alike.get((result.array, path))) and _FIRST_INDEX.match(path):
            path = _FIRST_INDEX.sub("", path)
        if left:
            yield result, left.pop(0)


def one_of_each(lists: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield the first member of each list, then the second member of each list, and so on."""
    left = [iter(one) for one in lists]
    while left:
        kept = []
        for one in left:
            member = next(one, None)
            if member is not None:
                kept.append(one)
                yield member
        left = kept


def joined(edits: Iterable[Edit]) -> Edit:
    """Join edits, without duplicates."""
    return tuple(dict.fromkeys(change for edit in edits for change in edit))
