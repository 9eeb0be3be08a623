"""Seconds on a machine of what planning decides between: collectives, reshards, and the work of ops.

Every second is the machine's (``cost.machine``); what is here says which collectives and which work there are.

1. A collective of an op: its kind, its bytes, and the mesh axes that it runs over.
2. A reshard that is built: the collectives of its redistribution plan, and the local copies between them (``move``).
3. A reshard that is weighed against others: one collective in closed form (``reshard``), where tiles are even and along
   each dimension one split begins with the other. Axes that go are gathered; axes that stand elsewhere afterwards are
   exchanged. Where tiles change their owners it is planned.
4. The work of an op: its additions and multiplications, or its bytes through memory at the borders of its fusion
   (``work``, ``borders``), the longer of the two. An op inside of a chain of elementwise ops costs no bytes, and one
   at its border what the fusion reads and writes.

Example, machine "ideal": ``[256,64] x [64,1024]`` in f32 on one device reads and writes 1.37 MB, 1.37 us at 1 TB/s, and
computes 2^25 flops, 5.24 us at 6.4 Tflop/s: the price of its work.

State: tables of what was priced. Complexity: O(1) for what is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from shardpass.cost.collective import ALL_GATHER, ALL_TO_ALL, PERMUTE, Axis, Collective, whole_of
from shardpass.cost.machine import Machine, Work
from shardpass.element_types import ElementType
from shardpass.ops.model import Split
from shardpass.ops.splits.factors import Axes, DimAxes, Rule
from shardpass.ops.splits.lattices import axes_over
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.price.borders import Borders
from shardpass.planning.price.listed import redistribution
from shardpass.planning.price.prices import Prices, least_received
from shardpass.planning.price.steps import Copy, Reshard
from shardpass.planning.price.work import least_work_of, work_of
from shardpass.program.program import Array
from shardpass.sharding import Sharding

MOST_MOVES = 1 << 15  # that a clock remembers
MANY = 1 << 30  # bytes by which a link is measured

Types = tuple[Sequence[ElementType], Sequence[ElementType]]  # of operands and results
Key = tuple[Array, Sharding, Sharding, Axes]


class Clock:
    """Prices collectives, reshards and work in seconds on ``machine``, for programs on any mesh."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.byte = 1 / machine.links[0].most  # seconds to receive one, at best
        self._collectives: dict[tuple[str, int, Axes, PrimeMesh], float] = {}
        self._moves: dict[Key, float] = {}
        self._reshards: dict[Key, float] = {}
        self._leasts: dict[Key, float] = {}
        self._axes: dict[tuple[bool, Axes, PrimeMesh], tuple[Axis, ...]] = {}

    # ---------------------------------------------------------------- collectives

    def collective(self, kind: str, received: int, axes: Axes, mesh: PrimeMesh) -> float:
        """Return the seconds of one collective over ``axes`` in which a device receives ``received`` bytes."""
        if not received:
            return 0.0
        key = (kind, received, axes, mesh)
        seconds = self._collectives.get(key)
        if seconds is None:
            if len(self._collectives) >= MOST_MOVES:
                self._collectives.clear()
            whole = whole_of(kind, received, mesh.count(axes))
            seconds = self.machine.seconds(Collective(kind, self._along(kind, axes, mesh), whole))
            self._collectives[key] = seconds
        return seconds

    def line(self, axes: Axes, mesh: PrimeMesh) -> tuple[float, float]:
        """Return (latency in seconds, seconds a byte) of an all_gather over ``axes``."""
        once, twice = (self.collective(ALL_GATHER, count, axes, mesh) for count in (MANY, 2 * MANY))
        return max(0.0, 2 * once - twice), (twice - once) / MANY

    def _along(self, kind: str, axes: Axes, mesh: PrimeMesh) -> tuple[Axis, ...]:
        key = (kind == PERMUTE, axes, mesh)
        crossed = self._axes.get(key)
        if crossed is None:
            crossed = self._axes[key] = axes_over(self.machine, kind, axes, mesh)
        return crossed

    # ---------------------------------------------------------------- reshards

    def move(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> float:
        """Return the seconds of a reshard as it will be built: of its planned redistribution."""
        key = (array, source, target, mesh.manual)
        seconds = self._moves.get(key)
        if seconds is None:
            self._limit()
            if least_received(array, source, target, mesh) == (0, True):
                seconds = 0.0  # a slice
            else:
                seconds = redistribution(Reshard(Copy(0, source), target, array, mesh, 0, ""), self.machine).seconds
            self._moves[key] = seconds
        return seconds

    def reshard(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh, prices: Prices) -> float:
        """Estimate the seconds of a reshard as one collective, to compare candidates. ``prices`` has the bytes."""
        if source is target or source == target:
            return 0.0
        key = (array, source, target, mesh.manual)
        seconds = self._reshards.get(key)
        if seconds is None:
            self._limit()
            received = prices.move(array, source, target, mesh)
            before, after = mesh.dims(source, array.rank), mesh.dims(target, array.rank)
            if before is None or after is None:
                seconds = self.move(array, source, target, mesh)
            else:
                seconds = self.collective(*_one(received, before, after), mesh) if received else 0.0
            self._reshards[key] = seconds
        return seconds

    def least_move(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> float:
        """Return a lower bound in seconds of ``move`` and ``reshard``, without planning a redistribution."""
        key = (array, source, target, mesh.manual)
        seconds = self._leasts.get(key)
        if seconds is None:
            received = 0 if source == target else least_received(array, source, target, mesh)[0]
            seconds = self._leasts[key] = self.machine.least(received)
        return seconds

    def _limit(self) -> None:
        if max(len(self._moves), len(self._reshards)) >= MOST_MOVES:
            self._moves.clear()
            self._reshards.clear()
            self._leasts.clear()

    # ---------------------------------------------------------------- work

    def copies(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> float:
        """Return the seconds of the local copies in a reshard, which ``move`` includes."""
        return redistribution(Reshard(Copy(0, source), target, array, mesh, 0, ""), self.machine).local_seconds

    def work(self, rule: Rule, split: Split, types: Types, borders: Borders) -> float:
        """Return the seconds that one device computes, or moves data through memory, for an op under ``split``."""
        operands, results = types
        return self.machine.seconds(work_of(rule, split, operands, results, borders))

    def least_work(
        self, rule: Rule, operands: Sequence[Array], results: Sequence[Array], parts: int, borders: Borders
    ) -> float:
        """Return a lower bound in seconds of ``work`` for all splits into at most ``parts`` parts."""
        return self.machine.seconds(least_work_of(rule, operands, results, borders, parts))

    def made(self, elements: int, element: ElementType, written: bool = True) -> float:
        """Return the seconds to compute ``elements`` elementwise and, if they are ``written``, to write them
        to memory.
        """
        moved = (element.bytes(elements), elements) if written else (0, 0)
        return self.machine.seconds(Work(elements, element.mlir, *moved))


def _one(received: int, before: DimAxes, after: DimAxes) -> tuple[str, int, Axes]:
    """Return the one collective by which a reshard is estimated: (kind, bytes received, axes)."""
    gone, moved = set[int](), set[int]()
    kept = {axis: dim for dim, axes in enumerate(after) for axis in axes}
    for dim, (own, other) in enumerate(zip(before, after, strict=True)):
        shared = 0
        while shared < min(len(own), len(other)) and own[shared] == other[shared]:
            shared += 1
        for axis in own[shared:]:
            (moved if axis in kept else gone).add(axis)
        moved.update(axis for axis in other[shared:] if own[shared:] and kept[axis] == dim)
    return (ALL_TO_ALL if moved and not gone else ALL_GATHER), received, tuple(sorted(gone | moved))


class WorkClock(Clock):
    """Prices only what a device does by itself: its work, and the local copies of reshards. Collectives cost
    nothing.
    """

    def collective(self, kind: str, received: int, axes: Axes, mesh: PrimeMesh) -> float:
        return 0.0

    def move(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> float:
        return self.copies(array, source, target, mesh)


@lru_cache(maxsize=16)
def clock_of(machine: Machine) -> Clock:
    """Return the clock of ``machine``, which all programs of the process share with its tables."""
    return Clock(machine)
