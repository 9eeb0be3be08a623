"""Bodies of several ops: two reductions are one only where their bodies are."""

import pytest

from shardpass.proving import prove

BOUNDARY = '{{mhlo.sharding = "{{manual}}", shardpass.global_type = {type}, shardpass.sharding = "{{replicated}}"}}'


def programs(argument, result, whole, local):
    """A whole program and one of two devices, both with one argument, which each device has whole."""
    sides = [BOUNDARY.format(type=kind) for kind in (argument, result)]
    attributes = "attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}"
    return (
        f"module {{\n  func.func @main(%x: {argument}) -> {result} {{\n{whole}\n  }}\n}}",
        f"module {attributes} {{\n  func.func @main(%x: {argument} {sides[0]}) -> ({result} {sides[1]}) {{\n"
        f"{local}\n  }}\n}}",
    )


def summed(*body):
    inner = "\n".join(f"      {line} : tensor<f32>" for line in body)
    return f"""    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = "stablehlo.reduce"(%x, %zero) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
{inner}
      stablehlo.return %s : tensor<f32>
    }}) {{dimensions = array<i64: 0>}} : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    return %r : tensor<f32>"""


TWICE = summed("%t = stablehlo.add %a, %b", "%s = stablehlo.add %t, %b")
TWICE_AGAIN = summed("%t = stablehlo.add %b, %a", "%s = stablehlo.add %b, %t")
ONCE = summed("%s = stablehlo.add %a, %b")


@pytest.mark.parametrize(("local", "proved"), [(TWICE_AGAIN, True), (ONCE, False)])
def test_a_body_that_counts_an_operand_twice_is_no_sum(local, proved):
    """a + b + b of [1, 1] and 0 is no 2 in any order: one of the two ones counts twice."""
    pair = programs("tensor<2xf32>", "tensor<f32>", TWICE, local)
    assert prove(*pair, refute=False).proved is proved


def marked(mark):
    """The greatest of x, none of which count, and whether any did, as ``mark`` says of two marks."""
    return f"""    %low = stablehlo.constant dense<0.0> : tensor<f32>
    %none = stablehlo.constant dense<false> : tensor<2xi1>
    %no = stablehlo.constant dense<false> : tensor<i1>
    %r:2 = "stablehlo.reduce"(%x, %none, %low, %no) ({{
    ^bb0(%a: tensor<f32>, %m: tensor<i1>, %b: tensor<f32>, %n: tensor<i1>):
      %both = stablehlo.and %m, %n : tensor<i1>
      %most = stablehlo.maximum %a, %b : tensor<f32>
      %one = stablehlo.select %m, %a, %b : tensor<i1>, tensor<f32>
      %s = stablehlo.select %both, %most, %one : tensor<i1>, tensor<f32>
      %either = stablehlo.or %m, %n : tensor<i1>
      %yes = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %s, %{mark} : tensor<f32>, tensor<i1>
    }}) {{dimensions = array<i64: 0>}} : (tensor<2xf32>, tensor<2xi1>, tensor<f32>, tensor<i1>)
      -> (tensor<f32>, tensor<i1>)
    return %r#1 : tensor<i1>"""


@pytest.mark.parametrize(("local", "proved"), [("either", True), ("yes", False)])
def test_whether_anything_counts_is_what_the_body_says(local, proved):
    """Of marks that are false alone, `or` makes false, and a body that returns true makes true."""
    pair = programs("tensor<2xf32>", "tensor<i1>", marked("either"), marked(local))
    assert prove(*pair, refute=False).proved is proved


LAST = """    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %all = stablehlo.constant dense<true> : tensor<2xi1>
    %no = stablehlo.constant dense<false> : tensor<i1>
    %y = stablehlo.ORDER
    %r:2 = "stablehlo.reduce"(%y, %all, %zero, %no) ({
    ^bb0(%a: tensor<f32>, %m: tensor<i1>, %b: tensor<f32>, %n: tensor<i1>):
      %s = stablehlo.select %n, %b, %a : tensor<i1>, tensor<f32>
      %either = stablehlo.or %m, %n : tensor<i1>
      stablehlo.return %s, %either : tensor<f32>, tensor<i1>
    }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xi1>, tensor<f32>, tensor<i1>)
      -> (tensor<f32>, tensor<i1>)
    return %r#0 : tensor<f32>"""
