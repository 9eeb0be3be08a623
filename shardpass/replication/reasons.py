"""Explains why two devices may hold different values, with the ops from their first difference on.

Each step goes back from an op to an operand on which the pair of devices may disagree; through a collective the pair
becomes the two senders at the same place of their groups. The path ends at an argument of the region, at
``partition_id``, or at an op without a rule. Every step exists, since an op's result disagrees only where an operand
does, or where the op itself is such an end.

Example: the result of ``dot_general`` differs between devices 0 and 1, since its operand 1 does, which is an argument
of the region whose sharding gives these devices different tiles.

The path is the shortest. Cost: O(values before the output), each visited once with a pair.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shardpass.ir.annotations import TO_FULL, TO_SHARD, custom_call_target
from shardpass.ir.blocks import terminator
from shardpass.ir.collectives import OPS
from shardpass.ir.tensors import inputs_of
from shardpass.replication.agreement import NOBODY
from shardpass.replication.flow import Flow, argument_number, runs_at_least_once
from shardpass.replication.rules import senders

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ReasonStep:
    """An op on the path to a difference. ``pair``: the devices on which its result may differ."""

    op: Any
    pair: Pair
    why: str


def reasons(flow: Flow, value: Any, pair: Pair) -> list[ReasonStep]:
    """Find the fewest steps from ``value``, on which the devices of ``pair`` may disagree, back to an origin."""
    came_from: dict[tuple[Any, Pair], tuple[Any, Pair] | None] = {(value, pair): None}
    todo = deque(came_from)
    while todo:
        place = todo.popleft()
        value, pair = place
        op, index = flow.made_by[value]
        why = _origin(op, pair)
        nearer = [] if why else [p for p in _read_by(flow, op, index, pair) if not flow.of(p[0]).agreement.joins(*p[1])]
        if not nearer:
            return _way(flow, came_from, place, why or _ENDS.get(op.name, _NOT_TOGETHER))
        for step in nearer:
            if step not in came_from:
                came_from[step] = place
                todo.append(step)
    return _way(flow, came_from, place, _NOT_TOGETHER)  # round a loop: every way back has been seen


def _way(flow: Flow, came_from: Mapping[Any, Any], last: tuple[Any, Pair], why: str) -> list[ReasonStep]:
    steps: list[ReasonStep] = []
    place: tuple[Any, Pair] | None = last
    while place is not None:
        steps.append(ReasonStep(flow.made_by[place[0]][0], place[1], "" if steps else why))
        place = came_from[place]
    return steps[::-1]


def _origin(op: Any, pair: Pair) -> str:
    """Explain why devices differ at ``op``, the end of the path; "" if the path continues."""
    if custom_call_target(op) == TO_SHARD:
        return f"the region's input has different tiles on devices {pair[0]} and {pair[1]}"
    return _ORIGINS.get(op.name, "")


_ORIGINS = {
    "stablehlo.partition_id": "each device gets its own number",
    "stablehlo.rng": "each device draws for itself",
    "stablehlo.infeed": "each device is sent its own data",
    "stablehlo.recv": "each device is sent its own data",
}


_NOT_TOGETHER = "not every device of a group comes to this collective"
_ENDS = {
    "stablehlo.all_to_all": "each device gets the part for its place in the group",
    "stablehlo.reduce_scatter": "each device gets the part for its place in the group",
    "stablehlo.collective_permute": "a device that nobody sends to gets zeros",
    "stablehlo.custom_call": "nothing is known of what a call with side effects returns",
}


def _read_by(flow: Flow, op: Any, index: int, pair: Pair) -> Iterator[tuple[Any, Pair]]:
    """List the values on which result ``index`` of ``op`` (or a block argument) depends, with device pairs."""
    if op.name == "stablehlo.while":
        condition, body = (terminator(region.blocks[0]) for region in op.regions)
        is_argument = index < 0
        index = argument_number(index) if is_argument else index
        yield body.operands[index], pair
        if is_argument:
            yield op.operands[index], pair
        elif not runs_at_least_once(op):
            yield op.operands[index], pair
            yield condition.operands[0], pair
    elif op.name in ("stablehlo.case", "stablehlo.if"):
        yield op.operands[0], pair
        for region in op.regions:
            yield terminator(region.blocks[0]).operands[index], pair
    elif op.name == "stablehlo.optimization_barrier":
        yield op.operands[index], pair
    elif custom_call_target(op) == TO_FULL:  # in a region of a region: some device of the inner one
        for one in range(flow.all.devices):
            yield from ((op.operands[0], (one, other)) for other in range(one))
    elif op.name in OPS:
        rows = senders(op, flow.all.devices)
        pairs = [pair] if rows is None else zip(rows[pair[0]].tolist(), rows[pair[1]].tolist(), strict=True)
        yield from ((op.operands[index], (a, b)) for a, b in pairs if NOBODY not in (a, b))
    else:
        yield from ((v, pair) for v in inputs_of(op))
