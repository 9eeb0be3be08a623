"""``shardpass-join``: joins small collectives of one kind over the same groups.

Problem. A small collective costs its latency, whatever it sends. Collectives of one kind over the same groups of
devices can travel together, if they stand side by side and their elements lie in one array.

1. Which: ``_key`` is all that collectives must have in common (kind, groups, element type, ...). The groups are those
   of ``planning.plan.joining`` that ``Order.bring_together`` permits: not where one needs another, an op with effects
   would have to move, or the block would need more memory at once.
2. How: each operand becomes a matrix of one row for each device that a part goes to. The matrices are put side by side,
   one collective takes them, and each result is cut from its columns. Over 2 devices, take an all_gather of ``[a b]``
   on device 0 and ``[d e]`` on device 1, and one of ``[c]`` and ``[f]``. They become one of ``[a b c]`` and
   ``[d e f]``, with the result

       a b c        the first is columns 0-1, row by row:  a b d e
       d e f        the second is column 2:                c f

State: ``Order``, which says where each op of the block stands now, with its invariants.

Cost: one walk. For a block in which two collectives share a key, one more, and for each collective up to
``OPEN_GROUPS`` trials of ``Order.REACH`` ops at most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.annotations import AXES, CAUSE, get_text, main_of
from shardpass.ir.locations import joined as joined_location
from shardpass.ir.order import LEAST, Order, bytes_of
from shardpass.ir.tensors import retype, shape_of
from shardpass.ir.walk import CONTROL_FLOW, OpList, read_blocks
from shardpass.ops.reducers import combiner_of
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.planning.plan.joining import JOINED, join_groups, most_joined

ALL_GATHER, ALL_TO_ALL = "stablehlo.all_gather", "stablehlo.all_to_all"
ALL_REDUCE, REDUCE_SCATTER = "stablehlo.all_reduce", "stablehlo.reduce_scatter"
# With the attributes that name dimensions. One that is joined has 0 there: it takes a row for each device.
KINDS: Mapping[str, tuple[str, ...]] = {
    ALL_GATHER: ("all_gather_dim",),
    ALL_REDUCE: (),
    "stablehlo.collective_permute": (),
    REDUCE_SCATTER: ("scatter_dimension",),
    ALL_TO_ALL: ("split_dimension", "concat_dimension"),
}
CHANNEL = "channel_handle"
HOLD_COLLECTIVES = CONTROL_FLOW | {"func.func"}  # other regions are reducers


@register
@dataclass(frozen=True)
class Join(ModulePass):
    """Combines small collectives, so that each device waits once for all of them.

    all_gathers, reduce_scatters and all_to_alls over the same groups, and collective_permutes of the same pairs, become
    one collective of their concatenated elements. (StableHLO permits some collectives with several operands, but XLA
    reads these differently, or wrongly if layouts differ.) Elements that are only moved may have different types of the
    same width. Joined collectives do not depend on each other; other ops of the block are moved out of the way. Neither
    the peak of the bytes alive in the block nor the bytes sent increase. The joined arrays are small compared to the
    memory of the block: at most a thirty-second.

    By default all_reduces are not joined: XLA joins all_reduces itself, without copies, in a form that it does not
    accept as input.

    Options:
        most: the greatest size, in bytes of one device, of a joined collective
        all_reduces: also join all_reduces, by concatenating their elements

    Input:

        func.func @main(%x: tensor<8xf32>, %y: tensor<2x2xf32>) -> (tensor<8xf32>, tensor<2x2xf32>) {
          %0 = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
          %1 = "stablehlo.collective_permute"(%y) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
          return %0, %1 : tensor<8xf32>, tensor<2x2xf32>
        }

    Output:

        func.func @main(%x: tensor<8xf32>, %y: tensor<2x2xf32>) -> (tensor<8xf32>, tensor<2x2xf32>) {
          %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<1x8xf32>
          %1 = stablehlo.reshape %y : (tensor<2x2xf32>) -> tensor<1x4xf32>
          %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<1x8xf32>, tensor<1x4xf32>) -> tensor<1x12xf32>
          %3 = "stablehlo.collective_permute"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1x12xf32>) -> tensor<1x12xf32>
          %4 = stablehlo.slice %3 [0:1, 0:8] : (tensor<1x12xf32>) -> tensor<1x8xf32>
          %5 = stablehlo.reshape %4 : (tensor<1x8xf32>) -> tensor<8xf32>
          %6 = stablehlo.slice %3 [0:1, 8:12] : (tensor<1x12xf32>) -> tensor<1x4xf32>
          %7 = stablehlo.reshape %6 : (tensor<1x4xf32>) -> tensor<2x2xf32>
          return %5, %7 : tensor<8xf32>, tensor<2x2xf32>
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-join"
    summary = "small collectives of one kind over the same groups become one"

    most: int = JOINED
    all_reduces: bool = False

    def run(self, module: Any) -> bool:
        kinds = {kind for kind in KINDS if self.all_reduces or kind != ALL_REDUCE}
        changed = False
        with ir.Location.unknown(module.context):
            for inside in read_blocks(main_of(module)):
                if inside.owner_name in HOLD_COLLECTIVES and not kinds.isdisjoint(inside.names):
                    for members in _groups(inside, kinds, self.most):
                        _join(members)
                        changed = True
        return changed


# ---------------------------------------------------------------- which