SAME = LAST.replace("ORDER", "optimization_barrier %x : tensor<2xf32>")


@pytest.mark.parametrize(("order", "proved"), [("slice %x [0:2] : (tensor<2xf32>) -> tensor<2xf32>", True),
                                               ("reverse %x, dims = [0] : tensor<2xf32>", False)])  # fmt: skip
def test_the_last_element_that_counts_is_another_in_another_order(order, proved):
    """Of [1, 2] the last is 2, and of [2, 1] it is 1."""
    pair = programs("tensor<2xf32>", "tensor<f32>", SAME, LAST.replace("ORDER", order))
    assert prove(*pair, refute=False).proved is proved


def greatest(name, values, labels, size):
    """Reduce values and labels by argmax: ``%name#0`` and ``%name#1``; the initial label is 0."""
    kinds = f"tensor<{size}xf32>", f"tensor<{size}xi32>"
    return f"""    %{name}:2 = stablehlo.reduce(%{values} init: %low), (%{labels} init: %none) across dimensions = [0]
      : ({", ".join(kinds)}, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
      reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {{
      %0 = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %1 = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.or %0, %1 : tensor<i1>
      %3 = stablehlo.compare EQ, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.compare LT, %b, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %5 = stablehlo.and %3, %4 : tensor<i1>
      %6 = stablehlo.or %2, %5 : tensor<i1>
      %7 = stablehlo.select %2, %a, %c : tensor<i1>, tensor<f32>
      %8 = stablehlo.select %6, %b, %d : tensor<i1>, tensor<i32>
      stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
    }}"""


INIT = """    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<0> : tensor<i32>"""
OF_FIVE = f"""{INIT}
    %i = stablehlo.iota dim = 0 : tensor<5xi32>
{greatest("r", "x", "i", 5)}
    return %r#1 : tensor<i32>"""


def of_parts(pad, labels):
    """argmax of three elements, of the two others and ``pad``, and of these two results."""
    one = "stablehlo.reshape %{} : (tensor<{}>) -> tensor<1x{}>"
    joined = "stablehlo.concatenate %{0}0, %{0}1, dim = 0 : (tensor<1x{1}>, tensor<1x{1}>) -> tensor<2x{1}>"
    return f"""{INIT}
    %first = stablehlo.slice %x [0:3] : (tensor<5xf32>) -> tensor<3xf32>
    %rest = stablehlo.slice %x [3:5] : (tensor<5xf32>) -> tensor<2xf32>
    %pad = stablehlo.constant dense<{pad}> : tensor<1xf32>
    %other = stablehlo.concatenate %rest, %pad, dim = 0 : (tensor<2xf32>, tensor<1xf32>) -> tensor<3xf32>
    %own = stablehlo.iota dim = 0 : tensor<3xi32>
    %moved = stablehlo.constant dense<{labels}> : tensor<3xi32>
{greatest("p", "first", "own", 3)}
{greatest("q", "other", "moved", 3)}
    %v0 = {one.format("p#0", "f32", "f32")}
    %v1 = {one.format("q#0", "f32", "f32")}
    %l0 = {one.format("p#1", "i32", "i32")}
    %l1 = {one.format("q#1", "i32", "i32")}
    %v = {joined.format("v", "f32")}
    %l = {joined.format("l", "i32")}
{greatest("r", "v", "l", 2)}
    return %r#1 : tensor<i32>"""


@pytest.mark.parametrize(
    ("pad", "labels", "proved"),
    [
        ("0xFF800000", [3, 4, 0], True),  # as XLA pads
        ("0xFF800000", [3, 4, 5], True),
        ("0xFF800000", [3, 4, -1], False),  # which is the label where all are -inf
        ("0xFF800000", [4, 3, 0], False),
        ("0xFF7FFFFF", [3, 4, 5], False),  # the least finite number
        ("0.0", [3, 4, 0], False),
    ],
)
def test_padding_of_argmax_is_the_least_element(pad, labels, proved):
    pair = programs("tensor<5xf32>", "tensor<i32>", OF_FIVE, of_parts(pad, labels))
    assert prove(*pair, refute=False).proved is proved
