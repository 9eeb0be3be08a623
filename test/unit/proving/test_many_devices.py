"""Sums over groups of devices in several steps, and proofs whose work does not grow with the devices.

The arrays are larger than those that are walked element by element, so that the boxes alone prove what is proved.
"""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.proving import prove
from shardpass.proving.relations.apart import closed, total_apart
from shardpass.proving.relations.pieces import Content, full
from shardpass.proving.relations.terms import Term, Terms
from shardpass.proving.rules.collectives import exchanged, gathered, groups_from
from shardpass.proving.scalars import table as scalars
from tools.bench.compile_programs import MeshSize, scanned_transformer, transformer

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GLOBAL = f"{CHANNEL}, use_global_device_ids"
ADD = """({
    ^bb0(%left: tensor<f32>, %right: tensor<f32>):
      %both = stablehlo.add %left, %right : tensor<f32>
      stablehlo.return %both : tensor<f32>
    })"""
EVEN_AND_ODD = [[0, 2, 4, 6], [1, 3, 5, 7]]
PAIRS = [[0, 1], [2, 3], [4, 5], [6, 7]]


def side(kind, sharding):
    return f'{{mhlo.sharding = "{{manual}}", shardpass.global_type = {kind}, shardpass.sharding = "{sharding}"}}'


def module(devices, argument, result, *lines):
    """A program of one device of ``devices``; ``argument`` and ``result`` are (tile, whole type, sharding)."""
    (own, x, cut), (tile, r, how) = argument, result
    return f"""module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%x: {own} {side(x, cut)}) -> ({tile} {side(r, how)}) {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    {chr(10).join(lines)}
    return %r : {tile}
  }}
}}"""


def on_one_device(kind, result, *lines):
    return f"""module {{
  func.func @main(%x: {kind}) -> {result} {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    {chr(10).join(lines)}
    return %r : {result}
  }}
}}"""


def groups(rows):
    return f"replica_groups = dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def summed(name, operand, kind, rows):
    return f'%{name} = "stablehlo.all_reduce"(%{operand}) <{{{GLOBAL}, {groups(rows)}}}> {ADD} : ({kind}) -> {kind}'


def reduced(name, operand, kind, dims, result):
    return (f"%{name} = stablehlo.reduce(%{operand} init: %zero) applies stablehlo.add across dimensions = {dims}"
            f" : ({kind}, tensor<f32>) -> {result}")  # fmt: skip


def scaled(name, operand, kind):
    return f"%two_{name} = stablehlo.constant dense<2.0> : {kind}\n" \
        f"%{name} = stablehlo.multiply %{operand}, %two_{name} : {kind}"  # fmt: skip


# ---------------------------------------------------------------- sums in several steps

BATCH = "tensor<8192x2048xf32>", "tensor<2048xf32>"
SUM = on_one_device(*BATCH, reduced("r", "x", BATCH[0], [0], BATCH[1]))
TWICE = on_one_device(*BATCH, reduced("t", "x", BATCH[0], [0], BATCH[1]), scaled("r", "t", BATCH[1]))


def in_steps(*steps, between=()):
    """The sum of 8 parts of a batch by sums over the groups of each of ``steps``."""
    lines = [reduced("s0", "x", "tensor<1024x2048xf32>", [0], BATCH[1])]
    for number, rows in enumerate(steps):
        lines.append(summed(f"t{number}", f"s{number}", BATCH[1], rows))
        more = [scaled(f"s{number + 1}", f"t{number}", BATCH[1])] if number in between else []
        lines += more or [f"%s{number + 1} = stablehlo.optimization_barrier %t{number} : {BATCH[1]}"]
    lines.append(f"%r = stablehlo.optimization_barrier %s{len(steps)} : {BATCH[1]}")
    return module(8, ("tensor<1024x2048xf32>", BATCH[0], "{devices=[8,1]<=[8]}"),
                  (BATCH[1], BATCH[1], "{replicated}"), *lines)  # fmt: skip


def proved(whole, local):
    return prove(whole, local, refute=False).proved


@pytest.mark.parametrize(
    "steps",
    [
        [EVEN_AND_ODD, PAIRS],
        [[[0, 4], [1, 5], [2, 6], [3, 7]], [[0, 2], [1, 3], [4, 6], [5, 7]], PAIRS],
        [[[0, 4], [1, 5], [2, 6], [3, 7]], PAIRS, [[0, 2], [1, 3], [4, 6], [5, 7]]],
        [[[0, 3, 5, 6], [1, 2, 4, 7]], PAIRS],
    ],
)
def test_a_sum_of_parts_that_lie_apart_is_proved_when_the_gaps_are_filled(steps):
    assert proved(SUM, in_steps(*steps))


