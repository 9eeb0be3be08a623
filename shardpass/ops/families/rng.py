"""Random numbers: the same ones as on one device, or at least the same ones on every device.

* rng_bit_generator is a function of its state, so its bits are those of the whole program.

  - PHILOX makes blocks of 128 bits (two elements of 64 bits; four of 32, 16 or 8) in row-major order, block b from the
    key and counter + b. A device that holds a run of rows starts from its own counter, and makes its rows alone; where
    they begin inside of a block it makes that block too and cuts them out. The state is (key, counter) as ui64[2],
    where the upper half of the counter starts as the key, or (key, counter, upper half) as ui64[3].
  - DEFAULT is taken as PHILOX, which it is on XLA's CPU and GPU clients.
  - THREE_FRY halves the array, makes one word of each half from one counter, and puts the halves one behind the
    other: a tile's words come from counters of the other half too. Every device makes all bits and keeps its part.

* rng is no function: each device draws numbers of its own, or the same ones on each tile, as the backend likes. Device
  0's are taken everywhere: the others add ``nothing`` to them in an all_reduce.

Nothing is sent for bits. Rows are split along the first dimension longer than 1; along others a device keeps its part
of the rows that it makes.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.reductions import all_reduce
from shardpass.ir.tensors import i64_array, retype, shape_of
from shardpass.ops.local import Local
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Rule, RuleBuilder
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.stacking import item_bytes

STATE, BITS = 0, 1  # results


def whole(op: Any) -> Rule | None:
    """No dimension of any operand or result is split; a result is sliced after."""
    return RuleBuilder([len(shape_of(v)) for v in op.operands], [len(shape_of(v)) for v in op.results]).build()


def bits(op: Any) -> Rule | None:
    """Rows of the bits, where a device can start at its own."""
    shape = shape_of(op.results[BITS])
    rows = _rows(shape)
    if rows is None or not _counts(op):
        return whole(op)
    build = RuleBuilder([1], [1, len(shape)])
    for dim, size in enumerate(shape):
        build.result(BITS, dim, build.factor(size, Kind.PARALLEL if dim == rows else Kind.REPLICATED))
    return build.build()


def _rows(shape: tuple[int, ...]) -> int | None:
    """The first dimension longer than 1, whose tiles are runs of the row-major order."""
    return next((d for d, n in enumerate(shape) if 1 < n <= at.LARGEST), None) if 0 not in shape else None


def _counts(op: Any) -> bool:
    """Whether a block of bits is a function of the key and of its number alone, and the state tells them apart."""
    state = op.operands[0].type
    said = str(op.attributes["rng_algorithm"])
    return "THREE_FRY" not in said and str(state.element_type) == "ui64" and state.shape[0] in (2, 3)


def localize_bits(local: Local) -> list[Any] | None:
    op, shape = local.op, local.result_shapes[BITS]
    rows = _rows(shape)
    axes = () if rows is None else local.result_dims[BITS][rows]
    if rows is None or not axes:
        with local.before():
            return [*_generated(op.operands[0], op.results[BITS].type, op.attributes["rng_algorithm"])]
    tile = local.tile(BITS)
    kind = retype(op.results[BITS].type, tile)
    block = 2 if item_bytes(kind) == 8 else 4
    row, count = prod(shape[rows + 1 :]), prod(tile)
    aligned = count % block == 0  # then every tile begins with a block
    with local.before():
        state = _Counter(op.operands[0])
        after = state.plus(_ui64(-(-prod(shape) // block)), like=op.operands[0].type)
        first = hlo.multiply(hlo.convert(_scalar(), local.start(axes, tile[rows])), _ui64(row))
        start, offset = hlo.divide(first, _ui64(block)), hlo.remainder(first, _ui64(block))
        run = kind if aligned else retype(kind, [count + block - 1])
        _, made = _generated(state.plus(start), run, ir.Attribute.parse("#stablehlo<rng_algorithm PHILOX>"))
        if not aligned:
            made = hlo.reshape(kind, hlo.dynamic_slice(made, [offset], i64_array([count])))
    return [after, made]


def _generated(state: Any, kind: Any, algorithm: Any) -> tuple[Any, Any]:
    """The state after, and bits of type ``kind``: XLA's partitioner refuses to make others than unsigned integers."""
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
        """The state whose counter is ``number`` blocks further; of type ``like``, or ui64[3], which loses no carry."""
        low = hlo.add(self.low, number)
        carry = hlo.convert(_scalar(), at.compare("LT", low, self.low))
        row = retype(_scalar(), [1])
        parts = [self.key, low, hlo.add(self.high, carry)][: 3 if like is None else like.shape[0]]
        return hlo.concatenate([hlo.reshape(row, part) for part in parts], 0)


def localize_rng(local: Local) -> list[Any] | None:
    op, mesh = local.op, local.mesh
    axes = tuple(range(len(mesh.sizes)))
    if mesh.num_devices == 1:
        return None
    drawn = op.results[0]
    element = drawn.type.element_type
    first = min(int(device) for device in mesh.mesh.devices.reshape(-1))
    with local.after():
        device = at.as_i32(hlo.partition_id())
        mine = at.compare("EQ", device, at.splat(at.i32(), first))
        kept = hlo.select(mine, drawn, at.splat(drawn.type, at.nothing_text(element)))
        joined = all_reduce(kept, mesh.groups(axes), at.adder(element), next(local.channels))
        local.explain(joined, axes, f"{op.name}: all devices take the numbers that device {first} draws")
        return [joined.results[0]]


define(
    "stablehlo.rng_bit_generator",
    "rng",
    bits,
    localize_bits,
    note="PHILOX and DEFAULT: the first dimension longer than 1, with each device starting the counter at its own "
    "rows; THREE_FRY: none, each device computes all bits, because the words of a tile come from both halves of the "
    "counters",
)
define(
    "stablehlo.rng",
    "rng",
    whole,
    localize_rng,
    note="none: devices draw different numbers, so all of them take the numbers of one device",
)
