"""Shardings: which part of an array each device holds.

State: a mesh, the axes that split each dimension (major to minor), the axes over which the value is a partial
sum, and those that are manual; the other axes hold copies. Or one of the kinds that need no mesh: replicated,
maximal (all on one device), manual, unknown, unreduced.

Invariants: axes are in normal form (``Mesh.ref``, ``joined``), none is used twice, none has size 1.

Equality is by meaning: two shardings are equal when every device holds the same tile for every shape, of the
same partial sum, in the same manual coordinates. ``{replicated}`` equals any sharding that splits nothing. The
meaning is compared by its normal form (see ``digits``) where it has one, and by the table of tile indices where
the devices stand in an arbitrary order.

Cost: building and printing are O(rank + axes) on a plain mesh; a device order of one's own costs O(n log n) once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding import digits as dg
from shardpass.sharding.axes import Axes, check_disjoint, in_mesh_order
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.mesh import AxisRef, Mesh, joined, refs
from shardpass.sharding.notes import PLAIN, Kind, Notes

_LARGE = 1 << 18  # a longer table is not kept
MOST_DEVICES = 1 << 24  # of which a table with a row each is made


class Sharding:
    """One array's sharding. Immutable, hashable, equal by meaning. See the module for what the fields hold.

    Make one with ``tiled``, ``replicated``, ``maximal``, ``manual_``, ``unknown`` or ``parse_sharding``.
    """

    __slots__ = (
        "_cache", "device", "dims", "kind", "manual", "maximal_axes", "mesh", "notes", "reduction", "unreduced",
    )  # fmt: skip

    kind: Kind
    mesh: Mesh | None
    dims: tuple[Axes, ...]
    unreduced: Axes
    manual: Axes
    maximal_axes: Axes
    device: int | None
    reduction: str
    notes: Notes
    _cache: dict[object, object]

    def __init__(
        self,
        kind: Kind,
        mesh: Mesh | None = None,
        dims: tuple[Axes, ...] = (),
        *,
        unreduced: Axes = (),
        manual: Axes = (),
        maximal_axes: Axes = (),
        device: int | None = None,
        reduction: str = "sum",
        notes: Notes = PLAIN,
    ) -> None:
        put = object.__setattr__
        put(self, "kind", kind)
        put(self, "mesh", mesh)
        put(self, "dims", dims)
        put(self, "unreduced", unreduced)
        put(self, "manual", manual)
        put(self, "maximal_axes", maximal_axes)
        put(self, "device", device)
        put(self, "reduction", reduction)
        put(self, "notes", notes)
        put(self, "_cache", {})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Sharding is immutable: cannot set {name!r}")

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
        """``dims[k]`` holds the axes that split dimension k, major to minor; a name stands for a whole axis.

        Over the axes ``unreduced`` the value is a partial sum, or a partial ``reduction``: sum, max or min.

        Raises:
            ShardingError: an axis that the mesh has not, or one that is used twice.
        """
        made = _tiled(mesh, tuple(map(tuple, dims)), tuple(unreduced), tuple(manual))
        return made if reduction == "sum" else made.replaced(reduction=reduction)

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
        """The same sharding with other notes, or another operation for its partial sums."""
        return Sharding(
            self.kind, self.mesh, self.dims, unreduced=self.unreduced, manual=self.manual,
            maximal_axes=self.maximal_axes, device=self.device, reduction=reduction or self.reduction,
            notes=self.notes if notes is None else notes,
        )  # fmt: skip

    # ---------------------------------------------------------------- what it is

    @property
    def is_replicated(self) -> bool:
        """Every device holds all of the array."""
        if self.kind is not Kind.TILED:
            return self.kind is Kind.REPLICATED
        return self.mesh is not None and not self.used

    @property
    def is_maximal(self) -> bool:
        return self.kind is Kind.MAXIMAL

    @property
    def is_manual(self) -> bool:
        """Manual on all devices: shapes are those of a device already."""
        return self.kind is Kind.MANUAL or self._covered_by(self.manual)

    @property
    def is_unknown(self) -> bool:
        return self.kind is Kind.UNKNOWN

    @property
    def is_unreduced(self) -> bool:
        """A partial sum over all devices, and not split."""
        return self.kind is Kind.UNREDUCED or self._covered_by(self.unreduced)

    @property
    def is_tiled(self) -> bool:
        """Neither replicated, maximal, manual, unknown nor unreduced as a whole."""
        return self.kind is Kind.TILED and not (self.is_replicated or self.is_manual or self.is_unreduced)

    def _covered_by(self, axes: Axes) -> bool:
        """Whether ``axes`` are all that there is: they span the mesh, and nothing is split."""
        mesh = self.mesh
        if mesh is None or not axes or any(self.dims):
            return False
        return math.prod(map(mesh.ref_size, axes)) == mesh.size

    @property
    def num_devices(self) -> int | None:
        """The devices it is over; None where it does not say."""
        return None if self.mesh is None else self.mesh.size

    @property
    def used(self) -> Axes:
        """Every axis that is not replicated."""
        return (*(a for axes in self.dims for a in axes), *self.manual, *self.unreduced, *self.maximal_axes)

    @property
    def replicated_axes(self) -> Axes:
        """The axes, and parts of axes, over which there are copies, in mesh order."""
        if self.mesh is None:
            return ()
        rest = dg.missing((self.mesh.digit(a) for a in self.used), self.mesh.size)
        found = refs(self.mesh, rest)
        assert found is not None  # what remains of an axis is a part of it
        return found

    # ---------------------------------------------------------------- tiles

    def tile_counts(self, rank: int) -> tuple[int, ...]:
        """Into how many tiles each of ``rank`` dimensions is cut.

        Raises:
            ShardingError: the sharding splits another number of dimensions.
        """
        self._need_meaning()
        if self.kind is not Kind.TILED or not self.dims:
            return (1,) * rank
        mesh = self.mesh
        assert mesh is not None
        if len(self.dims) != rank:
            if self.is_replicated:
                return (1,) * rank
            raise table.RANK.error(sharding=str(self), dims=len(self.dims), rank=rank)
        return tuple(math.prod(map(mesh.ref_size, axes)) for axes in self.dims)

    def tile_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of every tile of an array of ``shape``: ceil(size / count), the last ones padded.

        Raises:
            ShardingError: the sharding is of another rank, or ``{unknown}``.
        """
        if self.kind is Kind.UNKNOWN:
            raise _no_tiles(self, "it is a placeholder")
        return tuple(-(-size // count) for size, count in zip(shape, self.tile_counts(len(shape)), strict=True))

    def tile_offsets(self, shape: Sequence[int], num_devices: int | None = None) -> Ints:
        """The base offset map: row d is the offset of device d's tile. int64 [devices, rank].

        An offset past the end (of an empty last tile) is the size of the dimension, as in XLA. ``{replicated}``
        says nothing of devices: it has ``num_devices`` rows, or one.

        Raises:
            ShardingError: another rank, another number of devices, or a sharding that assigns no tiles.
        """
        shape = tuple(shape)
        if self.kind in (Kind.UNKNOWN, Kind.MAXIMAL) or self.is_manual:
            raise _no_tiles(self, "an offset on each device is asked for")
        devices = self._devices(num_devices)
        if devices > MOST_DEVICES:
            raise table.TOO_MANY.error(devices=devices, limit=MOST_DEVICES)
        sizes = np.array(shape, dtype=np.int64)
        if self.mesh is None or not self.dims:
            return np.zeros((devices, len(shape)), dtype=np.int64)
        tile = np.array(self.tile_shape(shape), dtype=np.int64)
        if len(self.dims) != len(shape):
            return np.zeros((devices, len(shape)), dtype=np.int64)
        offsets: Ints = np.minimum(self.tile_index() * tile, sizes)
        return offsets

    def tile_index(self) -> Ints:
        """The index of each device's tile along each dimension, int64 [devices, dims]. Read-only."""
        cached = self._cache.get("tile_index")
        if cached is None:
            mesh = self._countable()
            out = np.empty((mesh.size, len(self.dims)), dtype=np.int64)
            for k, axes in enumerate(self.dims):
                out[:, k] = self.number(axes)
            out.flags.writeable = False
            if out.size > _LARGE:
                return out
            self._cache["tile_index"] = cached = out
        assert isinstance(cached, np.ndarray)
        return cached

    def tile_assignment(self) -> tuple[tuple[int, ...], Ints]:
        """XLA's grid of devices: its dimensions, subgroups last, and the devices in row-major order (int64).

        Raises:
            ShardingError: the sharding names no devices.
        """
        if self.notes.problems and self.notes.tiles:
            return self.notes.tiles, np.array(self.notes.listed, dtype=np.int64)
        from shardpass.sharding.mhlo_text import assignment

        self._countable()
        return assignment(self)

    def number(self, axes: Iterable[AxisRef]) -> Ints:
        """The coordinate of each device on ``axes``, major to minor, as one number. int64 [devices]."""
        mesh = self._countable()
        table_ = dg.values([mesh.digit(a) for a in axes], mesh.size)
        return table_ if mesh.is_iota else table_[mesh.position]

    def groups(self, axes: Iterable[AxisRef | str]) -> Ints:
        """The devices that differ on ``axes`` alone, one row a group, in the order of ``axes``. int64 [groups, size].

        Rows stand in the order of their first place in the mesh.
        """
        mesh = self._countable()
        digits = [mesh.digit(mesh.ref(a)) for a in axes]
        rest = dg.missing(digits, mesh.size)
        out = np.empty(mesh.size, dtype=np.int64)
        out[dg.values([*rest, *digits], mesh.size)] = mesh.order
        return out.reshape(-1, dg.total(digits))

    def tile_devices(self) -> Ints:
        """The devices that hold each tile: int64 [*tile counts, copies], copies in ascending order."""
        mesh = self._countable()
        counts = self.tile_counts(len(self.dims))
        if len(counts) > 60:
            raise _no_tiles(self, f"a grid of {len(counts)} dimensions is asked for")
        tiles = np.ravel_multi_index(tuple(self.tile_index().T), counts) if counts else np.zeros(mesh.size, np.int64)
        return np.argsort(tiles, kind="stable").astype(np.int64).reshape(*counts, -1)

    # ---------------------------------------------------------------- meaning

    def on(self, mesh: Mesh) -> Sharding | None:
        """The same meaning said with the axes (and parts of axes) of ``mesh``; None where it cannot be."""
        if self.mesh is None or self.kind is not Kind.TILED:
            return self
        if self.mesh == mesh:
            return self
        return _on(self, mesh, self.mesh.size, len(self.dims))

    @property
    def _key(self) -> tuple[object, ...]:
        key = self._cache.get("key")
        if key is None:
            from shardpass.sharding.meaning import meaning

            self._cache["key"] = key = meaning(self)
        assert isinstance(key, tuple)
        return key

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Sharding) and self._key == other._key

    def __hash__(self) -> int:
        found = self._cache.get("hash")
        if found is None:
            self._cache["hash"] = found = hash(self._key)
        assert isinstance(found, int)
        return found

    # ---------------------------------------------------------------- text

    def __str__(self) -> str:
        """Canonical ``mhlo.sharding`` text, as XLA prints it."""
        text = self._cache.get("text")
        if text is None:
            from shardpass.sharding.mhlo_text import text_of

            self._cache["text"] = text = text_of(self)
        assert isinstance(text, str)
        return text

    def text(self, *, metadata: bool = False) -> str:
        """``str(self)``, with its metadata if asked for. A partial max or min without a mesh of names is told there."""
        from shardpass.sharding.mhlo_text import with_metadata

        return with_metadata(self) if metadata else str(self)

    def __repr__(self) -> str:
        text = str(self)
        return f"Sharding({text if len(text) < 200 else text[:160] + '...' + text[-20:]})"

    def __reduce__(self) -> tuple[object, ...]:
        return _make, (
            self.kind, self.mesh, self.dims, self.unreduced, self.manual, self.maximal_axes, self.device,
            self.reduction, self.notes,
        )  # fmt: skip

    # ---------------------------------------------------------------- checks

    def _need_meaning(self) -> None:
        if self.notes.problems:
            raise table.ShardingError(*self.notes.problems)

    def _with_mesh(self) -> Mesh:
        self._need_meaning()
        if self.mesh is None:
            raise _no_tiles(self, "it names no devices")
        return self.mesh

    def _countable(self) -> Mesh:
        mesh = self._with_mesh()
        if mesh.size > MOST_DEVICES:
            raise table.TOO_MANY.error(devices=mesh.size, limit=MOST_DEVICES)
        return mesh

    def _devices(self, asked: int | None) -> int:
        self._need_meaning()
        has = self.num_devices
        if asked is not None and has is not None and asked != has:
            raise table.NUM_DEVICES.error(
                sharding=str(self),
                has=has,
                asked=asked,
                hint="give all shardings of a program the same devices",
            )
        return has or asked or 1


def _make(
    kind: Kind, mesh: Mesh | None, dims: tuple[Axes, ...], unreduced: Axes, manual: Axes, maximal_axes: Axes,
    device: int | None, reduction: str, notes: Notes,
) -> Sharding:  # fmt: skip
    return Sharding(
        kind, mesh, dims, unreduced=unreduced, manual=manual, maximal_axes=maximal_axes, device=device,
        reduction=reduction, notes=notes,
    )  # fmt: skip


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
) -> Sharding:
    cut = tuple(joined(mesh, map(mesh.ref, axes)) for axes in dims)
    sums = in_mesh_order(mesh, map(mesh.ref, unreduced))
    hands = in_mesh_order(mesh, map(mesh.ref, manual))
    places = [(axes, f"dimension {k}") for k, axes in enumerate(cut)]
    check_disjoint(mesh, [*places, (sums, "unreduced"), (hands, "manual")])
    return Sharding(Kind.TILED, mesh, cut, unreduced=sums, manual=hands)


@lru_cache(maxsize=65536)
def _on(sharding: Sharding, mesh: Mesh, devices: int, rank: int) -> Sharding | None:
    """``devices`` and ``rank`` are part of the key: replicated shardings of any number of either are equal."""
    from shardpass.sharding.meaning import digits_on

    if mesh.size != devices:
        return None

    def say(axes: Axes) -> Axes | None:
        found: tuple[Digit, ...] | None = digits_on(sharding, axes, mesh)
        return None if found is None else refs(mesh, found)

    parts = [say(axes) for axes in (*sharding.dims, sharding.unreduced, sharding.manual, sharding.maximal_axes)]
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts):
        return None
    *dims, unreduced, manual, maximal_axes = whole
    return Sharding(
        Kind.TILED,
        mesh,
        tuple(dims),
        unreduced=in_mesh_order(mesh, unreduced),
        manual=manual,
        maximal_axes=maximal_axes,
        reduction=sharding.reduction,
    )


def _no_tiles(sharding: Sharding, why: str) -> Exception:
    return table.NO_TILES.error(sharding=str(sharding), why=why, hint="give the value a sharding with tiles")
