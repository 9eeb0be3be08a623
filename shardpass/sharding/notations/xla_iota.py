"""Print an iota with subgroups as XLA does, even where the numbers of the iota are inconsistent.

Source: IotaTileAssignment::Create and ::Transpose (xla/hlo/ir/tile_assignment.cc), HloSharding::Subgroup
(xla/hlo/ir/hlo_sharding.cc). XLA keeps an iota as three lists: the dimensions of the grid, the shape of the iota, and
its transpose. Its parser never lists the devices; it moves and joins the numbers of the three lists. So an iota that
lists another number of devices than there are tiles has a canonical text too, and this module computes the same.

Cases:

1. Subgroups in XLA's order already: the lists stay, ones are dropped, runs are joined (``canonical``):
   ``<=[2,1,4]T(0,1,2)`` is ``<=[8]``.
2. Subgroups that must move: the dimensions of the grid are transposed, and with them those of the iota where each is
   one dimension of the grid, several of them, or parts of them (``_transposed``).
3. Dimensions that cut across those of the iota: XLA lists the devices (``_listed``).
4. Copies must ascend: the last dimensions of the iota are sorted (``_sorted_last``), or XLA dies.
"""

from __future__ import annotations

import math

import numpy as np

from shardpass.sharding import digits as dg
from shardpass.sharding.notations.tiles import LARGEST_LIST, WrittenTiles, listed_text, one_word_text, subgroups_of
from shardpass.sharding.notes import Kind
from shardpass.sharding.xla_text import comma_separated, tiles_text

Iota = tuple[list[int], list[int], list[int]]  # dimensions of the grid, shape of the iota, its transpose


def iota_form(tiles: WrittenTiles) -> str | None:
    """Format an iota as XLA does for any numbers; None if XLA ends the process instead."""
    iota: Iota = (list(tiles.dims), *canonical(list(tiles.iota), list(tiles.perm)))
    kinds, rank = list(tiles.kinds), len(tiles.data)
    if text := one_word_text(tiles, []):
        return text
    groups = subgroups_of(tiles)
    ones = [k for k in range(rank, len(tiles.dims)) if tiles.dims[k] == 1]
    if ones or len(groups) > 1 or len(groups) < len(kinds):
        order = [*range(rank), *(k for _, ks in groups for k in ks), *ones]
        moved = _transposed(iota, order)
        if moved is None:
            return _listed(tiles, iota, order, groups)
        counts = [math.prod(tiles.dims[k] for k in ks) for _, ks in groups]
        kinds = [kind for kind, _ in groups]
        iota = ([*tiles.data, *counts], *canonical(moved[1], moved[2]))
    dims = iota[0]
    size = math.prod(dims)
    if kinds == [Kind.MANUAL] and dims[-1] == size:
        return "{manual}"
    if kinds[-1:] == [Kind.REPLICATED]:
        if len(dims) == 1 or dims[-1] == size:
            return "{replicated}"
        grouped = _sorted_last(iota)
        if grouped is None:
            return None
        iota = grouped
    return _text(iota, kinds)


def _listed(tiles: WrittenTiles, iota: Iota, order: list[int], groups: list[tuple[Kind, list[int]]]) -> str | None:
    """List the devices as XLA computes them, for an iota larger than the grid too.

    The number of a place in the grid, written with the iota's sizes as digits, is the device; further digits are lost.
    """
    dims, shape, perm = iota
    places = math.prod(dims)
    if min(dims) < 0 or places > LARGEST_LIST or 0 < places < math.prod(shape):
        return None
    solid = [k for k in order if dims[k] != 1]
    sizes = [size for size in dims if size != 1]
    rank = {k: at for at, k in enumerate(sorted(solid))}
    place = np.arange(places)
    if places:
        place = place.reshape(sizes).transpose([rank[k] for k in solid]).reshape(-1)
    digits = [np.zeros(len(place), dtype=np.int64) for _ in shape]
    for p in reversed(perm):
        digits[p] = place % shape[p]
        place = place // shape[p]
    device = np.zeros(len(place), dtype=np.int64)
    for size, digit in zip(shape, digits, strict=True):
        device = device * size + digit
    kinds = [kind for kind, _ in groups]
    counts = (*tiles.data, *(math.prod(tiles.dims[k] for k in ks) for _, ks in groups))
    if kinds[-1:] == [Kind.REPLICATED] and places:
        device = np.sort(device.reshape(-1, counts[-1]), axis=1).reshape(-1)
    return listed_text(tiles, device, counts, kinds)


