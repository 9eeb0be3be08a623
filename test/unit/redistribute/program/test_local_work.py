"""The local work of programs, counted by hand on small tiles; and how it decides the form of an exchange."""

import math

import execution as x
import numpy as np
import pytest
from support.machines import switched

from shardpass.cost.chosen import chosen
from shardpass.cost.machine import find_machine
from shardpass.element_types import element_type
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.local_work import LocalPrices, LocalWork, local_work, usual_prices
from shardpass.redistribute.terms.costs import local_prices
from tools.prove.numpy_programs import evaluate

F32 = element_type("f32")
FOUR = np.array([[0, 1, 2, 3]])
HERE = np.array([1, 2, 3, 0])


def work(shape, *program):
    return local_work(program, shape, F32)


def test_a_permute_alone_has_none():
    assert work((8, 8), ops.Permute(HERE)) == LocalWork()


def test_a_slice_before_a_permute_is_one_loop():
    half = ops.DynamicSlice((4, 8), np.zeros((4, 2), np.int64))
    assert work((8, 8), half, ops.Reshape((4, 2, 4)), ops.Permute(HERE)) == LocalWork(4 * 32, 0, 32, 0)


def test_local_ops_up_to_a_collective_are_one_loop():
    """Sliced, transposed, seen with three dimensions: written once."""
    half = ops.DynamicSlice((4, 8), np.zeros((4, 2), np.int64))
    turned = (half, ops.Transpose((1, 0)), ops.Reshape((8, 2, 2)))
    assert work((8, 8), *turned, ops.Permute(HERE)) == LocalWork(4 * 32, 0, 32, 0)


def test_merged_innermost_dimensions_take_places():
    """f32[4, 8, 7] to [8, 4, 7] to [8, 28]: 28 is two dimensions of what is read. [8, 4, 7] to [32, 7] is free.

    Then it is written in 32 stretches of 7, whose elements count half.
    """
    turned = ops.Transpose((1, 0, 2))
    assert work((4, 8, 7), turned, ops.Reshape((8, 28))) == LocalWork(4 * 224, 0, 224, 224)
    assert work((4, 8, 7), turned, ops.Reshape((32, 7))) == LocalWork(4 * 224, 0, 32 + 112, 0)


def test_pieces_joined_along_an_inner_axis_are_runs():
    """f32[8, 28] on 4 devices, cut and joined along the columns: pieces of 8x7, so 32 runs of 7 are joined."""
    exchange = ops.AllToAll(1, 1, FOUR)
    cut = LocalWork(4 * 224, 0, 224, 0)
    assert work((8, 28), exchange) == cut.plus(LocalWork(4 * 224, 32, 0, 0))
    seen_otherwise = work((8, 28), exchange, ops.Reshape((4, 2, 28)))
    assert seen_otherwise == cut.plus(LocalWork(4 * 224, 0, 224, 224))  # each element is looked for in its piece


@pytest.mark.parametrize(("rows", "inside"), [(1, False), (2, True), (3, True)])
def test_pieces_of_one_row_are_joined_from_end_to_end(rows, inside):
    """f32[rows, 80] on 4 devices: of one row the pieces stand one behind the other, and a reshape that merges is free.

    Of more rows each element of [20 rows, 4], merged with others, is looked for among the pieces.
    """
    exchange = ops.AllToAll(1, 1, FOUR)
    cut = LocalWork(4 * 80 * rows, 0, 80 * rows, 0)
    apart = (exchange, ops.Reshape((rows, 4, 20)), ops.Reshape((rows, 80)))
    joined = LocalWork(4 * 80 * rows, 0, 80 * rows, 80 * rows) if inside else LocalWork(4 * 80, 4, 0, 0)
    assert work((rows, 80), *apart) == cut.plus(joined)


