"""Edits of what was never placed: batches without an annotation, or on every device whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.specs import axes_of, divides, over
from shardpass.advise.place.sites import Site
from shardpass.advise.place.write import Change


def batches(context: Context) -> Iterator[Edit]:
    """Yield edits that split arguments which no result updates by their first dimension.

    All arguments with one size of the first dimension are split together: over each axis, over all axes that no
    annotation uses, and over all axes.
    """
    every = (*context.sites.arguments, *context.sites.constraints)
    used = {name for site in every for name in axes_of(site.spec)}
    alike: dict[int, list[Site]] = defaultdict(list)
    for site in context.sites.arguments:
        if context.is_batch(site):
            alike[site.array.shape[0]].append(site)
    names = tuple(context.axes)
    choices = [*((name,) for name in names), tuple(name for name in names if name not in used), names]
    for batch in alike.values():
        for axes in dict.fromkeys(filter(None, choices)):
            changes = [Change(site, over(axes, site.array.rank)) for site in batch]
            fitting = [one for one in changes if divides(one.spec or (), one.site.array.shape, context.axes)]
            if len(fitting) == len(changes):
                yield tuple(fitting)
