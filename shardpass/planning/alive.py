"""The bytes of tiles that live together on one device, by the order of a plan.

A copy lives from the step that makes it to the last op of its block that uses it, an argument of main throughout. What
a region needs beside what lives around it is added at its op. Local copies inside of a redistribution or a rewrite are
not counted, and XLA may fuse, reuse and reorder: an estimate of the program as it stands, held to XLA's statistics by a
test.

State: one walk in order over the plan's steps with the copies that each makes and uses. O(steps).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from shardpass.planning.op_parts import Results, operand_steps, results_of, sources_of, taken
from shardpass.planning.steps import (
    BlockPlan,
    ConstraintPlan,
    ControlFlowPlan,
    Copy,
    LeftOutPlan,
    OpPlan,
    SplitPlan,
    Step,
)
from shardpass.program.program import Program


@dataclass(frozen=True, slots=True)
class Alive:
    """``at[k]`` is (number of an op, bytes alive while it runs), in order; ``arguments`` and ``results`` of main."""

    at: tuple[tuple[int, int], ...]
    arguments: int
    results: int

    @property
    def peak(self) -> int:
        """The most bytes alive at once, arguments included."""
        return max((count for _, count in self.at), default=0) or self.arguments


@dataclass(frozen=True, slots=True)
class _Event:
    """One moment: the copies that are made and used, and bytes that are needed beside them."""

    number: int
    makes: tuple[Copy, ...]
    uses: tuple[Copy, ...]
    inside: int = 0


def alive(body: BlockPlan, program: Program, beside: Mapping[int, int] | None = None) -> Alive:
    """The account of a whole program. ``beside``: bytes that ops need beside operands and results, by number."""
    arguments = [Copy(value, sharding) for value, sharding in body.arguments]
    at, _ = _walk(body, program, frozenset(arguments), beside or {})
    held = sum(_bytes(copy, program) for copy in arguments)
    returned = {operand.copy for operand in body.returned if operand is not None}
    return Alive(tuple((n, held + count) for n, count in at), held, sum(_bytes(c, program) for c in returned))


def _bytes(copy: Copy, program: Program) -> int:
    type_ = program.array(copy.array)
    shape = type_.shape if copy.sharding.is_maximal else copy.sharding.tile_shape(type_.shape)
    return type_.element.bytes(prod(shape))


def _walk(
    block: BlockPlan, program: Program, outer: frozenset[Copy], beside: Mapping[int, int]
) -> tuple[list[tuple[int, int]], int]:
    """(op number, bytes alive) in order, what is of outside not counted; and the most of them."""
    events: list[_Event] = []
    for plan in block.ops:
        _events(plan, program, events, beside)
    uses = tuple(operand.copy for operand in block.returned if operand is not None)
    for operand in block.returned:
        if operand is not None:
            _brought(operand.steps, -1, events)
    events.append(_Event(-1, (), uses))
    last: dict[Copy, int] = {}
    for place, event in enumerate(events):
        for copy in (*event.makes, *event.uses):
            last[copy] = place
    ends: dict[int, list[Copy]] = {}
    for copy, place in last.items():
        ends.setdefault(place, []).append(copy)
    now, out, made = 0, [], set(outer)
    for place, event in enumerate(events):
        for copy in event.makes:
            if copy not in made:
                made.add(copy)
                now += _bytes(copy, program)
        out.append((event.number, now + event.inside))
        for copy in ends.get(place, ()):
            if copy in made and copy not in outer:
                now -= _bytes(copy, program)
                made.discard(copy)
    return out, max((count for _, count in out), default=0)


def _events(plan: OpPlan, program: Program, events: list[_Event], beside: Mapping[int, int]) -> None:
    number = plan.op.number
    _brought(operand_steps(plan), number, events)
    match plan:
        case ConstraintPlan() | LeftOutPlan():
            return
        case ControlFlowPlan():
            inside = max((_walk(block, program, frozenset(), beside)[1] for block in plan.blocks), default=0)
            made = tuple(Copy(v, s) for v, s in zip(plan.op.results, plan.shardings, strict=True))
            events.append(_Event(number, made, taken(plan), inside))
        case _:
            partial = _partial(plan, program) if isinstance(plan, SplitPlan) else 0
            _computed(number, taken(plan), results_of(plan), events, partial + beside.get(number, 0))


def _brought(steps: tuple[Step, ...], number: int, events: list[_Event]) -> None:
    for step in steps:
        events.append(_Event(number, (step.made,), sources_of(step)))


def _partial(plan: SplitPlan, program: Program) -> int:
    """Bytes of the partial results of an op, which are joined over devices next."""
    split = plan.local.split
    return sum(
        program.array(result.value).element.bytes(prod(split.result_tile(index)))
        for index, result in enumerate(plan.results)
        if result is not None and result.completions
    )


def _computed(number: int, uses: tuple[Copy, ...], results: Results, events: list[_Event], beside: int) -> None:
    made = tuple(Copy(r.value, r.computed) for r in results if r is not None)
    events.append(_Event(number, made, uses, beside))
    for result in results:
        if result is not None and result.reshard is not None:
            events.append(_Event(number, (result.reshard.made,), (result.reshard.source,)))
