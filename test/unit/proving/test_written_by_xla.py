"""What XLA's partitioner writes in another way than the whole program has it; and programs that are no such thing."""

import pytest

from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.proving.xla import partitioned_by_xla


def boundary(kind, tile, sharding):
    return f'{tile} {{mhlo.sharding = "{{manual}}", shardpass.global_type = {kind}, shardpass.sharding = "{sharding}"}}'


def proved(whole, local, arguments, result, devices=2):
    """``arguments``: (type, type of a tile, sharding) of %0, %1, ..; ``result``: that of %r."""
    given = ", ".join(f"%{k}: {kind}" for k, (kind, _, _) in enumerate(arguments))
    tiles = ", ".join(f"%{k}: {boundary(*row)}" for k, row in enumerate(arguments))
    one = f"module {{\n  func.func @main({given}) -> {result[0]} {{\n{whole}\n    return %r : {result[0]}\n  }}\n}}"
    other = f"""module attributes {{mhlo.num_partitions = {devices} : i32}} {{
  func.func @main({tiles}) -> ({boundary(*result)}) {{
{local}
    return %r : {result[1]}
  }}
}}"""
    return prove(one, other, refute=False).proved


def vector(size, tile, element="f32"):
    return f"tensor<{size}x{element}>", f"tensor<{tile}x{element}>", "{devices=[2]<=[2]}"


VECTOR = vector(8192, 4096)
WIDE, TILE = VECTOR[:2]


@pytest.mark.parametrize(
    ("op", "right"), [("multiply %0, %0", True), ("add %0, %0", False), ("multiply %0, %1", False)]
)
def test_a_square_is_a_product(op, right):
    whole = f"    %r = chlo.square %0 : {WIDE} -> {WIDE}"
    assert proved(whole, f"    %r = stablehlo.{op} : {TILE}", [VECTOR, VECTOR], VECTOR) is right


def test_a_square_of_complex_numbers_is_no_product():
    side = vector(4, 2, "complex<f32>")
    whole = f"    %r = chlo.square %0 : {side[0]} -> {side[0]}"
    assert not proved(whole, f"    %r = stablehlo.multiply %0, %0 : {side[1]}", [side], side)


@pytest.mark.parametrize(
    ("op", "value", "right"),
    [("subtract %0, %c", "0.0", True), ("divide %0, %c", "1.0", True), ("subtract %c, %0", "0.0", False),
     ("divide %c, %0", "1.0", False), ("divide %0, %c", "0.0", False), ("subtract %0, %c", "1.0", False)],
)  # fmt: skip
def test_what_changes_nothing_behind(op, value, right):
    whole = f"""    %c = stablehlo.constant dense<{value}> : {WIDE}
    %s = stablehlo.{op} : {WIDE}
    %r = stablehlo.tanh %s : {WIDE}"""
    assert proved(whole, f"    %r = stablehlo.tanh %0 : {TILE}", [VECTOR], VECTOR) is right


TRUTH = vector(4194304, 2097152, "i1")  # more than are walked one by one


@pytest.mark.parametrize(
    ("direction", "value", "opposite"),
    [("NE", "false", False), ("EQ", "true", False), ("EQ", "false", True), ("NE", "true", True)],
)
def test_a_truth_value_that_is_compared(direction, value, opposite):
    """It is itself, or its opposite, and never the other of the two."""
    whole = f"""    %c = stablehlo.constant dense<{value}> : {TRUTH[0]}
    %s = stablehlo.compare {direction}, %0, %c : ({TRUTH[0]}, {TRUTH[0]}) -> {TRUTH[0]}
    %r = stablehlo.and %s, %1 : {TRUTH[0]}"""
    for local, is_opposite in (("%0", False), ("%n", True)):
        body = f"    %n = stablehlo.not %0 : {TRUTH[1]}\n    %r = stablehlo.and {local}, %1 : {TRUTH[1]}"
        assert proved(whole, body, [TRUTH, TRUTH], TRUTH) is (opposite is is_opposite)


