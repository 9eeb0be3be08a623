"""The schedule of a report: when collectives and work could run, and how much of each row is exposed.

``cost.schedule`` contains the model. The reader of a program makes the tasks. Their keys are ``Mark``: the row of a
collective (the first of combined arrays), or the op and line of work. Times are those of the rows and of the
report's work, on one machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardpass.cost.schedule import COMPUTE, Slot, Task, ahead, exposed, schedule
from shardpass.diagnostics import NOWHERE, Place
from shardpass.report.rows import Row


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """The origin of a task: ``name`` of the op, its line, the numbers of the rows of a collective, and the number of
    the op in the program before partitioning.
    """

    name: str
    place: Place = NOWHERE
    rows: tuple[int, ...] = ()
    op: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A task in time: modeled seconds from the start of the step, with all runs together.

    ``tracks``: COMPUTE, or the mesh axes of a collective; () for a loop, which contains its body. ``exposed``: the
    seconds of a collective in which nothing computes. ``trips``: the trip count of a loop. ``op``: the number of its
    op in ``Report.ops``, if known.
    """

    name: str
    place: Place
    tracks: tuple[str, ...]
    start: float
    end: float
    rows: tuple[int, ...] = ()
    exposed: float = 0.0
    trips: int = 1
    depth: int = 0
    op: int | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Schedule:
    """The modeled times of each collective and op in one step.

    Attributes:
        spans: the tasks, in the order of their starts.
        seconds: the makespan, from the first start to the last end.
        one_by_one: the total seconds without overlap.
        exposed: for each row of the report, the seconds in which it runs and nothing computes.
        needs: for each span, the numbers of the spans whose results it reads.
        around: for each span, the number of the loop or branch that contains it; None if there is none.
        compiler: the compiler whose order the spans follow, such as "XLA:TPU"; "" if ``cost.schedule`` placed them.
        ahead: the most prefetched bytes, arrived or in flight, during computation, in addition to the program's own
            memory.
    """

    spans: tuple[Span, ...]
    seconds: float
    one_by_one: float
    exposed: tuple[float, ...]
    needs: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    around: tuple[int | None, ...] = field(default=(), repr=False)
    compiler: str = ""
    ahead: int = 0

    @property
    def tracks(self) -> tuple[str, ...]:
        """COMPUTE, then each axis in the order in which they are used."""
        return tuple(dict.fromkeys((COMPUTE, *(track for span in self.spans for track in span.tracks))))

    @property
    def hidden(self) -> float:
        """Seconds of communication that overlap with work, or with communication over other axes."""
        return max(0.0, self.one_by_one - self.seconds)

    def as_dict(self) -> dict[str, object]:
        """Return the schedule as plain values for JSON."""
        return {
            "seconds": self.seconds,
            "one_by_one_seconds": self.one_by_one,
            "hidden_seconds": self.hidden,
            "bytes_ahead": self.ahead,
            "spans": [
                {
                    "name": span.name,
                    "place": str(span.place),
                    "tracks": list(span.tracks),
                    "start": span.start,
                    "end": span.end,
                    "collectives": list(span.rows),
                    "exposed": span.exposed,
                    "trips": span.trips,
                    "depth": span.depth,
                }
                for span in self.spans
            ],
        }


def schedule_of(tasks: Sequence[Task], rows: Sequence[Row], in_flight: int = 1) -> Schedule:
    """Schedule ``tasks``, whose keys are ``Mark`` with numbers of ``rows``; ``in_flight``: collectives at once."""
    return made_of(schedule(tasks, in_flight), tasks, rows)


def made_of(slots: Sequence[Slot], tasks: Sequence[Task], rows: Sequence[Row], compiler: str = "") -> Schedule:
    """Return the schedule of ``slots``, the times of ``tasks``. ``compiler``: the compiler that chose the order."""
    bare = exposed(slots)
    seconds: dict[int, float] = {}
    for key, share in bare.items():
        for number, part in _parts(key, share, rows).items():
            seconds[number] = seconds.get(number, 0.0) + part
    end = max((slot.end for slot in slots), default=0.0)
    total = sum(slot.seconds for slot in slots if slot.task.resources)
    return Schedule(
        tuple(_span(slot, bare) for slot in slots),
        end,
        total,
        tuple(min(row.seconds, seconds.get(number, 0.0)) for number, row in enumerate(rows)),
        *_graph(tasks, slots),
        compiler=compiler,
        ahead=ahead(slots),
    )


def _parts(mark: Mark, share: float, rows: Sequence[Row]) -> Mapping[int, float]:
    """Divide the seconds ``share`` of a collective among its rows, in proportion to the rows' own seconds."""
    whole = sum(rows[number].seconds for number in mark.rows)
    return {number: share * rows[number].seconds / whole for number in mark.rows} if whole else {}


def _span(slot: Slot, bare: Mapping[Mark, float]) -> Span:
    mark: Mark = slot.task.key
    return Span(
        mark.name,
        mark.place,
        slot.task.resources,
        slot.start,
        slot.end,
        mark.rows,
        0.0 if COMPUTE in slot.task.resources else min(slot.seconds, bare.get(mark, 0.0)),
        slot.task.trips,
        slot.depth,
        mark.op,
    )


def _graph(tasks: Sequence[Task], slots: Sequence[Slot]) -> tuple[tuple[tuple[int, ...], ...], tuple[int | None, ...]]:
    """Return ``needs`` and ``around`` of the slots, across tasks without time."""
    places = {id(slot.task): number for number, slot in enumerate(slots)}
    needs: dict[int, tuple[int, ...]] = {}
    around: dict[int, int | None] = {}
    todo: list[tuple[tuple[Task, ...], int | None]] = [(tuple(tasks), None)]
    while todo:
        some, outside = todo.pop()
        makers: list[tuple[int, ...]] = []
        for task in some:
            above = tuple(dict.fromkeys(maker for need in task.needs for maker in makers[need]))
            number = places.get(id(task))
            if number is not None:
                needs[number], around[number] = above, outside
            makers.append(above if number is None else (number,))
            if task.inside:
                todo.append((task.inside, number))
    count = range(len(slots))
    return tuple(needs.get(number, ()) for number in count), tuple(around.get(number) for number in count)