def test_blocks_cut_by_slices_are_read_in_stretches_and_joined_where_they_come():
    """f32[8, 28] in four blocks of 8x7: 32 stretches of 7, whose elements count half; then 4 runs, one a block."""
    exchange = ops.AllToAll(1, 0, FOUR, by_slices=True)
    assert work((8, 28), exchange) == LocalWork(4 * 224, 0, 32 + 112, 0).plus(LocalWork(4 * 224, 4, 0, 0))
    narrow = work((8, 8), exchange)  # stretches of 2, which take no longer than their elements
    assert narrow == LocalWork(4 * 64, 0, 64, 0).plus(LocalWork(4 * 64, 4, 0, 0))


def test_runs_of_up_to_16_bytes_take_no_call():
    """f32[8, 16] on 4 devices: 32 runs of 4 floats, each as long as 20 elements; or of 5 floats in f32[8, 20]."""
    exchange = ops.AllToAll(1, 1, FOUR)
    assert work((8, 16), exchange) == LocalWork(2 * 4 * 128, 0, 128 + 20 * 32, 0)
    assert work((8, 20), exchange) == LocalWork(2 * 4 * 160, 32, 160, 0)


def test_pieces_joined_in_front_and_transposed_are_the_loop_of_the_example():
    program = (ops.AllToAll(0, 0, FOUR), ops.Transpose((1, 0, 2)), ops.Reshape((8, 28)))
    cut = LocalWork(4 * 224, 0, 224, 0)
    assert work((4, 8, 7), *program) == cut.plus(LocalWork(4 * 224, 0, 224, 224))


def test_more_pieces_take_more_to_place():
    """f32[8, 8, 7], a piece of each of 8 devices, to [8, 56]: each of the 448 places counts twice."""
    eight = np.array([range(8)])
    program = (ops.AllToAll(0, 0, eight), ops.Transpose((1, 0, 2)), ops.Reshape((8, 56)))
    cut = LocalWork(4 * 448, 0, 448, 0)
    assert work((8, 8, 7), *program) == cut.plus(LocalWork(4 * 448, 0, 448, 2 * 448))


def test_a_gather_in_front_writes_nothing_more():
    assert work((2, 8), ops.AllGather(0, FOUR)) == LocalWork()


def test_a_scatter_begins_with_what_was_read_and_turns_what_lies_inside():
    """A slice of [4, 8] is written before it is scattered by rows; [2, 8] is turned before it is by columns."""
    half = ops.DynamicSlice((4, 8), np.zeros((4, 2), np.int64))
    assert work((8, 8), half, ops.ReduceScatter(0, FOUR, "add")) == LocalWork(4 * 32, 0, 32, 0)
    assert work((4, 8), ops.ReduceScatter(0, FOUR, "add")) == LocalWork()
    assert work((2, 8), ops.ReduceScatter(1, FOUR, "add")) == LocalWork(4 * 16, 0, 16, 0)
    assert work((1, 8), ops.ReduceScatter(1, FOUR, "add")) == LocalWork()


def test_a_gather_of_columns_by_pieces_is_one_joining():
    """The tile [2, 8] becomes [2, 32]: 8 runs of 8. Not by pieces it is transposed."""
    assert work((2, 8), ops.AllGather(1, FOUR, by_pieces=True)) == LocalWork(4 * 64, 8, 0, 0)
    assert work((2, 8), ops.AllGather(1, FOUR)) == LocalWork(4 * 64, 0, 64, 64)


def test_prices_are_what_each_number_takes():
    prices = LocalPrices(copies=8.0, runs=4.0, elements=2.0, places=1.0)
    assert prices.seconds(LocalWork(8, 8, 8, 8)) == 1 + 2 + 4 + 8
    assert usual_prices(math.inf).seconds(LocalWork(1, 1, 1, 1)) == 0


COLUMNS = "{mesh['x'=4], [{}, {'x'}]}"
ROWS = "{mesh['x'=4], [{'x'}, {}]}"


