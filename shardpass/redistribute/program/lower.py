"""Lower device programs to StableHLO.

This file, ``lower_parts``, ``lower_rounds`` and ``module`` are all of the package that touches MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.gathers import all_gather
from shardpass.ir.reductions import all_reduce, reduce_scatter
from shardpass.ir.tensors import dense_i64
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.lower_parts import DeviceValues, Parts
from shardpass.redistribute.program.lower_rounds import box_round, chunk_rounds, slide
from shardpass.redistribute.program.ops import DeviceProgram, Op

# Elements of two bits travel as bytes: XLA's CPU client gathers and concatenates them wrongly, or aborts, and adds none
# (jaxlib 0.10.2 and 0.12.0.1).
CARRIERS = {"i2": "i8", "ui2": "ui8"}
ADDING = ops.AllReduce | ops.ReduceScatter
COMBINERS = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}  # of StableHLO


def emit(
    program: DeviceProgram,
    value: Any,
    channels: Iterator[int],
    *,
    cause: str = "",
    known: DeviceValues | None = None,
) -> Any:
    """Build ``program`` for the tile ``value`` at the current insertion point and location.

    Args:
        value: an ``ir.Value`` of the shape that the program starts from.
        channels: gives channel ids that the module has not used.
        cause: why, for people; on each collective.
        known: numbers per device that earlier calls built in this block, to use again; it is added to.

    Returns:
        the ``ir.Value`` of the target tile; ``value`` itself where there is nothing to do.
    """
    element = value.type.element_type
    as_bits = any(isinstance(op, ops.AsBits) for op in program) and not any(isinstance(op, ADDING) for op in program)
    carrier = _bits_of(element) if as_bits else _carrier(element) if program else element
    change = hlo.bitcast_convert if as_bits else hlo.convert
    emitter = _Emitter(Parts(carrier, channels, cause, {} if known is None else known))
    value = _changed(value, carrier, change)
    for op in program:
        value = emitter.emit(op, value)
    return _changed(value, element, change)


def _bits_of(element: Any) -> Any:
    return ir.IntegerType.get_unsigned(element.width) if isinstance(element, ir.FloatType) else element


def _carrier(element: Any) -> Any:
    return ir.Type.parse(CARRIERS.get(str(element), str(element)))


def _changed(value: Any, element: Any, change: Any) -> Any:
    """Convert ``value`` to another element type with the op ``change``."""
    if value.type.element_type == element:
        return value
    return change(ir.RankedTensorType.get(value.type.shape, element), value)


@dataclass(slots=True)
class _Emitter:
    """Builds op after op; ``accumulator`` is the second array of a box exchange."""

    parts: Parts
    accumulator: Any = field(default=None)

    def emit(self, op: Op, value: Any) -> Any:
        parts = self.parts
        match op:
            case ops.AsBits():
                return value
            case ops.Reshape():
                return hlo.reshape(parts.type(op.shape), value)
            case ops.Transpose():
                return hlo.transpose(value, list(op.permutation))
            case ops.Pad():
                return parts.pad(value, op.shape)
            case ops.Trim():
                return parts.trim(value, op.shape)
            case ops.Zeros():
                return parts.zeros(op.shape)
            case ops.DynamicSlice():
                return parts.slice(value, op.starts, op.sizes)
            case ops.AllGather(by_pieces=True):
                copies = hlo.concatenate([value] * op.groups.shape[1], op.axis)
                return self.emit(ops.AllToAll(op.axis, op.axis, op.groups, op.axes), copies)
            case ops.AllGather():
                built = all_gather(value, op.axis, op.groups, next(parts.channels))
                return parts.tagged(built, op.axes)
            case ops.AllToAll(by_slices=True):
                blocks = hlo.concatenate(parts.blocks(value, op.split, op.groups.shape[1]), op.concat)
                return self.emit(ops.AllToAll(op.concat, op.concat, op.groups, op.axes), blocks)
            case ops.AllToAll():
                built = hlo.AllToAllOp(
                    [value],
                    op.split,
                    op.concat,
                    op.groups.shape[1],
                    dense_i64(op.groups),
                    channel_handle=parts.channel(),
                )
                return parts.tagged(built, op.axes)
            case ops.Permute():
                return parts.permute(value, op.source_of, op.axes)
            case ops.AllReduce():
                built = all_reduce(value, op.groups, COMBINERS[op.reduction], next(parts.channels))
                return parts.tagged(built, op.axes)
            case ops.ReduceScatter():
                built = reduce_scatter(value, op.axis, op.groups, COMBINERS[op.reduction], next(parts.channels))
                return parts.tagged(built, op.axes)
            case ops.Slide():
                return slide(parts, op, value)
            case ops.BeginBoxExchange():
                self.accumulator = parts.zeros(op.accumulator)
                return parts.pad(value, op.value)
            case ops.BoxRound():
                self.accumulator = box_round(parts, op, value, self.accumulator)
                return value
            case ops.EndBoxExchange():
                return parts.trim(self.accumulator, op.shape)
            case ops.ChunkRounds():
                return chunk_rounds(parts, op, value)
