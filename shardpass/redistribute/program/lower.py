"""Plans to StableHLO: the one file of this package that touches MLIR.

Every collective gets a channel handle of type 1 (between partitions), global device ids where the op has a flag for
them, and two attributes for people: ``shardpass.axes``, the mesh axes it works over, and ``shardpass.cause`` where the
caller knows one. Numbers that differ from device to device are arithmetic on ``partition_id`` where they are a sum of
digits of it, else a constant table (``shardpass.ir.offsets``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import dense_i64
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.ops import DeviceProgram, Op

DeviceValues = dict[bytes, Any]
# Elements of two bits travel as bytes: XLA's CPU client gathers and concatenates them wrongly, or aborts, and adds none
# (jaxlib 0.10.2 and 0.12.0.1).
CARRIERS = {"i2": "i8", "ui2": "ui8"}


def emit(
    program: DeviceProgram,
    value: Any,
    channels: Iterator[int],
    *,
    cause: str = "",
    known: DeviceValues | None = None,
) -> Any:
    """Builds ``program`` for the tile ``value`` at the current insertion point and location.

    Args:
        value: an ``ir.Value`` of the shape that the program starts from.
        channels: gives channel ids that the module has not used.
        cause: why, for people; on each collective.
        known: numbers per device that earlier calls built in this block, to use again; it is added to.

    Returns:
        the ``ir.Value`` of the target tile; ``value`` itself where there is nothing to do.
    """
    element = value.type.element_type
    carrier = ir.Type.parse(CARRIERS.get(str(element), str(element))) if program else element
    emitter = _Emitter(carrier, channels, cause, {} if known is None else known)
    value = _converted(value, carrier)
    for op in program:
        value = emitter.emit(op, value)
    return _converted(value, element)


def _converted(value: Any, element: Any) -> Any:
    if value.type.element_type == element:
        return value
    return hlo.convert(ir.RankedTensorType.get(value.type.shape, element), value)


@dataclass(slots=True)
class _Emitter:
    element: Any
    channels: Iterator[int]
    cause: str
    known: DeviceValues
    accumulator: Any = field(default=None)

    def emit(self, op: Op, value: Any) -> Any:
        match op:
            case ops.Reshape():
                return hlo.reshape(self.type(op.shape), value)
            case ops.Transpose():
                return hlo.transpose(value, list(op.permutation))
            case ops.Pad():
                return self.pad(value, op.shape)
            case ops.Trim():
                return self.trim(value, op.shape)
            case ops.Zeros():
                return self.zeros(op.shape)
            case ops.DynamicSlice():
                return self.slice(value, op.starts, op.sizes)
            case ops.AllGather():
                shape = list(value.type.shape)
                shape[op.axis] *= op.groups.shape[1]
                built = hlo.AllGatherOp(
                    [self.type(shape)],
                    [value],
                    op.axis,
                    dense_i64(op.groups),
                    channel_handle=self.channel(),
                    use_global_device_ids=True,
                )
                return self.tagged(built, op.axes)
            case ops.AllToAll():
                built = hlo.AllToAllOp(
                    [value],
                    op.split,
                    op.concat,
                    op.groups.shape[1],
                    dense_i64(op.groups),
                    channel_handle=self.channel(),
                )
                return self.tagged(built, op.axes)
            case ops.Permute():
                return self.permute(value, op.source_of, op.axes)
            case ops.AllReduce():
                built = hlo.AllReduceOp(
                    [value.type],
                    [value],
                    dense_i64(op.groups),
                    channel_handle=self.channel(),
                    use_global_device_ids=True,
                )
                self.reducer(built, op.reduction)
                return self.tagged(built, op.axes)
            case ops.ReduceScatter():
                shape = list(value.type.shape)
                shape[op.axis] //= op.groups.shape[1]
                built = hlo.ReduceScatterOp(
                    self.type(shape),
                    value,
                    op.axis,
                    dense_i64(op.groups),
                    channel_handle=self.channel(),
                    use_global_device_ids=True,
                )
                self.reducer(built, op.reduction)
                return self.tagged(built, op.axes)
            case ops.Slide():
                return self.slide(op, value)
            case ops.BeginBoxExchange():
                self.accumulator = self.zeros(op.accumulator)
                return self.pad(value, op.value)
            case ops.BoxRound():
                self.round(op, value)
                return value
            case ops.EndBoxExchange():
                return self.trim(self.accumulator, op.shape)
            case ops.ChunkRounds():
                return self.chunk_rounds(op, value)

    # ---------------------------------------------------------------- parts

    def type(self, shape: Any) -> Any:
        return ir.RankedTensorType.get(list(shape), self.element)

    def channel(self) -> Any:
        return hlo.ChannelHandle.get(next(self.channels), 1)

    def tagged(self, built: Any, axes: tuple[str, ...]) -> Any:
        built.operation.attributes["shardpass.axes"] = ir.StringAttr.get(",".join(axes))
        if self.cause:
            built.operation.attributes["shardpass.cause"] = ir.StringAttr.get(self.cause)
        return built.operation.results[0]

    def zeros(self, shape: Any) -> Any:
        text = str(self.element)
        zero = "(0.0, 0.0)" if text.startswith("complex") else "0.0" if text[0] in "fb" else "0"
        zero = "false" if text == "i1" else zero
        kind = self.type(shape)
        # by name: the typed builder of jaxlib 0.10 cannot take elements of a complex type
        made = ir.Operation.parse(f'"stablehlo.constant"() {{value = dense<{zero}> : {kind}}} : () -> {kind}')
        made.location = ir.Location.current
        ir.InsertionPoint.current.insert(made)
        return made.results[0]

    def pad(self, value: Any, shape: tuple[int, ...]) -> Any:
        have = value.type.shape
        high = [n - m for n, m in zip(shape, have, strict=True)]
        if not any(high):
            return value
        none = [0] * len(high)
        return hlo.pad(value, self.zeros(()), none, high, none)

    def trim(self, value: Any, shape: tuple[int, ...]) -> Any:
        if tuple(value.type.shape) == shape:
            return value
        return hlo.slice(value, [0] * len(shape), list(shape), [1] * len(shape))

    def per_device(self, table: IntArray) -> Any:
        key = table.tobytes()
        if key not in self.known:
            self.known[key] = device_value(table)
        return self.known[key]

    def starts(self, table: IntArray) -> list[Any]:
        return [self.per_device(np.ascontiguousarray(table[:, i])) for i in range(table.shape[1])]

    def slice(self, value: Any, starts: IntArray, sizes: tuple[int, ...]) -> Any:
        if tuple(value.type.shape) == sizes:
            return value
        return hlo.dynamic_slice(value, self.starts(starts), list(sizes))

    def permute(self, value: Any, source_of: IntArray, axes: tuple[str, ...]) -> Any:
        receivers = np.flatnonzero(source_of >= 0)
        pairs = np.stack([source_of[receivers], receivers], axis=1)
        built = hlo.CollectivePermuteOp(value, dense_i64(pairs), channel_handle=self.channel())
        return self.tagged(built, axes)

    def reducer(self, built: Any, reduction: str) -> None:
        """The region that joins two scalars."""
        scalar = self.type(())
        block = built.operation.regions[0].blocks.append(scalar, scalar)
        with ir.InsertionPoint(block):
            joined = {"add": hlo.add, "mul": hlo.multiply, "max": hlo.maximum, "min": hlo.minimum}[reduction]
            hlo.return_([joined(*block.arguments)])

    def round(self, op: ops.BoxRound, value: Any) -> None:
        """Sends each device's box and writes what comes into the accumulator."""
        box = self.slice(value, op.take, op.size)
        here = np.arange(len(op.source_of))
        if ((op.source_of != here) & (op.source_of >= 0)).any():
            box = self.permute(box, op.source_of, op.axes)
        got = op.source_of >= 0
        if (not op.size and not got.all()) or (op.extents[got] != op.size).any():
            box = self.masked(op, box)
        if tuple(self.accumulator.type.shape) == op.size:
            self.accumulator = box
        else:
            self.accumulator = hlo.dynamic_update_slice(self.accumulator, box, self.starts(op.put))

    def slide(self, op: ops.Slide, value: Any) -> Any:
        """Own rows and the neighbour's in one, of which a window is taken: one copy, once XLA has fused it."""
        shape = list(value.type.shape)
        near, start = list(shape), [0] * len(shape)
        near[op.axis] = op.halo
        start[op.axis] = shape[op.axis] - op.halo if op.before else 0
        parts = [value]
        if op.halo:
            stop = [a + n for a, n in zip(start, near, strict=True)]
            halo = self.permute(hlo.slice(value, start, stop, [1] * len(shape)), op.source_of, op.axes)
            parts = [halo, value] if op.before else [value, halo]
        if op.slack:
            near[op.axis] = op.slack
            parts.append(self.zeros(near))
        joined = parts[0] if len(parts) == 1 else hlo.concatenate(parts, op.axis)
        starts = np.zeros((len(op.starts), len(shape)), np.int64)
        starts[:, op.axis] = op.starts
        shape[op.axis] = op.size
        return self.slice(joined, starts, tuple(shape))

    def chunk_rounds(self, op: ops.ChunkRounds, value: Any) -> Any:
        """Two chunks are chosen in either order as they are joined: one copy; more are put into a buffer in turn.

        Where all of the value is sent each time it is read from that buffer: so a round waits for the one before, and
        XLA, which would send them all at once, holds one chunk at a time.
        """
        rounds = len(op.source_of)
        here = np.arange(len(op.place))
        whole = op.take is None and bool((op.source_of[0] == here).all())
        shape = list(op.placed)
        shape[op.axis] *= rounds
        chunks = []
        result = self.zeros(shape) if rounds > 2 or whole else None
        starts = np.zeros((rounds, len(here), len(shape)), np.int64)
        starts[:, :, op.axis] = (op.place + np.arange(rounds)[:, None]) % rounds * op.placed[op.axis]
        for r, source_of in enumerate(op.source_of):
            chunk = value if op.take is None else self.slice(value, op.take[r], op.chunk)
            if whole and r:
                chunk = self.slice(result, starts[0], op.placed)
            if (source_of != here).any():
                chunk = self.permute(chunk, source_of, op.axes)
            if tuple(chunk.type.shape) != op.placed:
                chunk = hlo.reshape(self.type(op.placed), chunk)
            if result is None:
                chunks.append(chunk)
                continue
            result = hlo.dynamic_update_slice(result, chunk, self.starts(starts[r]))
        if result is not None:
            return result
        turned = self.less(self.constant(0), self.per_device(op.place))
        ordered = [hlo.select(turned, b, a) for a, b in itertools.pairwise([*chunks, chunks[0]])]
        return hlo.concatenate(ordered, op.axis)

    def masked(self, op: ops.BoxRound, box: Any) -> Any:
        """``box`` where it is meant for the device, else what the accumulator holds there."""
        held = self.slice(self.accumulator, op.put, op.size)
        got = op.source_of >= 0
        if (op.extents[got] == op.size).all():
            mask = self.less(self.constant(0), self.per_device(got.astype(np.int64)))
            return hlo.select(mask, box, held)
        mask = None
        for i, size in enumerate(op.size):
            if (op.extents[:, i] == size).all():
                continue
            kind = ir.RankedTensorType.get(list(op.size), ir.IntegerType.get_signless(32))
            extent = hlo.broadcast_in_dim(kind, self.per_device(np.ascontiguousarray(op.extents[:, i])), [])
            inside = self.less(hlo.iota(kind, i), extent)
            mask = inside if mask is None else hlo.and_(mask, inside)
        return hlo.select(mask, box, held)

    def less(self, left: Any, right: Any) -> Any:
        return hlo.compare(left, right, hlo.ComparisonDirectionAttr.get("LT"))

    def constant(self, number: int) -> Any:
        kind = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
        return hlo.constant(ir.DenseElementsAttr.get(np.asarray(number, np.int32), type=kind))
