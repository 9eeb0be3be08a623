"""Count flops and bytes of the ops of an HLO program, multiplied by the runs of loops.

1. Operations are those of products and convolutions: two for each multiplication that is added up. A fusion has those
   of the ops inside.
2. Bytes are read and written by ops that run by themselves: operands and results. What only names a buffer (tuples,
   bitcasts, parameters) moves nothing. An op that reads or writes a part of an array (dynamic-slice, gather,
   dynamic-update-slice), by itself or as the way in which a fusion takes an operand, moves that part.
   The elements of the largest array count too; of a product those of a result that is packed, as bf16.
3. On a TPU, products, sums over windows, and copies to another minor dimension have all that they read before they
   start, and write at the end: a kernel waits for the device's memory once for operands that lie there, and once for
   results. A product waits for a result in vector memory too, unless it is of whole tiles, and takes ``product`` of the
   machine besides; a sum over windows waits twice wherever its result lies. What a product has in vector memory takes
   none of the time of the device's memory.
4. On a TPU, copies between the memories of a device run beside the work. A fusion that starts, ends or runs a
   collective only passes its arrays on.
5. A loop's body runs as often as ``trip_counts`` says, else once; each branch of a conditional once.

Example: ``f32[8,16] dot(f32[8,32], f32[32,16])`` in a loop of 12 trips: 12 * 2 * 8 * 32 * 16 operations.

Cost: O(ops).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from shardpass.cost.machine import Work
from shardpass.hlo.read import Computation, HloOp, HloProgram, Shape
from shardpass.hlo.trip_counts import trip_count

_NAMES = """
    parameter constant tuple get-tuple-element bitcast after-all partition-id replica-id opt-barrier
    optimization-barrier iota while conditional call
"""
_NAMES_A_BUFFER = frozenset(_NAMES.split())
_COLLECTIVE = re.compile(r"(?:all-|reduce-scatter|collective-|ragged-|send|recv|async-)")
_TAKES_A_PART = frozenset({"dynamic-slice", "gather", "slice"})
_CONTRACTED = re.compile(r"\blhs_contracting_dims=\{([\d,]*)\}")
_LABELS = re.compile(r"\bdim_labels=(\w+)_(\w+)->(\w+)")
_WINDOW = re.compile(r"\b(stride|pad|lhs_dilate|rhs_dilate)=([-\dx_]+)")
_BESIDE = frozenset({"copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"})
_NAMED = re.compile(r'custom_call_target="(?:ConcatBitcast|AllocateBuffer|(?:Prepare)?Async\w+|Sharding)"')
_PRODUCTS = frozenset({"dot", "convolution"})
_MINOR = re.compile(r"\{(\d+)")
_WHOLE = re.compile(r":T\(8,128\)S\(1\)\}[^{]*$")
_RUNS = frozenset({"call", "while", "conditional", "async-start"})


@dataclass(frozen=True, slots=True)
class OpWork:
    """The work of an op. ``times``: the number of its runs."""

    op: HloOp
    work: Work
    times: int


def work_of(program: HloProgram) -> tuple[OpWork, ...]:
    """List the work of the ops of ``program`` that compute or copy, outside of fusions."""
    return tuple(_works(program))


def _works(program: HloProgram) -> Iterator[OpWork]:
    for name, times in _times(program).items():
        computation = program.computations[name]
        for op in computation.ops.values():
            if op.opcode in _NAMES_A_BUFFER or _COLLECTIVE.match(op.opcode) or op.opcode.endswith("-done"):
                continue
            if op.opcode in _BESIDE or _passes_on(program, op):
                continue
            flops = float(_flops(program, computation, op))
            element = op.shapes[0].element if flops and op.shapes else "f32"  # what computes nothing may be a token
            moved = list(_moved(program, computation, op))
            through = sum(part.bytes for part in moved if not (flops and part.memory))
            waits = _waits(program, computation, op, flops > 0)
            work = Work(flops, element, float(through), _elements(op, flops, moved), waits, flops > 0)
            yield OpWork(op, work, times)


def _elements(op: HloOp, flops: float, moved: Sequence[Shape]) -> float:
    """Count the elements of a kernel's largest array; of a product the results that are packed from f32, and 0 for
    copies within vector memory.
    """
    if flops:
        return float(sum(part.elements for part in op.shapes[-1:] if part.bytes < 4 * part.elements))
    if op.opcode == "copy" and all(part.memory for part in moved):
        return 0.0
    return float(max((part.elements for part in moved), default=0))


def _waits(program: HloProgram, computation: Computation, op: HloOp, product: bool) -> float:
    """Count how often a kernel waits for the device's memory before or after its work."""
    inner = _inside(program, op)
    sides = [shape for name in op.operands for shape in _shapes(computation, name)], op.shapes
    reads, writes = (any(shape.elements > 1 and not shape.memory for shape in side) for side in sides)
    if product:
        return reads + (writes or not _WHOLE.search(op.type))
    if any(one.opcode == "reduce-window" for one in ([op] if inner is None else inner.ops.values())):
        return reads + 2
    given = computation.ops.get(op.operands[0]) if op.opcode == "copy" else None
    turns = given is not None and _MINOR.findall(given.type)[:1] != _MINOR.findall(op.type)[:1]
    return turns * (reads + writes)


