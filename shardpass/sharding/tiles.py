"""Tile assignments as the V1 and V2 texts give them, and the normal form that XLA makes of them.

XLA puts subgroups in the order manual, unreduced, replicated, makes equal ones one, drops those of size 1, and
sorts the devices that hold copies. Where an iota can say the outcome it stays an iota; where the cut points of
the tile counts do not nest with those of the iota it becomes a list. A list stays a list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from shardpass.diagnostics import Diagnostic
from shardpass.sharding import digits as dg
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import AxisRef, Mesh, named
from shardpass.sharding.mhlo_text import group_text, list_text, types_text
from shardpass.sharding.model import REPLICATED, Axes, Kind, Notes, Sharding

ORDER = {"maximal": 0, "manual": 1, "unreduced": 2, "replicated": 3}


@dataclass(frozen=True, slots=True)
class Tiles:
    """``dims`` counts the grid, subgroups included; the devices are a list, or an iota with its transpose."""

    dims: tuple[int, ...]
    devices: Ints | None
    iota: tuple[int, ...]
    perm: tuple[int, ...]
    types: tuple[str, ...]


def normal_form(tiles: Tiles) -> Sharding:
    """The sharding of a well-formed tile assignment, with XLA's canonical text."""
    data = len(tiles.dims) - len(tiles.types)
    digits = None if tiles.devices is not None else dg.iota(tiles.iota, tiles.perm)
    if digits is not None and (found := _nested(tiles, digits, data)) is not None:
        return found
    return _of_list(tiles, _listed(tiles, digits), data, digits)


def _listed(tiles: Tiles, digits: tuple[Digit, ...] | None) -> Ints:
    if digits is None:
        assert tiles.devices is not None
        return tiles.devices
    n = math.prod(tiles.dims)
    out = np.empty(n, dtype=np.int64)
    out[dg.values(digits, n)] = np.arange(n)
    return out


def _group_order(types: tuple[str, ...], data: int, counts: tuple[int, ...]) -> list[tuple[str, list[int]]]:
    """The subgroups in canonical order, each with the grid dimensions that it is made of."""
    groups: dict[str, list[int]] = {}
    for k, kind in enumerate(types):
        if counts[data + k] > 1:
            groups.setdefault(kind, []).append(data + k)
    return sorted(groups.items(), key=lambda group: ORDER[group[0]])


def _nested(tiles: Tiles, digits: tuple[Digit, ...], data: int) -> Sharding | None:
    """The sharding of an iota whose cut points nest with the tile counts."""
    left = list(digits)
    parts: list[tuple[Digit, ...]] = []
    for count in tiles.dims:
        part = dg.take(left, count)
        if part is None:
            return None
        parts.append(part)
    n = math.prod(tiles.dims)
    groups = {
        kind: dg.merge(d for k in ks for d in parts[k]) for kind, ks in _group_order(tiles.types, data, tiles.dims)
    }
    if "replicated" in groups:
        groups["replicated"] = dg.merge(sorted(groups["replicated"], reverse=True))
    text = _text(tiles.dims[:data], groups, [d for p in parts[:data] for d in p], n)
    return _on_iota(n, parts[:data], groups, text)


def _text(data: tuple[int, ...], groups: dict[str, tuple[Digit, ...]], digits: list[Digit], n: int) -> str:
    if (whole := _whole(data, list(groups), n)) is not None:
        return whole
    counts = [*data, *(dg.total(part) for part in groups.values())]
    flat = [*digits, *(d for part in groups.values() for d in part)]
    return f"{{devices=[{','.join(map(str, counts))}]<={dg.iota_text(flat)}{types_text(list(groups))}}}"


def _whole(data: tuple[int, ...], kinds: list[str], n: int) -> str | None:
    if n > 1 and len(kinds) == 1 and math.prod(data) == 1 and kinds[0] != "maximal":
        return f"{{{kinds[0]}}}"
    return None


