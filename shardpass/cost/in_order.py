"""Times of tasks in the order chosen by a compiler, and the communication hidden by the compiler's own schedule.

Problem: a list of steps in the order in which a device begins them. Cases:

1. A step that blocks ends before the next begins.
2. A started collective runs beside the steps after it, once its links are free, until a step awaits it.
3. A collective that blocks does not queue: a started one on the same links ends later by its time.
4. A loop is a step of its own, which begins when all links are free.

Example: start a gather (2 s), compute (3 s), await the gather, compute (1 s): the end is after 4 s, and nothing of the
gather is exposed. Where the compiler awaits the gather before the first computation, the end is after 6 s.

Cost: O(steps), and for each collective that blocks the steps before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardpass.cost.schedule import Slot, Task


@dataclass(frozen=True, slots=True)
class Step:
    """A task in a compiler's order.

    Attributes:
        task: with its seconds and resources; its ``needs`` are not read.
        awaits: the numbers of earlier steps that end before this one begins.
        blocks: whether the step ends before the next one begins.
        inside: the steps of a loop's body, of one run.
    """

    task: Task
    awaits: tuple[int, ...] = ()
    blocks: bool = True
    inside: tuple[Step, ...] = ()


def in_order(steps: Sequence[Step]) -> tuple[tuple[Slot, ...], float]:
    """Return the slots of all steps that take time, in the order of their starts, and the end of the last."""
    slots, end = _run(steps)
    return tuple(sorted(slots, key=lambda slot: (slot.start, slot.depth))), end


def _run(steps: Sequence[Step]) -> tuple[list[Slot], float]:
    now = 0.0
    free: dict[str, float] = {}  # by resource, when its last started task ends
    starts: list[float] = []
    ends: list[float] = []
    bodies: list[list[Slot]] = []
    for step in steps:
        begin = now = max([now, *(ends[number] for number in step.awaits)])
        body, seconds = _run(step.inside) if step.inside else ([], step.task.seconds)
        seconds *= step.task.trips if step.inside else 1
        resources = tuple(free) if step.inside else step.task.resources
        if seconds and (step.inside or not step.blocks):
            begin = max([begin, *(free.get(name, 0.0) for name in resources)])
        end = begin + seconds
        if seconds and not step.blocks:
            free |= dict.fromkeys(resources, end)
        elif seconds and not step.inside:
            _delay(steps, ends, free, resources, begin, seconds)
        starts.append(begin)
        ends.append(end)
        bodies.append(body)
        now = end if step.blocks else now
    slots = []
    for step, start, end, body in zip(steps, starts, ends, bodies, strict=True):
        if end > start:
            times = step.task.trips
            slots.append(Slot(step.task, start, end))
            slots += (Slot(one.task, start + one.start * times, start + one.end * times, one.depth + 1) for one in body)
    return slots, max([now, *ends])


def _delay(
    steps: Sequence[Step], ends: list[float], free: dict[str, float], used: Sequence[str], begin: float, seconds: float
) -> None:
    """Delay started tasks on links that a task which blocks uses from ``begin`` on: the links do both in turn."""
    for number, end in enumerate(ends):
        if end > begin and not steps[number].blocks and not set(used).isdisjoint(steps[number].task.resources):
            ends[number] = end + seconds
    for name in used:
        if free.get(name, 0.0) > begin:
            free[name] += seconds
