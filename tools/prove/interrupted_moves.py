"""Interrupts donated moves of arrays between devices, and looks for arrays that are lost.

    python -m tools.prove.interrupted_moves                 SIGINT at 200 random moments of moves of 40 arrays
    python -m tools.prove.interrupted_moves --count 1000 --seed 3
    python -m tools.prove.interrupted_moves --every         an exception before each instruction of small moves
    python -m tools.prove.interrupted_moves --every --jax   before those of JAX's own code, too (an hour)

After each interrupt every array must be reachable and whole, at its source or at its target: in ``error.arrays``, in
the result where the move has ended, or in the caller's tree where it has not begun.

Exit status 1 where an array is lost.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
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
    """Lists the leaves that are deleted, hold other numbers, or are at none of their ``places`` (shardings)."""

    def kept(leaf: Any, numbers: Any, ends: Sequence[Any]) -> bool:
        return not leaf.is_deleted() and leaf.sharding in ends and np.array_equal(np.asarray(leaf), numbers)

    each = zip(leaves, wanted, places, strict=True)
    return [k for k, one in enumerate(each) if not kept(*one)]


# --- an exception before each instruction


def stopped(call: Callable[[], Any], moment: int | None, within: Callable[[CodeType], bool]) -> int:
    """Runs ``call``, and raises ``Stop`` before instruction number ``moment`` of the code ``within``.

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
    from dis import get_instructions

    return [(one.offset, one.opname) for one in get_instructions(code) if one.opname.startswith("RETURN_")]


def in_moves(code: CodeType) -> bool:
    """Whether ``code`` has what a move changes in its hands: the list of leaves, or an array that it deletes."""
    return (code.co_filename in OURS and code.co_name in ("redistribute", "move")) or (
        code.co_name == "delete" and code.co_filename.endswith("array.py")
    )


def in_ours(code: CodeType) -> bool:
    return in_moves(code) or code.co_filename in OURS


def every_moment(within: Callable[[CodeType], bool], limit: int | str, step: int = 1) -> tuple[int, list[str]]:
    """Stops a small move at each moment. Returns the number of moments, and what was lost.

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


# --- kill -INT


def random_moments(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Interrupts moves of 40 arrays ``count`` times while they run. Returns when it was, and what was lost."""
    rng = random.Random(seed)
    devices = np.array(jax.devices())
    six, four = Mesh(devices[:6], ("x",)), Mesh(devices[4:8].reshape(2, 2), ("a", "b"))
    source, target = NamedSharding(six, P("x")), NamedSharding(four, P(None, "b"))
    wanted = [np.arange(96 * 64, dtype=np.float32).reshape(96, 64) + k for k in range(40)]
    when: Counter[str] = Counter()
    faults = []
    seconds: dict[Any, float] = {}
    while when["while it moved"] < count:
        limit = rng.choice(("max", 700_000, 520_000))
        leaves = [jax.device_put(numbers, source) for numbers in wanted]
        if limit not in seconds:
            spj.redistribute(leaves, target, memory_limit=limit)  # compiles and plans
            start = time.perf_counter()
            spj.redistribute(leaves, target, memory_limit=limit)
            seconds[limit] = time.perf_counter() - start
        jax.block_until_ready(leaves)
        result = None
        delay = rng.uniform(0, 1.1 * seconds[limit])
        killer = subprocess.Popen(
            ["sh", "-c", f"read go; sleep {delay}; kill -INT {os.getpid()}"], stdin=subprocess.PIPE
        )
        assert killer.stdin is not None
        try:
            os.write(killer.stdin.fileno(), b"\n")
            result = spj.redistribute(leaves, target, donate=True, memory_limit=limit)
            killer.wait()
            time.sleep(0.2)
            after, name = result, "in a callback of JAX that ignores exceptions"
        except KeyboardInterrupt as error:
            after = getattr(error, "arrays", leaves if result is None else result)
            name = "while it moved" if hasattr(error, "arrays") else "before" if result is None else "after"
        killer.communicate()
        when[name] += 1
        missing = lost(after, wanted, [(source, target)] * len(wanted))
        faults += [f"interrupt {when.total()}, {name}: array {k} is lost" for k in missing]
    return when, faults


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="the number of interrupts (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", action="store_true", help="an exception before each instruction")
    parser.add_argument("--jax", action="store_true", help="with --every: of all code that runs")
    args = parser.parse_args(argv)
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    if args.every:
        faults = []
        for limit in ("max", 48):
            total, found = every_moment((lambda code: True) if args.jax else in_ours, limit)
            print(f"memory limit {limit}: {total} moments, {len(found)} faults", flush=True)
            faults += found
    else:
        when, faults = random_moments(args.count, args.seed)
        print(", ".join(f"{number} interrupts {name}" for name, number in when.items()))
    for fault in faults:
        print(fault)
    print(f"lost: {len(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
