"""The check must fail on programs that are wrong: a check that passes everything proves nothing."""

import dataclasses

import numpy as np
import pytest

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.digits import Digit, Unproven, axis_through, cut, merged
from shardpass.redistribute.program.ends import final_state, held_under
from shardpass.redistribute.program.simulate import check, run
from shardpass.redistribute.program.state import State, fingerprints

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


FOUR = np.arange(4)[None, :]


def tiles(rows, columns=1, real=None, weight=None):
    """A tile of so many rows for each of 4 devices, one below the other."""
    base = np.stack([rows * np.arange(4), np.zeros(4, np.int64)], axis=1)
    return State.tile((rows, columns), base, real, weight)


def test_an_all_to_all_of_an_axis_that_the_group_does_not_divide_is_refused():
    """10 columns for 4 devices: blocks of 2 would leave the last two columns behind."""
    with pytest.raises(Unproven, match="4 equal blocks"):
        run((ops.AllToAll(1, 0, FOUR, ()),), tiles(2, 10), (8, 10))
    moved = run((ops.AllToAll(1, 0, FOUR, ()),), tiles(2, 12), (8, 12))
    assert moved.shape == (8, 3)
    assert moved.base.tolist() == [[0, 0], [0, 3], [0, 6], [0, 9]]


def test_a_reduce_scatter_of_an_axis_that_the_group_does_not_divide_is_refused():
    partial = State.tile((10, 1), np.zeros((4, 2), np.int64), weight=fingerprints(4))
    with pytest.raises(Unproven, match="4 equal blocks"):
        run((ops.ReduceScatter(0, FOUR, "add", ()),), partial, (10, 1))


def test_what_a_device_gets_that_is_sent_nothing_is_no_data():
    """Of a permute, the devices that are sent nothing get zeros: device 0 here, though device 3 holds a tile."""
    start = State.tile((2, 1), np.zeros((4, 2), np.int64))
    sent = run((ops.Permute(np.array([-1, 0, 1, 2]), ()),), start, (2, 1))
    assert sent.real.tolist() == [False, True, True, True]
    with pytest.raises(Unproven, match="device 0 is not sent all of its tile"):
        check((ops.Permute(np.array([-1, 0, 1, 2]), ()),), start, start, (2, 1))


def test_zeros_are_no_data():
    start = tiles(2)
    with pytest.raises(Unproven, match="made of nothing"):
        run((ops.Zeros((2, 1)),), start, (8, 1))
    assert run((ops.Zeros((0, 1)),), start, (0, 1)).shape == (0, 1)


def test_a_tile_that_is_padded_inside_of_the_array_is_refused():
    """Rows 0 and 1 of 8, padded to 4, are not rows 0 to 3; of an array that ends there they are."""
    with pytest.raises(Unproven, match="is resized"):
        run((ops.Pad((4, 1)),), tiles(2), (8, 1))
    whole = State.tile((2, 1), np.zeros((4, 2), np.int64))
    assert run((ops.Pad((4, 1)),), whole, (2, 1)).shape == (4, 1)


@pytest.mark.parametrize(
    "op",
    [ops.AllGather(0, FOUR, ()), ops.AllToAll(1, 0, FOUR, ()), ops.AllReduce(FOUR, "add", ())],
    ids=lambda op: type(op).__name__,
)
def test_a_group_with_a_device_that_holds_nothing_is_refused(op):
    with pytest.raises(Unproven):
        run((op,), tiles(2, 4, real=np.array([True, True, True, False])), (8, 4))


def test_a_round_that_fills_a_part_of_a_tile_makes_no_data():
    """Device 1 is sent one of its two rows; the other would be the zeros that the exchange starts from."""
    start = State.tile((2,), np.zeros((2, 1), np.int64), real=np.array([True, False]))
    begin, end = ops.BeginBoxExchange((2,), (2,)), ops.EndBoxExchange((2,), np.zeros((2, 1), np.int64))

    def exchange(rows):
        zero = np.zeros((2, 1), np.int64)
        one = ops.BoxRound((rows,), np.array([-1, 0]), zero, zero, np.array([[0], [rows]]))
        return run((begin, one, end), start, (2,)).real.tolist()

    assert exchange(2) == [False, True]
    assert exchange(1) == [False, False]


@pytest.mark.parametrize(
    ("parts", "proven"),
    [
        (((0, 2), (2, 2)), True),
        (((2, 2), (0, 2)), True),
        (((0, 2), (0, 2)), False),  # as many rows as the tile has, and the others are zeros
        (((0, 3), (2, 1)), False),
        (((2, 2), (1, 2)), False),
        (((0, 1), (1, 2), (0, 1)), False),
    ],
)
def test_rounds_that_write_the_same_row_are_refused(parts, proven):
    """Device 1 is sent rows of a tile of four in several rounds, each (first row, rows)."""
    start = State.tile((4,), np.zeros((2, 1), np.int64), real=np.array([True, False]))
    begin, end = ops.BeginBoxExchange((4,), (4,)), ops.EndBoxExchange((4,), np.zeros((2, 1), np.int64))
    rounds = [
        ops.BoxRound(
            (rows,), np.array([-1, 0]), np.array([[first], [0]]), np.array([[0], [first]]), np.array([[0], [rows]])
        )
        for first, rows in parts
    ]
    if proven:
        assert run((begin, *rounds, end), start, (4,)).real.tolist() == [False, True]
        return
    with pytest.raises(Unproven, match="write the same element"):
        run((begin, *rounds, end), start, (4,))


def chunks(shift=0, **changed):
    """Two rounds on 2 devices of 4 rows each: a device sends one half of its rows to itself, the other to its peer."""
    take = np.array([[[0, 0], [2, 0]], [[2, 0], [0, 0]]])  # round, sender
    there = np.array([[0, 1], [1, 0]])
    given = {"source_of": there, "take": take + np.array([shift, 0]), "place": np.array([0, 1]), **changed}
    return ops.ChunkRounds(**{"chunk": (2, 1), "placed": (2, 1), "axis": 0, **given})


def halves(weight=None):
    return State.tile((4, 1), np.array([[0, 0], [4, 0]]), weight=weight)


@pytest.mark.parametrize(
    ("op", "state", "reason"),
    [
        (chunks(chunk=(8, 1)), halves(), "greater than its operand"),
        (chunks(take=None), halves(), "less than its operand"),
        (chunks(shift=1), halves(), "not a block"),
        (chunks(shift=2), halves(), "not a block"),
        (chunks(shift=-2), halves(), "not a block"),
        (chunks(source_of=np.array([[0, 0], [1, 0]])), halves(), "once each"),
        (chunks(), halves(fingerprints(2)), "summands are mixed"),
    ],
    ids=["greater", "less", "between blocks", "past the end", "before the start", "one sends twice", "summands"],
)
def test_rounds_of_chunks_that_do_not_fit_are_refused(op, state, reason):
    with pytest.raises(Unproven, match=reason):
        run((op,), state, (8, 1))


def test_rounds_of_chunks_are_followed():
    """Device 0 ends with rows 0, 1 and 4, 5; device 1 with 2, 3 and 6, 7."""
    reached = run((chunks(),), halves(), (8, 1))
    assert reached.base.tolist() == [[0, 0], [2, 0]]
    assert reached.axes[0] == (Digit(2, 0, 4), Digit(2, 0, 1))