def _times(program: HloProgram) -> dict[str, int]:
    """Count the runs of each computation, except the computations of fusions."""
    runs: dict[str, int] = {}
    todo = [(program.entry, 1)]
    while todo:
        name, times = todo.pop()
        if name not in program.computations:
            continue
        runs[name] = runs.get(name, 0) + times
        for op in program.computations[name].ops.values():
            if op.opcode in _RUNS:
                trips = trip_count(program, name, op) or 1 if op.opcode == "while" else 1
                todo += [(called, times * trips) for _, called in op.called]
    return runs


def _inside(program: HloProgram, op: HloOp) -> Computation | None:
    """Return the computation of a fusion."""
    named = next((name for attribute, name in op.called if attribute == "calls"), "") if op.opcode == "fusion" else ""
    return program.computations.get(named)


def _passes_on(program: HloProgram, op: HloOp) -> bool:
    """Return whether an op only names buffers, or is a collective in the form of a fusion."""
    inner = _inside(program, op)
    root = op if inner is None else inner.root
    if root is not None and root.opcode == "custom-call" and _NAMED.search(root.attributes):
        return True
    return inner is not None and any(name.startswith("all-reduce-scatter") for _, name in op.called)


def _flops(program: HloProgram, computation: Computation, op: HloOp) -> int:
    inner = _inside(program, op)
    if inner is not None:
        return sum(_flops(program, inner, one) for one in inner.ops.values())
    if op.opcode not in _PRODUCTS:
        return 0
    sizes = [_sizes(computation, name) for name in op.operands[:2]]
    if op.opcode == "dot" and sizes and op.shapes:
        named = _CONTRACTED.search(op.attributes)
        dims = [int(dim) for dim in named[1].split(",") if dim] if named else []
        contracted = prod(sizes[0][dim] for dim in dims if dim < len(sizes[0]))
        return 2 * op.shapes[0].elements * contracted
    if op.opcode == "convolution" and len(sizes) == 2 and op.shapes:
        labels = _LABELS.search(op.attributes)
        if labels is not None and (len(sizes[0]), len(sizes[1])) == (len(labels[1]), len(labels[2])):
            return _convolution(op, labels, *sizes)
    return 0


