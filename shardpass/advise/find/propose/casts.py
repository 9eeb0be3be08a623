"""Edits of arrays that are cast to a wider type before they are moved: constraints on the narrow array.

Example: weights of i8 over 'fsdp', ``w = q.astype(f32) * scale``, and a product that wants all of w. XLA gathers w.
With ``q = with_sharding_constraint(q, P())`` before the cast it gathers a quarter of the bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from shardpass.advise.find.propose.program import Context, Edit, one_of_each
from shardpass.advise.find.propose.specs import every_spec
from shardpass.advise.place.sites import CAST, Site
from shardpass.advise.place.write import Change
from shardpass.program.program import OpKind

MOST = 6


def casts(context: Context) -> Iterator[Edit]:
    """Yield edits that constrain a value before a cast to a wider type: replicated, for all of a line and each one;
    or over one axis.
    """
    sites, lines = _sites(context), defaultdict(list)
    for site in sites:
        lines[site.frame].append(Change(site, ((),) * site.array.rank))
    yield from (tuple(some) for some in lines.values() if len(some) > 1)
    yield from one_of_each(
        [(Change(site, spec),) for spec in every_spec(site.array.shape, context.axes, 1)] for site in sites[:MOST]
    )


def _sites(context: Context) -> list[Site]:
    program, names, origin = context.sites.program, context.sites.names, context.sites.reading.origin
    alike = defaultdict(list)
    for op in program.body.every_op():
        if op.name != "stablehlo.convert" or op.kind is not OpKind.SPLIT or op.number not in origin:
            continue
        narrow, wide = program.array(op.operands[0]), program.array(op.results[0])
        if narrow.rank and narrow.bytes < wide.bytes and not names.is_backward(op) and not op.mesh.manual:
            alike[names.frame(op), narrow].append(op)
    sites = (
        Site(
            CAST,
            (names.of(ops[0].operands[0]) or str(array),),
            array,
            None,
            frame,
            origins=tuple((origin[op.number], 0) for op in ops),
        )
        for (frame, array), ops in alike.items()
    )
    return sorted(sites, key=lambda site: -site.array.bytes * len(site.origins))