@pytest.mark.parametrize(("step", "right"), [(4096, True), (4095, False), (0, False)])
def test_positions_that_are_floats(step, right):
    """iota + 1 is what a device counts from 4096 times its number on, plus 1."""
    whole = f"""    %i = stablehlo.iota dim = 0 : {WIDE}
    %c = stablehlo.constant dense<1.0> : {WIDE}
    %s = stablehlo.add %i, %c : {WIDE}
    %r = stablehlo.multiply %0, %s : {WIDE}"""
    local = f"""    %i = stablehlo.iota dim = 0 : {TILE}
    %d = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %d : (tensor<ui32>) -> tensor<i32>
    %k = stablehlo.constant dense<{step}> : tensor<i32>
    %o = stablehlo.multiply %n, %k : tensor<i32>
    %f = stablehlo.convert %o : (tensor<i32>) -> tensor<f32>
    %v = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> {TILE}
    %a = stablehlo.add %i, %v : {TILE}
    %c = stablehlo.constant dense<1.0> : {TILE}
    %s = stablehlo.add %a, %c : {TILE}
    %r = stablehlo.multiply %0, %s : {TILE}"""
    assert proved(whole, local, [VECTOR], VECTOR) is right


@pytest.mark.parametrize(("far", "right"), [(1024, True), (2**24, False)])
def test_positions_that_floats_round_are_not_counted(far, right):
    """2**24 + 1 is none of the numbers of f32, so iota + 2**24 - 2**24 is not iota."""
    whole = f"""    %i = stablehlo.iota dim = 0 : {WIDE}
    %c = stablehlo.constant dense<{float(far)!r}> : {WIDE}
    %s = stablehlo.add %i, %c : {WIDE}
    %t = stablehlo.subtract %s, %c : {WIDE}
    %r = stablehlo.multiply %0, %t : {WIDE}"""
    local = f"""    %i = stablehlo.iota dim = 0 : {WIDE}
    %r = stablehlo.multiply %0, %i : {WIDE}"""
    side = (WIDE, WIDE, "{replicated}")
    assert proved(whole, local, [side], side) is right


PLACED = """    %i = stablehlo.constant dense<[AT, 1]> : tensor<2xi32>
    INDEX
    %r = "stablehlo.scatter"(%0, INDICES, %1) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1],
      scatter_dims_to_operand_dims = [0, 1]>, indices_are_sorted = true, unique_indices = true}
      : (KIND, tensor<2xi32>, tensor<f32>) -> KIND"""
SHIFT = """%d = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %d : (tensor<ui32>) -> tensor<i32>
    %k = stablehlo.constant dense<STEP> : tensor<i32>
    %o = stablehlo.multiply %n, %k : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<1xi32>
    %v = stablehlo.reshape %o : (tensor<i32>) -> tensor<1xi32>
    %w = stablehlo.concatenate %v, %zero, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %j = stablehlo.subtract %i, %w : tensor<2xi32>"""


@pytest.mark.parametrize(
    ("at", "step", "right"), [(0, 2000, True), (2001, 2000, True), (2001, 1999, False), (0, 0, False), (2001, 0, False)]
)
def test_a_window_at_a_known_place(at, step, right):
    """Of 4000 rows each device has half; outside of its tile an update does nothing."""
    side = ("tensor<4000x300xf32>", "tensor<2000x300xf32>", "{devices=[2,1]<=[2]}")
    update = ("tensor<f32>", "tensor<f32>", "{replicated}")
    text = PLACED.replace("AT", str(at))
    whole = text.replace("INDEX\n", "\n").replace("INDICES", "%i").replace("KIND", side[0])
    local = text.replace("INDEX\n", SHIFT.replace("STEP", str(step)) + "\n").replace("INDICES", "%j")
    assert proved(whole, local.replace("KIND", side[1]), [side, update], side) is right


