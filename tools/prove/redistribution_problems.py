"""A redistribution problem as plain data: a shape, an element type, a source, a target, and a number of devices.

A problem derives from the arithmetic of its mesh alone which tile each device holds (``Side.held``) and of which
partial sum (``Side.summands``). ``shardpass.sharding`` derives the same from the sharding; tests compare the two.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from shardpass.sharding import AxisRef, Mesh, Sharding, parse_sharding

AXES = "abcdef"


@dataclass(frozen=True, slots=True)
class Side:
    """A source or a target. ``kind``: tiled, replicated or maximal (then ``device`` holds the array).

    A tiled one has mesh axes ``sizes``, called a, b, c.. by place; ``order``, the devices in row-major mesh order
    (None: 0, 1, 2..); for each dimension the axes, or sub-axes, that split it, major to minor; and those over which
    the value is a partial sum, or a partial ``reduction`` (sum, max or min).
    """

    kind: str
    sizes: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None
    dims: tuple[tuple[AxisRef, ...], ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: str = "sum"
    device: int = 0

    @classmethod
    def of(cls, text: str) -> Side:
        """What a sharding's text says, as ``shardpass.sharding`` reads it."""
        sharding = parse_sharding(text)
        assert isinstance(sharding, Sharding)
        if sharding.is_maximal or sharding.mesh is None:
            return cls("maximal" if sharding.is_maximal else "replicated", device=sharding.device or 0)
        mesh = sharding.mesh

        def named(axes: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
            return tuple(replace(ref, name=AXES[mesh.names.index(ref.name)]) for ref in axes)

        return cls("tiled", mesh.shape, mesh.device_ids, tuple(map(named, sharding.dims)), named(sharding.unreduced))

    @property
    def mesh(self) -> Mesh:
        return Mesh(tuple(zip(AXES, self.sizes, strict=False)), self.order)

    def sharding(self) -> Sharding:
        if self.kind == "replicated":
            return Sharding.replicated()
        if self.kind == "maximal":
            return Sharding.maximal(self.device)
        return Sharding.tiled(self.mesh, self.dims, unreduced=self.unreduced, reduction=self.reduction)

    def counts(self, rank: int) -> tuple[int, ...]:
        """Tiles along each dimension."""
        return tuple(math.prod(map(self._size, axes)) for axes in self.dims) if self.dims else (1,) * rank

    def tile(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(-(-n // k) for n, k in zip(shape, self.counts(len(shape)), strict=True))

    def held(self, shape: tuple[int, ...], devices: int) -> list[tuple[slice, ...] | None]:
        """Where each device's tile lies in the array, padding and all; None for one that holds nothing."""
        if self.kind != "tiled":
            whole = tuple(slice(0, n) for n in shape)
            return [None if self.kind == "maximal" and d != self.device else whole for d in range(devices)]
        tile = self.tile(shape)
        found = []
        for place in self._places(devices):
            index = [self._number(axes, place) for axes in self.dims]
            found.append(tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, tile, strict=True)))
        return list(found)

    def summands(self, devices: int) -> list[int]:
        """The number of the partial sum that each device has a tile of; 0 everywhere where values are whole."""
        if not self.unreduced:
            return [0] * devices
        return [self._number(self.unreduced, place) for place in self._places(devices)]

    def _places(self, devices: int) -> list[tuple[int, ...]]:
        """The mesh coordinates of each device."""
        found: list[tuple[int, ...]] = [()] * devices
        order = self.order or range(devices)
        for device, place in zip(order, itertools.product(*map(range, self.sizes)), strict=True):
            found[device] = place
        return found

    def _size(self, ref: AxisRef) -> int:
        return ref.size or self.sizes[AXES.index(ref.name)]

    def _number(self, axes: tuple[AxisRef, ...], place: tuple[int, ...]) -> int:
        number = 0
        for ref in axes:
            k, size = AXES.index(ref.name), self._size(ref)
            number = number * size + place[k] // (self.sizes[k] // (ref.pre * size)) % size
        return number


@dataclass(frozen=True, slots=True)
class Problem:
    """An array of ``shape`` that goes from ``source`` to ``target`` on ``devices`` devices; ``number``: its seed."""

    number: int
    shape: tuple[int, ...]
    element: str
    source: Side
    target: Side
    devices: int
    profile: str = "default"
    limit: int | str | None = "max"

    @property
    def is_even(self) -> bool:
        """Whether tiles fill the array on both sides."""
        rank = len(self.shape)
        counts = [side.counts(rank) for side in (self.source, self.target)]
        return all(n % k == 0 for row in counts for n, k in zip(self.shape, row, strict=True))

    @property
    def is_identity(self) -> bool:
        """Whether every device holds its target tile, and nothing else."""
        before, after = (side.held(self.shape, self.devices) for side in (self.source, self.target))
        return all(want in (None, have) for have, want in zip(before, after, strict=True))

    @property
    def communicates(self) -> bool:
        """Whether some device needs what it does not hold."""
        before, after = (side.held(self.shape, self.devices) for side in (self.source, self.target))
        return any(
            want is not None
            and (have is None or any(w.start < h.start or h.stop < w.stop for h, w in zip(have, want, strict=True)))
            for have, want in zip(before, after, strict=True)
        )

    def __str__(self) -> str:
        source, target = self.source.sharding(), self.target.sharding()
        terms = "" if self.profile == "default" else f", machine={self.profile!r}"
        terms += "" if self.limit == "max" else f", memory_limit={self.limit!r}"
        call = f"{self.shape}, {self.element!r}, {str(source)!r}, {str(target)!r}, num_devices={self.devices}{terms}"
        return f"plan_redistribution({call})"

    def greatest_tile(self) -> int:
        """Elements of the greater of the two tiles.

        A dimension that both sides split into tiles whose borders cross is padded to a multiple of both counts; one
        that a single side splits to a multiple of that side's.
        """
        rank = len(self.shape)
        counts = [side.counts(rank) for side in (self.source, self.target)]
        padded = []
        for n, column in zip(self.shape, zip(*counts, strict=True), strict=True):
            filled = {-(-n // k) * k for k in column if k > 1} or {n}
            both = math.lcm(*column)
            padded.append(filled.pop() if len(filled) == 1 else -(-n // both) * both)
        return max(math.prod(-(-n // k) for n, k in zip(padded, row, strict=True)) for row in counts)
