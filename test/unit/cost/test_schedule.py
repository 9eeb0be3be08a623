"""Schedules: examples by hand, and laws of random programs."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from support import daily

from shardpass.cost.schedule import COMPUTE, Slot, Task, ahead, exposed, schedule

C, X, Y = (COMPUTE,), ("x",), ("y",)


def spans(slots: tuple[Slot, ...]) -> dict[str, tuple[float, float]]:
    return {slot.task.key: (slot.start, slot.end) for slot in slots}


def test_a_gather_runs_beside_what_does_not_need_it() -> None:
    """The example of the module: the gather of a's result runs while b computes."""
    tasks = [Task("a", 2, C), Task("b", 3, C, (0,)), Task("gather", 2, X, (0,)), Task("c", 1, C, (2, 1))]
    slots = schedule(tasks)
    assert spans(slots) == {"a": (0, 2), "b": (2, 5), "gather": (3, 5), "c": (5, 6)}
    assert exposed(slots) == {"gather": 0}


def test_nothing_runs_beside_a_collective_that_blocks() -> None:
    """The same program; the gather takes its 2 seconds before b or after it, and all of it is exposed."""
    gather = Task("gather", 2, X, (0,), blocks=True)
    slots = schedule([Task("a", 2, C), Task("b", 3, C, (0,)), gather, Task("c", 1, C, (2, 1))])
    assert max(slot.end for slot in slots) == 8
    assert exposed(slots) == {"gather": 2}


def test_a_chain_hides_nothing() -> None:
    slots = schedule([Task("a", 2, C), Task("r", 3, X, (0,)), Task("b", 1, C, (1,))])
    assert spans(slots) == {"a": (0, 2), "r": (2, 5), "b": (5, 6)}
    assert exposed(slots) == {"r": 3}


def test_axes_run_at_once_and_one_axis_does_one_at_a_time() -> None:
    """Over x 4 and 2 seconds, over y 4, over both 1: x and y run together, and what takes both waits for both."""
    tasks = [Task("x1", 4, X), Task("x2", 2, X), Task("y", 4, Y), Task("xy", 1, ("x", "y"), (1, 2))]
    slots = schedule(tasks, in_flight=2)
    assert spans(slots) == {"x2": (0, 2), "y": (0, 4), "x1": (2, 6), "xy": (6, 7)}
    assert sum(exposed(slots).values()) == 7  # nothing computes: each moment is somebody's


def test_one_collective_is_in_flight() -> None:
    """Over x 4 seconds and over y 4: one after the other, also where their links differ."""
    slots = schedule([Task("x", 4, X), Task("y", 4, Y), Task("a", 8, C)])
    assert spans(slots) == {"x": (0, 4), "y": (4, 8), "a": (0, 8)}


def test_what_is_fetched_ahead_is_held() -> None:
    """Three layers of 4 seconds, whose weights of 100 bytes come in 1: each is fetched in the last second of the layer
    before, so one is held beside the layer's own; in no time to compute there is nothing beside which to hold it."""
    tasks: list[Task] = []
    for layer in range(3):
        tasks.append(Task(f"w{layer}", 1, X, bytes=100))
        tasks.append(Task(f"h{layer}", 4, C, (2 * layer, *([2 * layer - 1] if layer else []))))
    slots = schedule(tasks)
    assert spans(slots) == {"w0": (0, 1), "h0": (1, 5), "w1": (4, 5), "h1": (5, 9), "w2": (8, 9), "h2": (9, 13)}
    assert ahead(slots) == 100
    slow = [replace(task, seconds=1.0) if task.resources == C else replace(task, seconds=2.0) for task in tasks]
    assert ahead(schedule(slow)) == 100  # each is on its way while the one before is used
    assert ahead(schedule(tasks[:2])) == 0
    fast = [replace(task, seconds=3.0) if task.key == "w1" else task for task in tasks]
    assert spans(schedule(fast))["w1"] == (2, 5)


def test_a_path_that_is_longer_goes_first() -> None:
    """Of two products the one whose result is sent comes first, though the text has it second."""
    tasks = [Task("other", 3, C), Task("made", 3, C), Task("sent", 3, X, (1,)), Task("end", 1, C, (0, 2))]
    slots = schedule(tasks)
    assert spans(slots) == {"made": (0, 3), "other": (3, 6), "sent": (3, 6), "end": (6, 7)}
    assert exposed(slots) == {"sent": 0}


