"""From the parse tree to shardings: XLA's rules for what the attributes of a text mean together.

The rules, in XLA's order: replicated beats maximal beats manual beats unknown beats unreduced beats tiles. Tiles
need a device list of at least two, or an iota. Repeated lists are joined; a later ``device=`` replaces the list.
Strict reading adds the checks of ``checks``, which XLA leaves to later stages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.checks import problems_of
from shardpass.sharding.digits import Ints
from shardpass.sharding.ill_formed import without_meaning
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.metadata import RULES, metadata_of, reduction_of
from shardpass.sharding.mhlo_text import group_text
from shardpass.sharding.model import Sharding
from shardpass.sharding.named import mesh_of_tree, named_of
from shardpass.sharding.notes import PLAIN, Kind, Notes
from shardpass.sharding.source import Node, Source, trees
from shardpass.sharding.tiles import LARGEST_LIST, Tiles, normal_form
from shardpass.sharding.tuples import TupleSharding

_AFTER = "write last_tile_dim_replicate before the brace: XLA does not take it after it"


@dataclass(slots=True)
class Items:
    """The attributes of one leaf as they were read, and where."""

    kinds: set[str] = field(default_factory=set)
    tile_dims: tuple[int, ...] = ()
    devices: Ints | None = None
    listed: str | None = None
    iota: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    replicate_last: bool = False
    types: tuple[str, ...] = ()
    group: tuple[str, int] | None = None
    metadata: tuple[str, ...] = ()
    at: int = 0
    at_dims: int = 0
    at_devices: int = 0


def sharding_of(text: str, tree: Node, strict: bool) -> Sharding | TupleSharding:
    source = Source(text, strict)
    if tree.data == "several":
        (several,) = tree.children
        return TupleSharding(_leaf(source, child, after=False) for child in trees(several))
    leaf, *after = tree.children
    if after and not strict:
        found = repr(str(after[0]))
        raise source.fault(table.SYNTAX, after[0].start_pos, expected="the end", found=found, hint=_AFTER)
    return _leaf(source, leaf, after=bool(after))


def plain_iota(dims: str, iota: str, perm: str | None, replicate_last: str | None) -> Sharding | None:
    """The sharding of the numbers of an iota form; None where anything about them is amiss."""
    counts, shape = tuple(map(int, dims.split(","))), tuple(map(int, iota.split(",")))
    order = tuple(map(int, perm.split(","))) if perm is not None else (0,)
    types = ("replicated",) if replicate_last else ()
    if (len(shape) == 1) != (perm is None) or sorted(order) != list(range(len(shape))):
        return None
    places = math.prod(counts)
    if not 0 < places == math.prod(shape) <= LARGEST_LIST:
        return None
    return normal_form(Tiles(counts, None, shape, order, types))


def mesh_of(text: str, tree: Node) -> Mesh:
    return mesh_of_tree(Source(text, True), tree)


def _leaf(source: Source, tree: Node, *, after: bool) -> Sharding:
    brace, *children = tree.children
    if children[0].data in ("named", "maximal_mesh"):
        if after:
            raise source.contradiction(brace.start_pos, "a named sharding has no tile dimensions to replicate")
        return named_of(source, children[0])
    items = Items(at=brace.start_pos + 1, replicate_last=after)
    for child in children:
        _read(source, child, items)
    return _sharding(source, items)


def _read(source: Source, tree: Node, items: Items) -> None:
    parts = tree.children
    match tree.data:
        case "kind":
            items.kinds.add(str(parts[0]))
        case "replicate_last":
            items.replicate_last = True
        case "device":
            items.devices, items.listed = np.array([source.one(parts[1])]), None
        case "listed":
            items.at_dims, items.at_devices = parts[1].start_pos + 1, parts[2].start_pos
            items.tile_dims += source.tuple(parts[1])
            listed = source.ints(parts[2])
            items.listed = str(parts[2]).rstrip() if items.devices is None else None
            items.devices = listed if items.devices is None else np.concatenate([items.devices, listed])
        case "iota":
            items.at_dims, items.at_devices = parts[1].start_pos + 1, parts[3].start_pos + 1
            items.tile_dims += source.tuple(parts[1])
            items.iota += source.tuple(parts[3])
            items.perm += _perm(source, parts, items.iota)
        case "last_dims":
            items.types += tuple(map(str, parts[1:]))
        case "group":
            items.group = _group(items.group, str(parts[0]), source.one(parts[1]))
        case rule:
            assert rule in RULES
            items.metadata += metadata_of(source, tree)


def _group(before: tuple[str, int] | None, word: str, number: int) -> tuple[str, int]:
    """The last number counts, and shard_as beats shard_like, as in XLA."""
    return ("shard_as", number) if before and before[0] == "shard_as" else (word, number)


def _perm(source: Source, parts: list[Node], shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(parts) == 4:
        if len(shape) > 1:
            every = ",".join(map(str, range(len(shape))))
            at = parts[3].end_pos
            raise source.fault(
                table.SYNTAX, at, expected="T(..)", found=repr(source.text[at : at + 1]),
                hint=f"name the order of the iota's {len(shape)} dimensions: T({every})",
            )  # fmt: skip
        return (0,)
    if len(shape) == 1:
        raise source.fault(
            table.SYNTAX, parts[4].start_pos, expected="the next attribute or '}'", found="'T'",
            hint="remove the transpose: an iota of one dimension has none",
        )  # fmt: skip
    perm = source.tuple(parts[5])
    if any(not 0 <= p < len(shape) for p in perm):
        shown = ",".join(map(str, perm))
        raise source.fault(table.TRANSPOSE, parts[5].start_pos, len(shown), perm=shown, last=len(shape) - 1)
    return perm


def _sharding(source: Source, items: Items) -> Sharding:
    notes = PLAIN
    if items.group or items.metadata:
        notes = Notes(group=items.group, metadata=items.metadata)
    for kind in ("replicated", "maximal", "manual", "unknown", "unreduced"):
        if kind in items.kinds:
            return _without_tiles(source, items, notes, kind)
    if not items.tile_dims:
        raise source.contradiction(
            items.at, "the sharding has no tile counts", "write replicated, or devices=[..] with the devices"
        )
    if len(items.iota) != len(items.perm):
        raise source.fault(table.TRANSPOSE_RANK, items.at_devices, reshape=len(items.iota), perm=len(items.perm))
    if items.replicate_last:
        if items.types:
            hint = f"write last_tile_dims={{{', '.join((*items.types, 'replicated'))}}}"
            raise source.contradiction(items.at, "last_tile_dim_replicate and last_tile_dims are both given", hint)
        items.types = ("replicated",)
    if items.iota and items.devices is not None:
        raise source.contradiction(items.at, "the devices are given twice", "leave out either the iota or the list")
    if not items.iota and (items.devices is None or len(items.devices) < 2):
        raise source.contradiction(
            items.at, "a tiled sharding needs more than one device", "write {maximal device=N} for one device"
        )
    if len(items.types) > len(items.tile_dims):
        whole = len(set(items.types)) == 1 and items.types[0] != "maximal" and set(items.tile_dims) == {1}
        if source.strict or not whole:  # XLA prints the one and dies on the others
            raise source.contradiction(
                items.at_dims,
                f"last_tile_dims names {len(items.types)} subgroups of {len(items.tile_dims)} tile dimensions",
                "name at most one subgroup for each dimension of devices=[..]",
            )  # fmt: skip
        items.types = items.types[: len(items.tile_dims)]
    return _tiled(source, items, notes)


def _without_tiles(source: Source, items: Items, notes: Notes, kind: str) -> Sharding:
    devices = 0 if items.devices is None else len(items.devices)
    if kind == "maximal":
        if items.devices is None or devices != 1:
            raise source.contradiction(
                items.at, f"maximal needs one device, and has {devices}", "write {maximal device=N}"
            )
        device = int(items.devices[0])
        return Sharding.maximal(device) if notes is PLAIN else Sharding(Kind.MAXIMAL, device=device, notes=notes)
    if devices:
        raise source.contradiction(items.at, f"{{{kind}}} names no devices", f"leave out either {kind} or the devices")
    return Sharding(Kind(kind), reduction=reduction_of(items.metadata), notes=notes)


def _tiled(source: Source, items: Items, notes: Notes) -> Sharding:
    tiles = Tiles(items.tile_dims, items.devices, items.iota, items.perm, items.types, items.listed)
    problems = problems_of(source, tiles, items.at_dims, items.at_devices)
    if problems:
        if source.strict:
            raise problems[0]
        made = without_meaning(tiles)
        if made is None:
            raise problems[0]
        return _noted(made, replace(notes, problems=problems[0].diagnostics))
    found = normal_form(tiles)
    return found if notes is PLAIN else _noted(found, notes)


def _noted(plain: Sharding, notes: Notes) -> Sharding:
    text = str(plain)[:-1] + group_text(notes.group) + "}"
    notes = replace(notes, text=text, tiles=plain.notes.tiles, listed=plain.notes.listed)
    return plain.replaced(notes=notes, reduction=reduction_of(notes.metadata))
