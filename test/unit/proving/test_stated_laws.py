"""Programs that differ from the whole program in a signed zero or in an overflow: no strict proof accepts them.

Those that another proof accepts are equal by a law that it lists, with the place of the op.
"""

import ml_dtypes
import numpy as np
import pytest
from support.pairs import Pair, Side, constant, equal_bits, gather, reduced, same, scatter, summed

import shardpass
from shardpass.proving import ending, prove
from shardpass.proving.relations.laws import CONVERTED, DIVISOR, FACTOR, NEGATED_SUM, ZERO

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
HALVES = "{devices=[2]<=[2]}"


def unary(name, op, operand, kind):
    return f"  %{name} = stablehlo.{op} %{operand} : tensor<{kind}>"


def binary(name, op, first, second, kind):
    return f"  %{name} = stablehlo.{op} %{first}, %{second} : tensor<{kind}>"


def converted(name, operand, of, to):
    return f"  %{name} = stablehlo.convert %{operand} : (tensor<{of}>) -> tensor<{to}>"


def body(*lines):
    return "\n".join(lines)


def itself(kind):
    return unary("r", "optimization_barrier", "x", kind)


def signed_zeros(element):
    dtype = DTYPES.get(element, np.float32)
    return np.array([0.0, -0.0, 1.0, -1.0], dtype)


def same_vectors(count, element="f32", n=4):
    return [same(f"{n}x{element}")] * count


CASES = {}  # name: (pair, arrays, the law that a proof without strict takes; None: it proves nothing)

for element in DTYPES:
    kind, values = f"4x{element}", signed_zeros(element)
    CASES[f"x + 0 in {element}"] = (
        Pair(same_vectors(1, element), same(kind), itself(kind),
             body(constant("c", "0.0", kind), binary("r", "add", "x", "c", kind))), [values], ZERO,
    )  # fmt: skip
    CASES[f"x - -0 in {element}"] = (
        Pair(same_vectors(1, element), same(kind), itself(kind),
             body(constant("c", "-0.0", kind), binary("r", "subtract", "x", "c", kind))), [values], ZERO,
    )  # fmt: skip
    CASES[f"a negated sum in {element}"] = (
        Pair(same_vectors(2, element), same(kind),
             body(binary("s", "add", "x", "y", kind), unary("r", "negate", "s", kind)),
             body(unary("m", "negate", "x", kind), binary("r", "subtract", "m", "y", kind))),
        [values, -values], NEGATED_SUM,
    )  # fmt: skip
CASES["a negated difference"] = (
    Pair(same_vectors(2), same("4xf32"),
         body(binary("s", "subtract", "x", "y", "4xf32"), unary("r", "negate", "s", "4xf32")),
         binary("r", "subtract", "y", "x", "4xf32")), [signed_zeros("f32"), signed_zeros("f32")], NEGATED_SUM,
)  # fmt: skip
CASES["positions times -1"] = (
    Pair((), same("4xf32"),
         body("  %i = stablehlo.iota dim = 0 : tensor<4xi32>", unary("m", "negate", "i", "4xi32"),
              converted("r", "m", "4xi32", "4xf32")),
         body("  %i = stablehlo.iota dim = 0 : tensor<4xi32>", converted("f", "i", "4xi32", "4xf32"),
              constant("c", "-1.0", "4xf32"), binary("r", "multiply", "f", "c", "4xf32"))), [], None,
)  # fmt: skip
CASES["-0 less positions"] = (
    Pair((), same("4xf32"),
         body("  %i = stablehlo.iota dim = 0 : tensor<4xi32>", unary("m", "negate", "i", "4xi32"),
              converted("r", "m", "4xi32", "4xf32")),
         body("  %i = stablehlo.iota dim = 0 : tensor<4xi32>", converted("f", "i", "4xi32", "4xf32"),
              constant("c", "-0.0", "4xf32"), binary("r", "subtract", "c", "f", "4xf32"))), [], None,
)  # fmt: skip
NOTHING = np.full(4, -0.0, np.float32)
HALF = [Side("2xf32", "4xf32", HALVES)]
CASES["a sum from 0 for one from -0"] = (
    Pair(HALF, same("f32"), reduced("r", "x", "4xf32", "f32", "-0.0"),
         body(reduced("p", "x", "2xf32", "f32", "0.0"), summed("r", "p", "f32"))), [NOTHING], ZERO,
)  # fmt: skip
CASES["a sum from -0 for one from 0"] = (
    Pair(HALF, same("f32"), reduced("r", "x", "4xf32", "f32", "0.0"),
         body(reduced("p", "x", "2xf32", "f32", "-0.0"), summed("r", "p", "f32"))), [NOTHING], ZERO,
)  # fmt: skip
CASES["one element for its sum from 0"] = (
    Pair([same("1x4xf32")], same("4xf32"), "  %r = stablehlo.reshape %x : (tensor<1x4xf32>) -> tensor<4xf32>",
         reduced("r", "x", "1x4xf32", "4xf32", "0.0")), [NOTHING[None]], ZERO,
)  # fmt: skip
CASES["a product for a dot_general"] = (
    Pair([same("1x4xf32"), same("4x1xf32")], same("1x1xf32"),
         "  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]"
         " : (tensor<1x4xf32>, tensor<4x1xf32>) -> tensor<1x1xf32>",
         body("  %t = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x1xf32>) -> tensor<1x4xf32>",
              binary("p", "multiply", "x", "t", "1x4xf32"), reduced("s", "p", "1x4xf32", "1xf32", "-0.0", dims="1"),
              "  %r = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<1x1xf32>")),
    [NOTHING[None], np.ones((4, 1), np.float32)], ZERO,
)  # fmt: skip