def _groups(inside: OpList, kinds: Collection[str], most: int) -> list[list[Any]]:
    """Choose the collectives of a block to join, and move the members of each group next to each other."""
    keys: dict[int, Any] = {}
    for number, (op, name) in enumerate(zip(inside.ops, inside.names, strict=True)):
        if name in kinds and _bytes(op) < most and (key := _key(op)) is not None:
            keys[number] = key
    if len(set(keys.values())) == len(keys):
        return []
    order = Order(inside.block, LEAST)
    most = most_joined(order.peak, most)

    def joins(group: list[int], number: int) -> bool:
        total = sum(_bytes(order.ops[i]) for i in (*group, number))
        return total <= most and order.bring_together(group[0], number, workspace=total)

    groups = join_groups(keys.items(), joins)
    order.apply()
    return [[order.ops[i] for i in group] for group in groups if len(group) > 1]


def _bytes(op: Any) -> int:
    """Return the bytes of ``op``'s operands or of its results, whichever is greater."""
    return max(sum(bytes_of(v.type) for v in side) for side in (op.operands, op.results))


def _key(op: Any) -> Any:
    """Return a key that is equal for collectives that can be joined; None if ``op`` cannot be joined at all."""
    own = {CHANNEL, CAUSE, AXES, *KINDS[op.name]}
    common = tuple((name, op.attributes[name]) for name in sorted(op.attributes) if name not in own)
    channel = str(op.attributes[CHANNEL]).partition("type")[2] if CHANNEL in op.attributes else ""
    combiner = combiner_of(op) if len(op.regions) else "none"
    kind = op.operands[0].type.element_type
    if len(op.operands) > 1 or not combiner or element_type(str(kind)).bits < 8 or not _bytes(op):
        return None
    width = _width(kind)
    return (op.name, channel, common, combiner, width if width and not len(op.regions) else kind)


def _width(kind: Any) -> int:
    """Return the bit width of an element type that can be sent as an integer of equal width; 0 for other types."""
    bits = element_type(str(kind)).bits
    return bits if bits in (16, 32, 64) and isinstance(kind, ir.IntegerType | ir.FloatType) else 0


# ---------------------------------------------------------------- joined


def _join(members: list[Any]) -> None:
    """Replace ``members``, which are adjacent, by one collective."""
    with ir.InsertionPoint(members[-1]), joined_location([op.location for op in members]):
        joined = _packed(members)
    causes = dict.fromkeys(text for op in members if (text := get_text(op, CAUSE)))
    if causes:
        joined.attributes[CAUSE] = ir.StringAttr.get("; ".join(causes))
    for op in members:
        op.erase()


def _packed(members: list[Any]) -> Any:
    """Build one collective for all ``members``, and slice the result of each member from its result."""
    first = members[0]
    rows, parts = _rows(first), _parts(first)
    kinds = {op.operands[0].type.element_type for op in members}
    common = kinds.pop() if len(kinds) == 1 else ir.IntegerType.get_unsigned(_width(kinds.pop()))
    columns = [_matrix(op, rows, common) for op in members]
    ends = list(accumulate(column.type.shape[1] for column in columns))
    whole = hlo.concatenate(columns, 1)
    joined = first.clone()
    joined.operands[0] = whole
    for name in KINDS[first.name]:
        joined.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    joined.results[0].set_type(retype(whole.type, (parts, ends[-1])))
    joined.location = ir.Location.current
    for op, start, end in zip(members, [0, *ends], ends, strict=False):
        part = hlo.slice(joined.results[0], [0, start], [parts, end], [1, 1])
        op.results[0].replace_all_uses_with(_tile(op, part, parts))
    return joined


def _rows(op: Any) -> int:
    """Count the parts of the operand that go to different devices."""
    if op.name == ALL_TO_ALL:
        return int(op.attributes["split_count"].value)
    return prod(shape_of(op.operands[0])) // prod(shape_of(op.results[0])) if op.name == REDUCE_SCATTER else 1


def _parts(op: Any) -> int:
    """Count the parts of the result that come from different devices."""
    if op.name == ALL_TO_ALL:
        return int(op.attributes["split_count"].value)
    return prod(shape_of(op.results[0])) // prod(shape_of(op.operands[0])) if op.name == ALL_GATHER else 1


def _matrix(op: Any, rows: int, kind: Any) -> Any:
    """Reshape the operand of ``op`` to a matrix of ``rows`` rows; each row goes to another device."""
    value, shape = _as_bits(op.operands[0], kind), shape_of(op.operands[0])
    if rows > 1:
        dim = op.attributes[KINDS[op.name][0]].value
        shape = (*shape[:dim], rows, shape[dim] // rows, *shape[dim + 1 :])
        value = _reshaped(value, shape)
        if dim:
            value = hlo.transpose(value, [dim, *(d for d in range(len(shape)) if d != dim)])
    return _reshaped(value, (rows, prod(shape) // rows))


def _tile(op: Any, part: Any, parts: int) -> Any:
    """Build the result of ``op`` from its columns of the joined result."""
    if parts > 1:
        block, along = list(shape_of(op.operands[0])), op.attributes[KINDS[op.name][-1]].value
        if op.name == ALL_TO_ALL:
            block[op.attributes["split_dimension"].value] //= parts
        part = _reshaped(part, (parts, *block))
        if along:
            part = hlo.transpose(part, [*range(1, along + 1), 0, *range(along + 1, len(block) + 1)])
    return _as_bits(_reshaped(part, shape_of(op.results[0])), op.results[0].type.element_type)


def _as_bits(value: Any, kind: Any) -> Any:
    """Read ``value`` as elements of another type of the same width."""
    wanted = ir.RankedTensorType.get(list(shape_of(value)), kind)
    return value if value.type == wanted else hlo.bitcast_convert(wanted, value)


def _reshaped(value: Any, shape: Sequence[int]) -> Any:
    return value if shape_of(value) == tuple(shape) else hlo.reshape(retype(value.type, shape), value)
