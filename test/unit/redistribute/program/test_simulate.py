"""The check must fail on programs that are wrong: a check that passes everything proves nothing."""

import dataclasses

import numpy as np
import pytest

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.digits import Digit, Unproven, axis_through, cut, merged
from shardpass.redistribute.program.ends import final_state, held_under
from shardpass.redistribute.program.simulate import check
from shardpass.redistribute.program.state import State

PROBLEMS = {
    "exchange": ((8, 8), "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}"),
    "permute": ((8, 8), "{devices=[4,2]<=[8]}", "{devices=[4,2]<=[2,4]T(1,0)}"),
    "gather": ((8, 8), "{devices=[4,2]<=[8]}", "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"),
    "slice": ((8, 8), "{replicated}", "{devices=[4,2]<=[8]}"),
    "rounds": (
        (4096, 4096),
        "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
        "{devices=[2,2,2]<=[2,2,2]T(2,0,1) last_tile_dim_replicate}",
    ),
    "uneven": ((10, 7), "{devices=[4,2]<=[8]}", "{devices=[8,1]<=[8]}"),
    "sums": ((8, 8), "{unreduced}", "{devices=[8,1]<=[8]}"),
    "total": ((8, 8), "{unreduced}", "{replicated}"),
}


def spoiled(op):
    """The op with one thing wrong in it, in as many ways as we can think of."""
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        if isinstance(value, np.ndarray) and value.size and value.dtype.kind == "i":
            swapped = value.copy()
            flat = swapped.reshape(-1) if swapped.ndim == 1 else swapped
            if (flat[0] != flat[-1]).any():
                flat[[0, -1]] = flat[[-1, 0]]
                yield dataclasses.replace(op, **{field.name: swapped})
    for name in ("axis", "split", "concat"):
        if hasattr(op, name):
            yield dataclasses.replace(op, **{name: 1 - getattr(op, name)})


@pytest.mark.parametrize("planner", ["rink", "best"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_spoiled_program_is_refused(name, planner):
    shape, source, target = PROBLEMS[name]
    plan = plan_redistribution(shape, "f32", source, target, planner=planner, num_devices=8)
    problem = make_problem(shape, "f32", source, target, 8)
    ends = held_under(problem.source), final_state(problem), shape
    check(plan.program, *ends)
    wrong = 0
    for k, op in enumerate(plan.program):
        rest = (*plan.program[:k], *plan.program[k + 1 :])
        if not isinstance(op, ops.Reshape):
            with pytest.raises((Unproven, ValueError, IndexError)):
                check(rest, *ends)
        for bad in spoiled(op):
            if _harmless(op, bad):
                continue
            with pytest.raises((Unproven, ValueError, IndexError)):
                check((*plan.program[:k], bad, *plan.program[k + 1 :]), *ends)
            wrong += 1
    assert wrong or name in ("total", "gather")  # an op on groups alone has little else to spoil


def _harmless(op, bad):
    """Whole groups in another order are the same groups; what an idle device of a round writes matters not."""
    if isinstance(op, ops.BoxRound | ops.AllReduce):
        return True
    if hasattr(op, "groups") and op.groups is not bad.groups:
        return sorted(map(tuple, op.groups.tolist())) == sorted(map(tuple, bad.groups.tolist()))
    # to join along an axis behind one of size 1 is to join along that
    return isinstance(op, ops.AllGather) and op.axis == 0


def test_a_digit_is_cut_only_where_it_divides():
    axis = (Digit(6, 0, 2),)
    assert cut(axis, 3) == ((Digit(2, 0, 6),), (Digit(3, 0, 2),))
    with pytest.raises(Unproven):
        cut((Digit(2, 0, 3), Digit(3, 0, 1)), 2)


def test_neighbouring_digits_merge_only_in_order():
    assert merged([Digit(2, 0, 4), Digit(4, 0, 1)]) == (Digit(8, 0, 1),)
    assert merged([Digit(4, 0, 1), Digit(2, 0, 4)]) == (Digit(4, 0, 1), Digit(2, 0, 4))


def test_an_axis_is_read_from_where_its_positions_lie():
    base = np.array([[i // 3 * 10, i % 3] for i in range(6)])
    assert axis_through(base) == (Digit(2, 0, 10), Digit(3, 1, 1))
    with pytest.raises(Unproven):
        axis_through(np.array([[0], [1], [3]]))


def test_a_state_has_the_shape_of_its_digits():
    assert State.tile((4, 1, 3), np.zeros((2, 3), np.int64)).shape == (4, 1, 3)