def rows_of_devices(fill):
    """A gather of rows that are split over two devices: each takes those that it has, and they are added up."""
    lines = [
        "  %d = stablehlo.partition_id : tensor<ui32>", converted("k", "d", "ui32", "i32"),
        constant("n", "2", "i32"), binary("o", "multiply", "k", "n", "i32"),
        "  %os = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<i32>) -> tensor<4xi32>",
        binary("at", "subtract", "y", "os", "4xi32"), constant("zero", "0", "4xi32"), constant("last", "1", "4xi32"),
        "  %ge = stablehlo.compare GE, %at, %zero : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>",
        "  %le = stablehlo.compare LE, %at, %last : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>",
        binary("in", "and", "ge", "le", "4xi1"), gather("g", "x", "at", "2xf32", "4xi32", "4xf32"),
        constant("none", fill, "4xf32"),
        "  %own = stablehlo.select %in, %g, %none : tensor<4xi1>, tensor<4xf32>", summed("r", "own", "4xf32"),
    ]  # fmt: skip
    whole = [
        constant("zero", "0", "4xi32"), constant("last", "3", "4xi32"),
        "  %at = stablehlo.clamp %zero, %y, %last : tensor<4xi32>", gather("r", "x", "at", "4xf32", "4xi32", "4xf32"),
    ]  # fmt: skip
    return body(*whole), body(*lines)


def clamped_rows(fill):
    """The same of an index that lies in the table, as the whole program sees to."""
    whole, local = rows_of_devices(fill)
    clamp = body(constant("low", "0", "4xi32"), constant("high", "3", "4xi32"),
                 "  %c = stablehlo.clamp %low, %y, %high : tensor<4xi32>")  # fmt: skip
    local = body(clamp, local.replace("subtract %y, %os", "subtract %c, %os"))
    return Pair([Side("2xf32", "4xf32", HALVES), same("4xi32")], same("4xf32"), whole, local)


PLACES = np.arange(4, dtype=np.int32)
CASES["rows of several devices beside 0"] = (clamped_rows("0.0"), [signed_zeros("f32"), PLACES], ZERO)


def value_of_one_device(fill):
    local = body("  %d = stablehlo.partition_id : tensor<ui32>", constant("k", "0", "ui32"),
                 "  %on = stablehlo.compare EQ, %d, %k : (tensor<ui32>, tensor<ui32>) -> tensor<i1>",
                 "  %m = stablehlo.broadcast_in_dim %on, dims = [] : (tensor<i1>) -> tensor<4xi1>",
                 constant("none", fill, "4xf32"),
                 "  %own = stablehlo.select %m, %x, %none : tensor<4xi1>, tensor<4xf32>",
                 summed("r", "own", "4xf32"))  # fmt: skip
    return Pair(same_vectors(1), same("4xf32"), itself("4xf32"), local)


CASES["a value of one device beside 0"] = (value_of_one_device("0.0"), [signed_zeros("f32")], ZERO)


def scatters(first, second):
    kinds = "4xf32", "4xi32", "4xf32"
    return Pair([same("4xf32"), same("4xi32")], same("4xf32"),
                body(constant("z", first, "4xf32"), scatter("r", "z", "y", "x", kinds)),
                body(constant("z", second, "4xf32"), scatter("r", "z", "y", "x", kinds)))  # fmt: skip


