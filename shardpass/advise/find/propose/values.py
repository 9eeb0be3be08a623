"""Edits that constrain values: at the lines that send most, and the rows that a table is looked up for.

The rows that a lookup returns have as first dimensions those of the batch, but XLA splits them as the table is split.
A constraint there is often the one that a program lacks, whatever the lookup itself sends. Placing the batch alone can
make XLA's program worse, so the batch and the rows are also tried together.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardpass.advise.find.propose.program import Context, Edit, one_of_each
from shardpass.advise.find.propose.specs import divides, over
from shardpass.advise.find.propose.unplaced import batches
from shardpass.advise.find.propose.written import choices
from shardpass.advise.place.sites import Site
from shardpass.advise.place.write import Change
from shardpass.diagnostics import NOWHERE

LOOKUP = "stablehlo.gather"
MOST_VALUES = 10
MOST_LOOKUPS = 4


def values(context: Context) -> Iterator[Edit]:
    """Yield edits that constrain a value at the lines that send most, each over one axis in one dimension."""
    yield from one_of_each(choices(context, site) for site in context.values[:MOST_VALUES])


def lookups(context: Context) -> Iterator[Edit]:
    """Yield edits that split the rows of a lookup by their first dimension, alone and together with the batch."""
    rows = looked_up(context)
    alone = [edit for site in rows for edit in _split(context, site)]
    yield from alone
    for batch in batches(context):
        axes = (batch[0].spec or ((),))[0]
        for edit in alone:
            if (edit[0].spec or ((),))[0] == axes:
                yield *batch, *edit


def looked_up(context: Context) -> tuple[Site, ...]:
    """Return the sites of the values that expressions with lookups make, the largest first.

    A value need not be the gather's own: ``jnp.take`` masks the rows that are out of bounds.
    """
    program, names = context.sites.program, context.sites.names
    gathers = (op for op in program.body.every_op() if op.name == LOOKUP and not names.is_backward(op))
    frames = dict.fromkeys(names.frame(op) for op in gathers)
    sites = context.sites.values(list(dict.fromkeys(frame.place for frame in frames if frame.place != NOWHERE)))
    known = dict.fromkeys(site for site in sites if site.frame in frames)
    return tuple(sorted(known, key=lambda site: -site.array.bytes))[:MOST_LOOKUPS]


def _split(context: Context, site: Site) -> Iterator[Edit]:
    names = tuple(context.axes)
    for axes in dict.fromkeys((*((name,) for name in names), names)):
        spec = over(axes, site.array.rank)
        if divides(spec, site.array.shape, context.axes):
            yield (Change(site, spec),)
