"""Dimensions whose sizes and positions 32 bits do not hold, uneven ones, split over 8 devices.

Such arrays do not fit: the module of one device is evaluated at chosen elements of chosen devices, and compared with
the element of the whole array, which a line of arithmetic knows. Element g of each input is the number g, and padding
is ``POISON``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.elements import Argument, Elements

import shardpass
from shardpass.ir.tensors import shape_of

DEVICES = 8
SIZES = [2**31 - 1, 2**31 + 1, 2**32 - 1, 2**32 + 1, 2**34 + 5]
POISON = -(10**15)
SPLIT = '{mhlo.sharding = "{devices=[8]<=[8]}"}'
WHOLE = '{mhlo.sharding = "{replicated}"}'
Position = Callable[[int], int]

pytestmark = pytest.mark.parametrize("n", SIZES)


def tile(size: int) -> int:
    return -(-size // DEVICES)


def tiles(size: int, rest: int = 0) -> Argument:
    """A split array of ``size`` elements; of rows of ``rest`` elements, each ten times the row and the column."""

    def element(device: int, index: tuple[int, ...]) -> int:
        row = device * tile(size) + index[0]
        return POISON if row >= size else row * 10 + index[1] if rest else row

    return element


def given(*numbers: int) -> Argument:
    """A small array, or a scalar, that every device holds."""
    return lambda device, index: numbers[index[0] if index else 0]


def partitioned(arguments: list[str], body: str, result: str, sharding: str = SPLIT) -> Any:
    """The module of one device; ``arguments``: types, each followed by its sharding."""
    names = ", ".join(f"%a{i}: {text}" for i, text in enumerate(arguments))
    text = f"""module attributes {{mhlo.num_partitions = {DEVICES} : i32}} {{
      func.func @main({names}) -> (tensor<{result}> {sharding}) {{
        {body}
        return %out : tensor<{result}>
      }} }}"""
    return shardpass.run_pipeline(text, "partition{effort=0}")


def chosen(size: int) -> Iterator[int]:
    """First and last elements of the tiles of ``size`` elements, their neighbours, and the end of the array."""
    starts = [d * tile(size) + by for d in range(DEVICES) for by in (0, 1, tile(size) - 2, tile(size) - 1)]
    yield from sorted({g for g in (*starts, size // 2, size - 2, size - 1) if 0 <= g < size})


def check(found: Elements, size: int, expected: Position) -> None:
    """A split result of ``size`` elements against the whole one."""
    for g in chosen(size):
        assert found.result(g // tile(size), (g % tile(size),)) == expected(g), g


def within(size: int, *places: int) -> list[int]:
    return sorted({at for at in places if 0 <= at < size})


def masks(found: Elements, value: Any, size: int, neutral: int) -> None:
    """``value``, a tile, has the array's elements, and ``neutral`` for its padding."""
    for device in range(DEVICES):
        real = min(max(size - device * tile(size), 0), tile(size))
        for at in within(tile(size), 0, 1, real // 2, real - 2, real - 1, real, real + 1, tile(size) - 1):
            wanted = device * tile(size) + at if at < real else neutral
            assert found.at(value, device, (at,)) == wanted, (device, at)


BODY = """{{
  ^bb0(%p: tensor<{e}>, %q: tensor<{e}>):
    %r = stablehlo.{op} %p, %q : tensor<{e}>
    stablehlo.return %r : tensor<{e}>
}}"""
POSITIONS = [0, 5, -3, -(2**40), 2**40]  # and those around the borders of tiles, in ``positions``


def positions(n: int) -> list[int]:
    """Where slices begin, look-ups read and updates write: in range and not."""
    return [*POSITIONS, tile(n) - 3, tile(n) - 1, 5 * tile(n) + 1, n - 7, n - 5, n - 1, n, 2**31 - 1, 2**31 + 1]


# ---------------------------------------------------------------- sums


@pytest.mark.parametrize(("op", "neutral"), [("add", 0), ("maximum", -(2**63)), ("minimum", 2**63 - 1)])
def test_a_reduction_takes_in_no_padding(n: int, op: str, neutral: int) -> None:
    body = f"""%c = stablehlo.constant dense<{neutral}> : tensor<i64>
      %out = stablehlo.reduce(%a0 init: %c) applies stablehlo.{op} across dimensions = [0]
        : (tensor<{n}xi64>, tensor<i64>) -> tensor<i64>"""
    module = partitioned([f"tensor<{n}xi64> {SPLIT}"], body, "i64", WHOLE)
    found = Elements(module, [tiles(n)])
    (local,) = found.ops("stablehlo.reduce")
    assert shape_of(local.operands[0]) == (tile(n),)
    masks(found, local.operands[0], n, neutral)


def test_a_reduction_by_a_body_of_its_own_takes_in_no_padding(n: int) -> None:
    """The flag of each element says whether it is real."""
    body = f"""%c = stablehlo.constant dense<0> : tensor<i64>
      %out = stablehlo.reduce(%a0 init: %c) across dimensions = [0] : (tensor<{n}xi64>, tensor<i64>) -> tensor<i64>
        reducer(%p: tensor<i64>, %q: tensor<i64>) {{
          %r = stablehlo.add %p, %q : tensor<i64>
          %s = stablehlo.abs %r : tensor<i64>
          stablehlo.return %s : tensor<i64>
        }}"""
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, "i64", WHOLE), [tiles(n)])
    local = found.ops("stablehlo.reduce")[0]
    for device in range(DEVICES):
        real = n - device * tile(n)
        for at in within(tile(n), 0, real - 1, real, tile(n) - 1):
            assert found.at(local.operands[1], device, (at,)) == (at < real), (device, at)


