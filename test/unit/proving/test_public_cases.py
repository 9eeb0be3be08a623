"""Programs of one device as partitioners have made them wrongly in public, each at its smallest, in our own words.

None is proved, and each proof ends at the op at which the program goes wrong, or at the first that reads it.
"""

import pytest

from shardpass.proving import prove

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids"


def side(kind, sharding):
    return f'{{mhlo.sharding = "{{manual}}", shardpass.global_type = {kind}, shardpass.sharding = "{sharding}"}}'


def local(devices, arguments, result, *lines):
    """The program of one device; arguments and the result are (tile, whole type, sharding)."""
    given = ", ".join(f"%{k}: {t} {side(g, s)}" for k, (t, g, s) in zip("xyz", arguments, strict=False))
    tile, whole, sharding = result
    body = "\n    ".join(lines)
    return f"""module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main({given}) -> ({tile} {side(whole, sharding)}) {{
    {body}
    return %r : {tile}
  }}
}}"""


def whole(arguments, result, *lines):
    given = ", ".join(f"%{k}: {t}" for k, t in zip("xyz", arguments, strict=False))
    body = "\n    ".join(lines)
    return f"module {{\n  func.func @main({given}) -> {result} {{\n    {body}\n    return %r : {result}\n  }}\n}}"


def summed(name, operand, kind, groups, element="f32"):
    count = groups.count("[") - 1
    return f"""%{name} = "stablehlo.all_reduce"(%{operand}) <{{{CHANNEL},
      replica_groups = dense<{groups}> : tensor<{count}x{(groups.count(",") + 1) // count}xi64>}}> ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %s = stablehlo.add %a, %b : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
    }}) : ({kind}) -> {kind}"""


def scattered(name, base, updates, count):
    return f"""%{name} = "stablehlo.scatter"(%{base}, %y, %x) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : (tensor<8x2xf32>, tensor<{count}xi32>, {updates}) -> tensor<8x2xf32>"""  # noqa: E501


ZERO = "%zero = stablehlo.constant dense<0.0> : tensor<8x2xf32>"
ROWS = "{devices=[2,1]<=[2]}"
UPDATES = [("tensor<2x2xf32>", "tensor<4x2xf32>", ROWS), ("tensor<2xi32>", "tensor<4xi32>", "{devices=[2]<=[2]}")]
GRADIENT = whole(
    ["tensor<4x2xf32>", "tensor<4xi32>"], "tensor<8x2xf32>", ZERO, scattered("r", "zero", "tensor<4x2xf32>", 4)
)
OWN = [
    "%p = stablehlo.partition_id : tensor<ui32>",
    "%n = stablehlo.constant dense<4> : tensor<ui32>",
    "%o = stablehlo.constant dense<0> : tensor<ui32>",
    "%at = stablehlo.multiply %p, %n : tensor<ui32>",
]


def own_rows(name, operand):
    return (f"%{name} = stablehlo.dynamic_slice %{operand}, %at, %o, sizes = [4, 2] "
            ": (tensor<8x2xf32>, tensor<ui32>, tensor<ui32>) -> tensor<4x2xf32>")  # fmt: skip


def gradient(early):
    """A scatter of each device's updates; the slice of the own rows comes before the sum, or behind it."""
    parts = [ZERO, *OWN, scattered("s0", "zero", "tensor<2x2xf32>", 2)]
    lines = ([own_rows("t", "s0"), summed("r", "t", "tensor<4x2xf32>", "[[0, 1]]")] if early
             else [summed("t", "s0", "tensor<8x2xf32>", "[[0, 1]]"), own_rows("r", "t")])  # fmt: skip
    return local(2, UPDATES, ("tensor<4x2xf32>", "tensor<8x2xf32>", ROWS), *parts, *lines)


PRODUCT = whole(["tensor<4x8xf32>", "tensor<8x4xf32>"], "tensor<4x4xf32>",
                "%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] "
                ": (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>")  # fmt: skip


def product(groups):
    """Four devices, the contracted dimension split over all of them; the result's rows are of two, and each twice."""
    given = [("tensor<4x2xf32>", "tensor<4x8xf32>", "{devices=[1,4]<=[4]}"),
             ("tensor<2x4xf32>", "tensor<8x4xf32>", "{devices=[4,1]<=[4]}")]  # fmt: skip
    return local(4, given, ("tensor<4x4xf32>", "tensor<4x4xf32>", "{replicated}"),
                 "%d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] "
                 ": (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>",
                 summed("r", "d", "tensor<4x4xf32>", groups))  # fmt: skip


def argmax(size):
    return f"""%i = stablehlo.iota dim = 0 : tensor<{size}xi32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %m:2 = stablehlo.reduce(%x init: %low), (%i init: %none) across dimensions = [0]
      : (tensor<{size}xf32>, tensor<{size}xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
      reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {{
      %t = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %u = stablehlo.select %t, %a, %c : tensor<i1>, tensor<f32>
      %v = stablehlo.select %t, %b, %d : tensor<i1>, tensor<i32>
      stablehlo.return %u, %v : tensor<f32>, tensor<i32>
    }}"""


BEST = f"""module {{
  func.func @main(%x: tensor<8xf32>) -> tensor<i32> {{
    {argmax(8)}
    return %m#1 : tensor<i32>
  }}
}}"""
BEST_SUMMED = local(2, [("tensor<4xf32>", "tensor<8xf32>", "{devices=[2]<=[2]}")],
                    ("tensor<i32>", "tensor<i32>", "{replicated}"), argmax(4),
                    summed("r", "m#1", "tensor<i32>", "[[0, 1]]", "i32"))  # fmt: skip
VIEW = whole(
    ["tensor<12x8xf32>"], "tensor<16x6xf32>", "%r = stablehlo.reshape %x : (tensor<12x8xf32>) -> tensor<16x6xf32>"
)
VIEWED = local(4, [("tensor<12x2xf32>", "tensor<12x8xf32>", "{devices=[1,4]<=[4]}")],
               ("tensor<4x6xf32>", "tensor<16x6xf32>", "{devices=[4,1]<=[4]}"),
               "%r = stablehlo.reshape %x : (tensor<12x2xf32>) -> tensor<4x6xf32>")  # fmt: skip


@pytest.mark.parametrize(
    ("program", "wrong", "op"),
    [
        (GRADIENT, gradient(early=True), "stablehlo.all_reduce"),  # openxla/xla 42481
        (PRODUCT, product("[[0, 1], [2, 3]]"), "stablehlo.all_reduce"),  # openxla/xla 40034
        (BEST, BEST_SUMMED, "stablehlo.all_reduce"),  # tenstorrent/tt-mlir 8623
        (VIEW, VIEWED, "stablehlo.reshape"),  # pytorch/pytorch 179502
    ],
    ids=["a slice before its sum", "a sum over half of the devices", "a sum of places", "a view of split rows"],
)
def test_the_op_that_goes_wrong_is_named(program, wrong, op):
    verdict = prove(program, wrong)
    assert not verdict.proved
    assert verdict.refuted is not None
    assert verdict.refuted.op == op


@pytest.mark.parametrize(
    ("program", "right"),
    [(GRADIENT, gradient(early=False)), (PRODUCT, product("[[0, 1, 2, 3]]"))],
    ids=["a slice behind its sum", "a sum over all devices"],
)
def test_what_it_should_be_is_proved(program, right):
    assert prove(program, right, refute=False).proved
