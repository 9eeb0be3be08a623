"""The earliest possible times of tasks if each resource runs one task at a time, to find the communication that can be
hidden.

Problem: tasks with seconds, the resources that they take (compute, or the links of mesh axes), and the earlier tasks
whose results they need. A schedule gives each a start, such that nobody waits for what is free: list scheduling
(Graham, 1966). Of the tasks that are ready the one with the longest path behind it goes first (Jackson, 1955: best on
one machine where each task has a delivery time), in the program's order where paths are equal; or all go in the
program's order, where that ends earlier. The schedule is a model of what can be hidden, no promise: a compiler may do
less, and orders that hide more may exist.

Cases:

1. A task without seconds takes no resource and is done when its needs are.
2. A task with tasks inside (a loop, a branch) takes all resources: nothing passes its border. Its body is scheduled by
   itself. A loop of n trips lasts n times its body, and what is in the body is drawn n times as long. So does a
   collective that ``blocks``.
3. A task of several resources (a collective over two axes) waits for all of them.
4. Of tasks that do not compute at most ``in_flight`` run at once: XLA keeps one collective in flight. With none in
   flight nothing runs beside another.
5. With one in flight, a collective then starts as late as leaves every other start as it is, as XLA's scheduler does:
   an array that is fetched ahead of its use takes memory from then on (``ahead``).

Invariant: at each moment before the end some task runs, as the one that is ready first finds everything free. So the
end is the time in which compute runs, and the time in which communication alone does: the exposed time.

Example: compute a (2 s), then b (3 s); a gather over x of a's result (2 s), which c (1 s) needs. The gather runs beside
b, in its last 2 s: the end is after 6 s and nothing of the gather is exposed; one after the other they take 8.

Cost: O(tasks * log(tasks) * sets of resources).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

COMPUTE = "compute"

LINK = "links"  # of a collective whose axes are not known


@dataclass(frozen=True, slots=True)
class Task:
    """Work or a collective that takes time on a device, or a loop with tasks inside.

    Attributes:
        key: the name of the task in the schedule.
        seconds: of one run; 0 for a task with others inside.
        resources: that it occupies while it runs.
        needs: the indices of earlier tasks of the same list that must end first.
        inside: the tasks that it runs ``trips`` times.
        bytes: of what a collective makes.
        blocks: nothing runs beside it.
    """

    key: Any
    seconds: float = 0.0
    resources: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()
    inside: tuple[Task, ...] = ()
    trips: int = 1
    bytes: int = 0
    blocks: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether the task takes all resources."""
        return bool(self.inside) or self.blocks


@dataclass(frozen=True, slots=True)
class Slot:
    """The start and end of a task in a schedule, over all its runs. ``depth``: the number of enclosing tasks. ``used``:
    the start of the first task that reads the result; the end of this task if no task reads it.
    """

    task: Task
    start: float
    end: float
    depth: int = 0
    used: float = 0.0

    @property
    def seconds(self) -> float:
        return self.end - self.start


def links(axes: Iterable[str]) -> tuple[str, ...]:
    """Return the links that a collective over ``axes`` uses; parts of an axis share the links of the whole axis."""
    return tuple(dict.fromkeys(name.split(":")[0] for name in axes)) or (LINK,)


def beside(lists: Iterable[Sequence[Task]]) -> tuple[Task, ...]:
    """Concatenate lists of tasks that run in parallel."""
    out: list[Task] = []
    for tasks in lists:
        first = len(out)
        out += (replace(task, needs=tuple(first + need for need in task.needs)) for task in tasks)
    return tuple(out)


def alone(tasks: Sequence[Task]) -> Task | None:
    """Return the only task that takes time; None if there are several, or if the task contains others."""
    timed = [task for task in tasks if task.seconds or task.inside]
    return timed[0] if len(timed) == 1 and not timed[0].inside else None


def branches(lists: Iterable[Sequence[Task]], key: Any) -> tuple[Task, ...]:
    """Return a task named ``key`` for each nonempty list; the tasks run in sequence."""
    some = filter(None, lists)
    return tuple(Task(key, needs=tuple(range(place)), inside=tuple(tasks)) for place, tasks in enumerate(some))


def schedule(tasks: Sequence[Task], in_flight: int = 1) -> tuple[Slot, ...]:
    """Return the slots of all tasks that take time, including tasks inside of others, in the order of their starts.

    ``in_flight``: the greatest number of collectives that run at the same time; 0: no two tasks run at the same time.
    """
    slots, _ = _Lists(in_flight).scheduled(tasks)
    return tuple(sorted(slots, key=lambda slot: (slot.start, slot.depth)))


def ahead(slots: Iterable[Slot]) -> int:
    """Return the most bytes that collectives have made, or are making, for later while a task computes.

    An account in the program's order does not have them: there a collective stands directly before what reads it.
    """
    begins: list[tuple[float, int]] = []
    computes: list[tuple[float, float]] = []
    for slot in slots:
        if COMPUTE in slot.task.resources:
            computes.append((slot.start, slot.end))
        elif slot.task.bytes and slot.used > slot.start:
            begins += ((slot.start, slot.task.bytes), (slot.used, -slot.task.bytes))
    begins.sort()
    computes.sort()
    most = now = place = 0
    for number, (_, size) in enumerate(begins):
        now += size
        after = begins[number + 1][0] if number + 1 < len(begins) else begins[-1][0]
        while place < len(computes) and computes[place][1] <= begins[number][0]:
            place += 1
        if now > most and place < len(computes) and computes[place][0] < after > begins[number][0]:
            most = now
    return most


