"""A redistribution problem, checked and brought to index arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardpass.diagnostics import table_redistribute as table
from shardpass.element_types import ELEMENT_TYPES, ElementType, element_type
from shardpass.redistribute.candidates.exchange import Boxes
from shardpass.redistribute.problem.tiling import AxisNames, Tiling, tiling_of
from shardpass.redistribute.program.ops import IntArray
from shardpass.redistribute.program.simulate import State, fingerprints
from shardpass.sharding import AxisRef, Mesh, Sharding, TupleSharding, common_mesh, parse_sharding

MOST_BYTES = 1 << 55  # bytes received are counted in 64 bits


@dataclass(frozen=True, eq=False)
class Side:
    """The source or the target: who holds which tile.

    ``only`` is the one device that holds anything, of a maximal sharding; its tiling is then that of
    ``{replicated}``, as every device has a local array of the whole shape.
    """

    sharding: Sharding
    tiling: Tiling
    tile: tuple[int, ...]
    only: int | None

    @cached_property
    def base(self) -> IntArray:
        """The base offset map, not cut off at the array's end. int64 [devices, rank]."""
        return self.tiling.index * np.array(self.tile, np.int64)

    @cached_property
    def real(self) -> NDArray[np.bool_]:
        """Which devices hold anything. [devices]"""
        return np.array([self.only in (None, d) for d in range(len(self.tiling.index))])

    @cached_property
    def summand(self) -> IntArray | None:
        """The number of the partial sum that each device holds; None where values are whole. int64 [devices]."""
        return self.sharding.number(self.sharding.unreduced) if self.sharding.unreduced else None

    def state(self) -> State:
        """Where the simulator starts."""
        weight = None
        if self.summand is not None:
            weight = fingerprints(int(self.summand.max()) + 1)[self.summand]
        return State.tile(self.tile, self.base, self.real, weight)

    def boxes(self, shape: tuple[int, ...]) -> Boxes:
        return Boxes.of(shape, self.tile, self.base, self.real)


@dataclass(frozen=True, eq=False)
class Problem:
    """An array of ``shape`` that is to go from ``source`` to ``target`` on ``devices`` devices."""

    shape: tuple[int, ...]
    element: ElementType
    source: Side
    target: Side
    devices: int

    @cached_property
    def names(self) -> AxisNames:
        return AxisNames.of(self.mesh)

    @cached_property
    def mesh(self) -> Mesh:
        """A mesh to name axes by: a common one, the source's, or the target's."""
        shardings = [s for s in (self.source.sharding, self.target.sharding) if s.mesh is not None]
        if not shardings:
            return Mesh((("devices", self.devices),))
        return common_mesh(shardings) or shardings[0].mesh or Mesh((("devices", self.devices),))

    @property
    def is_nothing(self) -> bool:
        """Whether every device already holds what it needs."""
        if self.source.summand is not None or self.target.summand is not None:
            return self.source.sharding == self.target.sharding
        same_device = self.source.only is None or self.source.only == self.target.only
        return same_device and self.source.tile == self.target.tile and self.source.tiling.same(self.target.tiling)

    @cached_property
    def lower_bound_bytes(self) -> int:
        """Greatest over devices: what lies in its target tile and not in its source tile.

        Of a sum that is still partial a device has nothing yet: each element takes at least one summand from
        another.
        """
        source, target = self.source.boxes(self.shape), self.target.boxes(self.shape)
        missing = target.volume
        if self.source.summand is None or self.is_kept:
            missing = missing - source.common(target).volume
        return self.element.bytes(int(missing.max(initial=0)))

    @property
    def reduction(self) -> str:
        """What joins the source's partial values: add, max or min."""
        return {"sum": "add"}.get(self.source.sharding.reduction, self.source.sharding.reduction)

    @property
    def is_kept(self) -> bool:
        """Whether the target keeps all partial sums of the source."""
        after = self.target.summand
        return self.sums > 1 and after is not None and int(after.max()) + 1 == self.sums

    @property
    def sums(self) -> int:
        """How many partial sums the source has of each element; 1 where values are whole."""
        return 1 if self.source.summand is None else int(self.source.summand.max()) + 1

    def final_state(self) -> State:
        """Where the simulator must end: sums over those of the source's summands that the target does not keep."""
        state = self.target.state()
        before, after = self.source.summand, self.target.summand
        if before is None:
            return state
        marks = fingerprints(int(before.max()) + 1)
        kept = np.zeros_like(before) if after is None else after
        totals = np.zeros(int(kept.max()) + 1, np.uint64)
        pairs = np.unique(np.stack([kept, before], axis=1), axis=0)
        np.add.at(totals, pairs[:, 0], marks[pairs[:, 1]])
        return replace(state, weight=totals[kept])

    def aligned(self) -> tuple[int, ...] | None:
        """The padded shape that both tilings divide into their own tiles; None where their borders cross.

        A dimension that one side does not split may be padded to the other's size.
        """
        shape = []
        for n, sizes in zip(self.shape, self._padded_sizes(), strict=True):
            if len(sizes) > 1:
                return None
            shape.append(sizes.pop() if sizes else n)
        return tuple(shape)

    def aligned_dims(self) -> tuple[bool, ...]:
        """For each dimension whether the borders of its tiles nest."""
        return tuple(len(sizes) < 2 for sizes in self._padded_sizes())

    def _padded_sizes(self) -> list[set[int]]:
        """For each dimension the sizes to which the sides that split it pad it."""
        sides = (self.source, self.target)
        return [
            {side.tiling.counts[i] * side.tile[i] for side in sides if side.tiling.counts[i] > 1}
            for i in range(len(self.shape))
        ]

    def __str__(self) -> str:
        extent = "x".join(map(str, (*self.shape, self.element)))
        return f"{extent} from {self.source.sharding} to {self.target.sharding}"


