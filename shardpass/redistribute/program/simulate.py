"""Prove a device program by simulating it on offsets: ``check`` runs on every plan before it is returned.

Problem: show that a program takes every device from its source tile to its target tile, without an array.

State (``state``): the pattern by which a local array's elements lie in the whole array, as digits of each axis, which
is the same on every device; and the *base*, the whole-array index of its first element, of each device. For the
contiguous tiles of the paper's collectives the base is the paper's base offset map; other patterns are arrays that
are not contiguous, as fused collectives pass through. A *weight* for each device identifies its partial sums.

1. Local ops (reshape, transpose, pad, trim, slice) change the pattern, and a slice the base.
2. all_gather and all_to_all need groups that lie alike: the members' bases differ in the same way in each group. These
   differences become a new most major digit of the axis along which the arrays are joined.
3. all_reduce and reduce_scatter need members with the same base; their weights are added.
4. A permute moves bases and weights. Rounds of chunks are an all_to_all whose members come from anywhere.
5. Boxes and slides (``simulate_boxes``) are followed element range by element range.

Example: an 8x8 array in four tiles of 2x8, all_to_all with split axis 1 and concat axis 0. Before, the axes are the
digits (2, dim 0, stride 1) and (8, 1, 1), with base (2d, 0) on device d. Bases in the group differ by 2 rows: the digit
(4, 0, 2) joins axis 0, which becomes (8, 0, 1). Axis 1 is cut to (2, 1, 1), and device d has its part d: base (0, 2d).

Invariants: each op is exact on the states that it can describe, and raises ``Unproven`` on all others; a plan with an
unproven op is never handed out. O(devices * rank) for each op, whatever the array's size.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shardpass.redistribute.problem.device_arrays import IntArray, names_each_once
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.digits import Axis, Digit, Unproven, axis_through, cut, merged, offsets
from shardpass.redistribute.program.ops import DeviceProgram, Op
from shardpass.redistribute.program.simulate_boxes import simulate_box_exchange, simulate_slide
from shardpass.redistribute.program.state import State


def _group_axis(state: State, groups: IntArray) -> Axis:
    """Return the digits by which the arrays of a group lie to each other, alike in all groups (case 2)."""
    devices = len(state.base)
    if not names_each_once(groups, devices):
        raise Unproven("the groups do not hold every device once")
    if not state.real.all():
        raise Unproven("a group works on a device that holds nothing")
    if (state.weight[groups] != state.weight[groups[:, :1]]).any():
        raise Unproven("a group joins different summands")
    rows = state.base[groups]
    delta = rows - rows[:, :1]
    if (delta != delta[0]).any():
        raise Unproven("the groups do not lie alike")
    return axis_through(delta[0])


def _first(base: IntArray, groups: IntArray) -> IntArray:
    """Return the base of the first device in the group of each device."""
    out = np.empty_like(base)
    out[groups] = base[groups[:, :1]]
    return out


def apply(state: State, op: Op) -> State:
    """Return the state after one op. Raises Unproven."""
    rank = state.base.shape[1]
    axes = list(state.axes)
    if isinstance(op, ops.AsBits):
        return state
    if isinstance(op, ops.Reshape):
        return replace(state, axes=_regrouped(state.axes, op.shape))
    if isinstance(op, ops.Transpose):
        return replace(state, axes=tuple(axes[a] for a in op.permutation))
    if isinstance(op, ops.Pad | ops.Trim):
        return _resized(state, op.shape)
    if isinstance(op, ops.Zeros):
        if math.prod(op.shape) != 0:
            raise Unproven("an array with elements is made of nothing")
        return State.tile(op.shape, state.base)
    if isinstance(op, ops.DynamicSlice):
        return _sliced(state, op)
    if isinstance(op, ops.AllGather):
        axes[op.axis] = merged(_group_axis(state, op.groups) + axes[op.axis])
        return replace(state, axes=tuple(axes), base=_first(state.base, op.groups))
    if isinstance(op, ops.AllToAll):
        blocks, axes[op.split] = _split(state, op.split, op.groups)
        axes[op.concat] = merged(_group_axis(state, op.groups) + axes[op.concat])
        base = _first(state.base, op.groups) + offsets(blocks, _place(op.groups), rank)
        return replace(state, axes=tuple(axes), base=base)
    if isinstance(op, ops.AllReduce | ops.ReduceScatter):
        return _reduced(state, op)
    if isinstance(op, ops.Permute):
        real = state.real[op.source_of] & (op.source_of >= 0)
        return State(state.axes, state.base[op.source_of], real, state.weight[op.source_of])
    if isinstance(op, ops.ChunkRounds):
        return _chunked(state, op)
    raise Unproven(f"{type(op).__name__} cannot be followed")


def _regrouped(axes: tuple[Axis, ...], shape: tuple[int, ...]) -> tuple[Axis, ...]:
    rest: Axis = tuple(digit for axis in axes for digit in axis)
    if math.prod(d.size for d in rest) != math.prod(shape):
        raise Unproven(f"a reshape to {shape} changes the number of elements")
    out: list[Axis] = []
    for n in reversed(shape):
        rest, axis = cut(rest, n)
        out.append(merged(axis))
    return tuple(reversed(out))


def _resized(state: State, shape: tuple[int, ...]) -> State:
    """Pad or trim an axis that is whole in the array; the values in the padding are arbitrary."""
    axes = list(state.axes)
    for a, (n, have) in enumerate(zip(shape, state.shape, strict=True)):
        if n != have:
            if axes[a] != merged([Digit(have, a, 1)]) or state.base[:, a].any():
                raise Unproven(f"axis {a} is resized but is not the whole of dimension {a}")
            axes[a] = merged([Digit(n, a, 1)])
    return replace(state, axes=tuple(axes))


def _sliced(state: State, op: ops.DynamicSlice) -> State:
    axes = list(state.axes)
    base = state.base
    for a, (size, have) in enumerate(zip(op.sizes, state.shape, strict=True)):
        start = op.starts[:, a]
        if (start < 0).any() or (start + size > have).any():
            raise Unproven("a slice reaches past its operand")
        if size == have:
            continue
        if len(axes[a]) == 1:
            digit = axes[a][0]
            base = base + offsets(axes[a], start, base.shape[1])
            axes[a] = merged([Digit(size, digit.dim, digit.stride)])
        else:
            if (start % size).any():
                raise Unproven("a slice is not aligned with the digits of its axis")
            major, axes[a] = cut(axes[a], size)
            base = base + offsets(major, start // size, base.shape[1])
    return replace(state, axes=tuple(axes), base=base)


def _reduced(state: State, op: ops.AllReduce | ops.ReduceScatter) -> State:
    """Add the weights of the members of a group, which must have the same part of the array (case 3)."""
    devices, rank = state.base.shape
    if not names_each_once(op.groups, devices) or not state.real.all():
        raise Unproven("the groups do not hold every device once")
    if (state.base[op.groups] != state.base[op.groups[:, :1]]).any():
        raise Unproven("a group adds different parts of the array")
    weight = np.empty_like(state.weight)
    weight[op.groups] = state.weight[op.groups].sum(axis=1, keepdims=True, dtype=np.uint64)
    state = replace(state, weight=weight)
    if isinstance(op, ops.AllReduce):
        return state
    axes = list(state.axes)
    blocks, axes[op.axis] = _split(state, op.axis, op.groups)
    return replace(state, axes=tuple(axes), base=state.base + offsets(blocks, _place(op.groups), rank))


def _split(state: State, axis: int, groups: IntArray) -> tuple[Axis, Axis]:
    """Split an axis into one block per group member: the digits across blocks, and the digits inside a block."""
    whole, members = state.shape[axis], groups.shape[1]
    if whole % members:
        raise Unproven(f"axis {axis} of {whole} positions has no {members} equal blocks")
    return cut(state.axes[axis], whole // members)


def _place(groups: IntArray) -> IntArray:
    """Return each device's position in its group."""
    place = np.empty(groups.size, np.int64)
    place[groups] = np.arange(groups.shape[1])
    return place


