"""Match the start and the end of asynchronous collectives in HLO of each backend.

1. ``all-gather-start`` and ``all-gather-done``, or ``async-start`` of a computation and ``async-done``. XLA:GPU marks a
   pair with nothing between as ``"is_sync":true``: it blocks.
2. XLA:TPU writes a collective that runs beside work as several fusions of the same collective, with one channel: the
   first ends in the custom call ``AsyncCollectiveStart``, the last in ``AsyncCollectiveDone``; a fusion between these
   computes while a part of the data moves. Bytes count at the first alone.
3. Any other collective blocks, as all of XLA:CPU's do.

Cost: O(ops).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardpass.hlo.read import Computation, HloOp, HloProgram

TPU, GPU, CPU = "tpu", "gpu", "cpu"
_TILED = re.compile(r"\{[\d,]*:T\(")
_OF_GPU = re.compile(r'"operation_queue_id"|"collective_backend_config"|__cublas|__triton')
_CHANNEL = re.compile(r"\bchannel_id=(\d+)")
_TARGET = re.compile(r'custom_call_target="(AsyncCollective(?:Start|Done))"')
_STARTS, _ENDS = "AsyncCollectiveStart", "AsyncCollectiveDone"


def backend_of(text: str) -> str:
    """Return the backend for which XLA compiled a program: layouts of TPUs have tiles, kernels of GPUs have queues."""
    return TPU if _TILED.search(text) else GPU if _OF_GPU.search(text) else CPU


def blocks(start: HloOp) -> bool:
    """Return whether XLA:GPU runs the start and the done of a collective as one op."""
    return '"is_sync":true' in start.attributes


def continued(program: HloProgram) -> frozenset[int]:
    """Return the ``id`` of each collective op that continues or ends a collective of another fusion (case 2)."""
    first: dict[str, str] = {}
    for name, computation in program.computations.items():
        if (role := _role(computation)) is not None and role[0] == _STARTS:
            first[role[1]] = name
    return frozenset(
        id(op)
        for name, computation in program.computations.items()
        for op in computation.ops.values()
        if (channel := _channel(op)) in first and first[channel] != name and op.opcode not in ("fusion", "custom-call")
    )


def dones(program: HloProgram, computation: Computation) -> Mapping[str, str]:
    """Map the name of each op of ``computation`` that starts a collective to the name of the op that ends it."""
    result: dict[str, str] = {}
    open_ones: dict[str, str] = {}  # by channel
    for op in computation.ops.values():
        if op.opcode.endswith("-done"):
            result |= {operand: op.name for operand in op.operands[:1] if operand in computation.ops}
        elif op.opcode == "fusion":
            inner = [program.computations[name] for _, name in op.called if name in program.computations]
            role = _role(inner[0]) if inner else None
            if role is not None and role[0] == _STARTS:
                open_ones[role[1]] = op.name
            elif role is not None and role[1] in open_ones:
                result[open_ones.pop(role[1])] = op.name
    return result


def _role(computation: Computation) -> tuple[str, str] | None:
    """Return whether a fused computation starts or ends a collective, and the channel of the collective."""
    root = computation.root
    target = _TARGET.search(root.attributes) if root is not None and root.opcode == "custom-call" else None
    if target is None:
        return None
    return target[1], next(filter(None, map(_channel, computation.ops.values())), "")


def _channel(op: HloOp) -> str:
    named = _CHANNEL.search(op.attributes)
    return named[1] if named else ""
