"""A plan for people: one line for each op that sends, its split, and under it what is sent.

12 stablehlo.dot_general: k over x
   reduce_scatter over x: 1.5 KiB (partial results of stablehlo.dot_general)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardpass.planning.listed import Sent
from shardpass.planning.steps import BlockPlan, ControlFlowPlan, SplitPlan
from shardpass.program.program import Program


def lines(body: BlockPlan, collectives: Sequence[Sent], program: Program) -> Iterator[str]:
    """The text, line by line."""
    total = sum(sent.bytes * sent.times for sent in collectives)
    runs = sum(sent.times for sent in collectives)
    yield f"{program.count} ops on {program.mesh.mesh}: {runs} collectives, {sized(total)} received by a device"
    splits = dict(_splits(body, program))
    last: object = ()
    for sent in collectives:
        if sent.op is not last:
            last = sent.op
            if sent.op is None:
                yield "results of the program"
            else:
                yield f"{sent.op.number} {sent.op.called}: {splits.get(sent.op.number, 'as its operands are')}"
        yield f"   {_told(sent)}"


def _told(sent: Sent) -> str:
    times = "" if sent.times == 1 else f" x{sent.times}"
    unknown = "" if sent.times_known else " in a loop of unknown length"
    return f"{sent.kind} over {sent.axes}: {sized(sent.bytes)}{times}{unknown} ({sent.cause})"


def _splits(block: BlockPlan, program: Program) -> Iterator[tuple[int, str]]:
    for plan in block.ops:
        if isinstance(plan, SplitPlan):
            split, mesh = plan.local.split, plan.local.split.mesh
            told = [
                f"factor {f} ({plan.local.split.count} parts)" if not axes else f"factor {f} over {mesh.names(axes)}"
                for f, axes in enumerate(split.factors)
                if axes
            ]
            yield plan.op.number, ", ".join(told) or "not split"
        elif isinstance(plan, ControlFlowPlan):
            for inner in plan.blocks:
                yield from _splits(inner, program)


def sized(count: int) -> str:
    """Bytes for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count_f = count / 1024
        if count_f < 1024 or unit == "MiB":
            return f"{count_f:.1f} {'KiB' if unit == 'bytes' else 'MiB' if unit == 'KiB' else 'GiB'}"
        count = int(count_f)
    return f"{count} bytes"
