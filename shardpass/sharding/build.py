"""From the parse tree to shardings: XLA's rules for what the attributes of a text mean together.

The rules, in XLA's order: replicated beats maximal beats manual beats unknown beats unreduced beats tiles. Tiles
need a device list of at least two, or an iota. ``strict`` adds the checks that XLA leaves to later stages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from lark import Token
from lark import Tree as LarkTree

from shardpass.diagnostics import Code, Diagnostic
from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.digits import Ints
from shardpass.sharding.errors import ShardingParseError, fault
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.mhlo_text import group_text
from shardpass.sharding.model import Kind, Notes, Sharding, TupleSharding
from shardpass.sharding.tiles import Tiles, normal_form, without_meaning

Tree = LarkTree[Token]
_BIG = 1 << 63


@dataclass(slots=True)
class Items:
    """The attributes of one leaf as they were read; a later one replaces an earlier one, as in XLA."""

    kinds: set[str] = field(default_factory=set)
    tile_dims: tuple[int, ...] = ()
    devices: Ints | None = None
    iota: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    replicate_last: bool = False
    types: tuple[str, ...] = ()
    group: tuple[str, int] | None = None
    metadata: tuple[str, ...] = ()
    at: int = 0
    at_devices: int = 0
    at_iota: int = 0
    end: int = 0


def sharding_of(text: str, tree: Tree, strict: bool) -> Sharding | TupleSharding:
    if tree.data == "several":
        (several,) = tree.children
        return TupleSharding(_leaf(text, child, strict, False) for child in _trees(several))
    leaf, *after = tree.children
    if after and not strict:
        at = _start(after[0])
        raise fault(table.SYNTAX, text, at, expected="the end", found=repr(str(after[0])), hint=_AFTER)
    assert isinstance(leaf, LarkTree)
    return _leaf(text, leaf, strict, bool(after))


_AFTER = "write last_tile_dim_replicate before the brace: XLA does not take it after it"


def _trees(tree: Tree | Token) -> list[Tree]:
    assert isinstance(tree, LarkTree)
    return [child for child in tree.children if isinstance(child, LarkTree)]


def _start(token: Tree | Token) -> int:
    assert isinstance(token, Token)
    return token.start_pos or 0


def _leaf(text: str, tree: Tree, strict: bool, after: bool) -> Sharding:
    brace, *children = tree.children
    at = _start(brace) + 1
    first = children[0]
    assert isinstance(first, LarkTree)
    if first.data in ("named", "maximal_mesh"):
        from shardpass.sharding.named import named_of

        return named_of(text, first, strict)
    items = Items(at=at, replicate_last=after)
    for child in children:
        assert isinstance(child, LarkTree)
        _read(text, child, items)
    return _sharding(text, items, strict)


def _read(text: str, tree: Tree, items: Items) -> None:
    parts = tree.children
    match tree.data:
        case "kind":
            items.kinds.add(str(parts[0]))
        case "replicate_last":
            items.replicate_last = True
        case "device":
            items.devices = np.array([_one(text, parts[0])])
        case "listed":
            items.at_devices = _start(parts[2])
            items.tile_dims, items.devices = _tuple(text, parts[1]), ints(text, parts[2])
            items.end = items.at_devices + len(str(parts[2]).rstrip())
        case "iota":
            items.at_devices, items.at_iota = _start(parts[1]), _start(parts[3])
            items.tile_dims, items.iota = _tuple(text, parts[1]), _tuple(text, parts[3])
            items.perm = _perm(text, parts, items.iota)
        case "last_dims":
            items.types = tuple(map(str, parts[1:]))
        case "group":
            items.group = str(parts[0]), _one(text, parts[1])
        case _:
            from shardpass.sharding.metadata import metadata_of

            items.metadata = metadata_of(text, tree)


def ints(text: str, token: Tree | Token) -> Ints:
    """The integers of a token, ``1, 2,3`` or ``[1,2]``. int64.

    Raises:
        ShardingParseError: a comma or a number missing, or a number out of range.
    """
    at = _start(token)
    raw = str(token)
    if "/" in raw:
        raw = _blanked(raw)
    body = raw.strip("[]")
    if body.isdigit() and len(body) < 19:
        return np.array([int(body)])
    pieces = body.split(",")
    try:
        if max(map(len, pieces)) < 18:
            return np.array(pieces, dtype=np.int64) if len(pieces) < 64 else np.array(list(map(int, pieces)))
    except ValueError:
        pass
    offset = at + len(raw) - len(raw.lstrip("["))
    return np.array([_checked(text, piece, offset, pieces, k) for k, piece in enumerate(pieces)], dtype=np.int64)


def _blanked(raw: str) -> str:
    import re

    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: " " * len(m[0]), raw, flags=re.DOTALL)


def _checked(text: str, piece: str, offset: int, pieces: list[str], k: int) -> int:
    at = offset + sum(len(p) + 1 for p in pieces[:k])
    number = piece.strip()
    at += len(piece) - len(piece.lstrip())
    digits = number.removeprefix("-")
    if not digits.isdigit():
        if not number:
            what = repr(text[at]) if at < len(text) else "the end of the text"
            raise fault(table.SYNTAX, text, at, expected="an integer", found=what, hint="")
        raise fault(table.SYNTAX, text, at, expected="',' between integers", found=repr(number), hint="")
    value = int(number)
    if not -_BIG <= value < _BIG:
        raise fault(table.INTEGER_RANGE, text, at, len(number), value=number)
    return value


def _tuple(text: str, token: Tree | Token) -> tuple[int, ...]:
    return tuple(ints(text, token).tolist())


def _one(text: str, token: Tree | Token) -> int:
    found = ints(text, token)
    if len(found) != 1:
        at = _start(token) + str(token).index(",")
        raise fault(table.SYNTAX, text, at, expected="one integer", found="','", hint="")
    return int(found[0])


def _perm(text: str, parts: list[Tree | Token], shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(parts) == 4:
        if len(shape) > 1:
            assert isinstance(parts[3], Token)
            at = parts[3].end_pos or 0
            raise fault(
                table.SYNTAX, text, at, expected="T(..)", found=repr(text[at : at + 1]),
                hint=f"an iota of {len(shape)} dimensions needs its transpose: "
                f"T({','.join(map(str, range(len(shape))))})",
            )  # fmt: skip
        return (0,)
    if len(shape) == 1:
        raise fault(
            table.SYNTAX, text, _start(parts[4]), expected="the next attribute or '}'", found="'T('",
            hint="an iota of one dimension has no transpose",
        )  # fmt: skip
    perm = _tuple(text, parts[5])
    for p in perm:
        if not 0 <= p < len(shape):
            raise fault(table.TRANSPOSE, text, _start(parts[5]), perm=",".join(map(str, perm)), last=len(shape) - 1)
    if len(perm) != len(shape):
        raise fault(table.TRANSPOSE_RANK, text, _start(parts[5]), reshape=len(shape), perm=len(perm))
    return perm


def _contradiction(text: str, items: Items, message: str, hint: str) -> ShardingParseError:
    return fault(table.CONTRADICTION, text, items.at, message=message, hint=hint)


def _sharding(text: str, items: Items, strict: bool) -> Sharding:
    notes = Notes(group=items.group, metadata=items.metadata)
    listed = items.devices is not None
    for kind in ("replicated", "maximal", "manual", "unknown", "unreduced"):
        if kind not in items.kinds:
            continue
        if kind == "maximal":
            return _maximal(text, items, notes)
        if kind != "replicated" and listed:
            raise _contradiction(text, items, f"{{{kind}}} names no devices", f"leave out either {kind} or the devices")
        return Sharding(Kind(kind), notes=notes)
    if not items.tile_dims:
        raise _contradiction(
            text, items, "the sharding has no tile counts", "write replicated, or devices=[..] with the devices"
        )
    if items.replicate_last and items.types:
        raise _contradiction(
            text, items, "last_tile_dim_replicate and last_tile_dims are both given",
            "write last_tile_dims={.., replicated}",
        )  # fmt: skip
    if items.replicate_last:
        items.types = ("replicated",)
    if items.iota and listed:
        raise _contradiction(text, items, "the devices are given twice", "leave out device=")
    if not items.iota and (items.devices is None or len(items.devices) < 2):
        raise _contradiction(
            text, items, "a tiled sharding needs more than one device", "write {maximal device=N} for one device"
        )
    return _tiled(text, items, strict, notes)


def _maximal(text: str, items: Items, notes: Notes) -> Sharding:
    if items.devices is None or len(items.devices) != 1:
        raise _contradiction(
            text, items, f"maximal needs one device, and has {0 if items.devices is None else len(items.devices)}",
            "write {maximal device=N}",
        )  # fmt: skip
    device = int(items.devices[0])
    return Sharding.maximal(device) if notes == Notes() else Sharding(Kind.MAXIMAL, device=device, notes=notes)


def _tiled(text: str, items: Items, strict: bool, notes: Notes) -> Sharding:
    problem = next(iter(_problems(text, items)), None)
    if problem is not None:
        if strict:
            raise problem
        return without_meaning(_tiles(items), notes, problem.diagnostics)
    found = normal_form(_tiles(items))
    if notes == Notes():
        return found
    body = str(found)[:-1] + group_text(notes.group) + "}"
    notes = replace(notes, text=body)
    return Sharding(
        found.kind, found.mesh, found.dims, unreduced=found.unreduced, manual=found.manual,
        maximal_axes=found.maximal_axes, notes=notes,
    )  # fmt: skip


def _tiles(items: Items) -> Tiles:
    return Tiles(items.tile_dims, items.devices, items.iota, items.perm, items.types)


def _problems(text: str, items: Items) -> list[ShardingParseError]:
    """What XLA's parser lets through although the tile assignment has no meaning."""
    out = []
    for k, count in enumerate(items.tile_dims):
        if count < 1:
            out.append(fault(table.TILE_COUNT, text, items.at_devices, count=count, dimension=k))
    tiles = math.prod(items.tile_dims)
    if items.iota:
        for size in items.iota:
            if size < 1:
                out.append(fault(table.RESHAPE_SIZE, text, items.at_iota, size=size))
        if sorted(items.perm) != list(range(len(items.iota))):
            perm = ",".join(map(str, items.perm))
            out.append(fault(table.TRANSPOSE, text, items.at_iota, perm=perm, last=len(items.iota) - 1))
        devices = math.prod(items.iota)
        if devices != tiles and not out:
            hint = _count_hint(tiles, devices)
            out.append(fault(table.IOTA_SIZE, text, items.at_iota, tiles=tiles, devices=devices, hint=hint))
        return out
    assert items.devices is not None
    count = len(items.devices)
    if count != tiles and not out:
        hint = _count_hint(tiles, count)
        out.append(fault(table.DEVICE_COUNT, text, items.at_devices, tiles=tiles, devices=count, hint=hint))
    if not out:
        out += _id_problems(text, items, items.devices)
    return out


