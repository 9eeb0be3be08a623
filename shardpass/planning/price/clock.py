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

What an op computes on one device, and what of it goes through memory: flops and bytes, without a machine.

Bytes are those of tiles that the op's borders (``borders``) read or write. Of an operand that is larger than all
results, an op that does not reduce reads no more than results are made of it (a slice, a gather). Of an array that is
updated in place no more is written than the update.

A kernel ends where a result is written: there the elements of the largest tile count.

Flops, by the count of the op's row in ``cost.fusion``:

    NONE      a 64th of the elements of the results' tiles: broadcasts, slices, moves
    RESULTS   elements of the results' tiles
    TILES     elements of the largest tile: a reduction adds all of its operand
    NEST      two for each point of the loop nest, a product and a sum, shared out evenly
    PART      elements of the largest tile but that which is updated
    SORT, FFT what an element takes in rows (transforms) of the dimensions that no split cuts, times elements
    SOLVE,    what an element of the right-hand sides takes, times these
    REFLECT,
    BANDED
    others    of one matrix, the last two dimensions of operand 0, times the matrices (``cost.factorizations``)

Of the last three groups the whole is shared out evenly, as that of a nest. A dimension that cannot be split is one of
each operand, and no index of a nest.

Example: ``[256,64] x [64,1024]`` in f32, with rows over 4 devices: 2 * 64 * 64 * 1024 flops, and (64*64 + 64*1024 +
64*1024) * 4 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from shardpass.cost.collective import ALL_GATHER, ALL_TO_ALL, PERMUTE, Axis, Collective, whole_of
from shardpass.cost.factorizations import OF_A_MATRIX, OF_AN_ELEMENT, butterflies, comparisons
from shardpass.cost.fusion import Flops
from shardpass.cost.machine import Machine, Work
from shardpass.element_types import ElementType
from shardpass.ops.model import Split
from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Rule
from shardpass.ops.splits.lattices import axes_over
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.planning.price.borders import Borders
from shardpass.planning.price.listed import redistribution
from shardpass.planning.price.prices import Prices, least_received
from shardpass.planning.price.steps import Copy, Reshard
from shardpass.program.program import Array
from shardpass.sharding import Mesh, Sharding

MADE = 1 / 64  # flops of an element that is made and not computed: among equal splits, what makes fewest
ONE_DEVICE = prime_mesh(Mesh((("one", 1),)))


def work_of(
    rule: Rule, split: Split, operands: Sequence[ElementType], results: Sequence[ElementType], borders: Borders
) -> Work:
    """Return the work of one device for an op with ``rule`` under ``split``. Types are those of its values, in
    order.
    """
    widest = max(operands or results, key=lambda element: element.bits)
    flops = _flops(rule, split, borders.flops)
    if borders.flops is Flops.FFT and not all(element.mlir.startswith("complex") for element in (*operands, *results)):
        flops /= 2
    return Work(flops, str(widest), _bytes(rule, split, operands, results, borders), _elements(rule, split, borders))


def least_work_of(
    rule: Rule, operands: Sequence[Array], results: Sequence[Array], borders: Borders, parts: int
) -> Work:
    """Return a lower bound of ``work_of``, in each of its numbers, for all splits into at most ``parts`` parts."""
    shapes, made = (tuple([array.shape for array in side]) for side in (operands, results))
    unsplit = [tuple([((),) * len(shape) for shape in side]) for side in (shapes, made)]
    split = Split(ONE_DEVICE, ((),) * len(rule.factors), unsplit[0], unsplit[1], shapes, made)
    work = work_of(rule, split, [array.element for array in operands], [array.element for array in results], borders)
    return Work(work.flops / parts, work.element, work.bytes / parts, work.elements / parts)


def _flops(rule: Rule, split: Split, count: Flops) -> float:
    match count:
        case Flops.NONE:
            return MADE * sum(map(prod, split.result_tiles))
        case Flops.RESULTS:
            return float(sum(map(prod, split.result_tiles)))
        case Flops.TILES:
            return float(split.largest_tile)
        case Flops.NEST:
            return 2 * prod([max(1, factor.size) for factor in rule.factors]) / split.count
        case Flops.PART:
            return float(split.largest_beside_first)
        case Flops.SORT | Flops.FFT:
            size = _uncut(rule, split)
            each = comparisons(size) if count is Flops.SORT else butterflies(size)
            return each * max(map(prod, (*split.operand_shapes, *split.result_shapes))) / split.count
        case Flops.SOLVE | Flops.REFLECT | Flops.BANDED:
            each = OF_AN_ELEMENT[count]((1, *split.operand_shapes[0])[-1])
            return each * max(map(prod, split.result_shapes), default=0) / split.count
        case _:
            *batch, rows, columns = (1, 1, *split.operand_shapes[0])
            return OF_A_MATRIX[count](rows, columns) * prod(batch) / split.count


def _uncut(rule: Rule, split: Split) -> int:
    """Return the number of elements of the dimensions that no split cuts: a sorted row, the points of a transform."""
    sides = zip((*rule.operands, *rule.results), (*split.operand_shapes, *split.result_shapes), strict=True)
    return max(
        prod(
            size
            for dim, size in zip(dims, shape, strict=True)
            if any(rule.factors[f].kind is Kind.REPLICATED for f in dim)
        )
        for dims, shape in sides
    )


def _elements(rule: Rule, split: Split, borders: Borders) -> int:
    """Count the elements of the largest array of the kernel that the op ends. 1 for a product; 0 inside a kernel."""
    if not any(borders.writes) or borders.flops is Flops.NEST:
        return int(any(borders.writes))
    if borders.in_place:
        return split.largest_beside_first
    return split.largest_tile if _reduces(rule) else split.largest_result


def _reduces(rule: Rule) -> bool:
    return not rule.in_part and any(factor.kind is Kind.REDUCTION for factor in rule.factors)


def _bytes(
    rule: Rule, split: Split, operands: Sequence[ElementType], results: Sequence[ElementType], borders: Borders
) -> float:
    reduces, total = _reduces(rule), 0
    for place, (element, times) in enumerate(zip(operands, borders.reads, strict=True)):
        if times:
            count = prod(split.operand_tile(place))
            total += times * element.bytes(count if reduces else min(count, split.largest_result))
    for element, tile, written in zip(results, split.result_tiles, borders.writes, strict=True):
        if written:
            count = prod(tile)
            total += element.bytes(min(count, split.largest_beside_first) if borders.in_place else count)
    return float(total)


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
    """Price only a device's own work, including local copies of reshards. Collectives cost nothing."""

    def collective(self, kind: str, received: int, axes: Axes, mesh: PrimeMesh) -> float:
        return 0.0

    def move(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> float:
        return self.copies(array, source, target, mesh)


@lru_cache(maxsize=16)
def clock_of(machine: Machine) -> Clock:
    """Return the clock of ``machine``, which all programs of the process share with its tables."""
    return Clock(machine)