def test_a_contraction_takes_in_no_padding(n: int) -> None:
    body = f"""%out = stablehlo.dot_general %a0, %a1, contracting_dims = [0] x [0]
      : (tensor<{n}xi64>, tensor<{n}xi64>) -> tensor<i64>"""
    module = partitioned([f"tensor<{n}xi64> {SPLIT}"] * 2, body, "i64", WHOLE)
    found = Elements(module, [tiles(n)] * 2)
    (local,) = found.ops("stablehlo.dot_general")
    for side in local.operands:
        masks(found, side, n, 0)


# ---------------------------------------------------------------- parts of arrays


@pytest.mark.parametrize(("low", "high", "interior"), [(3, 4, 0), (-3, 2, 0), (0, -5, 0), (2, 1, 1)])
def test_pad(n: int, low: int, high: int, interior: int) -> None:
    size = low + high + n + (n - 1) * interior
    body = f"""%c = stablehlo.constant dense<-9> : tensor<i64>
      %out = stablehlo.pad %a0, %c, low = [{low}], high = [{high}], interior = [{interior}]
        : (tensor<{n}xi64>, tensor<i64>) -> tensor<{size}xi64>"""
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, f"{size}xi64"), [tiles(n)])

    def expected(g: int) -> int:
        at, between = divmod(g - low, interior + 1)
        return at if not between and 0 <= at < n else -9

    check(found, size, expected)


@pytest.mark.parametrize(("start", "end", "stride"), [(3, 0, 1), (0, 5, 1), (1, 2, 2), (2, 0, 7)])
def test_slice(n: int, start: int, end: int, stride: int) -> None:
    size = -(-(n - end - start) // stride)
    body = f"%out = stablehlo.slice %a0 [{start}:{n - end}:{stride}] : (tensor<{n}xi64>) -> tensor<{size}xi64>"
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, f"{size}xi64"), [tiles(n)])
    check(found, size, lambda g: start + g * stride)


def test_concatenate(n: int) -> None:
    body = f"%out = stablehlo.concatenate %a0, %a0, dim = 0 : (tensor<{n}xi64>, tensor<{n}xi64>) -> tensor<{2 * n}xi64>"
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, f"{2 * n}xi64"), [tiles(n)])
    check(found, 2 * n, lambda g: g % n)


def test_roll(n: int) -> None:
    body = f"""%0 = stablehlo.slice %a0 [{n - 2}:{n}] : (tensor<{n}xi64>) -> tensor<2xi64>
      %1 = stablehlo.slice %a0 [0:{n - 2}] : (tensor<{n}xi64>) -> tensor<{n - 2}xi64>
      %out = stablehlo.concatenate %0, %1, dim = 0 : (tensor<2xi64>, tensor<{n - 2}xi64>) -> tensor<{n}xi64>"""
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, f"{n}xi64"), [tiles(n)])
    check(found, n, lambda g: (g - 2) % n)


def test_reverse(n: int) -> None:
    body = f"%out = stablehlo.reverse %a0, dims = [0] : tensor<{n}xi64>"
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, f"{n}xi64"), [tiles(n)])
    check(found, n, lambda g: n - 1 - g)