@pytest.mark.parametrize(
    ("columns", "form"), [(4 * 2, "in front"), (4 * 4, "in front"), (4 * 7, "in front"), (4 * 500, "in place")]
)
def test_the_length_of_runs_decides_where_they_are_joined(columns, form):
    """Columns to rows on 4 devices: pieces of 8, 16, 28 or 2,000 bytes come, and are joined along the columns."""
    plan = plan_redistribution((4096, columns), "f32", COLUMNS, "{mesh['x'=4], [{'x'}, {}]}", machine="cpu")
    kinds = [type(op).__name__ for op in plan.program]
    assert (kinds[-1] == "AllToAll") == (form == "in place"), kinds
    assert plan.bytes_received == plan.lower_bound_bytes


def test_a_gather_goes_by_pieces_only_where_the_profile_says_so():
    for name, kind in (("cpu", "all_to_all"), ("default", "all_gather")):
        plan = plan_redistribution((96, 4000), "f32", COLUMNS, "{mesh['x'=4], [{}, {}]}", machine=name)
        assert [step.kind for step in plan.steps] == [kind]
        assert plan.bytes_received == 3 * 96 * 1000 * 4
        assert ("stablehlo.all_to_all" in plan.to_module()) == (name == "cpu")


def test_a_gather_along_an_inner_dimension_is_one_op():
    """f32[96, 4000] from columns of 4 devices; on CPUs pieces of 1,000 are joined instead."""
    whole = np.arange(96 * 4000, dtype=np.float32).reshape(96, 4000)
    plan = plan_redistribution(whole.shape, "f32", COLUMNS, "{mesh['x'=4], [{}, {}]}", machine="h100")
    assert [(type(op), op.axis) for op in plan.program] == [(ops.AllGather, 1)]
    for got in x.run_plan(plan, whole):
        np.testing.assert_array_equal(got, whole)


