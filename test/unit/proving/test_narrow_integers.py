"""Positions of every integer type: bounds, offsets and wraps are those of the type, in whichever op they stand."""

import ml_dtypes
import numpy as np
import pytest
from support.pairs import Pair, Side, constant, equal_bits, gather, same, scatter, summed

from shardpass.proving import prove

DTYPES = {"i4": ml_dtypes.int4, "ui4": ml_dtypes.uint4, "i8": np.int8, "ui8": np.uint8,
          "i16": np.int16, "ui16": np.uint16, "i32": np.int32, "i64": np.int64}  # fmt: skip
# (type of the indices, rows of the table, what the last row is in that type)
TOO_SHORT = [("i8", 300, 43), ("ui8", 257, 0), ("i4", 20, 3), ("ui4", 17, 0)]


def indices(kind):
    """All numbers of 4 bits; of wider types some, with both ends.

    Of types without sign only the lower half: the reference interpreter reads the others as negative numbers.
    """
    dtype, bits = DTYPES[kind], int(kind.lstrip("ui"))
    low, last = (0, 2 ** (bits - 1) - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if bits == 4:
        return np.arange(low, last + 1).astype(dtype)
    return np.array([0, 1, 63, 64, 100, 127, low, low + 28, last - 1, last]).astype(dtype)


def table(rows):
    return np.arange(1, rows + 1, dtype=np.float32)


def rejects(pair, *arrays):
    """The two programs differ when run, and the prover says so, or that it does not know."""
    assert not equal_bits(*pair.run(*arrays))
    verdict = prove(pair.whole, pair.local, refute=False)
    assert not verdict.proved


def accepts(pair, *arrays):
    assert equal_bits(*pair.run(*arrays))
    verdict = prove(pair.whole, pair.local, refute=False)
    assert verdict.proved, str(verdict)


def clamped(kind, count, most):
    n = f"{count}x{kind}"
    return "\n".join((constant("low", "0", n), constant("high", str(most), n),
                      f"  %c = stablehlo.clamp %low, %y, %high : tensor<{n}>"))  # fmt: skip


@pytest.mark.parametrize(("kind", "rows", "most"), TOO_SHORT)
def test_a_gather_has_more_rows_than_its_indices_count(kind, rows, most):
    """The last row is no number of the type, so nothing clamps an index from above."""
    count = len(indices(kind))
    arguments, result = (same(f"{rows}xf32"), same(f"{count}x{kind}")), same(f"{count}xf32")
    kinds = f"{rows}xf32", f"{count}x{kind}", f"{count}xf32"
    plain = gather("r", "x", "y", *kinds)
    pair = Pair(arguments, result, plain, clamped(kind, count, most) + "\n" + gather("r", "x", "c", *kinds))
    rejects(pair, table(rows), indices(kind))
    accepts(Pair(arguments, result, plain, plain), table(rows), indices(kind))


@pytest.mark.parametrize(("kind", "rows", "most"), TOO_SHORT)
def test_a_slice_starts_where_its_type_reaches(kind, rows, most):
    arguments, result = (same(f"{rows}xf32"), same(f"1x{kind}")), same("2xf32")

    def body(at, first=""):
        return f"""{first}
  %at = stablehlo.reshape %{at} : (tensor<1x{kind}>) -> tensor<{kind}>
  %r = stablehlo.dynamic_slice %x, %at, sizes = [2] : (tensor<{rows}xf32>, tensor<{kind}>) -> tensor<2xf32>"""

    pair = Pair(arguments, result, body("y"), body("c", clamped(kind, 1, max(most - 1, 0))))
    start = indices(kind)[indices(kind).astype(int).argmax()].reshape(1).astype(DTYPES[kind])
    rejects(pair, table(rows), start)
    accepts(Pair(arguments, result, body("y"), body("y")), table(rows), start)


@pytest.mark.parametrize(("kind", "rows", "most"), TOO_SHORT)
def test_an_update_starts_where_its_type_reaches(kind, rows, most):
    arguments, result = (same(f"{rows}xf32"), same(f"1x{kind}")), same(f"{rows}xf32")

    def body(at, first=""):
        return f"""{first}
  %at = stablehlo.reshape %{at} : (tensor<1x{kind}>) -> tensor<{kind}>
{constant("u", "7.0", "1xf32")}
  %r = stablehlo.dynamic_update_slice %x, %u, %at : (tensor<{rows}xf32>, tensor<1xf32>, tensor<{kind}>)
    -> tensor<{rows}xf32>"""

    pair = Pair(arguments, result, body("y"), body("c", clamped(kind, 1, most)))
    start = indices(kind)[indices(kind).astype(int).argmax()].reshape(1).astype(DTYPES[kind])
    rejects(pair, table(rows), start)
    accepts(Pair(arguments, result, body("y"), body("y")), table(rows), start)


def offset(kind, count, rows, op="subtract"):
    """The indices less the rows of the devices before."""
    sign = "" if op == "subtract" else "-"
    return f"""  %d = stablehlo.partition_id : tensor<ui32>
  %k = stablehlo.convert %d : (tensor<ui32>) -> tensor<{kind}>
{constant("n", f"{sign}{rows}", kind)}
  %o = stablehlo.multiply %k, %n : tensor<{kind}>
  %os = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<{kind}>) -> tensor<{count}x{kind}>
  %at = stablehlo.{op} %y, %os : tensor<{count}x{kind}>"""


def scattered_by_rows(kind, rows, op="subtract"):
    """Updates of a table of rows that are split over two devices, each of which counts from its own first row."""
    count, own = len(indices(kind)), rows // 2
    whole = "\n".join((constant("z", "0", f"{rows}xi32"),
                       scatter("r", "z", "y", "x", (f"{rows}xi32", f"{count}x{kind}", f"{count}xi32"))))  # fmt: skip
    local = "\n".join((constant("z", "0", f"{own}xi32"), offset(kind, count, own, op),
                       scatter("r", "z", "at", "x", (f"{own}xi32", f"{count}x{kind}", f"{count}xi32"))))  # fmt: skip
    arguments = same(f"{count}xi32"), same(f"{count}x{kind}")
    return Pair(arguments, Side(f"{own}xi32", f"{rows}xi32", "{devices=[2]<=[2]}"), whole, local)


@pytest.mark.parametrize(
    ("kind", "rows", "op"),
    [("i8", 200, "subtract"), ("ui8", 400, "subtract"), ("i4", 12, "subtract"), ("ui4", 24, "subtract"),
     ("i8", 200, "add"), ("i4", 12, "add")],
)  # fmt: skip
def test_a_difference_wraps_into_the_rows_of_a_device(kind, rows, op):
    """Of i8, -100 less 100 is 56, which is a row of the second device and none of the whole table."""
    pair = scattered_by_rows(kind, rows, op)
    rejects(pair, np.arange(1, len(indices(kind)) + 1, dtype=np.int32), indices(kind))


@pytest.mark.parametrize(
    ("kind", "rows"),
    [("i8", 128), ("ui8", 256), ("i8", 64), ("i4", 8), ("ui4", 16), ("i16", 200), ("i32", 200), ("i64", 200)],
)
def test_a_difference_that_counts_no_wrong_row_is_proved(kind, rows):
    pair = scattered_by_rows(kind, rows)
    accepts(pair, np.arange(1, len(indices(kind)) + 1, dtype=np.int32), indices(kind))


def masked(kind, rows, ends):
    """A gather from rows that are split over two devices, of integers; ``ends``: what bounds the index on a device."""
    count, own = len(indices(kind)), rows // 2
    n, kinds = f"{count}x{kind}", (f"{own}xi32", f"{count}x{kind}", f"{count}xi32")
    tests = {
        "index": ("at", "zero", "at", "last"),
        "given": ("y", "os", "y", "end"),
        "mixed": ("at", "zero", "y", "end"),
    }[ends]
    lines = [
        offset(kind, count, own),
        *(constant(*row, n) for row in (("zero", "0"), ("last", str(own - 1)))),
        f"  %end = stablehlo.add %os, %last : tensor<{n}>",
        f"  %ge = stablehlo.compare GE, %{tests[0]}, %{tests[1]} : (tensor<{n}>, tensor<{n}>) -> tensor<{count}xi1>",
        f"  %le = stablehlo.compare LE, %{tests[2]}, %{tests[3]} : (tensor<{n}>, tensor<{n}>) -> tensor<{count}xi1>",
        f"  %in = stablehlo.and %ge, %le : tensor<{count}xi1>",
        gather("g", "x", "at", *kinds),
        constant("none", "0", f"{count}xi32"),
        f"  %own = stablehlo.select %in, %g, %none : tensor<{count}xi1>, tensor<{count}xi32>",
        summed("r", "own", f"{count}xi32"),
    ]
    whole = [
        constant("zero", "0", n), constant("last", str(rows - 1), n),
        f"  %ge = stablehlo.compare GE, %y, %zero : (tensor<{n}>, tensor<{n}>) -> tensor<{count}xi1>",
        f"  %le = stablehlo.compare LE, %y, %last : (tensor<{n}>, tensor<{n}>) -> tensor<{count}xi1>",
        f"  %in = stablehlo.and %ge, %le : tensor<{count}xi1>",
        gather("g", "x", "y", f"{rows}xi32", n, f"{count}xi32"),
        constant("none", "0", f"{count}xi32"),
        f"  %r = stablehlo.select %in, %g, %none : tensor<{count}xi1>, tensor<{count}xi32>",
    ]  # fmt: skip
    arguments = Side(f"{own}xi32", f"{rows}xi32", "{devices=[2]<=[2]}"), same(n)
    return Pair(arguments, same(f"{count}xi32"), "\n".join(whole), "\n".join(lines))


def test_two_ends_of_two_integers_bound_no_index():
    """Of i8, -100 less 64 is 92: at least 0, and -100 is at most 127, but row 92 is on no device."""
    rejects(masked("i8", 128, "mixed"), np.arange(1, 129, dtype=np.int32), indices("i8"))


@pytest.mark.parametrize("ends", ["index", "given"])
@pytest.mark.parametrize("kind", ["i8", "i16", "i32"])
def test_both_ends_of_one_integer_bound_an_index(kind, ends):
    accepts(masked(kind, 128, ends), np.arange(1, 129, dtype=np.int32), indices(kind))


def test_a_clamp_by_other_bounds_is_another_clamp():
    """The bounds of the two clamps are elements of one argument, and not the same ones."""

    def bound(name, place):
        return f"""  %{name}_1 = stablehlo.slice %y [{place}:{place + 1}] : (tensor<2xi32>) -> tensor<1xi32>
  %{name} = stablehlo.reshape %{name}_1 : (tensor<1xi32>) -> tensor<i32>"""

    first = (
        bound("a", 0)
        + "\n  %{} = stablehlo.clamp %a, %x, %a : (tensor<i32>, tensor<4xi32>, tensor<i32>) -> tensor<4xi32>"
    )
    second = (
        bound("b", 1)
        + "\n  %r = stablehlo.clamp %b, %c, %b : (tensor<i32>, tensor<4xi32>, tensor<i32>) -> tensor<4xi32>"
    )
    arguments = same("4xi32"), same("2xi32")
    pair = Pair(arguments, same("4xi32"), first.format("c") + "\n" + second, first.format("r"))
    rejects(pair, np.arange(4, dtype=np.int32), np.array([1, 2], np.int32))


@pytest.mark.parametrize("kind", ["i8", "i4", "ui8", "i64"])
def test_numbers_beyond_the_greatest_are_the_least(kind):
    """iota and the greatest number of the type: all but the first element wrap."""
    bits = int(kind.lstrip("ui"))
    most = 2 ** (bits if kind.startswith("u") else bits - 1) - 1
    less, count = str(most - 1), 8
    body = f"""  %i = stablehlo.iota dim = 0 : tensor<{count}x{kind}>
{constant("c", str(most), f"{count}x{kind}")}
{constant("d", less, f"{count}x{kind}")}
  %s = stablehlo.add %i, %c : tensor<{count}x{kind}>
  %r = stablehlo.compare GT, %s, %d : (tensor<{count}x{kind}>, tensor<{count}x{kind}>) -> tensor<{count}xi1>"""
    result = same(f"{count}xi1")
    rejects(Pair((), result, body, constant("r", "true", f"{count}xi1")))
    right = f"dense<[true, {', '.join(['false'] * (count - 1))}]>"
    pair = Pair((), result, body, f"  %r = stablehlo.constant {right} : tensor<{count}xi1>")
    assert equal_bits(*pair.run())


def test_a_reduction_in_a_wider_type_is_not_one_of_the_narrow_parts():
    """The whole program adds up f16 in f32; devices add up their parts in f16, where these overflow."""
    whole = """  %i = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf16>, tensor<f32>) -> tensor<f32>"""
    local = """  %i = stablehlo.constant dense<0.0> : tensor<f16>
  %p = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0]
    : (tensor<2xf16>, tensor<f16>) -> tensor<f16>
  %r = "stablehlo.all_reduce"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    use_global_device_ids, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<f16>) -> tensor<f32>"""
    pair = Pair((Side("2xf16", "4xf16", "{devices=[2]<=[2]}"),), same("f32"), whole, local)
    assert not prove(pair.whole, pair.local, refute=False).proved


@pytest.mark.parametrize("kind", ["f8E4M3FN", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ"])
def test_a_type_without_infinities_has_no_neutral_maximum(kind):
    """What is the negative infinity of other types is a NaN there."""
    nan = "0xFF" if kind == "f8E4M3FN" else "0x80"
    local = constant("n", nan, f"4x{kind}") + f"\n  %r = stablehlo.maximum %x, %n : tensor<4x{kind}>"
    for op in ("maximum", "minimum"):
        body = local.replace("maximum", op)
        whole = f"  %r = stablehlo.optimization_barrier %x : tensor<4x{kind}>"
        pair = Pair((same(f"4x{kind}"),), same(f"4x{kind}"), whole, body)
        rejects(pair, np.arange(4).astype(kind.lower().replace("f8e", "float8_e")))
