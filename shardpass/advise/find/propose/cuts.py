"""Edits of cuts that miss the borders of shards, as those of a fused projection of queries, keys and values.

A value of 6144 columns over 8 devices has shards of 768, and a cut at 4096 is in the midst of one: each device sends
parts of its columns to others. Stored in 8 groups of (512, 128, 128), each device has its own part of each piece.

A batch of 64 rows over 4 devices, reshaped to (8, 8, ...) for a loop over chunks, gives each chunk the rows of one
device. Reshaped to (8, 8, ...) with the chunks as second dimension, or cut along the sequence, each chunk has rows of
every device.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.specs import over
from shardpass.advise.place.sites import Site
from shardpass.advise.place.write import Change


def cuts(context: Context) -> Iterator[Edit]:
    """Yield edits for slices whose bounds fall inside a shard, at the lines that send most, over each axis."""
    for site in context.sites.cuts(context.lines):
        for name, shards in context.axes.items():
            if misses(site, shards):
                yield (Change(site, over((name,), site.array.rank, site.cut)),)


def chunks(context: Context) -> Iterator[Edit]:
    """Yield edits of reshapes that divide the first dimension of batches into chunks."""
    sizes = {site.array.shape[0] for site in context.sites.arguments if site.array not in context.state_types}
    for site in context.sites.chunks(sizes):
        yield (Change(site, ((),) * site.array.rank),)


def misses(site: Site, shards: int) -> bool:
    """Return whether a piece of a cut starts or ends within a shard, and could be divided among the shards."""
    size = site.array.shape[site.cut]
    borders = {border for piece in site.pieces for border in piece}
    return (
        size % shards == 0
        and not any(border % shards for border in borders)
        and any(border % (size // shards) for border in borders)
    )
