"""Format a plan for people: one line for each op that communicates, with its split, and below it the arrays sent.

12 stablehlo.dot_general: k over x
   reduce_scatter over x: 1.5 KiB (partial results of stablehlo.dot_general)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardpass.planning.price.listed import Sent
from shardpass.planning.price.steps import BlockPlan, ControlFlowPlan, MatmulLoop, SplitPlan
from shardpass.program.program import Program


def lines(body: BlockPlan, collectives: Sequence[Sent], program: Program) -> Iterator[str]:
    """Yield the lines of the text."""
    total = sum(sent.bytes * sent.times for sent in collectives)
    runs = sum(sent.times for sent in collectives)
    loops = len({id(sent.loop) for sent in collectives if sent.loop is not None})
    head = f"{program.count} ops on {program.mesh.mesh}: {runs} collectives, {sized(total)} received by a device"
    yield head + (f", {loops} in turn with products" if loops else "")
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
        if sent.loop is not None:
            yield f"      {_loop(sent.loop)}"


def _told(sent: Sent) -> str:
    times = "" if sent.times == 1 else f" x{sent.times}"
    unknown = "" if sent.times_known else " in a loop of unknown length"
    return f"{sent.kind} over {sent.axes}: {sized(sent.bytes)}{times}{unknown} ({sent.cause})"


def _loop(loop: MatmulLoop) -> str:
    """Describe a loop: its products, the bytes it keeps and its seconds, each beside the figure without the loop."""
    numbers = " and ".join(str(number) for number, _ in loop.products)
    cost = loop.price(loop.machine)
    ways = "both ways round" if loop.both_ways else "one way round"
    return (
        f"in place of {loop.kind}, in turn with {numbers}, {ways}: holds {sized(loop.resident_bytes)} for "
        f"{sized(loop.pair.bytes)}, {cost.in_turn * 1e6:.1f} us for {cost.apart * 1e6:.1f} us ({loop.machine.name})"
    )


def _splits(block: BlockPlan, program: Program) -> Iterator[tuple[int, str]]:
    """Yield (number, tiles and axes) of each op that is split by a model."""
    for plan in block.ops:
        if isinstance(plan, SplitPlan):
            split = plan.local.split
            operands = ", ".join(_shape(split.operand_tile(i)) for i in range(len(split.operands)))
            results = ", ".join(_shape(split.result_tile(i)) for i in range(len(split.results)))
            over = [split.mesh.names(axes) for axes in split.factors if axes]
            yield plan.op.number, f"tiles {operands} -> {results}, split over {' and '.join(over) or 'nothing'}"
        elif isinstance(plan, ControlFlowPlan):
            for inner in plan.blocks:
                yield from _splits(inner, program)


def _shape(tile: tuple[int, ...]) -> str:
    return "x".join(map(str, tile)) or "scalar"


def sized(count: int) -> str:
    """Format a number of bytes: 512 bytes, 1.5 KiB, 2.0 GiB."""
    if count < 1024:
        return f"{count} bytes"
    size, units = count / 1024, ("KiB", "MiB", "GiB", "TiB")
    for unit in units[:-1]:
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {units[-1]}"
