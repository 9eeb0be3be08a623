"""Shardings: the part of an array on each device.

State: a mesh, the axes that split each dimension (major to minor), the axes over which the value is a partial sum, and
the manual axes; over the other axes there are copies. Or one of the kinds that need no mesh: replicated, maximal (all
on one device), manual, unknown, unreduced.

Sources: HloSharding of XLA for the kinds, the subgroups and the canonical text; TensorShardingAttr of Shardy for axes
and sub-axes; the base offset map of Rink et al., section 4.1, for the meaning (``tile_offsets``).

Invariants: lists of axes are in normal form (``axes.joined``), no part of an axis is used twice, no axis has size 1.

Equality is by meaning: two shardings are equal when every device holds the same tile for every shape, of the same
partial sum, at the same manual coordinates (``meaning``). ``{replicated}`` equals any sharding that splits nothing.

Cost: building and printing are O(rank + axes) on a plain mesh; any other device order costs O(n log n) once.
Derived facts are computed when first asked for and kept, so hashing and comparing cost O(1) after the first time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding import coordinates
from shardpass.sharding import digits as dg
from shardpass.sharding.axes import Axes, check_disjoint, in_mesh_order, joined, refs
from shardpass.sharding.digits import Ints
from shardpass.sharding.grid import grid_html
from shardpass.sharding.meaning import MOST_DEVICES, Key, tiled_key
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.notes import PLAIN, Kind, Notes
from shardpass.sharding.tile_assignment import TileAssignment, tile_assignment
from shardpass.sharding.xla_text import group_text, with_metadata

_LARGE = 1 << 18  # entries; a longer table of tile indices is not kept


@dataclass(frozen=True, eq=False, repr=False)
class Sharding:
    """The sharding of one array. Immutable and hashable; shardings with the same meaning are equal.

    Create one with ``tiled``, ``replicated``, ``maximal``, ``manual_``, ``unknown`` or ``parse_sharding``.

    Attributes:
        kind: TILED for a sharding with a mesh; the other kinds need no mesh.
        mesh: the mesh of a tiled sharding; None also for text without a meaning (``notes.problems``).
        dims: for each dimension, the axes that split it, major to minor. () splits no dimension, at any rank.
        unreduced: the axes over which the value is a partial ``reduction``: sum, max or min.
        manual: the axes over which shapes are already per-device shapes.
        maximal_axes: the axes of a subgroup that XLA calls maximal.
        device: the device of a maximal sharding.
        notes: details of the notation that do not change the meaning.
    """

    kind: Kind
    mesh: Mesh | None = None
    dims: tuple[Axes, ...] = ()
    unreduced: Axes = ()
    manual: Axes = ()
    maximal_axes: Axes = ()
    device: int | None = None
    reduction: str = "sum"
    notes: Notes = PLAIN

    # ---------------------------------------------------------------- making one

    @staticmethod
    def tiled(
        mesh: Mesh,
        dims: Iterable[Iterable[AxisRef | str]],
        *,
        unreduced: Iterable[AxisRef | str] = (),
        manual: Iterable[AxisRef | str] = (),
        reduction: str = "sum",
    ) -> Sharding:
        """Create a tiled sharding. ``dims[k]`` lists the axes that split dimension k, major to minor; a name is a whole
        axis.

        Over the axes in ``unreduced`` the value is a partial ``reduction``: sum, max or min.

        Raises:
            ShardingError: if the mesh does not have an axis, or an axis is used twice.
        """
        return _tiled(mesh, tuple(map(tuple, dims)), tuple(unreduced), tuple(manual), reduction)

    @staticmethod
    def replicated() -> Sharding:
        return REPLICATED

    @staticmethod
    def maximal(device: int) -> Sharding:
        return _maximal(int(device))

    @staticmethod
    def manual_() -> Sharding:
        return MANUAL

    @staticmethod
    def unknown() -> Sharding:
        return UNKNOWN

    def replaced(self, *, notes: Notes | None = None, reduction: str | None = None) -> Sharding:
        """Return the same sharding with other notes, or with another reduction for its partial sums."""
        kept = self.notes if notes is None else notes
        return replace(self, reduction=reduction or self.reduction, notes=kept)

    # ---------------------------------------------------------------- classes of shardings

    @cached_property
    def is_replicated(self) -> bool:
        """Whether every device has the whole array."""
        if self.kind is not Kind.TILED:
            return self.kind is Kind.REPLICATED
        return self.mesh is not None and not self.used

    @property
    def is_maximal(self) -> bool:
        return self.kind is Kind.MAXIMAL

    @cached_property
    def is_manual(self) -> bool:
        """Whether the sharding is manual on all devices: shapes are already per-device shapes."""
        return self.kind is Kind.MANUAL or self._covered_by(self.manual)

    @property
    def is_unknown(self) -> bool:
        return self.kind is Kind.UNKNOWN

    @cached_property
    def is_unreduced(self) -> bool:
        """Whether the value is a partial sum over all devices, and not split."""
        return self.kind is Kind.UNREDUCED or self._covered_by(self.unreduced)

    @cached_property
    def is_tiled(self) -> bool:
        """Whether the sharding is neither replicated, maximal, manual, unknown nor unreduced as a whole."""
        return self.kind is Kind.TILED and not (self.is_replicated or self.is_manual or self.is_unreduced)

    @property
    def _simplest(self) -> Kind:
        """Return the simplest equivalent kind: a tiled sharding may be replicated, manual or unreduced as a whole."""
        if self.is_replicated:
            return Kind.REPLICATED
        if self.is_manual:
            return Kind.MANUAL
        return Kind.UNREDUCED if self.is_unreduced else self.kind

    def _covered_by(self, axes: Axes) -> bool:
        """Return whether ``axes`` span the mesh and no dimension is split."""
        mesh = self.mesh
        if mesh is None or not axes or any(self.dims):
            return False
        return math.prod(map(mesh.ref_size, axes)) == mesh.size

    @property
    def num_devices(self) -> int | None:
        """The number of devices; None if the sharding leaves it open."""
        return None if self.mesh is None else self.mesh.size

    @cached_property
    def used(self) -> Axes:
        """Every axis that is not replicated."""
        return (*(a for axes in self.dims for a in axes), *self.manual, *self.unreduced, *self.maximal_axes)

    @cached_property
    def replicated_axes(self) -> Axes:
        """The axes, and parts of axes, over which there are copies, in mesh order."""
        if self.mesh is None:
            return ()
        rest = dg.missing(map(self.mesh.digit, self.used), self.mesh.size)
        replicated = refs(self.mesh, rest)
        assert replicated is not None  # the rest of an axis is a part of it
        return replicated

    # ---------------------------------------------------------------- tiles

    @cached_property
    def _counts(self) -> tuple[int, ...] | None:
        """The tile counts of the named dimensions; None if no dimension is split, at any rank."""
        self._need_meaning()
        if self.kind is not Kind.TILED or not self.dims or self.is_replicated:
            return None
        assert self.mesh is not None
        size = self.mesh.ref_size
        return tuple(math.prod(map(size, axes)) for axes in self.dims)

    def tile_counts(self, rank: int) -> tuple[int, ...]:
        """Return the number of tiles along each of ``rank`` dimensions.

        Raises:
            ShardingError: if the sharding splits another number of dimensions.
        """
        counts = self._counts
        if counts is None:
            return (1,) * rank
        if len(counts) != rank:
            raise table.RANK.error(sharding=str(self), dims=len(counts), rank=rank)
        return counts

    def tile_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of every tile of an array of ``shape``: ceil(size / count). The last tiles are padded.

        Raises:
            ShardingError: if the sharding has another rank, or is ``{unknown}``.
        """
        if self.kind is Kind.UNKNOWN:
            raise _no_tiles(self, "it is a placeholder")
        counts = self.tile_counts(len(shape))
        return tuple([-(-size // count) for size, count in zip(shape, counts, strict=True)])

    def tile_offsets(self, shape: Sequence[int], num_devices: int | None = None) -> Ints:
        """Return the offset of each device's tile (the base offset map), int64 [devices, rank].

        The offset of an empty last tile is the size of the dimension, as in XLA. ``{replicated}`` does not name any
        devices: its map has ``num_devices`` rows, or one row.

        Raises:
            ShardingError: if the rank or the number of devices does not fit, or the sharding assigns no tiles.
        """
        if self.kind in (Kind.UNKNOWN, Kind.MAXIMAL) or self.is_manual:
            raise _no_tiles(self, "an offset on each device is asked for")
        devices = self._devices(num_devices)
        if devices > MOST_DEVICES:
            raise table.TOO_MANY.error(devices=devices, limit=MOST_DEVICES)
        tile = self.tile_shape(shape)
        if self._counts is None:
            return np.zeros((devices, len(tile)), dtype=np.int64)
        offsets: Ints = np.minimum(self.tile_index() * np.array(tile, np.int64), np.array(shape, np.int64))
        return offsets

    def tile_index(self) -> Ints:
        """Return the index of each device's tile along each dimension, int64 [devices, dims]. Read-only."""
        kept: Ints | None = self.__dict__.get("_tile_index")
        if kept is not None:
            return kept
        mesh = self._countable()
        index = np.empty((mesh.size, len(self.dims)), dtype=np.int64)
        for k, axes in enumerate(self.dims):
            index[:, k] = coordinates.number(mesh, axes)
        index.flags.writeable = False
        if index.size <= _LARGE:
            self.__dict__["_tile_index"] = index
        return index

    def tile_assignment(self) -> tuple[tuple[int, ...], Ints]:
        """Return XLA's grid of devices: its dimensions, with subgroups last, and the devices in row-major order
        (int64).

        Raises:
            ShardingError: if the sharding names no devices.
        """
        if self.notes.problems and self.notes.tiles:
            return self.notes.tiles, np.array(self.notes.listed, dtype=np.int64)
        self._countable()
        grid = self._assignment
        return grid.counts, grid.devices

    def number(self, axes: Iterable[AxisRef]) -> Ints:
        """Return the coordinate of each device on ``axes``, major to minor, as one number. int64 [devices]."""
        return coordinates.number(self._countable(), axes)

    def groups(self, axes: Iterable[AxisRef | str]) -> Ints:
        """Return the groups of devices that differ only on ``axes``, a group per row, in the order of ``axes``. int64
        [groups, size].

        Rows are sorted by the position of their first device in the mesh.
        """
        return coordinates.groups(self._countable(), axes)

    def tile_devices(self) -> Ints:
        """Return the devices of each tile: int64 [*tile counts, copies], copies in ascending order."""
        mesh = self._countable()
        counts = self.tile_counts(len(self.dims))
        if len(counts) > 60:
            raise _no_tiles(self, f"a grid of {len(counts)} dimensions is asked for")
        tiles = np.ravel_multi_index(tuple(self.tile_index().T), counts) if counts else np.zeros(mesh.size, np.int64)
        return np.argsort(tiles, kind="stable").astype(np.int64).reshape(*counts, -1)

    # ---------------------------------------------------------------- meaning

    def on(self, mesh: Mesh) -> Sharding | None:
        """Restate the sharding with axes (and parts of axes) of ``mesh``; None if impossible."""
        own = self.mesh
        if own is None or own is mesh or self.kind is not Kind.TILED or own == mesh:
            return self
        return _on(self, mesh, own.size, len(self.dims))

    @cached_property
    def _key(self) -> Key:
        """A key, equal for two shardings exactly if they mean the same."""
        if self.notes.problems:
            return ("text", str(self))
        if self.kind is Kind.MAXIMAL:
            return ("maximal", self.device)
        if self._simplest is Kind.UNREDUCED:
            return ("unreduced", self.reduction)
        if self._simplest is not Kind.TILED or self.mesh is None:
            return (str(self._simplest),)
        return tiled_key(
            self.mesh, self.dims, manual=self.manual, unreduced=self.unreduced, reduction=self.reduction,
            maximal_axes=self.maximal_axes,
        )  # fmt: skip

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Sharding):
            return False
        key, known = self._key, other._key
        if key is known:
            return True
        if self._hash != other._hash or key != known:
            return False
        self.__dict__["_key"] = known  # equal shardings share one key: the next comparison is of identities
        return True

    def __hash__(self) -> int:
        return self._hash

    # ---------------------------------------------------------------- text

    @cached_property
    def _assignment(self) -> TileAssignment:
        assert self.mesh is not None
        return tile_assignment(
            self.mesh, self.dims, maximal=self.maximal_axes, manual=self.manual, unreduced=self.unreduced
        )

    @cached_property
    def _text(self) -> str:
        if self.notes.text is not None:
            return self.notes.text
        return "{" + self._words() + group_text(self.notes.group) + "}"

    def _words(self) -> str:
        if self.kind is Kind.MAXIMAL:
            return f"maximal device={self.device}"
        return str(self._assignment) if self._simplest is Kind.TILED else str(self._simplest)

    def __str__(self) -> str:
        """Format canonical ``mhlo.sharding`` text, as XLA prints it."""
        return self._text

    def _repr_html_(self) -> str:
        """Show the text, and the devices of each tile, in notebooks."""
        return grid_html(self._text, None if self._counts is None else self.tile_index())

    def text(self, *, metadata: bool = False) -> str:
        """Format as ``str(self)``, with metadata if asked for; a partial max or min without named mesh needs that."""
        if not metadata:
            return self._text
        entries, named = self.notes.metadata, self.notes.named
        if not entries and not named and self.reduction != "sum":
            entries = (f'op_type="sdy::reduction_op" op_name="{self.reduction.upper()}"',)
        return with_metadata(self._text, entries, named=named)

    def __repr__(self) -> str:
        text = str(self)
        return f"Sharding({text if len(text) < 200 else text[:160] + '...' + text[-20:]})"

    def __reduce__(self) -> tuple[type[Sharding], tuple[object, ...]]:
        return Sharding, tuple(getattr(self, field.name) for field in fields(self))

    # ---------------------------------------------------------------- checks

    def _need_meaning(self) -> None:
        if self.notes.problems:
            raise table.ShardingError(*self.notes.problems)

    def _countable(self) -> Mesh:
        """Return the mesh. Raises ShardingError if the mesh is too large for a table with a row per device."""
        self._need_meaning()
        if self.mesh is None:
            raise _no_tiles(self, "it names no devices")
        if self.mesh.size > MOST_DEVICES:
            raise table.TOO_MANY.error(devices=self.mesh.size, limit=MOST_DEVICES)
        return self.mesh

    def _devices(self, asked: int | None) -> int:
        self._need_meaning()
        has = self.num_devices
        if asked is not None and has is not None and asked != has:
            hint = "give all shardings of a program the same devices"
            raise table.NUM_DEVICES.error(sharding=str(self), has=has, asked=asked, hint=hint)
        return has or asked or 1


REPLICATED = Sharding(Kind.REPLICATED)
MANUAL = Sharding(Kind.MANUAL)
UNKNOWN = Sharding(Kind.UNKNOWN)


@lru_cache(maxsize=4096)
def _maximal(device: int) -> Sharding:
    return Sharding(Kind.MAXIMAL, device=device)


@lru_cache(maxsize=65536)
def _tiled(
    mesh: Mesh,
    dims: tuple[tuple[AxisRef | str, ...], ...],
    unreduced: tuple[AxisRef | str, ...],
    manual: tuple[AxisRef | str, ...],
    reduction: str,
) -> Sharding:
    split = tuple(joined(mesh, map(mesh.ref, axes)) for axes in dims)
    summed = in_mesh_order(mesh, map(mesh.ref, unreduced))
    by_hand = in_mesh_order(mesh, map(mesh.ref, manual))
    places = [(axes, f"dimension {k}") for k, axes in enumerate(split) if axes]
    check_disjoint(mesh, [*places, (summed, "unreduced"), (by_hand, "manual")])
    return Sharding(Kind.TILED, mesh, split, unreduced=summed, manual=by_hand, reduction=reduction)


@lru_cache(maxsize=65536)
def _on(sharding: Sharding, mesh: Mesh, devices: int, rank: int) -> Sharding | None:
    """Restate ``sharding`` on ``mesh``; ``devices`` and ``rank`` tell replicated shardings apart in the cache."""
    own = sharding.mesh
    assert own is not None
    if mesh.size != devices:
        return None
    lists: list[Axes] = []
    for axes in (*sharding.dims, sharding.unreduced, sharding.manual, sharding.maximal_axes):
        digits = coordinates.digits_on(own, axes, mesh)
        there = None if digits is None else refs(mesh, digits)
        if there is None:
            return None
        lists.append(there)
    *dims, unreduced, manual, maximal_axes = lists
    return Sharding(
        Kind.TILED, mesh, tuple(dims), unreduced=in_mesh_order(mesh, unreduced), manual=manual,
        maximal_axes=maximal_axes, reduction=sharding.reduction,
    )  # fmt: skip


def _no_tiles(sharding: Sharding, why: str) -> Exception:
    return table.NO_TILES.error(sharding=str(sharding), why=why, hint="give the value a sharding with tiles")