def _chunked(state: State, op: ops.ChunkRounds) -> State:
    """Return the state after chunk rounds: digits inside a chunk stay, the others follow from the chunks' places."""
    devices, rank = state.base.shape
    rounds = len(op.source_of)
    if not state.real.all() or (np.sort(op.source_of, axis=1) != np.arange(devices)).any():
        raise Unproven("the sources of a round are not all devices, once each")
    if any(n > have for n, have in zip(op.chunk, state.shape, strict=True)):
        raise Unproven("a chunk is greater than its operand")
    starts = np.broadcast_to(state.base, (rounds, devices, rank))  # of the chunk that a device sends
    inner = [cut(axis, size) for axis, size in zip(state.axes, op.chunk, strict=True)]
    if op.take is not None:
        if (op.take < 0).any() or (op.take + op.chunk > state.shape).any() or (op.take % op.chunk).any():
            raise Unproven("a chunk is not a block of its operand")
        for a, (major, _) in enumerate(inner):
            block = op.take[:, :, a].ravel() // op.chunk[a]
            starts = starts + offsets(major, block, rank).reshape(starts.shape)
    elif op.chunk != state.shape:
        raise Unproven("a chunk is less than its operand")
    got = np.take_along_axis(starts, op.source_of[:, :, None], axis=1)
    block = (op.place + np.arange(rounds)[:, None]) % rounds  # [rounds, devices]
    ordered = np.take_along_axis(got, np.argsort(block, axis=0)[:, :, None], axis=0)
    delta = ordered - ordered[:1]
    if (delta != delta[:, :1]).any():
        raise Unproven("the chunks of two devices do not lie alike")
    axes = list(_regrouped(tuple(minor for _, minor in inner), op.placed))
    axes[op.axis] = merged(axis_through(delta[:, 0]) + axes[op.axis])
    if (state.weight[op.source_of] != state.weight).any():
        raise Unproven("summands are mixed")
    return replace(state, axes=tuple(axes), base=ordered[0])