def _text(iota: Iota, kinds: list[Kind]) -> str:
    dims, shape, perm = iota
    order = f"T({comma_separated(perm)})" if len(shape) > 1 else ""
    return "{" + tiles_text(dims, f"<=[{comma_separated(shape)}]{order}", kinds) + "}"


def canonical(shape: list[int], perm: list[int]) -> tuple[list[int], list[int]]:
    """Drop dimensions of size 1 and merge dimensions that are adjacent in ``shape`` and in ``perm``.

    Does exactly what XLA does even if ``perm`` is not a permutation.
    """
    if len(shape) < 2:
        return shape, perm
    while True:
        kept = [k for k, size in enumerate(shape) if size != 1]
        mapped = [kept.index(p) for p in perm if p in kept][: len(kept)]
        perm = mapped + perm[len(mapped) : len(kept)]  # XLA leaves what stood there
        shape = [shape[k] for k in kept]
        if not shape:
            return [1], [0]
        start = 0
        for k in range(1, len(perm)):
            if perm[start] + k - start == perm[k]:
                shape[perm[start]] *= shape[perm[k]]
                shape[perm[k]] = 1
            else:
                start = k
        if 1 not in shape:
            return shape, perm


def _transposed(iota: Iota, order: list[int]) -> Iota | None:
    """Transpose the dimensions of the iota's grid; None if the result needs a device list."""
    dims, shape, perm = iota
    moved = [dims[k] for k in order]
    solid = [k for k in order if dims[k] != 1]
    if solid == sorted(set(solid)):
        return (moved, *canonical(list(shape), list(perm)))
    if len(shape) == 1:
        return (moved, *canonical(list(dims), list(order)))
    solid.sort()
    sizes = [shape[p] for p in perm]
    if [dims[k] for k in solid] != sizes:
        return _transposed_parts(iota, moved, order)
    return (moved, *canonical(list(shape), [perm[solid.index(k)] for k in order if dims[k] != 1]))


def _transposed_parts(iota: Iota, moved: list[int], order: list[int]) -> Iota | None:
    """Return the transpose of an iota whose dimensions are several of the grid's dimensions, or parts of them."""
    dims, shape, perm = iota
    if sorted(perm) != list(range(len(shape))) or min(shape) < 1 or min(dims) < 1:
        return None
    left = list(dg.iota(shape, perm))
    parts: list[tuple[dg.Digit, ...]] = []
    for size in dims:
        part = dg.take(left, size) if left else ()
        if part is None:
            return None
        parts.append(part)
    if left:
        return None
    digits = dg.merge(digit for k in order for digit in parts[k])
    if not digits:
        return (moved, [1], [0])
    new_shape, new_perm = dg.shape_and_perm(digits)
    return (moved, list(new_shape), list(new_perm))


def _sorted_last(iota: Iota) -> Iota | None:
    """Sort the devices of the iota's last dimension; None if the result needs a device list."""
    dims, shape, perm = iota
    left = dims[-1]
    if shape[perm[-1]] == left:
        return iota
    sorted_dims, split = 0, None
    for p in reversed(perm):
        if shape[p] <= left:
            if not shape[p] or math.fmod(left, shape[p]):  # XLA divides by an empty dimension, and dies
                return None
            left = int(left / shape[p])
            sorted_dims += 1
            continue
        if math.fmod(shape[p], left):
            return None
        split = (p, int(shape[p] / left))
        sorted_dims += 1
        break
    new_shape, new_perm = list(shape), list(perm)
    if split is not None:
        at, major = split
        new_shape = [*shape[:at], major, int(shape[at] / major), *shape[at + 1 :]]
        new_perm = []
        for p in perm:
            new_perm += [p, p + 1] if p == at else [p if p < at else p + 1]
    cut = len(new_perm) - sorted_dims
    new_perm = new_perm[:cut] + sorted(new_perm[cut:])
    return (dims, *canonical(new_shape, new_perm))
