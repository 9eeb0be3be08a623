"""Stop donated moves of arrays between devices at each moment, and look for arrays that are lost.

After each exception every array must be reachable and whole, at its source or at its target: in ``error.arrays``, or in
the caller's tree where the move has not begun.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dis import get_instructions
from types import CodeType, FrameType
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import shardpass.jax as spj
from shardpass.jax import between, offsets, transport

P = PartitionSpec
OURS = {spj.redistribute.__code__.co_filename, between.__file__, offsets.__file__, transport.__file__}


class Stop(BaseException):
    """What a handler of signals raises."""


def lost(leaves: Sequence[Any], wanted: Sequence[Any], places: Sequence[Sequence[Any]]) -> list[int]:
    """List the leaves that are deleted, hold other numbers, or are at none of their ``places`` (shardings)."""

    def kept(leaf: Any, numbers: Any, ends: Sequence[Any]) -> bool:
        return not leaf.is_deleted() and leaf.sharding in ends and np.array_equal(np.asarray(leaf), numbers)

    each = zip(leaves, wanted, places, strict=True)
    return [k for k, one in enumerate(each) if not kept(*one)]


def stopped(call: Callable[[], Any], moment: int | None, within: Callable[[CodeType], bool]) -> int:
    """Run ``call``, and raise ``Stop`` before instruction number ``moment`` of the code ``within``.

    Returns the number of these instructions; None as ``moment`` raises nothing. The last instruction of
    ``redistribute``, its return, is none of them: Python runs no handler of signals between a return and what the
    caller does with the value.
    """
    count = 0
    outermost = spj.redistribute.__code__
    ends = {at for at, _ in _returns(outermost)}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        code = frame.f_code
        if event == "call":
            frame.f_trace_opcodes = within(code)
            frame.f_trace_lines = False
        elif event == "opcode" and not (code is outermost and frame.f_lasti in ends):
            if count == moment:
                sys.settrace(None)
                frame.f_trace = None
                raise Stop
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def _returns(code: CodeType) -> list[tuple[int, str]]:
    return [(one.offset, one.opname) for one in get_instructions(code) if one.opname.startswith("RETURN_")]


def in_moves(code: CodeType) -> bool:
    """Whether ``code`` has what a move changes in its hands: the list of leaves, or an array that it deletes."""
    return (code.co_filename in OURS and code.co_name in ("redistribute", "move")) or (
        code.co_name == "delete" and code.co_filename.endswith("array.py")
    )


def every_moment(within: Callable[[CodeType], bool], limit: int | str, step: int = 1) -> tuple[int, list[str]]:
    """Stop a small move at each moment, and return the number of moments, and what was lost.

    Its leaves are two arrays for other devices, a third that is also a leaf that stays, an alias of the second, and one
    that goes to another sharding of its own devices.
    """
    devices = np.array(jax.devices())
    here, there = Mesh(devices[:2], ("x",)), Mesh(devices[1:3], ("x",))

    def put(number: int, mesh: Mesh) -> Any:
        return jax.device_put(np.arange(4, dtype=np.int32).reshape(2, 2) + number, NamedSharding(mesh, P("x")))

    def tree() -> list[Any]:
        far = [put(k, here) for k in range(3)]
        return [*far, far[2], jax.device_put(far[1], NamedSharding(here, P("x", None))), put(9, there)]

    target = NamedSharding(there, P(None, "x"))
    targets = [target, target, target, NamedSharding(here, P("x")), target, target]
    wanted = [np.asarray(leaf) for leaf in tree()]
    places = [(leaf.sharding, to) for leaf, to in zip(tree(), targets, strict=True)]

    def move(leaves: list[Any]) -> Any:
        return spj.redistribute(leaves, targets, donate=True, memory_limit=limit)

    move(tree())  # compiles and plans
    leaves = tree()
    total = stopped(lambda: move(leaves), None, within)
    faults = []
    for moment in range(0, total, step):
        leaves = tree()
        try:
            stopped(lambda: move(leaves), moment, within)  # noqa: B023 - called at once
            faults.append(f"moment {moment}: nothing was raised")
        except Stop as error:
            after = getattr(error, "arrays", leaves)
            faults += [f"moment {moment}: leaf {k} is lost" for k in lost(after, wanted, places)]
    return total, faults
