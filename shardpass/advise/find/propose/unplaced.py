"""Edits of arrays that were never placed: batches, targets and banks without an annotation, or replicated.

1. Arguments with one size of the first dimension are split there together, as a batch with its targets.
2. An argument of several dimensions is split along each as others are that have a dimension of its size: soft targets
   of (batch, vocabulary) as the batch and the head.
3. Arguments that share the size of another dimension are split there together: a bank of adapters of which each step
   uses one, a table of features.

The axes are each axis, those that no annotation uses, all, and those that split a dimension of this size elsewhere.

Example: targets of 32 rows that are whole beside inputs of 32 rows over ('data', 'fsdp') are split over both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product

from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.specs import axes_of, divides, over
from shardpass.advise.place.sites import Site
from shardpass.advise.place.write import Change


def batches(context: Context) -> Iterator[Edit]:
    """Yield edits that split arguments which no result updates by their first dimension."""
    yield from _alike(context)
    yield from _split(context, ((site, 0) for site in context.sites.arguments))


def _alike(context: Context) -> Iterator[Edit]:
    """Yield edits that split an argument along several dimensions, each as others with a dimension of its size."""
    split: dict[int, dict[tuple[str, ...], None]] = defaultdict(dict)
    for site in (*context.sites.arguments, *context.sites.constraints):
        for size, names in zip(site.array.shape, site.spec or (), strict=False):
            if names:
                split[size].setdefault(names)
    for site in filter(context.is_batch, context.sites.arguments):
        for spec in product(*([*split[size], ()] if size in split else [()] for size in site.array.shape)):
            if sum(map(bool, spec)) > 1 and divides(spec, site.array.shape, context.axes):
                yield (Change(site, spec),)


def banks(context: Context) -> Iterator[Edit]:
    """Yield edits that split arguments which no result updates by another dimension."""
    yield from _split(context, ((site, dim) for site in context.sites.arguments for dim in range(1, site.array.rank)))


def _split(context: Context, places: Iterable[tuple[Site, int]]) -> Iterator[Edit]:
    every = (*context.sites.arguments, *context.sites.constraints)
    used = {name for site in every for name in axes_of(site.spec)}
    alike: dict[int, dict[Site, int]] = defaultdict(dict)
    for site, dim in places:
        if context.is_batch(site):
            alike[site.array.shape[dim]].setdefault(site, dim)
    names = tuple(context.axes)
    always = [*((name,) for name in names), tuple(name for name in names if name not in used), names]
    for size, sites in sorted(alike.items(), key=lambda one: -sum(site.bytes for site in one[1])):
        known = [
            some
            for site in every
            for length, some in zip(site.array.shape, site.spec or (), strict=False)
            if length == size
        ]
        for axes in dict.fromkeys(filter(None, (*known, *always))):
            changes = tuple(Change(site, over(axes, site.array.rank, dim)) for site, dim in sites.items())
            if all(divides(one.spec or (), one.site.array.shape, context.axes) for one in changes):
                yield changes
