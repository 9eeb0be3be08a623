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
from shardpass.sharding.axes import Axes
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import AxisRef, Mesh, named
from shardpass.sharding.mhlo_text import list_text, types_text
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind, Notes

ORDER = {"maximal": 0, "manual": 1, "unreduced": 2, "replicated": 3}
LARGEST_LIST = 1 << 20  # devices that are listed one by one; an iota that nests may have any number


@dataclass(frozen=True, slots=True)
class Tiles:
    """``dims`` counts the grid, subgroups included; the devices are a list, or an iota with its transpose.

    ``listed`` is the text of the list where it is known: printing 65,536 numbers takes longer than reading them.
    """

    dims: tuple[int, ...]
    devices: Ints | None
    iota: tuple[int, ...]
    perm: tuple[int, ...]
    types: tuple[str, ...]
    listed: str | None = None

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
        return _of_list(tiles, tiles.devices, from_iota=False)
    digits = dg.iota(tiles.iota, tiles.perm)
    parts = _parts(tiles, digits)
    if parts is not None:
        return _of_parts(tiles, parts)
    n = math.prod(tiles.dims)
    listed = np.empty(n, dtype=np.int64)
    listed[dg.values(digits, n)] = np.arange(n)
    return _of_list(tiles, listed, from_iota=True)


def _parts(tiles: Tiles, digits: tuple[Digit, ...]) -> list[tuple[Digit, ...]] | None:
    left = list(digits)
    parts = [dg.take(left, count) for count in tiles.dims]
    return None if None in parts else [part for part in parts if part is not None]


def groups_of(tiles: Tiles) -> list[tuple[str, list[int]]]:
    """The subgroups in canonical order, each with the grid dimensions that it is made of."""
    groups: dict[str, list[int]] = {}
    for k, kind in enumerate(tiles.types, len(tiles.data)):
        if tiles.dims[k] != 1:
            groups.setdefault(kind, []).append(k)
    return sorted(groups.items(), key=lambda group: ORDER[group[0]])


def whole(tiles: Tiles, kinds: list[str]) -> str | None:
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
    groups = {kind: dg.merge(d for k in ks for d in parts[k]) for kind, ks in groups_of(tiles)}
    if "replicated" in groups:
        groups["replicated"] = dg.merge(sorted(groups["replicated"], reverse=True))
    text = whole(tiles, list(groups))
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


def arranged(tiles: Tiles, devices: Ints) -> tuple[Ints, tuple[int, ...], list[str]]:
    """The devices with the subgroups in normal form, row-major; the grid's dimensions, and the subgroups' kinds."""
    rank, groups = len(tiles.data), groups_of(tiles)
    order = [*range(rank), *(k for _, ks in groups for k in ks)]
    counts = tuple(math.prod(tiles.dims[k] for k in ks) for _, ks in groups)
    kinds = [kind for kind, _ in groups]
    solid = [k for k, size in enumerate(tiles.dims) if size != 1]
    if devices.size:
        place = {k: at for at, k in enumerate(solid)}
        grid = devices.reshape([tiles.dims[k] for k in solid])  # NumPy has no more than 64 dimensions
        devices = grid.transpose([place[k] for k in order if k in place]).reshape(-1)
        if kinds[-1:] == ["replicated"]:
            devices = np.sort(devices.reshape(-1, counts[-1]), axis=1).reshape(-1)
    return devices, (*tiles.data, *counts), kinds


def list_form(tiles: Tiles, devices: Ints, dims: tuple[int, ...], kinds: list[str]) -> str:
    text = whole(tiles, kinds)
    if text is not None:
        return text
    if (kinds[-1:] == ["replicated"] or kinds == ["manual"]) and dims[-1] == devices.size:
        return f"{{{kinds[-1]}}}"
    text = _known_text(tiles, devices) or list_text(devices)
    return f"{{devices=[{','.join(map(str, dims))}]{text}{types_text(kinds)}}}"


def _known_text(tiles: Tiles, devices: Ints) -> str | None:
    """The text that was read, where it is canonical and the list is as it was."""
    text = tiles.listed
    if text is None or len(text) < 256 or tiles.devices is None or not np.array_equal(devices, tiles.devices):
        return None
    digits = len(devices) + sum(int(np.count_nonzero(devices >= 10**k)) for k in range(1, 19))
    return text if len(text) == digits + len(devices) - 1 and int(devices.min()) >= 0 else None


def _of_list(tiles: Tiles, devices: Ints, *, from_iota: bool) -> Sharding:
    flat, dims, kinds = arranged(tiles, devices)
    text = None
    if from_iota:
        from shardpass.sharding.ill_formed import iota_form

        text = iota_form(tiles)  # XLA groups what it can without listing the devices
    text = text or list_form(tiles, flat, dims, kinds)
    n = devices.size
    place = np.empty(n, dtype=np.int64)
    place[flat] = np.arange(n)
    form = dg.digits_of(place, n)
    if form is not None:
        canonical = Tiles(dims, None, *dg.shape_and_perm(form), tuple(kinds))
        parts = _parts(canonical, form)
        if parts is not None:
            found = _of_parts(canonical, parts)
            return found.replaced(notes=replace(found.notes, text=text))
    mesh = Mesh(((f"axis_{k}", size) for k, size in enumerate(dims) if size > 1), flat)
    refs = [(AxisRef(f"axis_{k}"),) if size > 1 else () for k, size in enumerate(dims)]
    rank = len(tiles.data)
    return _sharding(mesh, tuple(refs[:rank]), dict(zip(kinds, refs[rank:], strict=True)), text)
