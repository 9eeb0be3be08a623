"""Tile assignments as the V1 and V2 texts give them, and the normal form that XLA makes of them.

XLA puts subgroups in the order maximal, manual, unreduced, replicated, makes equal ones one, drops those of size
1, and sorts the devices that hold copies. Where an iota can say the outcome it stays an iota; where the cut points
of the tile counts do not nest with those of the iota it becomes a list. A list stays a list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from shardpass.sharding import digits as dg
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import AxisRef, Mesh, named
from shardpass.sharding.mhlo_text import list_text, types_text
from shardpass.sharding.model import Axes, Kind, Notes, Sharding

ORDER = {"maximal": 0, "manual": 1, "unreduced": 2, "replicated": 3}
LARGEST_LIST = 1 << 24  # devices that are listed one by one; an iota that nests may have any number


@dataclass(frozen=True, slots=True)
class Tiles:
    """``dims`` counts the grid, subgroups included; the devices are a list, or an iota with its transpose."""

    dims: tuple[int, ...]
    devices: Ints | None
    iota: tuple[int, ...]
    perm: tuple[int, ...]
    types: tuple[str, ...]

    @property
    def data(self) -> tuple[int, ...]:
        """The tile counts of the array's own dimensions."""
        return self.dims[: len(self.dims) - len(self.types)]


def nests(tiles: Tiles) -> bool:
    """Whether the tile counts cut the iota at its own cut points, so that no list of devices is needed."""
    return _parts(tiles, dg.iota(tiles.iota, tiles.perm)) is not None


def normal_form(tiles: Tiles) -> Sharding:
    """The sharding of a well-formed tile assignment, with XLA's canonical text."""
    if tiles.devices is not None:
        return _of_list(tiles, tiles.devices, None)
    digits = dg.iota(tiles.iota, tiles.perm)
    parts = _parts(tiles, digits)
    if parts is not None:
        return _of_parts(tiles, parts)
    n = math.prod(tiles.dims)
    listed = np.empty(n, dtype=np.int64)
    listed[dg.values(digits, n)] = np.arange(n)
    return _of_list(tiles, listed, digits)


def _parts(tiles: Tiles, digits: tuple[Digit, ...]) -> list[tuple[Digit, ...]] | None:
    left = list(digits)
    parts = [dg.take(left, count) for count in tiles.dims]
    return None if None in parts else [part for part in parts if part is not None]


def _groups(tiles: Tiles) -> list[tuple[str, list[int]]]:
    """The subgroups in canonical order, each with the grid dimensions that it is made of."""
    groups: dict[str, list[int]] = {}
    for k, kind in enumerate(tiles.types, len(tiles.data)):
        if tiles.dims[k] != 1:
            groups.setdefault(kind, []).append(k)
    return sorted(groups.items(), key=lambda group: ORDER[group[0]])


def _whole(tiles: Tiles, kinds: list[str]) -> str | None:
    """The text of a sharding that is replicated, manual or unreduced as a whole; None where it is not."""
    if math.prod(tiles.data) == 1 and tiles.types:
        if len(set(tiles.types)) == 1 and tiles.types[0] != "maximal":
            return f"{{{tiles.types[0]}}}"
        if kinds in (["manual"], ["replicated"]):
            return f"{{{kinds[0]}}}"
    return None


def _of_parts(tiles: Tiles, parts: list[tuple[Digit, ...]]) -> Sharding:
    """The sharding of an iota whose cut points nest with the tile counts."""
    n, rank = math.prod(tiles.dims), len(tiles.data)
    groups = {kind: dg.merge(d for k in ks for d in parts[k]) for kind, ks in _groups(tiles)}
    if "replicated" in groups:
        groups["replicated"] = dg.merge(sorted(groups["replicated"], reverse=True))
    text = _whole(tiles, list(groups))
    if text is None:
        counts = [*tiles.data, *(dg.total(part) for part in groups.values())]
        flat = [d for part in (*parts[:rank], *groups.values()) for d in part]
        text = f"{{devices=[{','.join(map(str, counts))}]<={dg.iota_text(flat)}{types_text(list(groups))}}}"
    return _on_iota(n, parts[:rank], groups, text)


def _on_iota(n: int, dims: list[tuple[Digit, ...]], groups: dict[str, tuple[Digit, ...]], text: str) -> Sharding:
    used = [d for part in (*dims, *groups.values()) for d in part]
    axes = sorted({*used, *dg.missing(used, n)}, reverse=True)
    mesh = Mesh(named(axes))
    name = {digit: AxisRef(f"axis_{k}") for k, digit in enumerate(axes)}

    def say(part: tuple[Digit, ...]) -> Axes:
        return tuple(name[d] for d in part)

    return _sharding(mesh, tuple(map(say, dims)), {kind: say(part) for kind, part in groups.items()}, text)


