"""What each device holds after each step of a plan, as those who draw it see it."""

import numpy as np
import pytest

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.program.digits import Digit
from shardpass.redistribute.program.state import State
from shardpass.redistribute.stages import covered, drawn_dimensions, stages


def state(*digits, base=0):
    """One axis of these digits, on two devices; the second starts 100 further."""
    start = np.array([[base, 0], [base + 100, 0]])
    return State((digits, (Digit(3, 1, 1),)), start, np.ones(2, bool), np.zeros(2, np.uint64))


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ((Digit(4, 0, 1),), ((5, 9),)),
        ((Digit(2, 0, 4), Digit(2, 0, 1)), ((5, 7), (9, 11))),
        ((Digit(2, 0, 2), Digit(2, 0, 1)), ((5, 9),)),  # they touch
        ((Digit(2, 0, 8), Digit(2, 0, 2), Digit(2, 0, 1)), ((5, 9), (13, 17))),
        ((Digit(2, 0, 1), Digit(2, 0, 4)), ((5, 7), (9, 11))),  # in another order
        ((Digit(3, 0, 2),), ((5, 6), (7, 8), (9, 10))),
        ((), ((5, 6),)),
    ],
)
def test_the_rows_that_a_device_holds(digits, expected):
    assert covered(state(*digits, base=5), 0, 0) == expected
    assert covered(state(*digits, base=5), 1, 0) == tuple((a + 100, b + 100) for a, b in expected)
    assert covered(state(*digits, base=5), 0, 1) == ((0, 3),)


@pytest.mark.parametrize(
    ("shape", "source", "target", "expected"),
    [
        ((), "{replicated}", "{replicated}", (None, None)),
        ((8,), "{devices=[4]<=[4]}", "{replicated}", (0, None)),
        ((8, 8, 8), "{devices=[1,1,4]<=[4]}", "{devices=[4,1,1]<=[4]}", (0, 2)),
        ((8, 8, 8), "{devices=[1,2,2]<=[4]}", "{devices=[1,4,1]<=[4]}", (1, 2)),
        ((8, 8, 8), "{devices=[1,1,4]<=[4]}", "{devices=[1,1,4]<=[2,2]T(1,0)}", (0, 2)),  # of the rest the first
    ],
)
def test_the_dimensions_that_are_split_most(shape, source, target, expected):
    assert drawn_dimensions(plan_redistribution(shape, "f32", source, target, num_devices=4)) == expected


def titles(shape, source, target, **options):
    plan = plan_redistribution(shape, "f32", source, target, num_devices=4, **options)
    return [(stage.title, stage.axes) for stage in stages(plan)]


def test_a_stage_for_each_step():
    rows, columns = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}"
    assert titles((8, 8), rows, columns) == [("source", "2x8"), ("all_to_all", "over axis_0")]
    assert [title for title, _ in titles((8, 8), rows, "{replicated}")] == ["source", "all_gather"]
    assert [title for title, _ in titles((8, 8), "{replicated}", rows)] == ["source", "dynamic_slice"]
    assert [title for title, _ in titles((8, 8), "{maximal device=1}", rows)] == ["source", "exchange"]
    assert titles((8, 8), rows, rows) == [("source", "2x8")]


def test_what_the_last_stage_holds_is_the_target():
    """8 rows in tiles of 2 to columns in tiles of 2, device by device."""
    plan = plan_redistribution((8, 8), "f32", "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}")
    first, last = (stage.state for stage in stages(plan))
    for device in range(4):
        here = ((2 * device, 2 * device + 2),)
        assert (covered(first, device, 0), covered(first, device, 1)) == (here, ((0, 8),))
        assert (covered(last, device, 0), covered(last, device, 1)) == (((0, 8),), here)


def test_sums_that_stay_apart_are_drawn_by_their_ends():
    source = "{devices=[1,2,2]<=[4] last_tile_dims={unreduced}}"
    target = "{devices=[2,1,2]<=[4] last_tile_dims={unreduced}}"
    found = titles((8, 8), source, target)
    assert found[0][0] == "source"
    assert found[-1][0] in ("target", "all_to_all")