def test_what_is_sent_is_made_first_however_long_other_work_is() -> None:
    """One machine with delivery times: 1 second of work whose result takes 3 to send goes before 10 seconds of work."""
    tasks = [Task("long", 10, C), Task("made", 1, C), Task("sent", 3, X, (1,))]
    slots = schedule(tasks)
    assert spans(slots) == {"made": (0, 1), "long": (1, 11), "sent": (1, 4)}
    assert exposed(slots) == {"sent": 0}


def test_a_loop_is_its_body_by_trips() -> None:
    """The body takes 3 seconds, of which the gather's one is beside the product. Nothing passes the loop's border: what
    comes before it in the text, and is not needed in it, runs when it has ended, beside the last product."""
    body = (Task("dot", 2, C), Task("gather", 1, X), Task("sum", 1, X, (0,)))
    tasks = [Task("before", 5, X), Task("loop", inside=body, trips=10), Task("after", 1, C, (1,))]
    slots = schedule(tasks)
    assert max(slot.end for slot in slots) == 10 * 3 + 5
    assert exposed(slots) == {"before": 4, "gather": 0, "sum": 10}
    inside = {slot.task.key: slot.seconds for slot in slots if slot.depth == 1}
    assert inside == {"dot": 20, "gather": 10, "sum": 10}


def test_what_takes_no_time_hands_on_what_it_needs() -> None:
    tasks = [Task("a", 1, C), Task("tuple", 0, (), (0,)), Task("part", 0, C, (1,)), Task("b", 1, C, (2,))]
    assert spans(schedule(tasks)) == {"a": (0, 1), "b": (1, 2)}
    assert schedule([]) == ()


@pytest.mark.parametrize("seed", daily.drawn(range(60), 20))
def test_laws(seed: int) -> None:
    """Needs come first, a resource does one thing at a time, and the end is compute and what is exposed beside it."""
    rng = random.Random(seed)

    def some(count: int, depth: int) -> tuple[Task, ...]:
        out: list[Task] = []
        for place in range(count):
            needs = tuple(rng.sample(range(place), min(place, rng.randrange(3))))
            key = (depth, place, rng.random())
            if depth < 2 and rng.random() < 0.15:
                out.append(Task(key, needs=needs, inside=some(rng.randint(1, 5), depth + 1), trips=rng.randint(1, 4)))
            else:
                seconds = rng.choice((0, 1, 2, 5, 0.25))
                out.append(Task(key, seconds, rng.choice((C, C, X, Y, ("x", "y"))), needs))
        return tuple(out)

    def total(tasks: tuple[Task, ...], resource: str | None) -> float:
        return sum(
            task.trips * total(task.inside, resource)
            if task.inside
            else task.seconds * (resource is None or resource in task.resources)
            for task in tasks
        )

    tasks = some(rng.randint(1, 30), 0)
    in_flight = rng.choice((1, 1, 2))
    slots = schedule(tasks, in_flight)
    end = max((slot.end for slot in slots), default=0)
    of = {slot.task.key: slot for slot in slots}
    for task in tasks:
        if task.key in of:
            for need in task.needs:
                if tasks[need].key in of:
                    assert of[tasks[need].key].end <= of[task.key].start + 1e-9
    for resource in (COMPUTE, "x", "y"):
        mine = sorted((slot.start, slot.end) for slot in slots if resource in slot.task.resources)
        assert all(before[1] <= after[0] + 1e-9 for before, after in itertools.pairwise(mine))
        assert sum(b - a for a, b in mine) == pytest.approx(total(tasks, resource))
        assert end >= total(tasks, resource) - 1e-9
    if in_flight == 1:
        mine = sorted(
            (slot.start, slot.end) for slot in slots if slot.task.resources and COMPUTE not in slot.task.resources
        )
        assert all(before[1] <= after[0] + 1e-9 for before, after in itertools.pairwise(mine))
    assert end <= total(tasks, None) + 1e-9
    assert end == pytest.approx(total(tasks, COMPUTE) + sum(exposed(slots).values()))