@pytest.mark.parametrize(
    "steps",
    [
        [EVEN_AND_ODD],  # half of the parts
        [EVEN_AND_ODD, [[0, 2], [1, 3], [4, 6], [5, 7]]],  # each part twice
        [EVEN_AND_ODD, PAIRS, PAIRS],  # the whole sum twice
        [EVEN_AND_ODD, [[0, 1, 2, 3], [4, 5, 6, 7]]],  # the whole sum twice, at once
        [[[0, 4], [1, 5], [2, 6], [3, 7]], [[0, 2], [1, 3], [4, 6], [5, 7]], [[0, 2], [1, 3], [4, 6], [5, 7]]],
    ],
)
def test_a_sum_that_leaves_parts_out_or_adds_some_twice_is_not_proved(steps):
    assert not proved(SUM, in_steps(*steps))


def random_steps(rng, filled):
    """Sums over groups of 8 devices, in random steps; where ``filled``, over the axes of a cube of devices."""
    if filled:
        cube, axes = rng.permutation(8).reshape(2, 2, 2), rng.permutation(3)
        return [np.moveaxis(cube, axis, 2).reshape(4, 2).tolist() for axis in axes]
    return [rng.permutation(8).reshape(-1, rng.choice([2, 4])).tolist() for _ in range(rng.integers(2, 4))]


def times(steps):
    """How often each part is in the sum of each device, [device, part]."""
    count = np.eye(8, dtype=int)
    for rows in steps:
        new = np.empty_like(count)
        for row in rows:
            new[row] = count[row].sum(0)
        count = new
    return count


def test_a_sum_in_random_steps_is_proved_where_each_device_has_each_part_once():
    rng = np.random.default_rng(5)
    every = [random_steps(rng, filled) for filled in (True, False) for _ in range(40)]
    once = [bool((times(steps) == 1).all()) for steps in every]
    assert 40 <= sum(once) < 80
    assert [proved(SUM, in_steps(*steps)) for steps in every] == once


def test_a_multiple_of_parts_that_lie_apart_is_one_of_the_sum():
    assert proved(TWICE, in_steps(EVEN_AND_ODD, PAIRS, between=[0]))
    assert not proved(SUM, in_steps(EVEN_AND_ODD, PAIRS, between=[0]))
    assert not proved(TWICE, in_steps(EVEN_AND_ODD, PAIRS, between=[0, 1]))


@pytest.mark.parametrize(("second", "whole"), [([[0, 1], [2, 3]], True), ([[0, 3], [1, 2]], False)])
def test_parts_lie_apart_along_two_dimensions(second, whole):
    """Of 2 x 2 tiles the two diagonals are added up first."""
    kind, tile, one = "tensor<4096x4096xf32>", "tensor<2048x2048xf32>", "tensor<f32>"
    program = on_one_device(kind, one, reduced("r", "x", kind, [0, 1], one))
    local = module(4, (tile, kind, "{devices=[2,2]<=[4]}"), (one, one, "{replicated}"),
                   reduced("s", "x", tile, [0, 1], one), summed("t", "s", one, [[0, 3], [1, 2]]),
                   summed("r", "t", one, second))  # fmt: skip
    assert proved(program, local) == whole


# ---------------------------------------------------------------- sets of boxes


def covered(boxes, size):
    """In how many boxes each place lies."""
    half = boxes.shape[1] // 2
    count = np.zeros([size] * half, int)
    for box in boxes:
        count[tuple(slice(*pair) for pair in zip(box[:half], box[half:], strict=True))] += 1
    return count


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_boxes_that_are_put_together_cover_what_they_covered(dims):
    rng = np.random.default_rng(dims)
    for _ in range(60):
        low = rng.integers(0, 4, (rng.integers(1, 9), dims))
        boxes = np.concatenate([low, low + rng.integers(1, 3, low.shape)], axis=1)
        assert (covered(closed(boxes), 6) == covered(boxes, 6)).all()


def test_all_cells_of_a_grid_are_one_box():
    cells = np.array(list(np.ndindex(3, 4, 2)))
    boxes = np.concatenate([cells, cells + 1], axis=1)
    assert closed(np.random.default_rng(0).permutation(boxes)).tolist() == [[0, 0, 0, 3, 4, 2]]