@pytest.mark.parametrize(("element", "modulus"), [("i64", 2**64), ("ui32", 2**32), ("i32", 2**32)])
def test_iota(n: int, element: str, modulus: int) -> None:
    """In a type that does not hold the count, iota wraps as on one device."""
    found = Elements(partitioned([], f"%out = stablehlo.iota dim = 0 : tensor<{n}x{element}>", f"{n}x{element}"), [])
    for g in chosen(n):
        assert (found.result(g // tile(n), (g % tile(n),)) - g) % modulus == 0


# ---------------------------------------------------------------- windows


def test_convolution(n: int) -> None:
    kernel = (1, 100, 10000)
    lhs, rhs = f"tensor<1x{n}x1xi64>", "tensor<3x1x1xi64>"
    body = f"""%out = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {{stride = [1], pad = [[1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : ({lhs}, {rhs}) -> {lhs}"""
    split = '{mhlo.sharding = "{devices=[1,8,1]<=[8]}"}'
    module = partitioned([f"{lhs} {split}", f"{rhs} {WHOLE}"], body, f"1x{n}x1xi64", split)
    found = Elements(module, [lambda d, i: tiles(n)(d, i[1:2]), given(*kernel)])
    for g in chosen(n):
        near = [x if 0 <= x < n else 0 for x in (g - 1, g, g + 1)]
        expected = sum(x * k for x, k in zip(near, kernel, strict=True))
        assert found.result(g // tile(n), (0, g % tile(n), 0)) == expected, g


def test_reduce_window(n: int) -> None:
    """Windows of 3, 2 apart, padded at both sides."""
    size = (n + 2 - 3) // 2 + 1
    least = -(2**63)
    body = f"""%c = stablehlo.constant dense<{least}> : tensor<i64>
      %out = "stablehlo.reduce_window"(%a0, %c) <{{padding = dense<[[1, 1]]> : tensor<1x2xi64>,
        window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}}> ({BODY.format(e="i64", op="maximum")})
        : (tensor<{n}xi64>, tensor<i64>) -> tensor<{size}xi64>"""
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, f"{size}xi64"), [tiles(n)])
    check(found, size, lambda g: min(2 * g + 1, n - 1))


def test_a_scan_from_the_end_takes_in_no_padding(n: int) -> None:
    body = f"""%c = stablehlo.constant dense<0> : tensor<i64>
      %out = "stablehlo.reduce_window"(%a0, %c) <{{padding = dense<[[0, {n - 1}]]> : tensor<1x2xi64>,
        window_dimensions = array<i64: {n}>}}> ({BODY.format(e="i64", op="add")})
        : (tensor<{n}xi64>, tensor<i64>) -> tensor<{n}xi64>"""
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, f"{n}xi64"), [tiles(n)])
    (local,) = found.ops("stablehlo.reduce_window")
    masks(found, local.operands[0], n, 0)


# ---------------------------------------------------------------- positions that only the data knows


@pytest.mark.parametrize("size", [1, 5])
def test_dynamic_slice(n: int, size: int) -> None:
    body = f"""%out = stablehlo.dynamic_slice %a0, %a1, sizes = [{size}]
      : (tensor<{n}xi64>, tensor<i64>) -> tensor<{size}xi64>"""
    module = partitioned([f"tensor<{n}xi64> {SPLIT}", f"tensor<i64> {WHOLE}"], body, f"{size}xi64", WHOLE)
    for position in positions(n):
        found = Elements(module, [tiles(n), given(position)])
        start = min(max(position, 0), n - size)
        assert [found.result(3, (i,)) for i in range(size)] == [start + i for i in range(size)], position


