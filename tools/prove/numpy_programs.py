"""A NumPy model of the collectives: runs a device program on real arrays, one for each device.

A witness beside ``simulate``, which follows offsets, and XLA: it has the ops' meaning for elements, and no notion of
tilings. For tests and for people; plans are proved without it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.program import ops
from shardpass.redistribute.program.ops import DeviceProgram, Op

Array = NDArray[Any]
_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def evaluate(program: DeviceProgram, arrays: list[Array]) -> list[Array]:
    """Return the local arrays after ``program``; ``arrays[d]`` is that of device d before."""
    values = list(arrays)
    accumulators: list[Array] = []
    for op in program:
        match op:
            case ops.BeginBoxExchange():
                accumulators = [np.zeros(op.accumulator, v.dtype) for v in values]
                values = [_padded(v, op.value) for v in values]
            case ops.BoxRound():
                _round(op, values, accumulators)
            case ops.EndBoxExchange():
                values = [_trimmed(a, op.shape) for a in accumulators]
            case ops.ChunkRounds():
                values = _chunk_rounds(op, values)
            case _:
                values = _apply(op, values)
    return values


def _apply(op: Op, values: list[Array]) -> list[Array]:
    match op:
        case ops.AsBits():
            return values
        case ops.Reshape():
            return [v.reshape(op.shape) for v in values]
        case ops.Transpose():
            return [v.transpose(op.permutation) for v in values]
        case ops.Pad():
            return [_padded(v, op.shape) for v in values]
        case ops.Trim():
            return [_trimmed(v, op.shape) for v in values]
        case ops.Zeros():
            return [np.zeros(op.shape, v.dtype) for v in values]
        case ops.DynamicSlice():
            return [_window(v, s, op.sizes) for v, s in zip(values, op.starts, strict=True)]
        case ops.Permute():
            return [values[s] if s >= 0 else np.zeros_like(values[0]) for s in map(int, op.source_of)]
        case ops.Slide():
            return [_slid(op, values, d) for d in range(len(values))]
    out = list(values)
    for group in getattr(op, "groups").tolist():  # noqa: B009 - the rest are the ops on groups
        members = [values[d] for d in group]
        for place, d in enumerate(group):
            out[d] = _collected(op, members, place)
    return out


def _slid(op: ops.Slide, values: list[Array], device: int) -> Array:
    own, source = values[device], int(op.source_of[device])
    near = slice(-op.halo, None) if op.before else slice(op.halo)
    rows = np.take(values[source], range(own.shape[op.axis])[near], op.axis) if op.halo else own.take([], op.axis)
    halo = rows if source >= 0 else np.zeros_like(rows)
    joined = np.concatenate([halo, own] if op.before else [own, halo], op.axis)
    pads = [(0, op.slack if a == op.axis else 0) for a in range(own.ndim)]
    start = int(op.starts[device])
    return np.pad(joined, pads).take(range(start, start + op.size), op.axis)


def _collected(op: Op, members: list[Array], place: int) -> Array:
    """Return the value that the device at ``place`` of a group receives."""
    match op:
        case ops.AllGather():
            return np.concatenate(members, op.axis)
        case ops.AllToAll():
            parts = [np.split(m, len(members), op.split)[place] for m in members]
            return np.concatenate(parts, op.concat)
        case ops.AllReduce():
            return functools.reduce(_REDUCTIONS[op.reduction], members)
        case ops.ReduceScatter():
            total = functools.reduce(_REDUCTIONS[op.reduction], members)
            return np.split(total, len(members), op.axis)[place]
    raise TypeError(f"{type(op).__name__} is no op on groups")


def _round(op: ops.BoxRound, values: list[Array], accumulators: list[Array]) -> None:
    boxes = [_window(v, take, op.size) for v, take in zip(values, op.take, strict=True)]
    for d, accumulator in enumerate(accumulators):
        extent = tuple(op.extents[d].tolist())
        if op.source_of[d] >= 0 and all(extent):
            target = tuple(slice(p, p + n) for p, n in zip(op.put[d].tolist(), extent, strict=True))
            accumulator[target] = boxes[int(op.source_of[d])][tuple(slice(n) for n in extent)]


def _chunk_rounds(op: ops.ChunkRounds, values: list[Array]) -> list[Array]:
    rounds = len(op.source_of)
    got: list[list[Array]] = [[values[0]] * rounds for _ in values]
    for r, source_of in enumerate(op.source_of):
        sent = values
        if op.take is not None:
            sent = [_window(v, start, op.chunk) for v, start in zip(values, op.take[r], strict=True)]
        for d, blocks in enumerate(got):
            blocks[int(op.place[d] + r) % rounds] = sent[int(source_of[d])].reshape(op.placed)
    return [np.concatenate(blocks, op.axis) for blocks in got]


def _window(value: Array, start: Array, size: tuple[int, ...]) -> Array:
    return value[tuple(slice(s, s + n) for s, n in zip(start.tolist(), size, strict=True))]


def _padded(value: Array, shape: tuple[int, ...]) -> Array:
    if not shape:  # np.pad refuses to do nothing
        return value
    return np.pad(value, [(0, n - m) for n, m in zip(shape, value.shape, strict=True)])


def _trimmed(value: Array, shape: tuple[int, ...]) -> Array:
    return value[tuple(slice(n) for n in shape)]
