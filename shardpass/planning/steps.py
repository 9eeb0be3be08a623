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
from shardpass.planning.loop_price import Pair, Price, price, resident_bytes
from shardpass.program.program import Array, Op
from shardpass.redistribute.problem.sub_axes import SubAxes
from shardpass.sharding import Sharding


class Copy(NamedTuple):
    """The tile of ``array`` under ``sharding``."""

    array: int
    sharding: Sharding


@dataclass(frozen=True, slots=True)
class Reshard:
    """A redistribution of an array, as ops of a region with ``mesh`` see it.

    ``bytes``: what one device receives, by the default planner. ``cause``: for people, why it is there. ``array``: of
    the copy that is made, where that is not the source's: a constraint's result begins in a copy of its operand.
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
    """An operand: the steps that bring it, in order, the copy that the op reads, and what is masked of it."""

    copy: Copy
    steps: tuple[Step, ...] = ()
    masks: tuple[Mask | Alone, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """A result: computed as ``dims``, completed, and then brought from ``computed`` to ``wanted``."""

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
    """An op with a model, under the split of ``local``."""

    op: Op
    operands: tuple[OperandPlan, ...]
    local: LocalPlan
    results: tuple[ResultPlan | None, ...]  # None: nothing uses it
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class WholePlan:
    """An op without a model: operands (and what its regions capture) replicated, computed on every device."""

    op: Op
    operands: tuple[tuple[int, OperandPlan], ...]  # by value
    results: tuple[ResultPlan | None, ...]  # None: nothing uses it
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstraintPlan:
    """A constraint: its result is the operand's array, in the copy that the operand is brought to."""

    op: Op
    operand: OperandPlan


@dataclass(frozen=True, slots=True)
class BorderPlan:
    """The border of a manual region: the tile ``operand`` (None: the value is a tile of a fully manual region) passes.

    The tile is one of ``outer`` outside and of ``inner`` inside of the region.
    """

    op: Op
    operand: OperandPlan | None
    result: ResultPlan


@dataclass(frozen=True, slots=True)
class UntouchedPlan:
    """An op of a region that is manual over all axes. ``entering``: the tile that goes in, of an op that enters."""

    op: Op
    entering: Copy | None = None


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """A block: its arguments' copies, its ops, and what its terminator returns."""

    arguments: tuple[tuple[int, Sharding], ...]
    ops: tuple[OpPlan, ...]
    returned: tuple[OperandPlan | None, ...]


class Hoisted(NamedTuple):
    """Steps that bring ``operand`` of an op (by number) inside of a loop, before the loop."""

    op: int
    operand: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ControlFlowPlan:
    """A loop or a branch: results and what crosses the border of its regions are under ``shardings``.

    ``before``: of a loop, what its ops take and no trip changes.
    """

    op: Op
    operands: tuple[OperandPlan, ...]
    blocks: tuple[BlockPlan, ...]
    shardings: tuple[Sharding, ...]
    before: tuple[Hoisted, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOutPlan:
    """An op that nothing uses, left out. ``steps``: what was brought for it and serves later ops."""

    op: Op
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class MatmulLoop:
    """A collective, and the products that are done in turn with it (``planning.loops``).

    ``kind``: "all_gather" or "reduce_scatter". ``at``: the op for which the collective is there; ``step``: of a
    gather, the reshard of which it is the last step. ``products``: numbers of dot_generals, and which operand of each
    is gathered. ``between``: ops between the gather and its products. ``machine``: by whose time the loop was chosen.
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
        """Bytes that the loop holds in place of ``pair.bytes``."""
        return resident_bytes(self.pair, self.both_ways)

    def price(self, machine: Machine) -> Price:
        """The modelled time on ``machine``."""
        return price(self.pair, machine, self.sub_axes, self.both_ways)


OpPlan = SplitPlan | WholePlan | ConstraintPlan | BorderPlan | UntouchedPlan | ControlFlowPlan | LeftOutPlan
