"""Edits of the mesh: its axes exchange their sizes, as a mesh of (2, 4) devices for one of (4, 2).

A program whose specs name the wrong one of two axes everywhere is the program of the other mesh, so one edit of one
place mends all of them. With a shard_map, whose body has the shapes of tiles, such edits exist as text alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.specs import divides
from shardpass.advise.place.sites import MESH, Site
from shardpass.advise.place.write import Change, mesh_sizes

MOST = 3  # for meshes of many axes


def shapes(context: Context) -> Iterator[Edit]:
    """Yield edits that give the axes of the mesh each other's sizes, where all annotations divide then."""
    sites = (*context.sites.arguments, *context.sites.results, *context.sites.constraints)
    names = tuple((name,) for name, _ in context.sites.program.mesh.mesh.axes)
    pieces = tuple((size, size) for _, size in context.sites.program.mesh.mesh.axes)
    if not sites:
        return
    site = Site(MESH, ("mesh",), sites[0].array, names, pieces=pieces)
    known = {context.sites.program.mesh.mesh.axes}
    for other in permutations(names):
        change = Change(site, other)
        sizes = mesh_sizes(change)
        if sizes in known or len(known) > MOST:
            continue
        known.add(sizes)
        if all(divides(one.spec or (), one.array.shape, dict(sizes)) for one in sites if one.spec):
            yield (change,)