def _on_iota(n: int, dims: list[tuple[Digit, ...]], groups: dict[str, tuple[Digit, ...]], text: str) -> Sharding:
    used = [d for part in (*dims, *groups.values()) for d in part]
    axes = sorted({*used, *dg.missing(used, n)}, reverse=True)
    mesh = Mesh(named(axes))
    name = {digit: AxisRef(f"axis_{k}") for k, digit in enumerate(axes)}

    def say(part: tuple[Digit, ...]) -> Axes:
        return tuple(name[d] for d in part)

    in_order = {kind: say(part) for kind, part in groups.items()}
    return Sharding(
        Kind.TILED, mesh, tuple(map(say, dims)), manual=in_order.get("manual", ()),
        unreduced=in_order.get("unreduced", ()), maximal_axes=in_order.get("maximal", ()), notes=Notes(text=text),
    )  # fmt: skip


def _of_list(tiles: Tiles, devices: Ints, data: int, iota: tuple[Digit, ...] | None) -> Sharding:
    grid = devices.reshape(tiles.dims)
    order = _group_order(tiles.types, data, tiles.dims)
    moved = [*range(data), *(k for _, ks in order for k in ks)]
    rest = [k for k in range(grid.ndim) if k not in moved]  # of size 1
    counts = [math.prod(tiles.dims[k] for k in ks) for _, ks in order]
    grid = grid.transpose([*moved, *rest]).reshape(*tiles.dims[:data], *counts)
    kinds = [kind for kind, _ in order]
    if kinds and kinds[-1] == "replicated":
        grid = np.sort(grid, axis=-1)
    n = devices.size
    flat = grid.reshape(-1)
    text = _whole(tiles.dims[:data], kinds, n)
    if text is None:
        head = ",".join(map(str, grid.shape))
        same = iota is not None and np.array_equal(flat, devices) and not kinds
        listed = "<=" + dg.iota_text(iota) if same and iota is not None else list_text(flat)
        text = f"{{devices=[{head}]{listed}{types_text(kinds)}}}"
    place = np.empty(n, dtype=np.int64)
    place[flat] = np.arange(n)
    form = dg.digits_of(place, n)
    if form is not None:
        found = _nested(Tiles(grid.shape, None, *_shape_and_perm(form), tuple(kinds)), form, data)
        if found is not None:
            return _with_text(found, text)
    mesh = Mesh(((f"axis_{k}", size) for k, size in enumerate(grid.shape) if size > 1), flat)
    refs = {k: (AxisRef(f"axis_{k}"),) if size > 1 else () for k, size in enumerate(grid.shape)}
    by_kind = {kind: refs[data + k] for k, kind in enumerate(kinds)}
    return Sharding(
        Kind.TILED, mesh, tuple(refs[k] for k in range(data)), manual=by_kind.get("manual", ()),
        unreduced=by_kind.get("unreduced", ()), maximal_axes=by_kind.get("maximal", ()), notes=Notes(text=text),
    )  # fmt: skip


def _shape_and_perm(form: tuple[Digit, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    order = sorted(range(len(form)), key=lambda k: -form[k][0])
    rank = {k: place for place, k in enumerate(order)}
    return tuple(form[k][1] for k in order), tuple(rank[k] for k in range(len(form)))


def _with_text(sharding: Sharding, text: str) -> Sharding:
    return Sharding(
        sharding.kind, sharding.mesh, sharding.dims, unreduced=sharding.unreduced, manual=sharding.manual,
        maximal_axes=sharding.maximal_axes, notes=replace(sharding.notes, text=text),
    )  # fmt: skip


def without_meaning(tiles: Tiles, notes: Notes, problems: tuple[Diagnostic, ...]) -> Sharding:
    """What XLA's parser makes of a tile assignment that is not well formed: it prints, and says why it is not."""
    size = math.prod(tiles.dims)
    if tiles.devices is not None:
        filled = np.zeros(max(size, 0), dtype=np.int64)
        count = min(len(tiles.devices), len(filled))
        filled[:count] = tiles.devices[:count]
        text = f"{{devices=[{','.join(map(str, tiles.dims))}]{list_text(filled)}"
    else:
        form = (
            dg.iota_text(dg.iota(tiles.iota, tiles.perm)) if sorted(tiles.perm) == list(range(len(tiles.perm))) else ""
        )
        text = f"{{devices=[{','.join(map(str, tiles.dims))}]<={form}"
    text += types_text(list(tiles.types)) + group_text(notes.group) + "}"
    return Sharding(Kind.TILED, notes=replace(notes, text=text, problems=problems, tiles=tiles.dims))


__all__ = ["REPLICATED", "Tiles", "normal_form", "without_meaning"]