def run(program: DeviceProgram, state: State, shape: tuple[int, ...]) -> State:
    """Return the state after ``program``; ``shape`` is the whole array's. Raises Unproven."""
    left = list(program)
    while left:
        op = left.pop(0)
        if isinstance(op, ops.BeginBoxExchange):
            begin, rounds = op, []
            while isinstance(op := left.pop(0), ops.BoxRound):
                rounds.append(op)
            if not isinstance(op, ops.EndBoxExchange):
                raise Unproven("an exchange has no end")
            state = simulate_box_exchange(state, begin, rounds, op, shape)
        elif isinstance(op, ops.Slide):
            state = simulate_slide(state, op, shape)
        else:
            state = apply(state, op)
    return state


def check(program: DeviceProgram, source: State, target: State, shape: tuple[int, ...]) -> None:
    """Simulate ``program`` on tiles of ``source``. Raises Unproven unless each device ends with its tile of
    ``target``, element for element.

    Devices that are not real in ``source`` have nothing that may be used; those not real in ``target`` need nothing.
    """
    reached = run(program, source, shape)
    if reached.axes != target.axes:
        raise Unproven(f"the result is laid out as {reached.axes}, not as {target.axes}")
    lacking = np.flatnonzero(target.real & ~reached.real)
    if len(lacking):
        raise Unproven(f"device {int(lacking[0])} is not sent all of its tile")
    if (target.real & (reached.weight != target.weight)).any():
        raise Unproven("the result is not the sum that it should be")
    wrong = np.flatnonzero(target.real & (reached.base != target.base).any(axis=1))
    if len(wrong):
        d = int(wrong[0])
        raise Unproven(
            f"device {d} ends with the tile at {reached.base[d].tolist()} instead of {target.base[d].tolist()}"
        )
