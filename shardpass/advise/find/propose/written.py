"""Edits of existing annotations: dropped constraints, and annotations with an axis added, removed or moved.

1. A constraint is dropped: alone, with all of its spec that a call makes, with all that split nothing, or with
   all others.
2. An annotation of results becomes that of the arguments that they update; of other results it is dropped. An argument
   and the result that updates it stay alike, as a loop hands the result on as the argument.
3. An argument with a size that no axis divides is padded and split over an axis there (``padding``).
4. An argument, or a constraint, has one axis more, one less, one elsewhere, two exchanged, or none. Arguments that
   collectives name come first, then those that no result updates (batches), then the largest.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardpass.advise.find.propose.alike import by_name
from shardpass.advise.find.propose.program import Context, Edit, one_of_each
from shardpass.advise.find.propose.specs import axes_of, variants, with_axis
from shardpass.advise.place.padding import padded_shape
from shardpass.advise.place.sites import ARGUMENT, Site
from shardpass.advise.place.write import Change

MOST_PADDED = 3  # arguments for which padding is tried
FEWEST_SPLIT = 8  # elements of a dimension for each device, for padding to be tried


def drops(context: Context) -> Iterator[Edit]:
    """Yield edits that drop constraints: each one, all with one spec, all that split nothing, and all."""
    constraints = context.sites.constraints
    for site in constraints:
        yield (Change(site, None),)
    yield from (tuple(Change(site, None) for site in some) for some in by_name(constraints))
    whole = [site for site in constraints if not axes_of(site.spec)]
    for some in (whole, constraints):
        if len(some) > 1:
            yield tuple(Change(site, None) for site in some)


def results(context: Context) -> Iterator[Edit]:
    """Yield edits of results: as the arguments that they update, or without an annotation."""
    changes = [
        Change(result, site.spec)
        for result, site in context.updated.items()
        if result.spec is not None and site.spec is not None and site.spec != result.spec
    ]
    if changes:
        yield tuple(changes)
    forced = list(_forced(context))
    whole = tuple(Change(site, None) for site in forced if not any(site.spec or ()))
    if len(whole) > 1:
        yield whole
    yield from ((Change(site, None),) for site in forced)


def arguments(context: Context) -> Iterator[Edit]:
    """Yield other annotations, and padded sizes, of the arguments that have one."""
    sites = [site for site in context.sites.arguments if site.spec is not None]
    sites.sort(key=lambda site: _urgency(context, site))
    lists = [choices(context, site) for site in sites]
    yield from one_of_each([*lists[:1], *(_padded(context, site) for site in sites[:MOST_PADDED]), *lists[1:]])


def constraints(context: Context) -> Iterator[Edit]:
    """Yield other annotations of constraints."""
    yield from one_of_each(choices(context, site) for site in context.sites.constraints)


def choices(context: Context, site: Site) -> Iterator[Edit]:
    """Yield the edits that give ``site`` a spec like its own."""
    for spec in variants(site.spec or ((),) * site.array.rank, site.array.shape, context.axes):
        yield context.with_results(site, spec) if site.kind == ARGUMENT else (Change(site, spec),)


def _padded(context: Context, site: Site) -> Iterator[Edit]:
    """Yield edits that pad a dimension of an argument which an unused axis does not divide, and split it there."""
    spec, shape = site.spec or ((),) * site.array.rank, site.array.shape
    if site.array.element.mlir.startswith("complex"):
        return  # the bindings make no complex zero
    for name, size in context.axes.items():
        for dim in range(site.array.rank if name not in axes_of(spec) else 0):
            if shape[dim] % size and shape[dim] >= FEWEST_SPLIT * size and not spec[dim]:
                split = with_axis(spec, dim, name)
                yield context.with_results(site, split, padded_shape(split, shape, context.axes))


def _forced(context: Context) -> Iterator[Site]:
    """Yield annotated results, except updates of annotated arguments, whose sharding the next step expects."""
    for site in context.sites.results:
        argument = context.updated.get(site)
        if site.spec is not None and (argument is None or argument.spec is None):
            yield site


def _urgency(context: Context, site: Site) -> tuple[bool, bool, int]:
    names = filter(None, context.arrays)
    named = any(site.pattern.startswith(name) or name.startswith(site.names[0]) for name in names)
    return not named, site.array in context.state_types, -site.array.bytes * len(site.positions)
