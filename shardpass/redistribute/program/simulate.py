"""Follows a program by offsets alone, and so proves it: ``check`` runs on every plan before it leaves.

State, the same shape on every device: each axis of the local array is a list of *digits* (size, dimension, stride),
major to minor: as the position on the axis goes through a digit, the element moves by ``stride`` along
a dimension of the whole array. What differs from device to device is the *base*, the whole-array index of the local
array's first element: int64 [devices, rank]. A tile is an axis per dimension with one digit of stride 1, so for the
paper's collectives this is its base offset map; digits of other strides are tiles that are not contiguous, as
fused collectives pass through.

Each op is total on states that it can describe exactly and raises ``Unproven`` on all others; a plan with an unproven
step is never handed out. Cost: O(devices * rank) for each op, whatever the array's size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.program import ops
from shardpass.redistribute.program.ops import IntArray, Op, Program


class Unproven(Exception):
    """A program that does not do what it should, or not in a way that can be followed."""


@dataclass(frozen=True, slots=True)
class Digit:
    size: int
    dim: int
    stride: int


Axis = tuple[Digit, ...]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The local arrays of all devices; see the module's docstring."""

    axes: tuple[Axis, ...]
    base: IntArray  # [devices, rank]
    real: NDArray[np.bool_]  # [devices]: whether the device holds anything in particular
    weight: NDArray[np.uint64]  # [devices]: which summands of a partial sum it holds; see ``fingerprints``

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(math.prod(digit.size for digit in axis) for axis in self.axes)

    @classmethod
    def tile(
        cls,
        shape: tuple[int, ...],
        base: IntArray,
        real: NDArray[np.bool_] | None = None,
        weight: NDArray[np.uint64] | None = None,
    ) -> State:
        """Contiguous tiles of ``shape`` that start at ``base``; of whole values unless a weight says otherwise."""
        real = np.ones(len(base), bool) if real is None else real
        weight = np.zeros(len(base), np.uint64) if weight is None else weight
        return cls(tuple(merged([Digit(n, i, 1)]) for i, n in enumerate(shape)), base, real, weight)


