"""Steps in a compiler's order: what runs beside what."""

import pytest

from shardpass.cost.in_order import Step, in_order
from shardpass.cost.schedule import COMPUTE, Task, exposed


def work(name, seconds):
    return Step(Task(name, seconds, (COMPUTE,)))


def start(name, seconds, link="x"):
    return Step(Task(name, seconds, (link,)), blocks=False)


def test_a_started_collective_runs_until_it_is_awaited():
    done = Step(Task("done"), awaits=(0,))
    slots, end = in_order([start("gather", 2.0), work("a", 3.0), done, work("b", 1.0)])
    assert end == 4.0
    assert exposed(slots) == {"gather": 0.0}
    slots, end = in_order([start("gather", 2.0), done, work("a", 3.0), work("b", 1.0)])
    assert end == 6.0
    assert exposed(slots) == {"gather": 2.0}


def test_one_link_has_one_collective_at_a_time():
    dones = [Step(Task("done"), awaits=(0,)), Step(Task("done"), awaits=(1,))]
    assert in_order([start("a", 2.0), start("b", 2.0), work("c", 1.0), *dones])[1] == 4.0
    assert in_order([start("a", 2.0), start("b", 2.0, "y"), work("c", 1.0), *dones])[1] == 2.0


def test_a_collective_that_blocks_delays_one_that_is_started():
    """The gather needs 4 s of the link, the sum 1: c runs from 1 to 3, and the gather ends at 5."""
    done = Step(Task("done"), awaits=(0,))
    slots, end = in_order([start("gather", 4.0), Step(Task("sum", 1.0, ("x",))), work("c", 2.0), done])
    assert end == 5.0
    assert {slot.task.key: (slot.start, slot.end) for slot in slots} == {
        "gather": (0.0, 5.0),
        "sum": (0.0, 1.0),
        "c": (1.0, 3.0),
    }


def test_a_collective_that_blocks_is_exposed():
    slots, end = in_order([work("a", 1.0), Step(Task("sum", 2.0, ("x",))), work("b", 1.0)])
    assert end == 4.0
    assert exposed(slots) == {"sum": 2.0}


def test_a_loop_lasts_its_trips():
    body = (start("gather", 2.0), work("a", 3.0), Step(Task("done"), awaits=(0,)))
    loop = Step(Task("loop", trips=4, inside=tuple(step.task for step in body)), inside=body)
    slots, end = in_order([work("before", 1.0), loop])
    assert end == pytest.approx(1.0 + 4 * 3.0)
    assert exposed(slots)["gather"] == 0.0
    assert {slot.task.key: slot.depth for slot in slots}["a"] == 1
