"""Random numbers: the same ones as on one device, or at least the same ones on every device.

1. rng_bit_generator is a function of its state, so its bits are those of the whole program.

   a. PHILOX makes blocks of 128 bits (two elements of 64 bits; four of 32, 16 or 8) in row-major order, block b from
      the key and counter + b. A device that has a run of rows starts from its own counter, and makes its rows alone;
      where they begin inside of a block it makes that block too and cuts them out. The state is (key, counter) as
      ui64[2], where the upper half of the counter starts as the key, or (key, counter, upper half) as ui64[3].
      Example: ui32[8,3] over x=4 has tiles of 6 elements; device 1 begins at element 6, which is in block 1 of 4
      elements, at offset 2. It makes 9 elements from counter + 1 and cuts [2, 8) out of them.
   b. DEFAULT is treated as PHILOX, which it is on XLA's CPU and GPU clients. On a TPU it is an algorithm of the
      hardware: every device makes all bits and keeps its rows.
   c. THREE_FRY halves the array, makes one word of each half from one counter, and puts the halves one after the
      other: a tile's words come from counters of the other half too. Every device makes all bits and keeps its part.

2. rng is no function: whether devices draw the same numbers depends on the backend. All devices use those of device 0:
   the others add ``nothing`` to them in an all_reduce.

Nothing is sent for bits. Rows are split along the first dimension longer than 1; along others a device keeps its part
of the rows that it makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.cost.collective import ALL_REDUCE, bytes_received
from shardpass.element_types import ElementType, element_type
from shardpass.ir.reductions import all_reduce
from shardpass.ir.tensors import i64_array, retype, shape_of
from shardpass.ops.model import Collective, LocalPlan, OpModel, Shape, Shapes, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Rule, RuleBuilder
from shardpass.ops.tiles import positions as at

STATE, BITS = 0, 1  # results
PHILOX = "#stablehlo<rng_algorithm PHILOX>"


@lru_cache(maxsize=256)
def whole(operands: Shapes, results: Shapes) -> Rule:
    """Build a rule without splits: every device computes all, and results are sliced afterwards."""
    return RuleBuilder([len(shape) for shape in operands], [len(shape) for shape in results]).build()


@dataclass(frozen=True)
class BitsPlan(LocalPlan):
    """The plan of case a: ``axes`` split the rows into tiles of ``rows`` rows of ``row`` elements; () if no axes do.

    ``count`` elements are a tile, at the front of a block on every device where ``aligned``. ``blocks`` is the number
    of blocks in the whole array. ``whole``: every device makes all rows.
    """

    axes: Axes = ()
    rows: int = 0
    row: int = 0
    count: int = 0
    aligned: bool = True
    blocks: int = 0
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Bits(OpModel[BitsPlan]):
    """Generates random bits, a block of elements at a time. ``along``: the dimension of rows. ``block``: elements in a
    block. ``is_default``: the algorithm is the backend's own.
    """

    rule: Rule
    along: int | None
    block: int
    is_default: bool

    def plan(self, split: Split) -> BitsPlan:
        shape, tile = split.result_shapes[BITS], split.result_tile(BITS)
        axes = () if self.along is None else split.results[BITS][self.along]
        if self.along is None or not axes:
            return BitsPlan(split)
        count = prod(tile)
        return BitsPlan(
            split,
            axes=axes,
            rows=tile[self.along],
            row=prod(shape[self.along + 1 :]),
            count=count,
            aligned=count % self.block == 0,
            blocks=-(-prod(shape) // self.block),
            whole=self.is_default and split.machine.is_torus,
        )

    def emit(self, plan: BitsPlan, site: Site) -> Sequence[Any]:
        op = site.op
        site.discard()  # in its place is a generator of unsigned bits
        with site.before():
            if plan.axes and not plan.whole:
                return self._rows(plan, site)
            after, made = _generated(op.operands[0], op.results[BITS].type, op.attributes["rng_algorithm"])
            return after, self._cut(plan, site, made) if plan.axes else made

    def _cut(self, plan: BitsPlan, site: Site, made: Any) -> Any:
        first = site.start(plan.axes, plan.rows)
        starts = [first if dim == self.along else at.splat(first.type, 0) for dim in range(made.type.rank)]
        return hlo.dynamic_slice(made, starts, i64_array(site.tile_type(BITS).shape))

    def _rows(self, plan: BitsPlan, site: Site) -> Sequence[Any]:
        kind, block = site.tile_type(BITS), self.block
        state = _Counter(site.op.operands[0])
        after = state.plus(_ui64(plan.blocks), like=site.op.operands[0].type)
        first = hlo.multiply(hlo.convert(_scalar(), site.start(plan.axes, plan.rows)), _ui64(plan.row))
        start, offset = hlo.divide(first, _ui64(block)), hlo.remainder(first, _ui64(block))
        run = kind if plan.aligned else retype(kind, [plan.count + block - 1])
        _, made = _generated(state.plus(start), run, ir.Attribute.parse(PHILOX))
        if not plan.aligned:
            made = hlo.reshape(kind, hlo.dynamic_slice(made, [offset], i64_array([plan.count])))
        return [after, made]


def bits(op: Any) -> OpModel[Any]:
    kind = op.results[BITS].type
    width, is_default = int(kind.element_type.width), "DEFAULT" in str(op.attributes["rng_algorithm"])
    return _bits_model(shape_of(op.operands[0]), tuple(kind.shape), width, _counts(op), is_default)


@lru_cache(maxsize=256)
def _bits_model(state: Shape, shape: Shape, width: int, counts: bool, is_default: bool) -> Bits:
    """Build the model of the bits: split by rows where each device can start at its own counter."""
    block = 2 if width == 64 else 4
    rows = _rows(shape) if counts else None
    if rows is None:
        return Bits(whole((state,), (state, shape)), None, block, is_default)
    build = RuleBuilder([1], [1, len(shape)])
    for dim, size in enumerate(shape):
        build.result(BITS, dim, build.factor(size, Kind.PARALLEL if dim == rows else Kind.REPLICATED))
    return Bits(build.build(), rows, block, is_default)


def _rows(shape: Shape) -> int | None:
    """Find the first dimension longer than 1, whose tiles are runs of the row-major order."""
    return next((d for d, n in enumerate(shape) if n > 1), None) if 0 not in shape else None


def _counts(op: Any) -> bool:
    """Return whether a block of bits depends only on the key and the block's number, which the state stores apart."""
    state = op.operands[0].type
    algorithm = str(op.attributes["rng_algorithm"])
    return "THREE_FRY" not in algorithm and str(state.element_type) == "ui64" and state.shape[0] in (2, 3)