CASES["a scatter onto 0 for one onto -0"] = (scatters("-0.0", "0.0"), [NOTHING, PLACES], ZERO)
CASES["a scatter onto -0 for one onto 0"] = (scatters("0.0", "-0.0"), [NOTHING, PLACES], ZERO)


def linear(first, second, of="f32", to=None, init="0.0"):
    """``second`` of the sum of a vector, and the sum of it of the sums of its halves; ``first``: the constants."""
    kind = to or of
    whole = body(*first, reduced("s", "x", f"4x{of}", of, init), second.replace("%p", "%s").replace("%q", "%r"))
    local = body(*first, reduced("p", "x", f"2x{of}", of, init), second, summed("r", "q", kind))
    return Pair([Side(f"2x{of}", f"4x{of}", HALVES)], same(kind), whole, local)


FAR = np.array([3e38, 0, -3e38, 0], np.float32)
WIDE = np.array([40000, 0, 40000, 0], np.float16)
CASES["a factor of parts"] = (
    linear([constant("c", "4.0", "f32")], binary("q", "multiply", "p", "c", "f32")), [FAR], FACTOR)  # fmt: skip
CASES["a divisor of parts"] = (
    linear([constant("c", "0.25", "f32")], binary("q", "divide", "p", "c", "f32")), [FAR], DIVISOR)  # fmt: skip
CASES["a negative of parts"] = (
    linear([], unary("q", "negate", "p", "f32")), [np.array([1, 0, -1, 0], np.float32)], NEGATED_SUM)  # fmt: skip
for to, scale in (("f16", 9e4), ("bf16", 3.4e38), ("f8E4M3FN", 600), ("f8E5M2", 9e4)):
    CASES[f"parts converted to {to}"] = (
        linear([], converted("q", "p", "f32", to), to=to),
        [np.array([scale, 0, -scale, 0], np.float32)], CONVERTED,
    )  # fmt: skip
CASES["parts converted to a wider type"] = (
    linear([], converted("q", "p", "f16", "f32"), of="f16", to="f32"), [WIDE], CONVERTED)  # fmt: skip
DOT = ("  %r = stablehlo.dot_general %s, %y, contracting_dims = [0] x [0]"
       " : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>")  # fmt: skip
CASES["a dot_general of parts"] = (
    Pair([Side("1x2xf32", "2x2xf32", "{devices=[2,1]<=[2]}"), same("2xf32")], same("f32"),
         body(reduced("s", "x", "2x2xf32", "2xf32", "0.0"),
              DOT.replace("%r", "%r")),
         body(reduced("s", "x", "1x2xf32", "2xf32", "0.0"),
              DOT.replace("%r", "%p"),
              summed("r", "p", "f32"))),
    [np.array([[3e38, 0], [-3e38, 0]], np.float32), np.full(2, 4, np.float32)], FACTOR,
)  # fmt: skip
CASES["a complex number times 1"] = (
    Pair([same("2xcomplex<f32>")], same("2xcomplex<f32>"), itself("2xcomplex<f32>"),
         body(constant("c", "(1.0, 0.0)", "2xcomplex<f32>"), binary("r", "multiply", "x", "c", "2xcomplex<f32>"))),
    [np.array([complex(np.inf, 1), 1], np.complex64)], None,
)  # fmt: skip
CASES["a complex number and 0"] = (
    Pair([same("2xcomplex<f32>")], same("2xcomplex<f32>"), itself("2xcomplex<f32>"),
         body(constant("c", "(0.0, 0.0)", "2xcomplex<f32>"), binary("r", "add", "x", "c", "2xcomplex<f32>"))),
    [np.array([complex(-0.0, -0.0), 1], np.complex64)], ZERO,
)  # fmt: skip


def started_by_one_device(whole):
    """A sum of parts, which starts from 0 on device 0 and from -0 on device 1."""
    local = body("  %d = stablehlo.partition_id : tensor<ui32>", constant("k", "0", "ui32"),
                 "  %on = stablehlo.compare EQ, %d, %k : (tensor<ui32>, tensor<ui32>) -> tensor<i1>",
                 constant("z", "0.0", "f32"), constant("m", "-0.0", "f32"),
                 "  %i = stablehlo.select %on, %z, %m : tensor<i1>, tensor<f32>",
                 "  %p = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0]"
                 " : (tensor<2xf32>, tensor<f32>) -> tensor<f32>", summed("r", "p", "f32"))  # fmt: skip
    return Pair(HALF, same("f32"), reduced("r", "x", "4xf32", "f32", whole), local)