def _count_hint(tiles: int, devices: int) -> str:
    if devices and tiles and devices % tiles == 0:
        return f"list {tiles} devices, or add a tile dimension of {devices // tiles} and last_tile_dim_replicate"
    return f"list {tiles} devices, or choose tile counts that multiply to {devices}"


def _id_problems(text: str, items: Items, devices: Ints) -> list[ShardingParseError]:
    n = len(devices)
    low, high = int(devices.min()), int(devices.max())
    if low == 0 and high == n - 1:
        times = np.bincount(devices, minlength=n)
        if times.max() == 1:
            return []
    unique, times = np.unique(devices, return_counts=True)
    out = []
    if times.max() > 1:
        device = int(unique[np.argmax(times > 1)])
        places = np.flatnonzero(devices == device)
        at = _offset(text, items.at_devices, int(places[1]))
        length = len(str(device))
        out.append(
            fault(table.DUPLICATE_DEVICE, text, at, length, device=device, times=int(times[unique == device][0]))
        )
    outside = np.flatnonzero((devices < 0) | (devices >= n))
    if len(outside):
        extra = int(devices[outside[0]])
        gap = int(np.setdiff1d(np.arange(n), unique)[0])
        at = _offset(text, items.at_devices, int(outside[0]))
        out.append(
            fault(
                table.DEVICE_IDS,
                text,
                at,
                len(str(extra)),
                count=n,
                last=n - 1,
                missing=f"device {gap}",
                extra=f"device {extra}",
            )
        )
    return out


def _offset(text: str, start: int, index: int) -> int:
    """Where the integer ``index`` of the list at ``start`` begins."""
    at = start
    for _ in range(index):
        at = text.index(",", at) + 1
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def mesh_of(text: str, tree: Tree | Token) -> Mesh:
    from shardpass.sharding.named import mesh_of_tree

    assert isinstance(tree, LarkTree)
    return mesh_of_tree(text, tree)


__all__ = ["Code", "Diagnostic", "Tree", "mesh_of", "sharding_of"]
