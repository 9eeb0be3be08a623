"""Shardings as ``mhlo.sharding`` text, the way XLA prints them.

The tile assignment is the grid of devices: one dimension for each dimension of the array, then one for each
subgroup (manual, unreduced, replicated, in this order). It prints as an iota (V2) where the device order is one,
else as a list (V1), in which copies stand in ascending order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardpass.sharding import digits as dg
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind


def text_of(sharding: Sharding) -> str:
    notes = sharding.notes
    if notes.text is not None:
        return notes.text
    return "{" + body(sharding) + group_text(notes.group) + "}"


def with_metadata(sharding: Sharding) -> str:
    """The text with ``metadata={..}``, which XLA keeps and does not print by itself."""
    entries, text = sharding.notes.metadata, str(sharding)
    if not entries and sharding.reduction != "sum" and not sharding.notes.named:
        entries = (f'op_type="sdy::reduction_op" op_name="{sharding.reduction.upper()}"',)
    if not entries:
        return text
    if sharding.notes.named:
        return f"{text[:-1]}, metadata={{{', '.join('{' + entry + '}' for entry in entries)}}}}}"
    shown = entries[0] if len(entries) == 1 else ", ".join("{" + entry + "}" for entry in entries)
    return f"{text[:-1]} metadata={{{shown}}}}}"


def group_text(group: tuple[str, int] | None) -> str:
    return f" {group[0]} {group[1]}" if group else ""


def body(sharding: Sharding) -> str:
    if sharding.kind is Kind.MAXIMAL:
        return f"maximal device={sharding.device}"
    if sharding.kind is not Kind.TILED:
        return str(sharding.kind)
    for kind in (Kind.REPLICATED, Kind.MANUAL, Kind.UNREDUCED):
        if getattr(sharding, f"is_{kind}"):
            return str(kind)
    mesh = sharding.mesh
    assert mesh is not None
    grid, kinds = grid_of(sharding)
    counts = ",".join(str(dg.total(part)) for part in grid)
    return f"devices=[{counts}]{_devices(mesh, grid, kinds)}{types_text(kinds)}"


def grid_of(sharding: Sharding) -> tuple[list[list[Digit]], list[str]]:
    """The digits of each dimension of the grid, and the kinds of its subgroups, which stand last."""
    mesh = sharding.mesh
    assert mesh is not None
    grid = [[mesh.digit(a) for a in axes] for axes in sharding.dims]
    kinds = []
    for kind, axes in (
        ("maximal", sharding.maximal_axes), ("manual", sharding.manual), ("unreduced", sharding.unreduced),
    ):  # fmt: skip
        if axes:
            grid.append([mesh.digit(a) for a in axes])
            kinds.append(kind)
    rest = list(dg.missing([d for part in grid for d in part], mesh.size))
    if rest:
        grid.append(rest)
        kinds.append("replicated")
    return grid, kinds


def assignment(sharding: Sharding) -> tuple[tuple[int, ...], Ints]:
    """The grid of devices: its dimensions, and the devices in row-major order."""
    mesh = sharding.mesh
    assert mesh is not None
    grid, kinds = grid_of(sharding)
    return tuple(dg.total(part) for part in grid), _listed(mesh, grid, kinds)


def types_text(types: Sequence[str]) -> str:
    if not types:
        return ""
    if list(types) == ["replicated"]:
        return " last_tile_dim_replicate"
    return f" last_tile_dims={{{', '.join(types)}}}"


def _listed(mesh: Mesh, grid: Sequence[Sequence[Digit]], kinds: Sequence[str]) -> Ints:
    listed: Ints = np.empty(mesh.size, dtype=np.int64)
    listed[dg.values([digit for part in grid for digit in part], mesh.size)] = mesh.order
    if kinds and kinds[-1] == "replicated":
        listed = np.sort(listed.reshape(-1, dg.total(grid[-1])), axis=1).reshape(-1)
    return listed


def _devices(mesh: Mesh, grid: Sequence[Sequence[Digit]], kinds: Sequence[str]) -> str:
    if mesh.is_iota:
        return "<=" + dg.iota_text(digit for part in grid for digit in part)
    listed = _listed(mesh, grid, kinds)
    place = np.empty(mesh.size, dtype=np.int64)
    place[listed] = np.arange(mesh.size)
    form = dg.digits_of(place, mesh.size)
    return list_text(listed) if form is None else "<=" + dg.iota_text(form)


def list_text(devices: Ints) -> str:
    return ",".join(map(str, devices.tolist()))
