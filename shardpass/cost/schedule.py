"""When tasks could run at the earliest, where each resource does one at a time: what communication can be hidden.

Problem: tasks with seconds, the resources that they take (compute, or the links of mesh axes), and the earlier tasks
whose results they need. A schedule gives each a start, such that nobody waits for what is free: list scheduling
(Graham, 1966). Of the tasks that are ready the one with the longest path behind it goes first (Jackson, 1955: best on
one machine where each task has a delivery time), in the program's order where paths are equal. The schedule is a model
of what can be hidden, no promise: a compiler may do less, and orders that hide more may exist.

Cases:

1. A task without seconds takes no resource and is done when its needs are.
2. A task with tasks inside (a loop, a branch) takes all resources: nothing passes its border. Its body is scheduled by
   itself. A loop of n trips lasts n times its body, and what is in the body is drawn n times as long.
3. A task of several resources (a collective over two axes) waits for all of them.

Invariant: at each moment before the end some task runs, as the one that is ready first finds everything free. So the
end is the time in which compute runs, and the time in which communication alone does: the exposed time.

Example: compute a (2 s), then b (3 s); a gather over x of a's result (2 s), which c (1 s) needs. The gather runs beside
b: the end is after 6 s and nothing of the gather is exposed; one after the other they take 8.

Cost: O(tasks * log(tasks) * sets of resources).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COMPUTE = "compute"


@dataclass(frozen=True, slots=True)
class Task:
    """Work or a collective that takes time on a device, or a loop with tasks inside.

    Attributes:
        key: the name of the task in the schedule.
        seconds: of one run; 0 for a task with others inside.
        resources: that it occupies while it runs.
        needs: the indices of earlier tasks of the same list that must end first.
        inside: the tasks that it runs ``trips`` times.
    """

    key: Any
    seconds: float = 0.0
    resources: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()
    inside: tuple[Task, ...] = ()
    trips: int = 1


@dataclass(frozen=True, slots=True)
class Slot:
    """The start and end of a task in a schedule, all its runs together. ``depth``: the number of tasks around it."""

    task: Task
    start: float
    end: float
    depth: int = 0

    @property
    def seconds(self) -> float:
        return self.end - self.start


def schedule(tasks: Sequence[Task]) -> tuple[Slot, ...]:
    """Returns the slots of all tasks that take time, including tasks inside of others, in the order of their starts."""
    slots, _ = _scheduled(tasks, {})
    return tuple(sorted(slots, key=lambda slot: (slot.start, slot.depth)))


def exposed(slots: Iterable[Slot]) -> Mapping[Any, float]:
    """Maps the key of a task that does not compute to the seconds in which the task runs and no task computes.

    Where several such tasks run at once, each has an equal part.
    """
    leaves = [slot for slot in slots if slot.task.resources]
    events = sorted(
        [(slot.end, 0, number) for number, slot in enumerate(leaves)]
        + [(slot.start, 1, number) for number, slot in enumerate(leaves)]
    )
    result: dict[Any, float] = {slot.task.key: 0.0 for slot in leaves if COMPUTE not in slot.task.resources}
    computing, links, last = 0, set[int](), 0.0
    for time, begins, number in events:
        if not computing and links:
            for one in links:
                result[leaves[one].task.key] += (time - last) / len(links)
        last = time
        if COMPUTE in leaves[number].task.resources:
            computing += 1 if begins else -1
        elif begins:
            links.add(number)
        else:
            links.discard(number)
    return result


# a body that several loops run is one tuple: its schedule is made once
_Done = dict[int, tuple[list[Slot], float]]


def _scheduled(tasks: Sequence[Task], done: _Done) -> tuple[list[Slot], float]:
    """Returns the slots of ``tasks`` from time 0 on, and the end of the last."""
    if id(tasks) not in done:
        done[id(tasks)] = _list(tasks, done)
    return done[id(tasks)]


def _list(tasks: Sequence[Task], done: _Done) -> tuple[list[Slot], float]:
    bodies = {place: _scheduled(task.inside, done) for place, task in enumerate(tasks) if task.inside}
    seconds = [bodies[place][1] * task.trips if task.inside else task.seconds for place, task in enumerate(tasks)]
    every = tuple(sorted({name for task in tasks for name in task.resources} | {COMPUTE}))
    wants = [every if task.inside else task.resources for task in tasks]
    slots: list[Slot] = []
    end = 0.0
    for place, start in _starts(tasks, seconds, wants):
        if not seconds[place]:
            continue
        task = tasks[place]
        stop = start + seconds[place]
        end = max(end, stop)
        slots.append(Slot(task, start, stop))
        if task.inside:
            slots += (
                Slot(one.task, start + one.start * task.trips, start + one.end * task.trips, one.depth + 1)
                for one in bodies[place][0]
            )
    return slots, end


def _starts(
    tasks: Sequence[Task], seconds: Sequence[float], wants: Sequence[tuple[str, ...]]
) -> Iterator[tuple[int, float]]:
    """Yields each task with its start, by starts."""
    users: list[list[int]] = [[] for _ in tasks]
    for place, task in enumerate(tasks):
        for need in set(task.needs):
            users[need].append(place)
    rest = [0.0] * len(tasks)  # the longest path from a task's end to the last end
    for place in reversed(range(len(tasks))):
        rest[place] = max((seconds[user] + rest[user] for user in users[place]), default=0.0)
    missing = [len(set(task.needs)) for task in tasks]
    ready: dict[tuple[str, ...], list[tuple[float, int]]] = {}  # by what they take
    running: list[tuple[float, int]] = []
    busy: set[str] = set()
    time = 0.0

    def release(place: int) -> Iterator[tuple[int, float]]:
        """Queues the task ``place``, whose inputs are ready; yields tasks that take no time, as they end at once."""
        todo = [place]
        while todo:
            place = todo.pop()
            if seconds[place]:
                heapq.heappush(ready.setdefault(wants[place], []), (-rest[place], place))
                continue
            yield place, time
            todo += _freed(place)

    def _freed(place: int) -> Iterator[int]:
        for user in users[place]:
            missing[user] -= 1
            if not missing[user]:
                yield user

    for place in [place for place, count in enumerate(missing) if not count]:
        yield from release(place)
    while running or any(ready.values()):
        while True:
            free = [(waiting[0], wanted) for wanted, waiting in ready.items() if waiting and busy.isdisjoint(wanted)]
            if not free:
                break
            (_, place), wanted = min(free)
            heapq.heappop(ready[wanted])
            busy.update(wanted)
            heapq.heappush(running, (time + seconds[place], place))
            yield place, time
        time, _ = running[0]
        while running and running[0][0] <= time:
            _, place = heapq.heappop(running)
            busy.difference_update(wants[place])
            for user in list(_freed(place)):
                yield from release(user)