@pytest.mark.parametrize(("first", "right"), [(0, True), (1, False)])
def test_a_sum_of_products_with_every_second_element(first, right):
    """sum of x[2 i] * y[i]: the index of x runs twice as far as that of y."""
    sides = [vector(16384, 8192), VECTOR]
    zero = "    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    body = (
        zero
        + """    %e = stablehlo.slice %0 [FIRST:END:2] : (LONG) -> KIND
    %p = stablehlo.multiply %e, %1 : KIND
    %s = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0]
      : (KIND, tensor<f32>) -> tensor<f32>
"""
    )
    whole = body.replace("LONG", sides[0][0]).replace("KIND", WIDE).replace("FIRST:END", "0:16384")
    local = body.replace("LONG", sides[0][1]).replace("KIND", TILE).replace("FIRST:END", f"{first}:8192")
    total = """    %r = "stablehlo.all_reduce"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %q = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %q : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>"""
    result = ("tensor<f32>", "tensor<f32>", "{replicated}")
    assert proved(whole.replace("%s =", "%r ="), local + total, sides, result) is right


TOTAL = """    %{to} = "stablehlo.all_reduce"(%{of}) <{{use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = {handle}, type = 1>,
      replica_groups = dense<{groups}> : tensor<2x2xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %q = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %q : tensor<f32>
    }}) : (tensor<f32>) -> tensor<f32>
"""


@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        ("[[0, 2], [1, 3]]", "[[0, 1], [2, 3]]", True),
        ("[[0, 2], [1, 3]]", "[[0, 2], [1, 3]]", False),
        ("[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]", True),
        ("[[0, 2], [1, 3]]", "[[0, 3], [1, 2]]", True),
        ("[[0, 3], [1, 2]]", "[[0, 3], [1, 2]]", False),
    ],
)
def test_a_sum_over_one_axis_after_another(first, second, right):
    """Of four tiles, first the first and the third, say, which do not adjoin."""
    side = ("tensor<2097152xf32>", "tensor<524288xf32>", "{devices=[4]<=[4]}")
    start = """    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
      : (KIND, tensor<f32>) -> tensor<f32>
"""
    local = start.replace("KIND", side[1]) + TOTAL.format(to="t", of="s", handle=1, groups=first)
    local += TOTAL.format(to="r", of="t", handle=2, groups=second)
    whole = start.replace("KIND", side[0]).replace("%s =", "%r =")
    result = ("tensor<f32>", "tensor<f32>", "{replicated}")
    assert proved(whole, local, [side], result, devices=4) is right


@pytest.mark.parametrize(
    ("kernel", "rows", "own", "right"),
    [(2, "[1, 1]", "[1, 1]", True), (2, "[1, 1]", "[0, 2]", False), (3, "[1, 2]", "[1, 2]", False)],
)
def test_padding_between_dilated_elements(kernel, rows, own, right):
    """A kernel of two needs no neighbour, one of three does."""
    side = ("tensor<400x8192x1xf32>", "tensor<400x4096x1xf32>", "{devices=[1,2,1]<=[2]}")
    result = ("tensor<400x16384x1xf32>", "tensor<400x8192x1xf32>", "{devices=[1,2,1]<=[2]}")
    weights = (f"tensor<{kernel}x1x1xf32>", f"tensor<{kernel}x1x1xf32>", "{replicated}")
    slid = """    %r = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {{stride = [1], pad = [{pad}], lhs_dilate = [2]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({x}, {w}) -> {y}"""
    whole, local = (slid.format(pad=pad, x=side[k], w=weights[k], y=result[k]) for k, pad in enumerate((rows, own)))
    assert proved(whole, local, [side, weights], result) is right


@pytest.mark.parametrize(("column", "right"), [(0, True), (1, False)])
def test_rows_of_which_one_is_patched(column, right):
    """The first row has another first element before all rows are sorted."""
    side = ("tensor<4000x300xf32>", "tensor<2000x300xf32>", "{devices=[2,1]<=[2]}")
    update = ("tensor<f32>", "tensor<f32>", "{replicated}")
    order = """
    %q = "stablehlo.sort"(%r) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    }) : (KIND) -> KIND"""
    text = (PLACED.replace("AT, 1", "0, COLUMN") + order).replace("%r", "%p").replace("%q", "%r")
    whole = text.replace("INDEX\n", "\n").replace("INDICES", "%i").replace("KIND", side[0]).replace("COLUMN", "0")
    local = text.replace("INDEX\n", SHIFT.replace("STEP", "2000") + "\n").replace("INDICES", "%j")
    local = local.replace("KIND", side[1]).replace("COLUMN", str(column))
    assert proved(whole, local, [side, update], side) is right


