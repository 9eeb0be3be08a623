"""The simulator's rules for the ops that move boxes of the array: the box exchange, and tiles whose borders slide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.digits import Digit, Unproven, merged
from shardpass.redistribute.program.state import State


def simulate_box_exchange(
    state: State,
    begin: ops.BeginBoxExchange,
    rounds: list[ops.BoxRound],
    end: ops.EndBoxExchange,
    shape: tuple[int, ...],
) -> State:
    """Return the tiles that ``end`` claims; a device is real if the rounds fill its tile, each element exactly once."""
    if state.axes != State.tile(state.shape, state.base).axes or (state.weight != state.weight[0]).any():
        raise Unproven("an exchange starts from tiles")
    whole = np.array(shape, np.int64)
    value = np.minimum(state.base + state.shape, whole)  # the ends of the tiles before, less the padding
    result = np.minimum(end.base + end.shape, whole)
    written: list[tuple[IntArray, IntArray, NDArray[np.bool_]]] = []
    filled = np.zeros(len(state.base), np.int64)
    for one in rounds:
        got = (one.source_of >= 0) & (one.extents > 0).all(axis=1)
        sender = np.where(got, one.source_of, 0)
        low = end.base + one.put
        high = low + one.extents
        wrong = got & (
            ~state.real[sender]
            | (state.base[sender] + one.take[sender] != low).any(axis=1)
            | (high > value[sender]).any(axis=1)
            | (low < end.base).any(axis=1)
            | (high > result).any(axis=1)
            | (one.extents > one.size).any(axis=1)
        )
        out = (one.take + one.size > begin.value) | (one.put + one.size > begin.accumulator)
        if wrong.any() or out.any():
            raise Unproven(f"a round of an exchange is wrong for device {int(np.argmax(wrong))}")
        senders = one.source_of[one.source_of >= 0]
        if len(np.unique(senders)) != len(senders):
            raise Unproven("a device sends twice in one round")
        for before, after, then in written:
            if (got & then & (np.maximum(before, low) < np.minimum(after, high)).all(axis=1)).any():
                raise Unproven("two rounds of an exchange write the same element")
        written.append((low, high, got))
        filled += np.prod(high - low, axis=1) * got
    real = filled == np.prod(np.maximum(result - end.base, 0), axis=1)
    return State.tile(end.shape, end.base, real, state.weight)


def simulate_slide(state: State, op: ops.Slide, shape: tuple[int, ...]) -> State:
    """Return the tiles that ``op`` claims, after checking that each device or its neighbour had every row of the new
    tile.
    """
    dim, have = op.axis, state.shape[op.axis]
    if state.axes[dim] != merged([Digit(have, dim, 1)]) or not state.real.all():
        raise Unproven("borders slide where there are no tiles")
    extent = have + op.halo + op.slack
    if op.halo > have or (op.starts < 0).any() or (op.starts + op.size > extent).any():
        raise Unproven("a tile slides past the rows that the device has")
    receivers = np.flatnonzero(op.source_of >= 0)
    senders = op.source_of[receivers]
    if len(np.unique(senders)) != len(senders):
        raise Unproven("a device sends twice in one round")
    beside = state.base[receivers]
    beside[:, dim] += -have if op.before else have
    if (state.base[senders] != beside).any() or (state.weight[senders] != state.weight[receivers]).any():
        raise Unproven("a neighbour does not lie where it should")
    low, high = (
        state.base[:, dim].copy(),
        state.base[:, dim] + have,
    )  # the rows that the device has: its own and the halo
    if op.before:
        low[receivers] -= op.halo
    else:
        high[receivers] += op.halo
    start, stop = op.base, np.minimum(op.base + op.size, shape[dim])
    is_cut = state.base[:, dim] + op.starts - (op.halo if op.before else 0) == start
    if ((start < stop) & ~(is_cut & (low <= start) & (stop <= high))).any():
        raise Unproven("a tile that slides lacks some of its rows")
    base = state.base.copy()
    base[:, dim] = op.base
    axes = list(state.axes)
    axes[dim] = merged([Digit(op.size, dim, 1)])
    return replace(state, axes=tuple(axes), base=base)
