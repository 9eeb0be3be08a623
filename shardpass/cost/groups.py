"""Collectives given by their replica groups, as compiled modules and redistribution plans have them.

Problem: a machine's links ask which mesh axes a group lies along; a module lists device ids. Cases:

1. The groups are lattices of one shape, in whatever order: ``0, 1, 4, 5`` is two neighbours, twice, 4 apart: axes of 2
   at stride 4 and of 2 at stride 1. Where axes of the mesh end inside of a run, the run is cut there (``borders``: the
   strides of the mesh's axes), as a torus joins two axes of 4 by more links than one of 16.
2. Other groups: how many members each device shares a block of each tier with. The device that has fewest near it
   counts, as it receives most from afar.
3. A permute goes over the outermost link that any of its pairs crosses.

Example, hosts of 4: in the groups ``0 4 5 6`` and ``1 2 3 7`` device 0 has nobody of its host beside it: all bytes come
from afar.

Complexity: O(devices) in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shardpass.cost.collective import PERMUTE, Axis, Collective, whole_of
from shardpass.cost.links import Link
from shardpass.cost.machine import Machine

IntArray = NDArray[np.int64]


def seconds(machine: Machine, kind: str, received: int, groups: IntArray, borders: Sequence[int] = ()) -> float:
    """Return the seconds of a collective of ``kind`` by which a device receives at most ``received`` bytes.

    ``groups``: device ids [groups, size]; for a permute the pairs (from, to). ``borders``: the strides, in device ids,
    of the axes of the mesh; () if the mesh is unknown or not in the order of device ids.
    """
    if not received or not groups.size:
        return 0.0
    axes = axes_on(machine, kind, groups, borders)
    return machine.seconds(Collective(kind, axes, whole_of(kind, received, groups.shape[1])))


def axes_on(machine: Machine, kind: str, groups: IntArray, borders: Sequence[int] = ()) -> tuple[Axis, ...]:
    """Return the axes of devices over which a collective of ``kind`` in ``groups`` runs on ``machine``."""
    if kind == PERMUTE:
        return (_farthest(machine, groups),)
    if machine.joins_all(int(groups.max()) + 1):
        return (Axis(groups.shape[1]),)
    return axes_of(groups, borders) or _by_blocks(machine, groups)


def axes_of(groups: IntArray, borders: Sequence[int] = ()) -> tuple[Axis, ...]:
    """Return the axes along which the groups lie, outermost first; () if the groups are not lattices of one shape."""
    members = np.sort(groups, axis=1)
    members = members - members[:, :1]
    if len(members) > 1 and (members != members[0]).any():
        return ()
    ids = members[0]
    axes: list[Axis] = []
    done = 1  # the first ``done`` ids are explained
    while done < len(ids):
        stride = int(ids[done])
        steps = np.arange(0, len(ids) // done) * stride
        heads = ids[::done][: len(steps)]
        count = int(np.argmin(heads == steps)) if (heads != steps).any() else len(steps)
        if (
            len(ids) % (done * count)
            or not (ids[: done * count].reshape(count, done) == steps[:count, None] + ids[:done]).all()
        ):
            return ()
        axes.append(Axis(count, stride))
        done *= count
    cut = [part for axis in axes for part in _cut(axis, borders)]
    return tuple(reversed(cut))


def _cut(axis: Axis, borders: Sequence[int]) -> list[Axis]:
    """Cut ``axis`` where an axis of the mesh begins, the innermost part first."""
    parts, start, end = [], axis.stride, axis.stride * axis.size
    for border in sorted(borders):
        if start < border < end and border % start == 0 and end % border == 0:
            parts.append(Axis(border // start, start))
            start = border
    return [*parts, Axis(end // start, start)]


def tier_of(machine: Machine, groups: IntArray) -> int:
    """Return the innermost tier of links that joins the members of every group."""
    return next(tier for tier, link in enumerate(machine.links) if _joins(link, groups))


def _joins(link: Link, groups: IntArray) -> bool:
    """Return whether ``link`` joins all members of every group; the last link of a machine joins all devices."""
    if link.devices is None:
        return True
    blocks = groups // link.devices
    return bool((blocks == blocks[:, :1]).all())


def _farthest(machine: Machine, pairs: IntArray) -> Axis:
    """Return an axis of two devices that crosses the outermost link that any of ``pairs`` crosses."""
    tier = tier_of(machine, pairs)
    return Axis(2, 1 if not tier else int(machine.links[tier - 1].devices or 1))


def _by_blocks(machine: Machine, groups: IntArray) -> tuple[Axis, ...]:
    """Return the axes of groups that are not lattices, by the blocks of the links, outermost first (case 2)."""
    size, near, stride = groups.shape[1], 1, 1
    axes: list[Axis] = []
    rows = np.arange(len(groups))[:, None] * (int(groups.max()) + 1)
    for link in machine.links:
        members = size
        if link.devices is not None:
            _, count = np.unique(rows + groups // link.devices, return_counts=True)
            members = max(near, int(count.min()))
        here = -(-members // near)
        if here > 1:
            axes.append(Axis(here, stride))
            near *= here
        stride = link.devices or stride
    return tuple(reversed(axes))