@pytest.mark.parametrize("size", [1, 5])
def test_dynamic_update_slice(n: int, size: int) -> None:
    body = f"""%out = stablehlo.dynamic_update_slice %a0, %a1, %a2
        : (tensor<{n}xi64>, tensor<{size}xi64>, tensor<i64>) -> tensor<{n}xi64>"""
    update = [-1, -2, -3, -4, -5][:size]
    kinds = [f"tensor<{n}xi64> {SPLIT}", f"tensor<{size}xi64> {WHOLE}", f"tensor<i64> {WHOLE}"]
    module = partitioned(kinds, body, f"{n}xi64")
    for position in positions(n):
        found = Elements(module, [tiles(n), given(*update), given(position)])
        start = min(max(position, 0), n - size)
        for g in within(n, *range(start - 1, start + size + 1), 0, n - 1):
            wanted = update[g - start] if start <= g < start + size else g
            assert found.result(g // tile(n), (g % tile(n),)) == wanted, (position, g)


def test_an_update_at_a_known_place(n: int) -> None:
    """Most of the array: written as a pad and a mask."""
    body = f"""%c = stablehlo.constant dense<3> : tensor<i64>
      %out = stablehlo.dynamic_update_slice %a0, %a1, %c
        : (tensor<{n}xi64>, tensor<{n - 8}xi64>, tensor<i64>) -> tensor<{n}xi64>"""
    module = partitioned([f"tensor<{n}xi64> {SPLIT}", f"tensor<{n - 8}xi64> {SPLIT}"], body, f"{n}xi64")
    found = Elements(module, [tiles(n), lambda d, i: -tiles(n - 8)(d, i)])
    check(found, n, lambda g: -(g - 3) if 3 <= g < n - 5 else g)


@pytest.mark.parametrize("size", [1, 3])
def test_gather(n: int, size: int) -> None:
    where = positions(n)
    count = len(where)
    body = f"""%out = "stablehlo.gather"(%a0, %a1) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: {size}>, indices_are_sorted = false}}>
        : (tensor<{n}xi64>, tensor<{count}x1xi64>) -> tensor<{count}x{size}xi64>"""
    kinds = [f"tensor<{n}xi64> {SPLIT}", f"tensor<{count}x1xi64> {WHOLE}"]
    module = partitioned(kinds, body, f"{count}x{size}xi64", WHOLE)
    found = Elements(module, [tiles(n), given(*where)])
    assert shape_of(found.ops("stablehlo.gather")[0].operands[0])[0] < n  # the array stays split
    for row, position in enumerate(where):
        start = min(max(position, 0), n - size)
        assert [found.result(2, (row, i)) for i in range(size)] == [start + i for i in range(size)], position


@pytest.mark.parametrize("size", [1, 3])
def test_scatter(n: int, size: int) -> None:
    where = positions(n)
    count = len(where)
    body = f"""%out = "stablehlo.scatter"(%a0, %a1, %a2) <{{scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
        indices_are_sorted = false, unique_indices = false}}> ({BODY.format(e="i64", op="add")})
        : (tensor<{n}xi64>, tensor<{count}x1xi64>, tensor<{count}x{size}xi64>) -> tensor<{n}xi64>"""
    kinds = [f"tensor<{n}xi64> {SPLIT}", f"tensor<{count}x1xi64> {WHOLE}", f"tensor<{count}x{size}xi64> {WHOLE}"]
    module = partitioned(kinds, body, f"{n}xi64")
    found = Elements(module, [tiles(n), given(*where), lambda d, i: 10**12 * (1 + i[1]) + i[0]])

    def expected(g: int) -> int:
        hits = [(row, g - p) for row, p in enumerate(where) if 0 <= p <= n - size and 0 <= g - p < size]
        return g + sum(10**12 * (1 + at) + row for row, at in hits)

    for g in within(n, 2**30, n // 2, *(p + by for p in where for by in range(-1, size + 1))):
        assert found.result(g // tile(n), (g % tile(n),)) == expected(g), g


def test_updates_that_are_split_end_in_padding(n: int) -> None:
    """The rows of the indices are the long dimension; those of padding write nowhere."""
    body = f"""%out = "stablehlo.scatter"(%a0, %a1, %a2) <{{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
        indices_are_sorted = false, unique_indices = false}}> ({BODY.format(e="i64", op="add")})
        : (tensor<16xi64>, tensor<{n}x1xi64>, tensor<{n}xi64>) -> tensor<16xi64>"""
    rows = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
    kinds = [f"tensor<16xi64> {WHOLE}", f"tensor<{n}x1xi64> {rows}", f"tensor<{n}xi64> {SPLIT}"]
    module = partitioned(kinds, body, "16xi64", WHOLE)
    found = Elements(module, [given(*range(16)), lambda d, i: 7, tiles(n)])
    (local,) = found.ops("stablehlo.scatter")
    for device in range(DEVICES):
        real = n - device * tile(n)
        for at in within(tile(n), 0, real - 1, real, tile(n) - 1):
            position = found.at(local.operands[1], device, (at,))
            assert position == 7 if at < real else position < 0, (device, at)


# ---------------------------------------------------------------- order


def test_sort_of_short_rows(n: int) -> None:
    """Along the other dimension: every row stays where it is."""
    rows = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
    module = partitioned([f"tensor<{n}x4xi64> {rows}"], sort(n, 1), f"{n}x4xi64", rows)
    found = Elements(module, [tiles(n, 4)])
    (local,) = found.ops("stablehlo.sort")
    for g in chosen(n):
        assert found.at(local.operands[0], g // tile(n), (g % tile(n), 2)) == 10 * g + 2


def test_sort_of_long_columns(n: int) -> None:
    """Each device gets columns of its own, whole, and what was sorted goes back to the rows."""
    rows = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
    module = partitioned([f"tensor<{n}x8xi64> {rows}"], sort(n, 0, 8), f"{n}x8xi64", rows)
    found = Elements(module, [tiles(n, 8)])
    (local,) = found.ops("stablehlo.sort")
    assert shape_of(local.operands[0]) == (n, 1)
    for g in chosen(n):
        assert found.at(local.operands[0], 5, (g, 0)) == 10 * g + 5
    found.given[local.results[0]] = lambda device, index: 1000 * index[0] + device
    for g in chosen(n):
        assert found.result(g // tile(n), (g % tile(n), 6)) == 1000 * g + 6


def sort(n: int, dim: int, columns: int = 4) -> str:
    return f"""%out = "stablehlo.sort"(%a0) <{{dimension = {dim} : i64, is_stable = true}}> ({{
      ^bb0(%p: tensor<i64>, %q: tensor<i64>):
        %r = stablehlo.compare LT, %p, %q : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %r : tensor<i1>
      }}) : (tensor<{n}x{columns}xi64>) -> tensor<{n}x{columns}xi64>"""


def test_top_k(n: int) -> None:
    """Its positions are i32 by definition: a dimension that has others is refused."""
    body = f"%values, %out = chlo.top_k(%a0, k = 2) : tensor<{n}xi64> -> (tensor<2xi64>, tensor<2xi32>)"
    if n > 2**31:
        with pytest.raises(shardpass.ShardpassError) as caught:
            partitioned([f"tensor<{n}xi64> {SPLIT}"], body, "2xi32", WHOLE)
        diagnostic = caught.value.diagnostics[0]
        assert (diagnostic.code, diagnostic.place.line) == ("SP306", 3)
        assert str(n - 1) in diagnostic.message
        return
    module = partitioned([f"tensor<{n}xi64> {SPLIT}"], body, "2xi32", WHOLE)
    found = Elements(module, [tiles(n)])
    local, _ = found.ops("chlo.top_k")
    masks(found, local.operands[0], n, -(2**63))
    found.given[local.results[1]] = lambda device, index: [tile(n) - 1, 4][index[0]]
    table = found.ops("stablehlo.gather")[0].operands[0]
    for device in range(DEVICES):
        for i, at in enumerate([tile(n) - 1, 4]):
            place = device * tile(n) + at
            if place < n:
                assert found.at(table, 0, (2 * device + i,)) == place


def test_get_dimension_size(n: int) -> None:
    body = f"%out = stablehlo.get_dimension_size %a0, dim = 0 : (tensor<{n}xi64>) -> tensor<i32>"
    if n < 2**31:
        found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, "i32", WHOLE), [tiles(n)])
        assert found.result(0, ()) == n
        return
    with pytest.raises(shardpass.ShardpassError) as caught:
        partitioned([f"tensor<{n}xi64> {SPLIT}"], body, "i32", WHOLE)
    diagnostic = caught.value.diagnostics[0]
    assert (diagnostic.code, diagnostic.place.line) == ("SP306", 3)
    assert f"{n}, which does not fit its type, i32" in diagnostic.message


# ---------------------------------------------------------------- other splits


@pytest.mark.parametrize("target", ["{devices=[2,4]<=[8] last_tile_dim_replicate}", "{devices=[8]7,6,5,4,3,2,1,0}"])
def test_redistribution(n: int, target: str) -> None:
    body, sharding = f"%out = stablehlo.maximum %a0, %a0 : tensor<{n}xi64>", f'{{mhlo.sharding = "{target}"}}'
    found = Elements(partitioned([f"tensor<{n}xi64> {SPLIT}"], body, f"{n}xi64", sharding), [tiles(n)])
    size = tile(n) if "7,6" in target else -(-n // 2)
    for g in chosen(n):
        part, at = divmod(g, size)
        assert found.result(7 - part if "7,6" in target else part * 4 + 3, (at,)) == g, g


def test_random_bits_start_at_the_rows_of_the_device(n: int) -> None:
    """Rows are runs of the row-major order along the first dimension alone, however long."""
    rows = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
    body = f"""%state, %out = stablehlo.rng_bit_generator %a0, algorithm = PHILOX
        : (tensor<2xui64>) -> (tensor<2xui64>, tensor<{n}x4xui32>)"""
    module = partitioned([f"tensor<2xui64> {WHOLE}"], body, f"{n}x4xui32", rows)
    found = Elements(module, [given(11, 100)])
    (local,) = found.ops("stablehlo.rng_bit_generator")
    assert shape_of(local.results[1]) == (tile(n), 4)
    for device in range(DEVICES):
        counter = [found.at(local.operands[0], device, (i,)) for i in range(3)]
        assert counter == [11, 100 + device * tile(n), 11]  # a block is four words of 32 bits: one row