GATHER = """    %{to} = "stablehlo.gather"(%0, %{by}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false,
      slice_sizes = array<i64: 1, 100>}}> : ({table}, tensor<{count}x1xi32>) -> tensor<{count}x100xf32>
"""


@pytest.mark.parametrize(
    ("low", "high", "outside", "right"),
    [("LT", 8191, 0.0, True), ("LE", 8191, 0.0, False), ("LT", 8190, 0.0, False), ("LT", 8191, 1.0, False)],
)
def test_a_masked_gather_by_indices_of_several_parts(low, high, outside, right):
    """Three indices and one of padding, of a table of which each device has half of the rows."""
    table = ("tensor<16384x100xf32>", "tensor<8192x100xf32>", "{devices=[2,1]<=[2]}")
    indices = ("tensor<3x1xi32>", "tensor<3x1xi32>", "{replicated}")
    result = ("tensor<3x100xf32>", "tensor<3x100xf32>", "{replicated}")
    whole = GATHER.format(to="r", by="1", table=table[0], count=3)
    local = f"""    %z = stablehlo.constant dense<0> : tensor<i32>
    %k = stablehlo.constant dense<8192> : tensor<i32>
    %i = stablehlo.pad %1, %z, low = [0, 0], high = [1, 0], interior = [0, 0]
      : (tensor<3x1xi32>, tensor<i32>) -> tensor<4x1xi32>
    %least = stablehlo.constant dense<0> : tensor<4x1xi32>
    %most = stablehlo.constant dense<16383> : tensor<4x1xi32>
    %c = stablehlo.clamp %least, %i, %most : tensor<4x1xi32>
    %d = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %d : (tensor<ui32>) -> tensor<i32>
    %first = stablehlo.multiply %n, %k : tensor<i32>
    %span = stablehlo.constant dense<{high}> : tensor<i32>
    %last = stablehlo.add %first, %span : tensor<i32>
    %lo = stablehlo.broadcast_in_dim %first, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %hi = stablehlo.broadcast_in_dim %last, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %below = stablehlo.compare {low}, %c, %lo : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %above = stablehlo.compare GT, %c, %hi : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %beyond = stablehlo.or %below, %above : tensor<4x1xi1>
    %row = stablehlo.reshape %beyond : (tensor<4x1xi1>) -> tensor<4xi1>
    %mask = stablehlo.broadcast_in_dim %row, dims = [0] : (tensor<4xi1>) -> tensor<4x100xi1>
    %j = stablehlo.subtract %c, %lo : tensor<4x1xi32>
{GATHER.format(to="g", by="j", table=table[1], count=4)}
    %none = stablehlo.constant dense<{outside}> : tensor<4x100xf32>
    %own = stablehlo.select %mask, %none, %g : tensor<4x100xi1>, tensor<4x100xf32>
    %sum = "stablehlo.all_reduce"(%own) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %q = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %q : tensor<f32>
    }}) : (tensor<4x100xf32>) -> tensor<4x100xf32>
    %r = stablehlo.slice %sum [0:3, 0:100] : (tensor<4x100xf32>) -> tensor<3x100xf32>"""
    assert proved(whole, local, [table, indices], result) is right


def test_what_xla_writes_out_is_its_definition():
    """XLA's program of ``erf_inv`` has its polynomial, and another coefficient is another function."""
    side = 'tensor<4194304xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}'
    whole = parse_module(f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%x: {side}) -> ({side}) {{
    %r = chlo.erf_inv %x : tensor<4194304xf32> -> tensor<4194304xf32>
    return %r : tensor<4194304xf32>
  }}
}}""")
    local = str(partitioned_by_xla(whole))
    assert prove(whole, local, refute=False).proved
    coefficient = "-2.00214257E-4"
    assert coefficient in local
    assert not prove(whole, local.replace(coefficient, "-2.00214358E-4"), refute=False).proved