def _sharding(mesh: Mesh, dims: tuple[Axes, ...], by_kind: dict[str, Axes], text: str) -> Sharding:
    return Sharding(
        Kind.TILED, mesh, dims, manual=by_kind.get("manual", ()), unreduced=by_kind.get("unreduced", ()),
        maximal_axes=by_kind.get("maximal", ()), notes=Notes(text=text),
    )  # fmt: skip


def _arranged(tiles: Tiles, devices: Ints) -> tuple[Ints, list[str]]:
    """The grid with its subgroups in normal form, and their kinds."""
    rank, groups = len(tiles.data), _groups(tiles)
    order = [*range(rank), *(k for _, ks in groups for k in ks)]
    ones = [k for k in range(len(tiles.dims)) if k not in order]
    counts = [math.prod(tiles.dims[k] for k in ks) for _, ks in groups]
    grid = devices.reshape(tiles.dims).transpose([*order, *ones]).reshape(*tiles.data, *counts)
    kinds = [kind for kind, _ in groups]
    return (np.sort(grid, axis=-1) if kinds[-1:] == ["replicated"] else grid), kinds


def _list_form(tiles: Tiles, grid: Ints, kinds: list[str], iota: str | None) -> str:
    text = _whole(tiles, kinds)
    if text is not None:
        return text
    devices = list_text(grid.reshape(-1)) if iota is None else "<=" + iota
    return f"{{devices=[{','.join(map(str, grid.shape))}]{devices}{types_text(kinds)}}}"


def _of_list(tiles: Tiles, devices: Ints, iota: tuple[Digit, ...] | None) -> Sharding:
    grid, kinds = _arranged(tiles, devices)
    flat = grid.reshape(-1)
    same = iota is not None and np.array_equal(flat, devices)
    text = _list_form(tiles, grid, kinds, dg.iota_text(iota) if same and iota is not None else None)
    n = devices.size
    place = np.empty(n, dtype=np.int64)
    place[flat] = np.arange(n)
    form = dg.digits_of(place, n)
    if form is not None:
        canonical = Tiles(grid.shape, None, *dg.shape_and_perm(form), tuple(kinds))
        parts = _parts(canonical, form)
        if parts is not None:
            found = _of_parts(canonical, parts)
            return found.replaced(notes=replace(found.notes, text=text))
    mesh = Mesh(((f"axis_{k}", size) for k, size in enumerate(grid.shape) if size > 1), flat)
    refs = [(AxisRef(f"axis_{k}"),) if size > 1 else () for k, size in enumerate(grid.shape)]
    rank = len(tiles.data)
    return _sharding(mesh, tuple(refs[:rank]), dict(zip(kinds, refs[rank:], strict=True)), text)


def without_meaning(tiles: Tiles) -> Sharding | None:
    """What XLA's parser makes of a tile assignment that has no meaning: it prints. None where XLA dies instead."""
    places = math.prod(tiles.dims)
    if tiles.devices is None:
        shape, perm = _canonical(list(tiles.iota), list(tiles.perm))
        dims = ",".join(map(str, tiles.dims))
        order = f"T({','.join(map(str, perm))})" if len(shape) > 1 else ""
        kinds = [kind for kind, _ in _groups(tiles)]
        text = _whole(tiles, kinds)
        if text is None:
            if kinds != list(tiles.types) or places == 0 and kinds:
                return None
            text = f"{{devices=[{dims}]<=[{','.join(map(str, shape))}]{order}{types_text(kinds)}}}"
        return Sharding(Kind.TILED, notes=Notes(text=text, tiles=tiles.dims))
    if not 0 <= places <= LARGEST_LIST or any(count < 0 for count in tiles.dims):
        return None
    filled = np.zeros(places, dtype=np.int64)
    count = min(len(tiles.devices), places)
    filled[:count] = tiles.devices[:count]
    if places == 0 and tiles.types:
        return None
    grid, kinds = _arranged(tiles, filled)
    text = _list_form(tiles, grid, kinds, None)
    listed = tuple(grid.reshape(-1).tolist())
    return Sharding(Kind.TILED, notes=Notes(text=text, tiles=grid.shape, listed=listed))


def _canonical(shape: list[int], perm: list[int]) -> tuple[list[int], list[int]]:
    """Sizes of 1 left out and runs of neighbours joined, also where ``perm`` is no permutation."""
    while True:
        kept = [k for k, size in enumerate(shape) if size != 1]
        perm = [kept.index(p) for p in perm if p in kept]
        shape = [shape[k] for k in kept]
        if not shape or not perm:
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
