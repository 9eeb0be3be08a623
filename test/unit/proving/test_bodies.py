"""Regions as keys: two are one where they compute the same expressions, and only there."""

import pytest

from shardpass.ir.context import parse_module
from shardpass.ir.walk import every_op
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.rules.blocks import call_key
from shardpass.proving.rules.bodies import region_key

SORT = """func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {{
  %r:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
{body}
  }}) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %r#0 : tensor<8xf32>
}}"""
LESS = "(tensor<f32>, tensor<f32>) -> tensor<i1>"
PLAIN = f"""    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %u = stablehlo.add %a, %one : tensor<f32>
    %v = stablehlo.add %b, %one : tensor<f32>
    %less = stablehlo.compare LT, %u, %v, FLOAT : {LESS}
    stablehlo.return %less : tensor<i1>"""
SAME = f"""    %v = stablehlo.constant dense<1.0> : tensor<f32>
    %dead = stablehlo.multiply %c, %d : tensor<f32>
    %q = stablehlo.add %b, %v : tensor<f32>
    %two = stablehlo.constant dense<1.0> : tensor<f32>
    %p = stablehlo.add %a, %two : tensor<f32>
    %less = stablehlo.compare LT, %p, %q : {LESS}
    stablehlo.return %less : tensor<i1>"""
OTHERS = {
    "the other order": ("LT, %u, %v", "LT, %v, %u"),
    "another comparison": ("compare LT", "compare LE"),
    "a total order": ("%v, FLOAT", "%v, TOTALORDER"),
    "another constant": ("dense<1.0>", "dense<2.0>"),
    "another op": ("%v = stablehlo.add", "%v = stablehlo.subtract"),
    "another argument": ("%v = stablehlo.add %b", "%v = stablehlo.add %c"),
    "one argument twice": ("%v = stablehlo.add %b", "%v = stablehlo.add %a"),
}


def op_named(text, name):
    module = parse_module(text)
    return module, next(op for op in every_op(module.operation) if op.name == name)


def key(body):
    module, op = op_named(SORT.format(body=body), "stablehlo.sort")
    result = region_key(op)
    del module
    return result


def test_the_order_of_ops_and_dead_ops_say_nothing():
    assert key(PLAIN) == key(SAME)


@pytest.mark.parametrize("change", OTHERS)
def test_bodies_that_compute_another_thing(change):
    old, new = OTHERS[change]
    assert old in PLAIN
    assert key(PLAIN) != key(PLAIN.replace(old, new))


def test_expressions_differ_by_their_regions():
    """The branch that runs, of two ops alike but for their regions."""
    choice = """    %less = "stablehlo.if"(%t) ({{
      stablehlo.return {one} : tensor<i1>
    }}, {{
      stablehlo.return {other} : tensor<i1>
    }}) : (tensor<i1>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>"""
    tests = f"    %t = stablehlo.compare LT, %a, %b : {LESS}\n    %u = stablehlo.compare LT, %c, %d : {LESS}\n"
    one, other = (tests + choice.format(one=a, other=b) for a, b in (("%t", "%u"), ("%u", "%t")))
    assert key(one) == key(one.replace("%less", "%more"))
    assert key(one) != key(other)


def test_a_body_that_calls_a_function_has_no_key():
    """Functions of two modules may have one name."""
    call = "    %less = func.call @less(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %less : tensor<i1>"  # noqa: E501
    less = "func.func private @less(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1>\n"
    _, op = op_named(less + SORT.format(body=call), "stablehlo.sort")
    with pytest.raises(Unknown, match="call"):
        region_key(op)


CALL = """func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {{
  %r = stablehlo.custom_call @lapack_spotrf_ffi(%x) {{{how}}} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}}"""
ROWS = "operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]"
FORMS = (
    f'backend_config = "", mhlo.backend_config = {{uplo = 76 : ui8}}, {ROWS}',
    f"backend_config = {{uplo = 76 : ui8}}, api_version = 4 : i32, has_side_effect = false, {ROWS}",
)


def configured(how):
    module, op = op_named(CALL.format(how=how), "stablehlo.custom_call")
    result = call_key(op, {})
    del module
    return result


def test_a_call_is_one_with_its_configuration_in_either_place():
    assert configured(FORMS[0]) == configured(FORMS[1])


@pytest.mark.parametrize(("old", "new"), [("uplo = 76", "uplo = 85"), ("dense<[1, 0]>", "dense<[0, 1]>")])
@pytest.mark.parametrize("form", FORMS)
def test_calls_of_another_configuration_or_layout(form, old, new):
    assert configured(form) != configured(form.replace(old, new))
