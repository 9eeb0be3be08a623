"""Tile assignments in V1 and V2 texts, and the order into which XLA brings their subgroups.

XLA sorts the subgroups of a tile assignment (maximal, manual, unreduced, replicated), makes equal ones one, drops those
of size 1, and sorts the devices that hold copies (HloSharding::Subgroup). Example: ``[2,2,2]0,1,2,3,4,5,6,7
last_tile_dims={replicated, manual}`` becomes ``[2,2,2]0,2,1,3,4,6,5,7 last_tile_dims={manual, replicated}``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.sharding.digits import Ints
from shardpass.sharding.notes import Kind
from shardpass.sharding.xla_text import list_text, tiles_text

ORDER = (Kind.MAXIMAL, Kind.MANUAL, Kind.UNREDUCED, Kind.REPLICATED)  # of subgroups
LARGEST_LIST = 1 << 20  # devices that are listed one by one; an iota that nests may have any number


@dataclass(frozen=True, slots=True)
class WrittenTiles:
    """A tile assignment in its textual form.

    Attributes:
        dims: the dimensions of the grid, subgroups last.
        devices: the listed devices (V1); None for an iota (V2).
        iota: the shape of the iota.
        perm: the transpose of the iota.
        kinds: of the subgroups.
        listed: the text of the list where it is known: printing 65,536 numbers takes longer than reading them.
    """

    dims: tuple[int, ...]
    devices: Ints | None
    iota: tuple[int, ...]
    perm: tuple[int, ...]
    kinds: tuple[Kind, ...]
    listed: str | None = None

    @property
    def data(self) -> tuple[int, ...]:
        """The tile counts of the array's own dimensions."""
        return self.dims[: len(self.dims) - len(self.kinds)]

    @property
    def size(self) -> int:
        """The number of places in the grid."""
        return math.prod(self.dims)


def subgroups_of(tiles: WrittenTiles) -> list[tuple[Kind, list[int]]]:
    """Return the subgroups in XLA's order, each with its dimensions of the grid."""
    dims_of: dict[Kind, list[int]] = {}
    for k, kind in enumerate(tiles.kinds, len(tiles.data)):
        if tiles.dims[k] != 1:
            dims_of.setdefault(kind, []).append(k)
    return sorted(dims_of.items(), key=lambda group: ORDER.index(group[0]))


def arranged(tiles: WrittenTiles, devices: Ints) -> tuple[Ints, tuple[int, ...], list[Kind]]:
    """Return devices, row-major with subgroups in XLA's order; the grid's dimensions; and the subgroups' kinds."""
    rank, groups = len(tiles.data), subgroups_of(tiles)
    order = [*range(rank), *(k for _, ks in groups for k in ks)]
    counts = tuple(math.prod(tiles.dims[k] for k in ks) for _, ks in groups)
    kinds = [kind for kind, _ in groups]
    solid = [k for k, size in enumerate(tiles.dims) if size != 1]
    if devices.size:
        place = {k: at for at, k in enumerate(solid)}
        grid = devices.reshape([tiles.dims[k] for k in solid])  # NumPy has no more than 64 dimensions
        devices = grid.transpose([place[k] for k in order if k in place]).reshape(-1)
        if kinds[-1:] == [Kind.REPLICATED]:
            devices = np.sort(devices.reshape(-1, counts[-1]), axis=1).reshape(-1)
    return devices, (*tiles.data, *counts), kinds


def one_word_text(tiles: WrittenTiles, kinds: Sequence[Kind]) -> str | None:
    """Return ``{replicated}``, ``{manual}`` or ``{unreduced}`` if one word expresses the sharding, else None.

    ``kinds`` are those of the subgroups in XLA's order.
    """
    if math.prod(tiles.data) == 1 and tiles.kinds:
        if len(set(tiles.kinds)) == 1 and tiles.kinds[0] is not Kind.MAXIMAL:
            return f"{{{tiles.kinds[0]}}}"
        if list(kinds) in ([Kind.MANUAL], [Kind.REPLICATED]):
            return f"{{{kinds[0]}}}"
    return None


def listed_text(tiles: WrittenTiles, devices: Ints, dims: tuple[int, ...], kinds: list[Kind]) -> str:
    """Format V1 text of a grid ``dims`` of ``devices`` whose last dimensions are subgroups of ``kinds``."""
    text = one_word_text(tiles, kinds)
    if text is not None:
        return text
    if (kinds[-1:] == [Kind.REPLICATED] or kinds == [Kind.MANUAL]) and dims[-1] == devices.size:
        return f"{{{kinds[-1]}}}"
    return "{" + tiles_text(dims, _text_as_read(tiles, devices) or list_text(devices), kinds) + "}"


def _text_as_read(tiles: WrittenTiles, devices: Ints) -> str | None:
    """Return the list's original text if the text is canonical and the list is unchanged."""
    text = tiles.listed
    if text is None or len(text) < 256 or tiles.devices is None or not np.array_equal(devices, tiles.devices):
        return None
    if int(devices.min()) < 0:
        return None
    longest = len(str(int(devices.max())))
    digits = len(devices) + sum(int(np.count_nonzero(devices >= 10**k)) for k in range(1, longest))
    return text if len(text) == digits + len(devices) - 1 else None  # no zero in front, no blank, no comment