EXACT = {
    "a sum that one device starts from 0": started_by_one_device("0.0"),
    "a value of one device beside -0": value_of_one_device("-0.0"),
    "rows of several devices beside -0": clamped_rows("-0.0"),
    "sums from 0 of parts": Pair(
        HALF, same("f32"), reduced("r", "x", "4xf32", "f32", "0.0"),
        body(reduced("p", "x", "2xf32", "f32", "0.0"), summed("r", "p", "f32"))),
    "sums from -0 of parts": Pair(
        HALF, same("f32"), reduced("r", "x", "4xf32", "f32", "-0.0"),
        body(reduced("p", "x", "2xf32", "f32", "-0.0"), summed("r", "p", "f32"))),
    "0 added to a sum from 0": Pair(
        HALF, same("f32"), reduced("r", "x", "4xf32", "f32", "0.0"),
        body(reduced("p", "x", "2xf32", "f32", "0.0"), summed("s", "p", "f32"), constant("c", "0.0", "f32"),
             binary("r", "add", "s", "c", "f32"))),
    "-0 added": Pair(same_vectors(1), same("4xf32"), itself("4xf32"),
                     body(constant("c", "-0.0", "4xf32"), binary("r", "add", "x", "c", "4xf32"))),
    "0 subtracted": Pair(same_vectors(1), same("4xf32"), itself("4xf32"),
                         body(constant("c", "0.0", "4xf32"), binary("r", "subtract", "x", "c", "4xf32"))),
}  # fmt: skip


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", CASES)
def test_no_strict_proof_takes_a_law_that_floats_do_not_keep(name):
    pair, arrays, law = CASES[name]
    assert not equal_bits(*pair.run(*arrays))
    strict = prove(pair.whole, pair.local, refute=False, strict=True)
    assert not strict.proved
    verdict = prove(pair.whole, pair.local, refute=False)
    assert verdict.proved == (law is not None), str(verdict)
    assert [use.law for use in verdict.laws] == [law] * verdict.proved


@pytest.mark.parametrize("name", EXACT)
def test_a_strict_proof_knows_which_zeros_change_nothing(name):
    pair = EXACT[name]
    arrays = [PLACES if side.whole.endswith("i32") else signed_zeros("f32") for side in pair.arguments]
    for values in (arrays, [NOTHING if a.dtype.kind == "f" else a for a in arrays]):
        assert equal_bits(*pair.run(*values))
    verdict = prove(pair.whole, pair.local, refute=False, strict=True)
    assert verdict.proved, str(verdict)
    assert not prove(pair.whole, pair.local, refute=False).laws


def test_a_verdict_lists_the_law_and_the_place():
    pair = CASES["parts converted to f16"][0]
    verdict = shardpass.prove(pair.whole, pair.local)
    line = next(k for k, text in enumerate(pair.local.splitlines(), 1) if "convert" in text)
    (law,) = verdict.laws
    assert [place.line for place in law.places] == [line]
    assert f"a sum moved past a conversion to f16 (1 place: one side may overflow): <string>:{line}:" in str(
        verdict
    ).replace(str(law.places[0]).split(":")[0], "<string>")
    (row,) = verdict.json()["laws"]
    assert (row["law"], row["risk"], row["places"]) == (
        "conversion of a sum", "one side may overflow", [str(law.places[0])])  # fmt: skip


def test_a_strict_proof_ends_at_the_op_that_needs_the_law():
    pair = CASES["rows of several devices beside 0"][0]
    verdict = shardpass.prove(pair.whole, pair.local, refute=False, strict=True)
    assert verdict.unknown is not None
    assert verdict.unknown.op == "stablehlo.select"
    assert "-0 may become 0" in verdict.unknown.why


def test_a_law_that_no_result_needs_is_not_listed():
    """An op that takes a law, and whose result nothing uses."""
    unused = body(constant("c", "0.0", "4xf32"), binary("unused", "add", "x", "c", "4xf32"), itself("4xf32"))
    pair = Pair(same_vectors(1), same("4xf32"), itself("4xf32"), unused)
    verdict = prove(pair.whole, pair.local)
    assert verdict.proved
    assert verdict.laws == ()


@pytest.mark.parametrize(("pair", "walks"), [(EXACT["0 subtracted"], 0), (CASES["x + 0 in f32"][0], 1)])
def test_a_program_is_searched_for_places_only_after_a_law_was_taken(pair, walks, monkeypatch):
    calls = []
    listed = ending._behind
    monkeypatch.setattr(ending, "_behind", lambda values: calls.append(values) or listed(values))
    assert prove(pair.whole, pair.local).proved
    assert len(calls) == walks