def _generated(state: Any, kind: Any, algorithm: Any) -> tuple[Any, Any]:
    """Generate the next state, and bits of type ``kind``. XLA's partitioner accepts unsigned integers only."""
    element = kind.element_type
    width = int(element.width)
    unsigned = ir.RankedTensorType.get(list(kind.shape), ir.IntegerType.get_unsigned(width))
    after, made = ir.Operation.create(
        "stablehlo.rng_bit_generator",
        results=[state.type, unsigned],
        operands=[state],
        attributes={"rng_algorithm": algorithm},
    ).results
    return after, made if unsigned == kind else hlo.bitcast_convert(kind, made)


def _scalar() -> Any:
    return ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(64))


def _ui64(number: int) -> Any:
    return at.splat(_scalar(), number)


class _Counter:
    """Philox's state: a key, and a counter of 128 bits in two halves. Built at the current insertion point."""

    def __init__(self, state: Any) -> None:
        parts = [self._part(state, i) for i in range(state.type.shape[0])]
        self.key, self.low = parts[:2]
        self.high = parts[2] if len(parts) == 3 else self.key

    def _part(self, state: Any, index: int) -> Any:
        cut = hlo.slice(state, i64_array([index]), i64_array([index + 1]), i64_array([1]))
        return hlo.reshape(_scalar(), cut)

    def plus(self, number: Any, like: Any = None) -> Any:
        """Advance the counter by ``number`` blocks. The result has type ``like``, or ui64[3], which loses no carry."""
        low = hlo.add(self.low, number)
        carry = hlo.convert(_scalar(), at.compare("LT", low, self.low))
        row = retype(_scalar(), [1])
        parts = [self.key, low, hlo.add(self.high, carry)][: 3 if like is None else like.shape[0]]
        return hlo.concatenate([hlo.reshape(row, part) for part in parts], 0)


@dataclass(frozen=True, eq=False)
class Rng(OpModel[LocalPlan]):
    rule: Rule
    element: ElementType

    def plan(self, split: Split) -> LocalPlan:
        mesh = split.mesh
        devices = mesh.num_devices
        if devices == 1:
            return LocalPlan(split)
        moved = bytes_received(ALL_REDUCE, self.element.bytes(prod(split.result_shapes[0])), devices)
        cause = f"stablehlo.rng: all devices take the numbers that device {_first(split)} draws"
        return LocalPlan(split, (Collective(ALL_REDUCE, tuple(range(len(mesh.sizes))), moved, cause),))

    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        (drawn,) = site.keep()
        if not plan.collectives:
            return [drawn]
        (planned,) = plan.collectives
        element = drawn.type.element_type
        with site.after():
            device = hlo.partition_id()
            mine = at.compare("EQ", device, at.splat(device.type, _first(plan.split)))
            kept = hlo.select(mine, drawn, at.splat(drawn.type, at.nothing_text(element)))
            groups = plan.split.mesh.groups(planned.axes)
            joined = all_reduce(kept, groups, at.adder(element), next(site.channels))
            site.explain(joined, planned.axes, planned.cause)
            return [joined.results[0]]


def _first(split: Split) -> int:
    return min(int(device) for device in split.mesh.mesh.devices.reshape(-1))


def rng(op: Any) -> OpModel[Any]:
    rule = whole(tuple(shape_of(v) for v in op.operands), (shape_of(op.results[0]),))
    return Rng(rule, element_type(str(op.results[0].type.element_type)))


define(
    "stablehlo.rng_bit_generator",
    bits,
    note="PHILOX and DEFAULT: the first dimension longer than 1, with each device starting the counter at its own "
    "rows, or on a TPU, whose DEFAULT is its own, keeping them; THREE_FRY: none, each device computes all bits, "
    "because the words of a tile come from both halves of the counters",
)
define(
    "stablehlo.rng",
    rng,
    note="none: devices draw different numbers, so all of them take the numbers of one device",
    sends="the numbers, `all_reduce`",
)