def fingerprints(count: int) -> NDArray[np.uint64]:
    """A random number for each of ``count`` summands. Sums of them, modulo 2**64, tell sets of summands apart.

    A wrong set passes for a right one with probability 2**-64.
    """
    return np.random.default_rng(0x5DF).integers(1 << 63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def merged(digits: list[Digit] | Axis) -> Axis:
    """Digits in their fewest: neighbours that continue each other are one, those of size 1 are none."""
    out: list[Digit] = []
    for digit in digits:
        if digit.size == 1:
            continue
        if out and out[-1].dim == digit.dim and out[-1].stride == digit.size * digit.stride:
            digit = Digit(out.pop().size * digit.size, digit.dim, digit.stride)
        out.append(digit)
    return tuple(out)


def cut(axis: Axis, minor: int) -> tuple[Axis, Axis]:
    """The major and the minor part of an axis, the minor one of ``minor`` positions."""
    low: list[Digit] = []
    high = list(axis)
    while minor > 1:
        if not high:
            raise Unproven(f"an axis has no part of {minor} positions")
        digit = high.pop()
        part = math.gcd(digit.size, minor)
        if part == digit.size:
            low.insert(0, digit)
        elif part == minor:
            low.insert(0, Digit(minor, digit.dim, digit.stride))
            high.append(Digit(digit.size // minor, digit.dim, digit.stride * minor))
        else:
            raise Unproven(f"an axis digit of {digit.size} cannot be cut at {minor}")
        minor //= part
    return tuple(high), tuple(low)


def offsets(axis: Axis, position: IntArray, rank: int) -> IntArray:
    """Where ``position`` (int64 [n]) on ``axis`` lies in the whole array, from the axis's start. [n, rank]."""
    out = np.zeros((len(position), rank), np.int64)
    left = position
    for digit in reversed(axis):
        out[:, digit.dim] += left % digit.size * digit.stride
        left = left // digit.size
    return out


def axis_through(delta: IntArray) -> Axis:
    """The axis whose ``j``-th position lies ``delta[j]`` (int64 [n, rank]) from its start."""
    minor_first: list[Digit] = []
    rest = delta
    while len(rest) > 1:
        step = rest[1] - rest[0]
        dims = np.flatnonzero(step)
        size = _linear(rest, step)
        if len(dims) != 1 or size == 1:
            raise Unproven("what a group holds is not a sub-array")
        minor_first.append(Digit(size, int(dims[0]), int(step[dims[0]])))
        rest = rest[::size]
    return merged(minor_first[::-1])


def _linear(rows: IntArray, step: IntArray) -> int:
    """The longest run from the start that goes by ``step`` and repeats, shifted, through all rows."""
    breaks = np.flatnonzero((np.diff(rows, axis=0) != step).any(axis=1))
    size = int(breaks[0]) + 1 if len(breaks) else len(rows)
    while size > 1:
        if len(rows) % size == 0:
            blocks = rows.reshape(-1, size, rows.shape[1])
            if (blocks - blocks[:, :1] == blocks[0] - blocks[0, 0]).all():
                return size
        size -= 1
    return 1


def _group_axis(state: State, groups: IntArray) -> Axis:
    """How the arrays of a group lie to each other; every group must lie alike, and hold every device once."""
    devices = len(state.base)
    if groups.size != devices or len(np.unique(groups)) != devices:
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
    """The base of the first of its group, for each device."""
    out = np.empty_like(base)
    out[groups] = base[groups[:, :1]]
    return out


def apply(state: State, op: Op) -> State:
    """The state after one op. Raises Unproven."""
    rank = state.base.shape[1]
    axes = list(state.axes)
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
        blocks, axes[op.split] = cut(axes[op.split], state.shape[op.split] // op.groups.shape[1])
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
    """Padding and trimming, where an axis is whole in the array: its end may hold anything."""
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
                raise Unproven("a slice is not aligned with what lies on its axis")
            major, axes[a] = cut(axes[a], size)
            base = base + offsets(major, start // size, base.shape[1])
    return replace(state, axes=tuple(axes), base=base)


def _reduced(state: State, op: ops.AllReduce | ops.ReduceScatter) -> State:
    """Every member adds the same part of the array; the weights are what is added."""
    devices, rank = state.base.shape
    if op.groups.size != devices or len(np.unique(op.groups)) != devices or not state.real.all():
        raise Unproven("the groups do not hold every device once")
    if (state.base[op.groups] != state.base[op.groups[:, :1]]).any():
        raise Unproven("a group adds different parts of the array")
    weight = np.empty_like(state.weight)
    weight[op.groups] = state.weight[op.groups].sum(axis=1, keepdims=True, dtype=np.uint64)
    state = replace(state, weight=weight)
    if isinstance(op, ops.AllReduce):
        return state
    axes = list(state.axes)
    blocks, axes[op.axis] = cut(axes[op.axis], state.shape[op.axis] // op.groups.shape[1])
    return replace(state, axes=tuple(axes), base=state.base + offsets(blocks, _place(op.groups), rank))


def _place(groups: IntArray) -> IntArray:
    """The place of each device in its group."""
    place = np.empty(groups.size, np.int64)
    place[groups] = np.arange(groups.shape[1])
    return place


def _chunked(state: State, op: ops.ChunkRounds) -> State:
    """The digits inside a chunk stay; those that tell a device's chunks apart follow from where the chunks lie."""
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


def run(program: Program, state: State, shape: tuple[int, ...]) -> State:
    """The state after ``program``; ``shape`` is the whole array's. Raises Unproven."""
    left = list(program)
    while left:
        op = left.pop(0)
        if isinstance(op, ops.BeginExchange):
            begin, rounds = op, []
            while isinstance(op := left.pop(0), ops.Round):
                rounds.append(op)
            if not isinstance(op, ops.EndExchange):
                raise Unproven("an exchange has no end")
            state = _exchanged(state, begin, rounds, op, shape)
        elif isinstance(op, ops.Slide):
            state = _slid(state, op, shape)
        else:
            state = apply(state, op)
    return state


def _exchanged(
    state: State,
    begin: ops.BeginExchange,
    rounds: list[ops.Round],
    end: ops.EndExchange,
    shape: tuple[int, ...],
) -> State:
    """The tiles that the exchange claims to make, where every element of them is put there once, rightly."""
    if state.axes != State.tile(state.shape, state.base).axes or (state.weight != state.weight[0]).any():
        raise Unproven("an exchange starts from tiles")
    whole = np.array(shape, np.int64)
    value = np.minimum(state.base + state.shape, whole)  # where what is real ends
    result = np.minimum(end.base + end.shape, whole)
    written: list[tuple[IntArray, IntArray, NDArray[np.bool_]]] = []
    filled = np.zeros(len(state.base), np.int64)
    for step in rounds:
        got = (step.source_of >= 0) & (step.extents > 0).all(axis=1)
        sender = np.where(got, step.source_of, 0)
        low = end.base + step.put
        high = low + step.extents
        wrong = got & (
            ~state.real[sender]
            | (state.base[sender] + step.take[sender] != low).any(axis=1)
            | (high > value[sender]).any(axis=1)
            | (low < end.base).any(axis=1)
            | (high > result).any(axis=1)
            | (step.extents > step.size).any(axis=1)
        )
        out = (step.take + step.size > begin.value) | (step.put + step.size > begin.accumulator)
        if wrong.any() or out.any():
            raise Unproven(f"a round of an exchange is wrong for device {int(np.argmax(wrong))}")
        senders = step.source_of[step.source_of >= 0]
        if len(np.unique(senders)) != len(senders):
            raise Unproven("a device sends twice in one round")
        for before, after, then in written:
            if (got & then & (np.maximum(before, low) < np.minimum(after, high)).all(axis=1)).any():
                raise Unproven("two rounds of an exchange write the same element")
        written.append((low, high, got))
        filled += np.prod(high - low, axis=1) * got
    real = filled == np.prod(np.maximum(result - end.base, 0), axis=1)
    return State.tile(end.shape, end.base, real, state.weight)


def _slid(state: State, op: ops.Slide, shape: tuple[int, ...]) -> State:
    """Tiles whose borders have moved: what a device now claims it held, or its neighbour did, right beside it."""
    dim, have = op.axis, state.shape[op.axis]
    if state.axes[dim] != merged([Digit(have, dim, 1)]) or not state.real.all():
        raise Unproven("borders slide where there are no tiles")
    extent = have + op.halo + op.slack
    if op.halo > have or (op.starts < 0).any() or (op.starts + op.size > extent).any():
        raise Unproven("a tile slides past what is there")
    receivers = np.flatnonzero(op.source_of >= 0)
    senders = op.source_of[receivers]
    if len(np.unique(senders)) != len(senders):
        raise Unproven("a device sends twice in one round")
    beside = state.base[receivers]
    beside[:, dim] += -have if op.before else have
    if (state.base[senders] != beside).any() or (state.weight[senders] != state.weight[receivers]).any():
        raise Unproven("a neighbour does not lie where it should")
    low, high = state.base[:, dim].copy(), state.base[:, dim] + have  # of what is there
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


def check(program: Program, source: State, target: State, shape: tuple[int, ...]) -> None:
    """Raises Unproven unless ``program`` takes ``source`` to ``target``, element for element.

    What is not real in ``source`` is not used, and what is not real in ``target`` is not asked for.
    """
    found = run(program, source, shape)
    if found.axes != target.axes:
        raise Unproven(f"the result is laid out as {found.axes}, not as {target.axes}")
    lacking = np.flatnonzero(target.real & ~found.real)
    if len(lacking):
        raise Unproven(f"device {int(lacking[0])} is not sent all of its tile")
    if (target.real & (found.weight != target.weight)).any():
        raise Unproven("the result is not the sum that it should be")
    wrong = np.flatnonzero(target.real & (found.base != target.base).any(axis=1))
    if len(wrong):
        d = int(wrong[0])
        raise Unproven(
            f"device {d} ends with the tile at {found.base[d].tolist()} instead of {target.base[d].tolist()}"
        )
