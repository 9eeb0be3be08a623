"""Check whether a sharding fits a value, with errors where XLA would fail or ignore the sharding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Diagnostic, Place, ShardpassError
from shardpass.diagnostics.core import Severity
from shardpass.diagnostics.table_passes import (
    BAD_SHARDING,
    DEVICE_OUT_OF_RANGE,
    RANK_MISMATCH,
    TUPLE_COUNT,
    UNEVEN,
    UNSUPPORTED_SHARDING,
    WRONG_DEVICE_COUNT,
)
from shardpass.sharding import Sharding, TupleSharding, parse_sharding


def read(text: str, place: Place = NOWHERE) -> Sharding | TupleSharding:
    """Parse a sharding. Raises ShardpassError (SP202) at ``place``, with the parser's error as a note."""
    try:
        return parse_sharding(text)
    except ShardpassError as error:
        raise at_place(error, text, place) from None


def at_place(error: ShardpassError, text: str, place: Place) -> ShardpassError:
    """Return an SP202 error at the annotation's source line, with the parser's error as a note."""
    first = error.diagnostics[0]
    why = Diagnostic(Severity.NOTE, first.code, first.message, NOWHERE, first.remedy, first.excerpt)
    return BAD_SHARDING.error(place, text=text, notes=(why,))


def read_for(text: str, types: list[Any], place: Place = NOWHERE) -> list[Sharding]:
    """Parse the shardings for ``types``: a tuple of shardings, or one sharding for one type.

    Raises ShardpassError: SP202 for text that cannot be read, SP210 where the count is wrong.
    """
    sharding = read(text, place)
    leaves = list(sharding.elements) if isinstance(sharding, TupleSharding) else [sharding]
    if len(leaves) != len(types):
        raise TUPLE_COUNT.error(place, text=text, found=len(leaves), expected=len(types))
    return leaves


def check(
    sharding: Sharding,
    kind: Any,
    devices: int,
    place: Place,
    *,
    where: str,
    source: str,
    scope: str | None = None,
) -> Iterator[Diagnostic]:
    """Yield the errors of ``sharding`` on a value of type ``kind`` in a module of ``devices`` devices.

    ``where`` names the value for people ("argument 0"), ``source`` the origin of ``devices``, ``scope`` the scope of
    the value's manual region (``program.manual_regions``).
    """
    text = str(sharding)
    if sharding.is_manual:
        yield UNSUPPORTED_SHARDING.at(
            place,
            text=text,
            what="manual",
            where=where,
            hint="give the value a tiled sharding; to write the code of one device, use shard_map",
        )
        return
    if sharding.is_unreduced or sharding.unreduced:
        yield UNSUPPORTED_SHARDING.at(
            place, text=text, what="a partial sum", where=where, hint="give the value a tiled sharding"
        )
        return
    if sharding.is_tiled and sharding.manual and scope is None:
        yield UNSUPPORTED_SHARDING.at(
            place,
            text=text,
            what="manual over some axes only",
            where=where,
            hint="remove the manual axes: values outside of manual regions have none",
        )
        return
    if sharding.is_maximal:
        device = sharding.device
        if device is not None and device >= devices:
            yield DEVICE_OUT_OF_RANGE.at(place, text=text, device=device, last=devices - 1, expected=devices)
        return
    if sharding.is_tiled and sharding.num_devices != devices:
        yield WRONG_DEVICE_COUNT.at(place, text=text, found=sharding.num_devices, expected=devices, source=source)
        return
    says_rank = sharding.is_tiled or (sharding.notes.named and sharding.dims)  # others that split nothing fit any rank
    if says_rank and isinstance(kind, ir.RankedTensorType) and len(sharding.dims) != kind.rank:
        yield RANK_MISMATCH.at(place, text=text, sharding_rank=len(sharding.dims), type=kind, rank=kind.rank)


def uneven(sharding: Sharding, kind: Any, place: Place) -> Iterator[Diagnostic]:
    """Yield remarks on dimensions that must be padded."""
    if not (sharding.is_tiled and isinstance(kind, ir.RankedTensorType)) or len(sharding.dims) != kind.rank:
        return
    counts = sharding.tile_counts(kind.rank)
    for dim, (size, count) in enumerate(zip(kind.shape, counts, strict=True)):
        if size % count and prod(kind.shape):
            tile = -(-size // count)
            padding = tile * count - size
            yield UNEVEN.at(
                place, dim=dim, type=kind, size=size, count=count, tile=tile, padding=padding,
                percent=100 * padding / (tile * count), would=words(dividing(size, count)),
            )  # fmt: skip


def dividing(size: int, count: int) -> tuple[int, ...]:
    """Return the multiples of ``count`` nearest to ``size``, without 0: 30 over 8 gives 24 and 32."""
    below = size // count * count
    return (*([below] if below else ()), below + count)


def words(sizes: Iterable[int]) -> str:
    """Format sizes as alternatives: ``24 or 32``."""
    return " or ".join(map(str, sizes))
