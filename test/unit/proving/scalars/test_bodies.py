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