def exposed(slots: Iterable[Slot]) -> Mapping[Any, float]:
    """Map the key of a task that does not compute to the seconds in which the task runs and no task computes.

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


class _Lists:
    """Schedule lists of tasks, each once: several loops may run the same body."""

    def __init__(self, in_flight: int) -> None:
        self.in_flight = in_flight
        self.done: dict[int, tuple[list[Slot], float]] = {}

    def scheduled(self, tasks: Sequence[Task]) -> tuple[list[Slot], float]:
        """Return the slots of ``tasks`` from time 0 on, and the end of the last."""
        if id(tasks) not in self.done:
            self.done[id(tasks)] = self._list(tasks)
        return self.done[id(tasks)]

    def _list(self, tasks: Sequence[Task]) -> tuple[list[Slot], float]:
        bodies = {place: self.scheduled(task.inside) for place, task in enumerate(tasks) if task.inside}
        seconds = [bodies[place][1] * task.trips if task.inside else task.seconds for place, task in enumerate(tasks)]
        every = tuple(sorted({name for task in tasks for name in task.resources} | {COMPUTE}))
        wants = [every if task.is_alone else task.resources for task in tasks]
        rest = _rest(tasks, seconds)
        tried = [dict(_starts(tasks, seconds, wants, order, self.in_flight)) for order in (rest, [0.0] * len(tasks))]
        starts = min(
            tried, key=lambda starts: max([start + seconds[place] for place, start in starts.items()], default=0.0)
        )
        ends = {place: start + seconds[place] for place, start in starts.items()}
        end = max(ends.values(), default=0.0)
        uses = _uses(tasks, seconds, starts)
        if self.in_flight == 1:
            _start_late(tasks, seconds, starts, uses)
        slots: list[Slot] = []
        for place, start in starts.items():
            if seconds[place]:
                stop = ends[place] if COMPUTE in wants[place] else start + seconds[place]
                slots.append(Slot(tasks[place], start, stop, used=max(stop, uses.get(place, stop))))
                slots += (_inside(one, start, tasks[place].trips) for one in bodies.get(place, ([], 0.0))[0])
        return slots, end


def _inside(slot: Slot, start: float, trips: int) -> Slot:
    """Return a slot of a loop body that starts at ``start``, over all its runs."""
    return Slot(
        slot.task, start + slot.start * trips, start + slot.end * trips, slot.depth + 1, start + slot.used * trips
    )


def _uses(tasks: Sequence[Task], seconds: Sequence[float], starts: Mapping[int, float]) -> dict[int, float]:
    """Return when the result of each task is first read; a task that takes no time passes on the time of its reader."""
    uses: dict[int, float] = {}
    for place in reversed(range(len(tasks))):
        read = starts[place] if seconds[place] else uses.get(place)
        if read is not None:
            for need in tasks[place].needs:
                uses[need] = min(read, uses.get(need, read))
    return uses


def _start_late(
    tasks: Sequence[Task], seconds: Sequence[float], starts: dict[int, float], uses: Mapping[int, float]
) -> None:
    """Start each collective as late as possible without moving other tasks; unread results keep their start."""
    next_one = math.inf
    for place in sorted(starts, key=lambda place: (-starts[place], -place)):
        task = tasks[place]
        if not seconds[place]:
            continue
        if task.is_alone:
            next_one = starts[place]
        elif task.resources and COMPUTE not in task.resources:
            latest = min(next_one, uses.get(place, -math.inf)) - seconds[place]
            starts[place] = next_one = max(starts[place], latest)


def _rest(tasks: Sequence[Task], seconds: Sequence[float]) -> list[float]:
    """Return the longest path from each task's end to the last end."""
    rest = [0.0] * len(tasks)
    for place in reversed(range(len(tasks))):
        for need in tasks[place].needs:
            rest[need] = max(rest[need], seconds[place] + rest[place])
    return rest


def _starts(
    tasks: Sequence[Task],
    seconds: Sequence[float],
    wants: Sequence[tuple[str, ...]],
    first: Sequence[float],
    in_flight: int,
) -> Iterator[tuple[int, float]]:
    """Yield each task with its start time, in time order. Among ready tasks, the one with the greatest ``first`` starts
    first.
    """
    users: list[list[int]] = [[] for _ in tasks]
    for place, task in enumerate(tasks):
        for need in set(task.needs):
            users[need].append(place)
    missing = [len(set(task.needs)) for task in tasks]
    ready: dict[tuple[str, ...], list[tuple[float, int]]] = {}  # by what they take
    running: list[tuple[float, int]] = []
    sends = {wanted: bool(wanted) and COMPUTE not in wanted for wanted in set(wants)}
    busy: set[str] = set()
    flying, time = 0, 0.0

    def release(place: int) -> Iterator[tuple[int, float]]:
        """Queue the task ``place``, whose inputs are ready. Yields tasks that take no time, which end at once."""
        todo = [place]
        while todo:
            place = todo.pop()
            if seconds[place]:
                heapq.heappush(ready.setdefault(wants[place], []), (-first[place], place))
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
            free = [
                (waiting[0], wanted)
                for wanted, waiting in ready.items()
                if waiting
                and busy.isdisjoint(wanted)
                and not ((sends[wanted] and flying >= max(1, in_flight)) or (busy and not in_flight))
            ]
            if not free:
                break
            (_, place), wanted = min(free)
            heapq.heappop(ready[wanted])
            busy.update(wanted)
            flying += sends[wanted]
            heapq.heappush(running, (time + seconds[place], place))
            yield place, time
        time, _ = running[0]
        while running and running[0][0] <= time:
            _, place = heapq.heappop(running)
            busy.difference_update(wants[place])
            flying -= sends[wants[place]]
            for user in list(_freed(place)):
                yield from release(user)
