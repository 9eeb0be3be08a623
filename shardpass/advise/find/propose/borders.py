"""Edits of ``in_specs``: arrays that a shard_map takes in another sharding than they have.

Example: fields that are placed over ('x', 'y') and that ``in_specs`` have as ``P()`` are gathered for each call.

The body then works on another part of the array, so these edits exist as text alone: they are traced again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.place.write import Change
from shardpass.ir.frames import Frame


def borders(context: Context) -> Iterator[Edit]:
    """Yield edits that set ``in_specs`` to the shardings that the arrays have, all of one call together."""
    calls: dict[Frame, list[Change]] = defaultdict(list)
    for site in context.sites.borders():
        spec = context.spec_in(site, context.now)
        if spec is not None and spec != site.spec:
            calls[site.frame].append(Change(site, spec))
    yield from map(tuple, calls.values())
