"""Edits that write what shardpass decides, where a partitioner that propagates has another sharding.

Shardpass decides all values of a program at once. Of what differs, few values matter: a reshape of a batch into
microbatches, what a loop starts from, a mask. Users can constrain values that expressions of theirs make, so each such
value and each argument without an annotation gets the decided spec, where that splits it: the largest alone, all that
get one spec, and all. What is decided whole for a small step would be work that each device repeats.

Example: ``x.reshape(chunks, rows, ...)`` of a batch over 'data' leaves the chunks over 'data', and each trip of the
loop then works on rows of one device. Decided is ``P(None, 'data')``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.specs import axes_of
from shardpass.advise.place.sites import Site
from shardpass.advise.place.specs import Spec
from shardpass.advise.place.write import Change
from shardpass.diagnostics import NOWHERE
from shardpass.program.program import OpKind

MOST = 24


def decided(context: Context) -> Iterator[Edit]:
    """Yield edits that give values, and arguments without an annotation, the decided spec."""
    changes = [Change(site, spec) for site, spec in _different(context)][:MOST]
    groups: dict[Spec | None, list[Change]] = defaultdict(list)
    for change in changes:
        groups[change.spec].append(change)
    if len(groups) > 1:
        yield tuple(changes)
    yield from (tuple(some) for some in groups.values() if len(some) > 1)
    yield from ((change,) for change in changes)


def _different(context: Context) -> Iterator[tuple[Site, Spec]]:
    """Yield sites with another spec by the decision than by propagation, the largest first."""
    sites, program = context.sites, context.sites.program
    places = {}
    for op in program.body.every_op():
        if op.kind is OpKind.SPLIT and not sites.names.is_backward(op):
            place = sites.names.frame(op).place
            if place != NOWHERE and any(context.now.get(one) != context.decided.get(one) for one in op.results):
                places[place.file, place.line] = place
    every = [
        *(site for site in sites.arguments if site.spec is None),
        *sites.values(list(places.values()), several=True),
    ]
    for site in sorted(every, key=lambda site: -site.bytes):
        now, there = (context.spec_in(site, some) for some in (context.now, context.decided))
        if there is not None and there != now and axes_of(there):
            yield site, there
