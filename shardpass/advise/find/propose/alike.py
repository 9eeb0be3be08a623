"""Edits of places that one name or rule of the user's text annotates, all together.

Users write a spec once, as ``ACT = P("data", "model")`` or as a rule for the name of a dimension, and use it in many
annotations. What belongs together is seen from the program:

1. constraints of one spec, whatever their shapes;
2. constraints of one spec that one call makes, as the call of a layer or of a helper;
3. arguments and constraints of one type and one spec; what a loop takes a slice of has one dimension more, in front;
4. arguments of one rank and one spec, as the weights of all experts and their moments;
5. arguments that one axis splits and that share the size of another dimension, as experts' weights of (experts, width,
   hidden) and (experts, hidden, width) that are split over hidden, or the leaves of a batch that is time-major; all of
   these, and those that the axis splits along a dimension of one size, as both factors of an adapter of low rank.

All get the same other spec (``variants``), where it divides them; those that share a size have the axis moved there.
Arguments are left out where their tiles would grow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from shardpass.advise.find.propose.program import Context, Edit, joined, one_of_each
from shardpass.advise.find.propose.specs import axes_of, divides, tile, variants
from shardpass.advise.place.sites import ARGUMENT, Site
from shardpass.advise.place.specs import Spec
from shardpass.advise.place.write import Change

LARGER = 1.001


def shared(context: Context) -> Iterator[Edit]:
    """Yield edits that change the spec of all constraints with one spec, or of all constraints made by one call."""
    yield from _edits(context, by_name(context.sites.constraints))


def families(context: Context) -> Iterator[Edit]:
    """Yield edits that change the spec of all arguments and constraints with one type and spec, or one rank and
    spec.
    """
    groups: dict[object, list[Site]] = defaultdict(list)
    for site in (*context.sites.arguments, *context.sites.constraints):
        if site.spec is None:
            continue
        shape, element = site.array.shape, site.array.element
        groups[shape, element, site.spec].append(site)
        if site.kind == ARGUMENT and axes_of(site.spec):
            groups[len(shape), site.spec].append(site)
        if site.kind == ARGUMENT and len(shape) > 2 and not site.spec[0]:
            groups[shape[1:], element, site.spec[1:]].append(site)
    large = sorted(groups.values(), key=lambda some: -sum(site.bytes for site in some))
    yield from _edits(context, (some for some in large if any(site.kind == ARGUMENT for site in some)))


def aligned(context: Context) -> Iterator[Edit]:
    """Yield edits that move the axes of a dimension to another one: in all arguments, to the dimension of one size."""
    groups: dict[object, dict[Site, Spec]] = defaultdict(dict)
    for site in context.sites.arguments:
        for names in filter(None, site.spec or ()):
            for dim, size in enumerate(site.array.shape):
                spec = tuple(
                    names if place == dim else () if some == names else some
                    for place, some in enumerate(site.spec or ())
                )
                if not (site.spec or ())[dim] and divides(spec, site.array.shape, context.axes):
                    before = site.array.shape[(site.spec or ()).index(names)]
                    for key in ((names, size), (names, size, before)):
                        groups[key].setdefault(site, spec)
    for some in sorted(groups.values(), key=lambda some: -sum(site.bytes for site in some)):
        yield joined(context.with_results(*one) for one in some.items())


def by_name(constraints: Sequence[Site]) -> Iterator[list[Site]]:
    """Yield the constraints of one spec, and those of these that share a call, without duplicates."""
    groups: dict[object, list[Site]] = defaultdict(list)
    for site in constraints:
        groups[site.spec].append(site)
        for frame in dict.fromkeys((site.frame, *site.calls)):
            groups[site.spec, frame].append(site)
    known = {frozenset(some): some for some in groups.values() if len(some) > 1}
    yield from sorted(known.values(), key=lambda some: -sum(site.bytes for site in some))


def _edits(context: Context, groups: Iterator[list[Site]]) -> Iterator[Edit]:
    yield from one_of_each(_variants(context, some) for some in groups if len(some) > 1)


def _variants(context: Context, sites: list[Site]) -> Iterator[Edit]:
    least = min(sites, key=lambda site: site.array.rank)
    rank = least.array.rank
    for spec in variants(least.spec or (), least.array.shape, context.axes):
        changes = [(site, (((),) * (site.array.rank - rank)) + spec) for site in sites]
        fitting = [one for one in changes if _fits(context, *one)]
        if len(fitting) > 1:
            yield joined(_change(context, *one) for one in fitting)


def _fits(context: Context, site: Site, spec: Spec) -> bool:
    if not divides(spec, site.array.shape, context.axes):
        return False
    before, after = (tile(site.array, one, context.axes) for one in (site.spec, spec))
    return site.kind != ARGUMENT or after <= before * LARGER


def _change(context: Context, site: Site, spec: Spec) -> Edit:
    return context.with_results(site, spec) if site.kind == ARGUMENT else (Change(site, spec),)
