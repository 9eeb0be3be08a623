"""Shorthand ops, expanded into other ops before propagation.

* Ops that StableHLO no longer specifies, but that its parser takes: broadcast, dot, torch_index_select.
* CHLO's binary ops that stretch their operands: a broadcast_in_dim of each operand, then the op itself. Dimensions of
  size 1 are stretched; an operand of lower rank has its dimensions at ``broadcast_dimensions``, at the end if unsaid.
* chlo.constant, which differs from StableHLO's in name only.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import enum_word, i64_array, ints, retype, shape_of
from shardpass.ops.families.replicated import unsplit
from shardpass.ops.owners import FAMILY_OF_OP
from shardpass.ops.registry import define

STRETCHING = [name for name, family in FAMILY_OF_OP.items() if name.startswith("chlo.broadcast_")]
STRETCHING_CHLO = ("next_after", "polygamma", "zeta")  # the others are StableHLO's


def broadcast(op: Any) -> list[Any]:
    """Expand to broadcast_in_dim: new dimensions come before the operand's own."""
    kind, rank = op.results[0].type, len(shape_of(op.operands[0]))
    return [hlo.broadcast_in_dim(kind, op.operands[0], i64_array(range(kind.rank - rank, kind.rank)))]


def dot(op: Any) -> list[Any]:
    """Expand to dot_general: contracts the left operand's last dimension with the right operand's first."""
    left = len(shape_of(op.operands[0])) - 1
    numbers = hlo.DotDimensionNumbers.get([], [], [left], [0])
    made = hlo.dot_general(op.results[0].type, *op.operands, numbers)
    if "precision_config" in op.attributes:
        made.owner.attributes["precision_config"] = op.attributes["precision_config"]
    return [made]


def torch_index_select(op: Any) -> list[Any]:
    """Expand to a gather of single elements along ``dim``; with ``batch_dims`` batch dimensions. Raises ValueError."""
    dim, batch = (int(ir.IntegerAttr(op.attributes[name]).value) for name in ("dim", "batch_dims"))
    operand, index = (shape_of(value) for value in op.operands)
    if not 0 <= batch <= min(dim, len(index)) or dim >= len(operand):
        ranks = f"an operand of rank {len(operand)} and an index of rank {len(index)}"
        raise ValueError(f"dim = {dim} and batch_dims = {batch} do not fit {ranks}")
    more = len(index) - batch  # dimensions of the result that walk the index in place of ``dim``
    walked = [d if d < dim else d - 1 + more for d in range(batch, len(operand)) if d != dim]
    together = list(range(batch))
    numbers = hlo.GatherDimensionNumbers.get(walked, [dim], together, together, [dim], len(index))
    sizes = [1 if d == dim or d < batch else n for d, n in enumerate(operand)]
    return [hlo.gather(*op.operands, numbers, i64_array(sizes))]


def constant(op: Any) -> list[Any]:
    return [hlo.constant(op.attributes["value"])]


def stretched(op: Any) -> list[Any]:
    """Expand to the op without ``broadcast_`` in its name, on operands of the result's shape."""
    name = op.name.removeprefix("chlo.broadcast_")
    shape = shape_of(op.results[0])
    places = ints(op.attributes["broadcast_dimensions"]) if "broadcast_dimensions" in op.attributes else None
    operands = [_stretch(value, shape, places) for value in op.operands]
    if name == "compare":
        return [_compare(op, operands)]
    full = f"chlo.{name}" if name in STRETCHING_CHLO else f"stablehlo.{name}"
    return [ir.Operation.create(full, results=[op.results[0].type], operands=operands).results[0]]


def _compare(op: Any, operands: list[Any]) -> Any:
    """Convert CHLO's comparison attributes, ``#chlo<comparison_direction LT>``, to StableHLO's words."""
    direction = enum_word(op.attributes["comparison_direction"])
    kind = None
    if "compare_type" in op.attributes:
        kind = hlo.ComparisonTypeAttr.get(enum_word(op.attributes["compare_type"]))
    return hlo.compare(*operands, hlo.ComparisonDirectionAttr.get(direction), compare_type=kind)


def _stretch(value: Any, shape: tuple[int, ...], explicit: tuple[int, ...] | None) -> Any:
    own = shape_of(value)
    if own == shape:
        return value
    lower = len(own) < len(shape)
    places = explicit if explicit is not None and lower else range(len(shape) - len(own), len(shape))
    return hlo.broadcast_in_dim(retype(value.type, shape), value, i64_array(places))


_NOTE = "like {}, which replaces the op before propagation"
define("stablehlo.broadcast", unsplit, note=_NOTE.format("broadcast_in_dim"), expand=broadcast)
define("stablehlo.dot", unsplit, note=_NOTE.format("dot_general"), expand=dot)
define("stablehlo.torch_index_select", unsplit, note=_NOTE.format("gather"), expand=torch_index_select)
define("chlo.constant", unsplit, note=_NOTE.format("stablehlo.constant"), expand=constant)
define(
    STRETCHING,
    unsplit,
    note="every dimension: broadcast_in_dim of the operands and the op without broadcasting replace it before "
    "propagation",
    expand=stretched,
)