def _convolution(op: HloOp, labels: re.Match[str], array: tuple[int, ...], kernel: tuple[int, ...]) -> int:
    """Count two operations for each element of the kernel that meets an element of the array.

    XLA:TPU writes the batch dimension of a product as a window as long as the array, which is dilated so that one
    element of it meets one of the kernel. What meets padding, or a gap of the dilation, is not counted.

    Example: ``window={size=32 stride=31 lhs_dilate=32}`` on 32 elements: 32 pairs, not 32 * 32.
    """
    given = dict(_WINDOW.findall(op.attributes))
    ends = op.shapes[0].sizes
    pairs, spatial = 1, sorted(letter for letter in labels[1] if letter.isdigit())
    for place, letter in enumerate(spatial):
        stride, spread, gaps = (_part(given.get(name, ""), place, 1) for name in ("stride", "lhs_dilate", "rhs_dilate"))
        before = _part(given.get("pad", ""), place, 0)
        size, taps = array[labels[1].index(letter)], kernel[labels[2].index(letter)]
        count = ends[labels[3].index(letter)] if letter in labels[3] and len(labels[3]) == len(ends) else 1
        starts = np.arange(count)[:, None] * stride + np.arange(taps)[None] * gaps - before
        meets = (starts >= 0) & (starts <= (size - 1) * spread) & (starts % spread == 0)
        pairs *= int(meets.sum())
    others = prod(size for letter, size in zip(labels[3], ends, strict=False) if not letter.isdigit())
    return 2 * others * pairs * (kernel[labels[2].index("i")] if "i" in labels[2] else 1)


def _part(text: str, place: int, usual: int) -> int:
    """Return entry ``place`` of an HLO window attribute such as ``4x1``; ``usual`` if it has no such entry.

    Of padding such as ``1_1x0_2`` (low_high), returns the low padding.
    """
    parts = text.split("x")
    return int(parts[place].split("_")[0]) if text and place < len(parts) else usual


def _moved(program: HloProgram, computation: Computation, op: HloOp) -> Iterator[Shape]:
    """Yield the shapes of the arrays, or parts of arrays, that ``op`` reads and writes."""
    if op.opcode in _TAKES_A_PART:
        yield from 2 * op.shapes
        return
    if op.opcode == "dynamic-update-slice" and len(op.operands) > 1:
        yield from 2 * _shapes(computation, op.operands[1])
        return
    inner = _inside(program, op)
    if inner is None:
        yield from op.shapes
        for name in op.operands:
            yield from _shapes(computation, name)
        return
    root, passed = inner.root, _passed(inner)
    updated = root if root is not None and root.opcode == "dynamic-update-slice" and len(root.operands) > 1 else None
    written = op.shapes if updated is None else _shapes(inner, updated.operands[1])
    left = [shape for name in passed for shape in inner.ops[name].shapes]
    for shape in written:
        if shape in left:
            left.remove(shape)
        else:
            yield shape
    for number, name in enumerate(op.operands):
        parameter = inner.parameters.get(number)
        if parameter is None:
            continue
        users = inner.users.get(parameter.name, [])
        if parameter.name in passed and len(users) == sum(_only_passes(user) for user in users):
            continue
        if users and all(
            user.operands[0] == parameter.name and (user.opcode in _TAKES_A_PART or user is updated) for user in users
        ):
            yield from (shape for user in users if user is not updated for shape in user.shapes)
        else:
            yield from _shapes(computation, name)


def _sizes(computation: Computation, name: str) -> tuple[int, ...]:
    op = computation.ops.get(name)
    return op.shapes[0].sizes if op is not None and op.shapes else ()


def _shapes(computation: Computation, name: str) -> tuple[Shape, ...]:
    op = computation.ops.get(name)
    return () if op is None else op.shapes


def _passed(inner: Computation) -> frozenset[str]:
    """Return the names of the results of a fusion that belong to a collective and not to the fusion's kernel."""
    root = inner.root
    if root is None or root.opcode != "tuple":
        return frozenset()
    return frozenset(n for n in root.operands if n in inner.ops and _is_passed(inner.ops[n]))


def _is_passed(op: HloOp) -> bool:
    return op.opcode == "parameter" or _COLLECTIVE.match(op.opcode) is not None


def _only_passes(user: HloOp) -> bool:
    return user.opcode == "tuple" or _COLLECTIVE.match(user.opcode) is not None