def make_problem(
    shape: tuple[int, ...],
    element: str,
    source: Sharding | str,
    target: Sharding | str,
    num_devices: int | None = None,
) -> Problem:
    """Checks the parts of a problem. Raises ShardpassError (SP0xx, SP4xx)."""
    given_source, given_target = _sharding(source, "source"), _sharding(target, "target")
    if any(n < 0 for n in shape):
        raise table.SHAPE.error(text="x".join(map(str, shape)), reason="a size is negative")
    size = find_element_type(element).bytes(math.prod(shape))
    if size >= MOST_BYTES:
        raise table.SHAPE.error(text="x".join(map(str, shape)), reason=f"it has {size} bytes, too many to count")
    devices = _devices(given_source, given_target, num_devices)
    given_source, given_target = (_with_mesh(s, len(shape), devices) for s in (given_source, given_target))
    sides = (_side(given_source, shape, devices), _side(given_target, shape, devices))
    problem = Problem(tuple(shape), find_element_type(element), *sides, devices)
    kept = problem.is_kept or _summed_axes(given_target) <= _summed_axes(given_source)
    if given_target.unreduced and not (kept and given_target.reduction == given_source.reduction):
        raise table.UNREDUCED.error(source=str(given_source), target=str(given_target))
    return problem


def _summed_axes(sharding: Sharding) -> set[tuple[AxisRef, int]]:
    """The axes of the partial sums with their sizes: axes of two meshes may share a name."""
    return {(ref, sharding.mesh.ref_size(ref)) for ref in sharding.unreduced} if sharding.mesh else set()


def find_element_type(name: str) -> ElementType:
    """Raises ShardpassError (SP405)."""
    try:
        return element_type(name)
    except KeyError:
        known = ", ".join(row.mlir for row in ELEMENT_TYPES)
        raise table.ELEMENT_TYPE.error(name=name, known=known) from None


def _sharding(given: Sharding | str, side: str) -> Sharding:
    sharding = parse_sharding(given) if isinstance(given, str) else given
    if isinstance(sharding, TupleSharding) or sharding.is_manual or sharding.is_unknown or sharding.manual:
        raise table.NO_TILES.error(side=side, sharding=str(sharding))
    return sharding


def _with_mesh(sharding: Sharding, rank: int, devices: int) -> Sharding:
    """``{unreduced}``, which names no devices, over all of them."""
    if not sharding.is_unreduced or sharding.mesh is not None:
        return sharding
    mesh = Mesh((("axis_0", devices),))
    return Sharding.tiled(mesh, ((),) * rank, unreduced=("axis_0",), reduction=sharding.reduction)


def _devices(source: Sharding, target: Sharding, asked: int | None) -> int:
    known = [n for n in (source.num_devices, target.num_devices, asked) if n is not None]
    if not known:
        if source.is_maximal or target.is_maximal:
            raise table.DEVICES_UNKNOWN.error(source=str(source), target=str(target))
        return 1
    if len(set(known)) > 1:
        here = source.num_devices or target.num_devices
        there = target.num_devices if target.num_devices not in (None, here) else asked
        raise table.DEVICES_DIFFER.error(source=here, target=there)
    for sharding in (source, target):
        if sharding.is_maximal and sharding.device is not None and sharding.device >= known[0]:
            raise table.DEVICE_OUT_OF_RANGE.error(
                device=sharding.device, sharding=str(sharding), devices=known[0], last=known[0] - 1
            )
    return known[0]


def _side(sharding: Sharding, shape: tuple[int, ...], devices: int) -> Side:
    if sharding.is_maximal:
        whole = Tiling((1,) * len(shape), np.zeros((devices, len(shape)), np.int64))
        return Side(sharding, whole, tuple(shape), sharding.device)
    tiling = tiling_of(sharding, len(shape), devices)
    return Side(sharding, tiling, sharding.tile_shape(shape), None)
