"""The attributes of one leaf of XLA's text, and XLA's rules for combining them.

Source: ParseSingleSharding of XLA (xla/hlo/parser/hlo_parser.cc). Its rules, in order:

1. ``replicated`` beats ``maximal`` beats ``manual`` beats ``unknown`` beats ``unreduced`` beats tiles.
2. Tiles need a device list of at least two devices, or an iota.
3. Repeated lists are joined; a later ``device=`` replaces the list.
4. Of several groups the last number counts, and ``shard_as`` beats ``shard_like``.

Strict reading adds the checks of ``problems``, which XLA leaves to later stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.digits import Ints
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.ill_formed import without_meaning
from shardpass.sharding.notations.metadata import RULES, metadata_of, reduction_of
from shardpass.sharding.notations.normal_form import normal_form
from shardpass.sharding.notations.problems import problems_of
from shardpass.sharding.notations.source import Source
from shardpass.sharding.notations.tiles import WrittenTiles
from shardpass.sharding.notations.trees import Node
from shardpass.sharding.notes import PLAIN, Kind, Notes
from shardpass.sharding.xla_text import comma_separated, group_text


@dataclass(slots=True)
class Attributes:
    """The parsed attributes of one leaf, with the places of some: ``at``, ``at_dims``, ``at_devices``."""

    kinds: set[Kind] = field(default_factory=set)
    tile_dims: tuple[int, ...] = ()
    devices: Ints | None = None
    listed: str | None = None
    iota: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    replicate_last: bool = False
    subgroups: tuple[Kind, ...] = ()
    group: tuple[str, int] | None = None
    metadata: tuple[str, ...] = ()
    at: int = 0
    at_dims: int = 0
    at_devices: int = 0


def attributes_of(source: Source, brace: Node, children: Sequence[Node], *, replicate_last: bool) -> Attributes:
    """Read the attributes in the parse trees ``children`` of a leaf that begins at ``brace``.

    Raises:
        ShardingParseError: an integer, a transpose or metadata is not well formed.
    """
    attributes = Attributes(at=brace.start_pos + 1, replicate_last=replicate_last)
    for child in children:
        _read(source, child, attributes)
    return attributes


def _read(source: Source, tree: Node, read: Attributes) -> None:
    parts = tree.children
    match tree.data:
        case "kind":
            read.kinds.add(Kind(parts[0]))
        case "replicate_last":
            read.replicate_last = True
        case "device":
            read.devices, read.listed = np.array([source.one(parts[1])]), None
        case "listed":
            read.at_dims, read.at_devices = parts[1].start_pos + 1, parts[2].start_pos
            read.tile_dims += source.tuple(parts[1])
            listed = source.ints(parts[2])
            read.listed = str(parts[2]).rstrip() if read.devices is None else None
            read.devices = listed if read.devices is None else np.concatenate([read.devices, listed])
        case "iota":
            read.at_dims, read.at_devices = parts[1].start_pos + 1, parts[3].start_pos + 1
            read.tile_dims += source.tuple(parts[1])
            read.iota += source.tuple(parts[3])
            read.perm += _perm(source, parts, read.iota)
        case "last_dims":
            read.subgroups += tuple(map(Kind, parts[1:]))
        case "group":
            read.group = _group(read.group, str(parts[0]), source.one(parts[1]))
        case rule:
            assert rule in RULES
            read.metadata += metadata_of(source, tree)


def _group(before: tuple[str, int] | None, word: str, number: int) -> tuple[str, int]:
    """Join two groups: the last number counts, and shard_as beats shard_like, as in XLA."""
    return ("shard_as", number) if before and before[0] == "shard_as" else (word, number)


def _perm(source: Source, parts: list[Node], shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(parts) == 4:
        if len(shape) > 1:
            every = comma_separated(range(len(shape)))
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
        shown = comma_separated(perm)
        raise source.fault(table.TRANSPOSE, parts[5].start_pos, len(shown), perm=shown, last=len(shape) - 1)
    return perm


def sharding_of_attributes(source: Source, read: Attributes) -> Sharding:
    """Make the sharding of all attributes together.

    Raises:
        ShardingParseError: they contradict each other, or (strict) have no meaning.
    """
    notes = PLAIN
    if read.group or read.metadata:
        notes = Notes(group=read.group, metadata=read.metadata)
    for kind in (Kind.REPLICATED, Kind.MAXIMAL, Kind.MANUAL, Kind.UNKNOWN, Kind.UNREDUCED):
        if kind in read.kinds:
            return _without_tiles(source, read, notes, kind)
    _check_devices(source, read)
    return _tiled(source, read, _subgroups(source, read), notes)


def _check_devices(source: Source, read: Attributes) -> None:
    """Raise ShardingParseError where tile counts or devices are missing, or given twice."""
    if not read.tile_dims:
        raise source.contradiction(
            read.at, "the sharding has no tile counts", "write replicated, or devices=[..] with the devices"
        )
    if len(read.iota) != len(read.perm):
        raise source.fault(table.TRANSPOSE_RANK, read.at_devices, reshape=len(read.iota), perm=len(read.perm))
    if read.replicate_last and read.subgroups:
        hint = f"write last_tile_dims={{{', '.join((*read.subgroups, 'replicated'))}}}"
        raise source.contradiction(read.at, "last_tile_dim_replicate and last_tile_dims are both given", hint)
    if read.iota and read.devices is not None:
        raise source.contradiction(read.at, "the devices are given twice", "leave out either the iota or the list")
    if not read.iota and (read.devices is None or len(read.devices) < 2):
        raise source.contradiction(
            read.at, "a tiled sharding needs more than one device", "write {maximal device=N} for one device"
        )


def _subgroups(source: Source, read: Attributes) -> tuple[Kind, ...]:
    """Return the kinds of the subgroups, at most as many as the tile counts."""
    kinds, rank = (Kind.REPLICATED,) if read.replicate_last else read.subgroups, len(read.tile_dims)
    if len(kinds) > rank:
        whole = len(set(kinds)) == 1 and kinds[0] is not Kind.MAXIMAL and set(read.tile_dims) == {1}
        if source.strict or not whole:  # XLA prints the one and dies on the others
            raise source.contradiction(
                read.at_dims,
                f"last_tile_dims names {len(kinds)} subgroups of {rank} tile dimensions",
                "name at most one subgroup for each dimension of devices=[..]",
            )
    return kinds[:rank]


def _without_tiles(source: Source, read: Attributes, notes: Notes, kind: Kind) -> Sharding:
    devices = 0 if read.devices is None else len(read.devices)
    if kind is Kind.MAXIMAL:
        if read.devices is None or devices != 1:
            raise source.contradiction(
                read.at, f"maximal needs one device, and has {devices}", "write {maximal device=N}"
            )
        device = int(read.devices[0])
        return Sharding.maximal(device) if notes is PLAIN else Sharding(Kind.MAXIMAL, device=device, notes=notes)
    if devices:
        raise source.contradiction(read.at, f"{{{kind}}} names no devices", f"leave out either {kind} or the devices")
    return Sharding(kind, reduction=reduction_of(read.metadata), notes=notes)


def _tiled(source: Source, read: Attributes, subgroups: tuple[Kind, ...], notes: Notes) -> Sharding:
    tiles = WrittenTiles(read.tile_dims, read.devices, read.iota, read.perm, subgroups, read.listed)
    problems = problems_of(source, tiles, read.at_dims, read.at_devices)
    if problems:
        if source.strict:
            raise problems[0]
        made = without_meaning(tiles)
        if made is None:
            raise problems[0]
        return _noted(made, replace(notes, problems=problems[0].diagnostics))
    sharding = normal_form(tiles)
    return sharding if notes is PLAIN else _noted(sharding, notes)


def _noted(plain: Sharding, notes: Notes) -> Sharding:
    """Add ``notes``, which show in the text, to ``plain``."""
    text = str(plain)[:-1] + group_text(notes.group) + "}"
    notes = replace(notes, text=text, tiles=plain.notes.tiles, listed=plain.notes.listed)
    return plain.replaced(notes=notes, reduction=reduction_of(notes.metadata))