def test_an_exchange_by_slices_is_one_concatenation():
    """f32[256, 40, 21] on 4 devices, dimension 1 exchanged for 0; XLA runs it, NumPy says what comes."""
    source, target = "{mesh['x'=4], [{'x'}, {}, {}]}", "{mesh['x'=4], [{}, {'x'}, {}]}"
    whole = np.arange(256 * 40 * 21, dtype=np.float32).reshape(256, 40, 21)
    for name, slices in (("cpu", 4), ("default", 0)):
        plan = plan_redistribution(whole.shape, "f32", source, target, machine=name)
        text = plan.to_module()
        assert (text.count("stablehlo.slice"), text.count("stablehlo.concatenate")) == (slices, slices // 4)
        for d, got in enumerate(x.run_plan(plan, whole)):
            np.testing.assert_array_equal(got, whole[:, 10 * d : 10 * d + 10])


@pytest.mark.parametrize("element", ["f32", "i8"])
def test_rows_of_blocks_are_turned_where_they_come(element):
    """Blocks of dimension 1 become the most major of dimension 3, 20 elements each; XLA runs it."""
    source, target = "{mesh['x'=4], [{}, {}, {}, {'x'}]}", "{mesh['x'=4], [{}, {'x'}, {}, {}]}"
    whole = (np.arange(64 * 8 * 9 * 80) % 113).reshape(64, 8, 9, 80).astype({"f32": "float32", "i8": "int8"}[element])
    machine = switched("slices", 0.0, 1e9, math.inf, runs=1.0, elements=1e6, places=1e9, cuts_by_slices=True)
    plan = plan_redistribution(whole.shape, element, source, target, machine=machine)
    exchange = next(op for op in plan.program if isinstance(op, ops.AllToAll))
    assert (exchange.by_slices, exchange.split, exchange.concat) == (True, 2, 0)
    for d, got in enumerate(x.run_plan(plan, whole)):
        np.testing.assert_array_equal(got, whole[:, 2 * d : 2 * d + 2])


def test_many_blocks_are_not_cut_one_by_one():
    source, target = "{mesh['x'=32], [{'x'}, {}]}", "{mesh['x'=32], [{}, {'x'}]}"
    plan = plan_redistribution((1024, 4096), "f32", source, target, machine="cpu")
    assert "stablehlo.slice" not in plan.to_module()


def test_each_form_gives_the_same_array():
    """Rows to columns with a slice before, under prices that make each form the cheapest; NumPy is the witness."""
    mesh = "mesh['a'=2,'b'=4]"
    source, target = f"{{{mesh}, [{{}}, {{}}, {{'b'}}]}}", f"{{{mesh}, [{{'b'}}, {{'a'}}, {{}}]}}"
    whole = np.arange(64 * 28 * 56).reshape(64, 28, 56)
    programs = set()
    for dear in ("runs", "elements", "places"):
        rates = {rate: 1.0 if rate == dear else 1e6 for rate in ("runs", "elements", "places")}
        machine = switched(dear, 0.0, 1e9, math.inf, **rates)
        plan = plan_redistribution((64, 28, 56), "i64", source, target, machine=machine)
        tiles = [whole[..., 14 * b : 14 * b + 14] for _ in range(2) for b in range(4)]
        wanted = [whole[16 * b : 16 * b + 16, 14 * a : 14 * a + 14] for a in range(2) for b in range(4)]
        for got, want in zip(evaluate(plan.program, tiles), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
        programs.add(tuple(type(op).__name__ for op in plan.program))
    assert len(programs) > 1  # the prices decide


def test_what_is_sliced_away_is_not_padded():
    """7 rows over 2 devices pad to 8; the other mesh axis halves the columns first. NumPy is the witness."""
    mesh = "mesh['a'=2,'b'=2]"
    source, target = f"{{{mesh}, [{{}}, {{}}, {{'b'}}]}}", f"{{{mesh}, [{{'b'}}, {{'a'}}, {{}}]}}"
    whole = np.arange(7 * 6 * 4, dtype=np.float32).reshape(7, 6, 4)
    plan = plan_redistribution((7, 6, 4), "f32", source, target)
    kinds = [type(op).__name__ for op in plan.program if not isinstance(op, ops.Reshape | ops.Transpose)]
    assert kinds[:2] == ["DynamicSlice", "Pad"]
    assert plan.program[kinds.index("Pad")].shape == (8, 3, 2)
    tiles = [whole[..., 2 * b : 2 * b + 2] for _ in range(2) for b in range(2)]
    for device, got in enumerate(evaluate(plan.program, tiles)):
        a, b = divmod(device, 2)
        rows = whole[4 * b : 4 * b + 4, 3 * a : 3 * a + 3]
        np.testing.assert_array_equal(got[: len(rows)], rows)


@pytest.mark.parametrize("element", ["bf16", "f8E4M3FN"])
def test_narrow_floats_travel_as_bits_where_the_profile_says_so(element):
    plans = {name: plan_redistribution((8, 64), element, ROWS, COLUMNS, machine=name) for name in ("cpu", "default")}
    assert isinstance(plans["cpu"].program[0], ops.AsBits)
    width = {"bf16": 16, "f8E4M3FN": 8}[element]
    exchanges = [line for line in plans["cpu"].to_module().splitlines() if "stablehlo.all_to_all" in line]
    assert exchanges
    assert all(f"xui{width}>" in line for line in exchanges)
    assert "bitcast_convert" not in plans["default"].to_module()


def test_sums_do_not_travel_as_bits():
    """Integers of the bits add otherwise than the floats."""
    partial = "{mesh['x'=4], [{}, {}], unreduced={'x'}}"
    plan = plan_redistribution((8, 64), "bf16", partial, ROWS, machine="cpu")
    assert "reduce_scatter" in [step.kind for step in plan.steps]
    assert "bitcast_convert" not in plan.to_module()


def test_profiles_say_what_local_work_takes():
    cpu = local_prices(find_machine("cpu"))
    assert (cpu.runs, cpu.gathers_by_pieces, cpu.cuts_by_slices, cpu.floats_as_bits) == (5e7, True, True, True)
    default = chosen("default")
    assert local_prices(default) == usual_prices(default.memory_bandwidth)
