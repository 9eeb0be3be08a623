"""The parts of a ``ProgramPlan``: what partitioning decides about each op of a program, as values.

For each op, in program order: how its operands are brought to where it needs them (reshards from which copy, values
that are computed again), its split with the collectives of its own, how partial results are completed, and how its
results are brought to the shardings that they must have. Nothing in a plan is MLIR; ``partition.emit`` builds exactly
what it lists.

A tile is named by ``Copy``: an array (the number of the first value that was it; a value and its constraint are one
array) under a sharding. Every step makes one copy out of others, so that a plan is a data-flow program over copies.

Worked example on the mesh x=2, ``z = x @ y`` with x split by columns and y by rows over "x", z wanted in rows: the dot
is split over its contraction, each device holds a partial [m, n], and the result is scattered:

    SplitPlan(op=0, operands=(x as it is, y as it is), local=LocalPlan(split k over x),
              results=(ResultPlan(completions=(reduce_scatter dim 0 over x,), ...)))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shardpass.cost.machine import Machine
from shardpass.ops.model import LocalPlan
from shardpass.ops.splits.assign import Completion
from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.price.loops import Pair, Price, price, resident_bytes
from shardpass.program.program import Array, Op
from shardpass.redistribute.problem.sub_axes import SubAxes
from shardpass.sharding import Sharding


class Copy(NamedTuple):
    """The tile of ``array`` under ``sharding`` on each device."""

    array: int
    sharding: Sharding


@dataclass(frozen=True, slots=True)
class Reshard:
    """A redistribution of an array. ``mesh``: as ops of its region see it.

    ``bytes``: what one device receives, by the default planner. ``cause``: for the user, the reason for it. ``array``:
    the array of the copy that is made, if it is not the source's: a constraint's result begins as a copy of its
    operand.
    """

    source: Copy
    target: Sharding
    type: Array
    mesh: PrimeMesh
    bytes: int
    cause: str
    array: int | None = None

    @property
    def made(self) -> Copy:
        return Copy(self.source.array if self.array is None else self.array, self.target)


@dataclass(frozen=True, slots=True)
class Recompute:
    """``op`` computed again, under another split than its own, from ``operands``."""

    op: Op
    made: Copy
    local: LocalPlan
    operands: tuple[Copy, ...]


Step = Reshard | Recompute


@dataclass(frozen=True, slots=True)
class Mask:
    """Overwrites the padding of a tile along ``dim``, of whole ``size``, by the identity of ``combiner``."""

    dim: int
    size: int
    axes: Axes
    combiner: str


@dataclass(frozen=True, slots=True)
class Alone:
    """Overwrites a tile by zeros on all devices but the first along ``axes``: a whole value becomes a partial sum."""

    axes: Axes


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """How an operand is resharded: the steps in order, the copy that the op reads, and the masks applied to it."""

    copy: Copy
    steps: tuple[Step, ...] = ()
    masks: tuple[Mask | Alone, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """How a result is computed: split as ``dims``, completed, and resharded from ``computed`` to ``wanted``."""

    value: int
    dims: DimAxes
    completions: tuple[Completion, ...]
    computed: Sharding
    wanted: Sharding
    reshard: Reshard | None


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark to the user about an op: SP301 (computed whole) or SP304 (an operand is needed whole).

    ``dims``: the dimensions that the operand is split along and that cannot be; ``free``: those that could be.
    """

    code: str
    operand: int | None
    type: Array | None
    dims: tuple[int, ...]
    free: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """An op that is split by its model, as described by ``local``."""

    op: Op
    operands: tuple[OperandPlan, ...]
    local: LocalPlan
    results: tuple[ResultPlan | None, ...]  # None: nothing uses it
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class WholePlan:
    """An op without a model: every device computes it on whole operands (with what its regions capture)."""

    op: Op
    operands: tuple[tuple[int, OperandPlan], ...]  # by value
    results: tuple[ResultPlan | None, ...]  # None: nothing uses it
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstraintPlan:
    """A constraint: its result is the array of the operand, in the copy to which the operand is resharded."""

    op: Op
    operand: OperandPlan


@dataclass(frozen=True, slots=True)
class BorderPlan:
    """An op at the border of a manual region, which a tile passes unchanged.

    ``operand``: the tile; None if the value is a tile of a fully manual region.
    """

    op: Op
    operand: OperandPlan | None
    result: ResultPlan


@dataclass(frozen=True, slots=True)
class UntouchedPlan:
    """An op of a region that is manual over all axes. ``entering``: for an op that enters the region, the tile
    it takes.
    """

    op: Op
    entering: Copy | None = None


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """A block: the copies of its arguments, its ops, and what its terminator returns."""

    arguments: tuple[tuple[int, Sharding], ...]
    ops: tuple[OpPlan, ...]
    returned: tuple[OperandPlan | None, ...]


class Hoisted(NamedTuple):
    """Steps for ``operand`` of an op (by number) inside of a loop that run once before the loop."""

    op: int
    operand: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ControlFlowPlan:
    """A loop or branch. ``shardings``: of its results, and of what enters and leaves its regions.

    ``before``: for a loop, the steps that are hoisted before it. ``results``: of a loop, those that it carries as
    partial sums and that are completed behind it, None for all others; empty if there are none.
    """

    op: Op
    operands: tuple[OperandPlan, ...]
    blocks: tuple[BlockPlan, ...]
    shardings: tuple[Sharding, ...]
    before: tuple[Hoisted, ...] = ()
    results: tuple[ResultPlan | None, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOutPlan:
    """An op without users, which is left out. ``steps``: the reshards of its operands that later ops use."""

    op: Op
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class MatmulLoop:
    """A collective and the products that run overlapped with it (``planning.loops``).

    ``kind``: "all_gather" or "reduce_scatter". ``at``: the op for which the collective is there. ``step``: for a
    gather, the reshard whose last step it is. ``products``: numbers of dot_generals, and which operand of each is
    gathered. ``between``: ops between the gather and its products. ``machine``: by whose time the loop was chosen.
    """

    kind: str
    at: int
    step: Reshard | None
    products: tuple[tuple[int, int | None], ...]
    between: tuple[int, ...]
    axes: str
    pair: Pair
    both_ways: bool
    sub_axes: SubAxes
    machine: Machine

    @property
    def resident_bytes(self) -> int:
        """Bytes that the loop keeps instead of ``pair.bytes``."""
        return resident_bytes(self.pair, self.both_ways)

    def price(self, machine: Machine) -> Price:
        """Return the modelled seconds on ``machine``."""
        return price(self.pair, machine, self.sub_axes, self.both_ways)


OpPlan = SplitPlan | WholePlan | ConstraintPlan | BorderPlan | UntouchedPlan | ControlFlowPlan | LeftOutPlan