def test_sums_of_two_terms_or_of_parts_that_overlap_are_none():
    terms = Terms()
    x, y = (terms.make(Term(("sum", name), (), 3, (), "add", ((1, 2),))) for name in "xy")
    box = np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64), np.ones(1, bool)
    a = np.zeros((3, 0), np.int64)

    def total(*parts):
        return total_apart(terms, [(term, a, np.array([[[row, *bounds]]])) for term, row, bounds in parts], box)

    even, odd = (x, 5, (0, 2)), (x, 5, (4, 6))
    apart = total(even, odd)
    assert terms.all[apart.term].key[0] == "apart"
    assert total(even, (x, 5, (1, 3))) is None
    assert total(even, even) is None
    assert total(even, (x, 6, (4, 6))) is None  # another row
    assert total(even, (y, 5, (4, 6))) is None
    filled = total_apart(terms, [(apart.term, apart.a, apart.b[None]), (x, a, np.array([[[5, 2, 4]]]))], box)
    assert (filled.term, filled.b.tolist()) == (x, [[5, 0, 6]])
    assert total_apart(terms, [(apart.term, apart.a, apart.b[None]), (x, a, np.array([[[5, 1, 4]]]))], box) is None


# ---------------------------------------------------------------- tiles beside each other


def element(terms, array, number, index):
    """An element of a term: of the argument, which is ``array``, or of merges of it."""
    term = terms.all[number]
    if term.key[0] == "argument":
        return array[tuple(index)]
    _, inner, rows = term.key  # merged[.., e.., k] = term[.., e + p (k div inner) + q (k mod inner), ..]
    at = np.array(index[:-1])
    for row, p, q in rows:
        at[row] += p * (index[-1] // inner) + q * (index[-1] % inner)
    return element(terms, array, term.parts[0], at)


def tiles(terms, array, pieces, shape, devices):
    """What the pieces of one argument say of each device's tile; -1 where nothing."""
    result = np.full((devices, *shape), -1)
    for piece in pieces:
        for device in np.flatnonzero(piece.on):
            for index in np.ndindex(*shape):
                i = np.array(index)
                if (piece.lo[device] <= i).all() and (i < piece.hi[device]).all():
                    assert result[device][index] == -1  # disjoint
                    result[device][index] = element(terms, array, piece.term, piece.a @ i + piece.b[device])
    return result


def tiles_in_line(rng, term, shape, devices):
    """Tiles of ``shape`` that go on in dimension 0 from each device to the next, in one piece or in two."""
    order = rng.permutation(devices) if rng.random() < 0.5 else np.arange(devices)
    b = np.array([[shape[0] * place, 0] for place in order])
    whole = full(term, np.eye(2, dtype=np.int64), b, shape)
    if rng.random() < 0.5:
        return [whole], order
    other = replace(whole, b=b + np.array([0, rng.integers(1, 9)]))  # another function in the rest of the columns
    start = np.array([0, shape[1] // 2])
    return [whole.boxed([0, 0], [shape[0], start[1]]), other.boxed(start, shape)], order


def test_tiles_of_a_group_lie_beside_each_other_as_collectives_put_them():
    rng = np.random.default_rng(3)
    array = np.arange(90 * 30).reshape(90, 30)
    in_one_piece, terms = 0, Terms()
    x = terms.make(Term(("argument", 0), (), 2))
    for _ in range(40):
        shape = (int(rng.choice([1, 4, 8])), int(rng.choice([4, 8])))
        pieces, order = tiles_in_line(rng, x, shape, 8)
        rows = np.argsort(order).reshape(2, 4) if rng.random() < 0.5 else rng.permutation(8).reshape(2, 4)
        over = groups_from(rows, 8)
        content = Content(shape, "f32", tuple(pieces))
        arrays, members = tiles(terms, array, pieces, shape, 8), rows[over.group]
        for dim in range(2):
            gathered_shape = tuple(4 * n if d == dim else n for d, n in enumerate(shape))
            want = np.stack([np.concatenate(arrays[row], axis=dim) for row in members])
            result = gathered(content, over, dim)
            assert (tiles(terms, array, result, gathered_shape, 8) == want).all()
            in_one_piece += len(result) == 1
        for along, onto in np.ndindex(2, 2):
            if shape[along] % 4:
                continue
            strips = [np.split(arrays[device], 4, axis=along) for device in range(8)]
            want = np.stack([np.concatenate([strips[other][place] for other in row], axis=onto)
                             for row, place in zip(members, over.place, strict=True)])  # fmt: skip
            result = [p for p in exchanged(terms, content, over, along, onto) if p is not None]
            assert (tiles(terms, array, result, want.shape[1:], 8) == want).all()
    assert in_one_piece > 10


@pytest.mark.parametrize(("rows", "right"), [(list(range(8)), True), ([1, 0, *range(2, 8)], False)])
def test_experts_are_exchanged_along_the_dimension_that_their_rows_are_merged_into(rows, right):
    """Of 8 experts' rows of 256 each device has a part of 32, and then all of one expert."""
    kind, tile, flat = "tensor<2048x8x256xf32>", "tensor<2048x8x32xf32>", "tensor<2048x256xf32>"
    own = "tensor<2048x1x256xf32>"
    program = on_one_device(kind, kind, f"%r = stablehlo.optimization_barrier %x : {kind}")
    local = module(
        8, (tile, kind, "{devices=[1,1,8]<=[8]}"), (own, kind, "{devices=[1,8,1]<=[8]}"),
        f"%m = stablehlo.reshape %x : ({tile}) -> {flat}",
        f'%e = "stablehlo.all_to_all"(%m) <{{{CHANNEL}, {groups([rows])}, split_count = 8 : i64, '
        f"split_dimension = 1 : i64, concat_dimension = 1 : i64}}> : ({flat}) -> {flat}",
        f"%r = stablehlo.reshape %e : ({flat}) -> {own}",
    )  # fmt: skip
    assert proved(program, local) == right


# ---------------------------------------------------------------- work


def through_all(devices):
    """A program of collectives over all devices, which is proved: exchanged, exchanged back, added up, gathered."""
    kind, tile, turned = (f"tensor<{2 * devices}x{4 * devices}xf32>", f"tensor<2x{4 * devices}xf32>",
                          f"tensor<{2 * devices}x4xf32>")  # fmt: skip
    row, part = f"tensor<{4 * devices}xf32>", "tensor<4xf32>"
    over = groups([list(range(devices))])

    def exchange(name, operand, along, onto, types):
        return (f'%{name} = "stablehlo.all_to_all"(%{operand}) <{{{CHANNEL}, {over}, split_count = {devices} : i64, '
                f"split_dimension = {along} : i64, concat_dimension = {onto} : i64}}> : {types}")  # fmt: skip

    whole = on_one_device(kind, row, reduced("r", "x", kind, [0], row))
    local = module(
        devices, (tile, kind, f"{{devices=[{devices},1]<=[{devices}]}}"), (row, row, "{replicated}"),
        exchange("c", "x", 1, 0, f"({tile}) -> {turned}"), exchange("b", "c", 0, 1, f"({turned}) -> {tile}"),
        reduced("s", "b", tile, [0], row),
        f'%p = "stablehlo.reduce_scatter"(%s) <{{{GLOBAL}, {over}, scatter_dimension = 0 : i64}}> {ADD} '
        f": ({row}) -> {part}",
        f'%r = "stablehlo.all_gather"(%p) <{{{GLOBAL}, {over}, all_gather_dim = 0 : i64}}> : ({part}) -> {row}',
    )  # fmt: skip
    return whole, local


def calls(whole, local):
    """How many Python functions are called, and NumPy's among them, while a program is proved."""
    count = 0

    def one(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(one)
    try:
        verdict = prove(whole, local, refute=False)
    finally:
        sys.setprofile(None)
    assert verdict.proved, str(verdict)
    return count


def test_a_collective_over_more_devices_takes_no_more_calls():
    _, few, many = (calls(*through_all(devices)) for devices in (16, 16, 512))  # the first one also imports
    assert many < 1.1 * few


# ---------------------------------------------------------------- programs


def partitioned(step, size):
    text = step.lower(size)
    with collect():
        return text, shardpass.run_pipeline(text, "partition")


def test_a_transformer_on_4096_devices_is_proved():
    """Its rows are 256, so that sums over 512 devices are scattered over half of them, and then added up in pairs."""
    size = MeshSize(512, 8)
    assert proved(*partitioned(transformer(size, 1), size))


def test_stacked_layers_are_proved_whose_saved_values_are_cut_as_no_argument_is(monkeypatch):
    """The loop saves values that are split over all devices, where they begin as constants of the whole."""
    monkeypatch.setattr(scalars, "WORK", 2**12)  # what is not proved of boxes is not proved
    size = MeshSize(2, 2)
    whole, local = partitioned(scanned_transformer(size, 2), size)
    assert proved(whole, local)
    first, second, *_ = re.findall(r"dynamic_update_slice (%\w+), .* : \(tensor<2x1x128x1xf32>", str(local))
    assert not proved(whole, str(local).replace(f"dynamic_update_slice {first},", f"dynamic_update_slice {second},"))
