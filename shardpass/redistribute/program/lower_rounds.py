"""Lower the ops that are several StableHLO ops: rounds of boxes, slides and rounds of chunks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.integers import numbers
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.lower_parts import Parts


def box_round(parts: Parts, op: ops.BoxRound, value: Any, accumulator: Any) -> Any:
    """Send each device's box, and write the received box into the accumulator."""
    box = parts.slice(value, op.take, op.size)
    here = np.arange(len(op.source_of))
    if ((op.source_of != here) & (op.source_of >= 0)).any():
        box = parts.permute(box, op.source_of, op.axes)
    got = op.source_of >= 0
    if (not op.size and not got.all()) or (op.extents[got] != op.size).any():
        box = _masked(parts, op, box, accumulator)
    if tuple(accumulator.type.shape) == op.size:
        return box
    return hlo.dynamic_update_slice(accumulator, box, parts.starts(op.put))


def _masked(parts: Parts, op: ops.BoxRound, box: Any, accumulator: Any) -> Any:
    """Select ``box`` on devices to which the box applies, else the accumulator's elements at the same place."""
    kept = parts.slice(accumulator, op.put, op.size)
    got = op.source_of >= 0
    if (op.extents[got] == op.size).all():
        mask = parts.positive(got.astype(np.int64))
        return hlo.select(mask, box, kept)
    mask = None
    for i, size in enumerate(op.size):
        if (op.extents[:, i] == size).all():
            continue
        indices, scalar = numbers(size, op.size), numbers(size)
        extent = hlo.broadcast_in_dim(indices, parts.per_device(np.ascontiguousarray(op.extents[:, i]), scalar), [])
        inside = parts.less(hlo.iota(indices, i), extent)
        mask = inside if mask is None else hlo.and_(mask, inside)
    return hlo.select(mask, box, kept)


def slide(parts: Parts, op: ops.Slide, value: Any) -> Any:
    """Build a window of a device's own rows and its neighbour's; XLA fuses this into one copy."""
    shape = list(value.type.shape)
    pieces = [value]
    if op.halo:
        near = _rows(value, op.axis, shape[op.axis] - op.halo if op.before else 0, op.halo)
        halo = parts.permute(near, op.source_of, op.axes)
        pieces = [halo, value] if op.before else [value, halo]
    if op.slack:
        pieces.append(parts.zeros([*shape[: op.axis], op.slack, *shape[op.axis + 1 :]]))
    joined = pieces[0] if len(pieces) == 1 else hlo.concatenate(pieces, op.axis)
    starts = np.zeros((len(op.starts), len(shape)), np.int64)
    starts[:, op.axis] = op.starts
    shape[op.axis] = op.size
    return parts.slice(joined, starts, tuple(shape))


EDGES = ("edge_padding_low", "edge_padding_high", "interior_padding")


def _rows(value: Any, axis: int, start: int, size: int) -> Any:
    """Slice ``size`` rows of ``value``, before the padding and the slice that ``value`` comes from.

    So the whole value has one use, into which XLA fuses its padding and slicing instead of writing the value.
    """
    made: Any = value.owner if isinstance(value, ir.OpResult) else None
    name, shape = "" if made is None else made.name, list(value.type.shape)
    after = [*shape[:axis], size, *shape[axis + 1 :]]
    if name == "stablehlo.dynamic_slice" and made.operands[0].type.shape[axis] == shape[axis]:
        return hlo.dynamic_slice(_rows(made.operands[0], axis, start, size), list(made.operands)[1:], after)
    edges = [list(ir.DenseI64ArrayAttr(made.attributes[edge])) for edge in EDGES] if name == "stablehlo.pad" else []
    if edges and not any(edge[axis] for edge in edges):
        return hlo.pad(_rows(made.operands[0], axis, start, size), made.operands[1], *edges)
    starts = [start if i == axis else 0 for i in range(len(shape))]
    return hlo.slice(value, starts, [a + n for a, n in zip(starts, after, strict=True)], [1] * len(shape))


def chunk_rounds(parts: Parts, op: ops.ChunkRounds, value: Any) -> Any:
    """Build the rounds. Two chunks are joined in each device's order, in one copy; more are written into a buffer.

    If every round sends the whole value, the value is read from that buffer. Each round then depends on the previous
    round, so that XLA stores one chunk at a time instead of sending all rounds at once.
    """
    rounds = len(op.source_of)
    here = np.arange(len(op.place))
    whole = op.take is None and bool((op.source_of[0] == here).all())
    shape = list(op.placed)
    shape[op.axis] *= rounds
    chunks = []
    result = parts.zeros(shape) if rounds > 2 or whole else None
    starts = np.zeros((rounds, len(here), len(shape)), np.int64)
    starts[:, :, op.axis] = (op.place + np.arange(rounds)[:, None]) % rounds * op.placed[op.axis]
    for r, source_of in enumerate(op.source_of):
        chunk = value if op.take is None else parts.slice(value, op.take[r], op.chunk)
        if whole and r:
            chunk = parts.slice(result, starts[0], op.placed)
        if (source_of != here).any():
            chunk = parts.permute(chunk, source_of, op.axes)
        if tuple(chunk.type.shape) != op.placed:
            chunk = hlo.reshape(parts.type(op.placed), chunk)
        if result is None:
            chunks.append(chunk)
            continue
        result = hlo.dynamic_update_slice(result, chunk, parts.starts(starts[r]))
    if result is not None:
        return result
    turned = parts.positive(op.place)
    ordered = [hlo.select(turned, b, a) for a, b in itertools.pairwise([*chunks, chunks[0]])]
    return hlo.concatenate(ordered, op.axis)
