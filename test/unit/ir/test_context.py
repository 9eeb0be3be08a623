"""Text to module: every complaint and every location names the user's file."""

import io
import sys

import pytest
from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.ir.context import copy_module, is_valid, make_context, parse_module
from shardpass.ir.jax_private import make_ir_context
from shardpass.ir.locations import place_of
from shardpass.ir.text_locations import without_locations

MODULE = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32> loc("model.py":7:9)
  return %1 : tensor<4xf32>
}
"""
# the verifier of rng lists the elements of its shape, which are more than any list holds
TOO_LONG = f"""
func.func @main(%a: tensor<f32>) -> tensor<8xf32> {{
  %n = stablehlo.constant dense<8> : tensor<{2**63 - 1}xi64>
  %0 = stablehlo.rng %a, %a, %n, distribution = UNIFORM
    : (tensor<f32>, tensor<f32>, tensor<{2**63 - 1}xi64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}
"""
# one op of every dialect that JAX's modules use
DIALECTS = """
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @f(%a: tensor<4xf32>, %m: memref<4xf32>, %i: index, %v: vector<4xf32>) -> tensor<4xf32> {
    %c = arith.constant 1.0 : f32
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    %1 = chlo.acos %0 : tensor<4xf32> -> tensor<4xf32>
    %2 = mhlo.negate %1 : tensor<4xf32>
    %3 = sdy.sharding_constraint %2 <@mesh, [{"x"}]> : tensor<4xf32>
    %4 = math.sin %c : f32
    %5 = shape.shape_of %3 : tensor<4xf32> -> tensor<1xindex>
    cf.br ^next
  ^next:
    return %3 : tensor<4xf32>
  }
}
"""


KEPT = []  # an operation does not keep its module alive


def operations(module):
    KEPT.append(module)
    return list(module.body.operations[0].regions[0].blocks[0].operations)


def failure(text, **keywords):
    with pytest.raises(ShardpassError) as caught:
        parse_module(text, "m.mlir", **keywords)
    return caught.value.diagnostics


def test_a_context_takes_what_jaxs_own_takes():
    """Both print the same module alike; the dialects are those that jax._src registers."""
    ours, theirs = parse_module(DIALECTS, context=make_context()), parse_module(DIALECTS, context=make_ir_context())
    assert str(ours) == str(theirs)


def test_dialects_are_loaded_with_the_modules_that_have_them():
    context = make_context()
    assert context.is_registered_operation("func.func")
    assert not context.is_registered_operation("math.sin")
    parse_module(DIALECTS, context=context)
    assert context.is_registered_operation("math.sin")


def test_jaxs_own_context_is_the_way_out_where_jaxlib_moves_its_parts(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib.mlir._mlir_libs._jax_mlir_ext", None)
    parse_module(DIALECTS, context=make_context())


def test_locations_name_the_file_and_those_in_the_text_are_kept():
    add, negate, _ = operations(parse_module(MODULE, "dir/m.mlir"))
    assert place_of(add.location) == Place("dir/m.mlir", 2, 8)
    assert place_of(negate.location) == Place("model.py", 7, 9)


def test_arguments_have_places_too():
    module = parse_module(MODULE, "m.mlir")
    argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
    assert place_of(argument.location) == Place("m.mlir", 1, 17)


def test_lines_count_from_the_first_line_of_the_text():
    add, negate, _ = operations(parse_module(MODULE, "m.mlir", first_line=11))
    assert place_of(add.location).line == 12
    assert place_of(negate.location).line == 7


def test_text_without_a_name_keeps_mlirs():
    assert place_of(operations(parse_module(MODULE))[0].location) == Place("-", 2, 8)


JAX_STYLE = """module @jit_f {
  func.func public @main(%x: tensor<4xf32> {u.a = "%z: (", u.b = "\\"%q:"} loc("params['x']"), // %c: (
                         %y: tensor<4xf32> loc("f.py":3:1), %z: tensor<4xf32> loc(unknown))
      -> (tensor<4xf32> {u.c = 1 : i32}) {
    return %x : tensor<4xf32> loc(unknown)
  } loc(unknown)
  func.func private @"odd name"(tensor<4xf32>) loc(unknown)
  func.func private @g(%x: tensor<4xf32> loc("x")) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
} loc(unknown)
"""


@pytest.mark.parametrize("name", ["m.mlir", "-"])
def test_arguments_that_have_but_a_name_get_the_line_at_which_they_stand(name):
    """So JAX writes them, and the arguments are where most annotations are."""
    module = parse_module(JAX_STYLE, name)
    main, odd, g = module.body.operations
    x, y, z = main.regions[0].blocks[0].arguments
    assert place_of(main.location) == Place(name, 2, 3)
    assert str(x.location) == f"""loc("params['x']"("{name}":2:26))"""
    assert place_of(y.location) == Place("f.py", 3, 1)
    assert place_of(z.location) == Place(name, 3, 61)
    assert place_of(odd.location) == Place(name, 7, 3)
    assert place_of(g.regions[0].blocks[0].arguments[0].location) == Place(name, 8, 24)


def test_ops_that_have_but_a_name_get_their_line_too():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.negate %x {u.text = "loc(", u.other = ")"} : tensor<4xf32> loc("negate")
      // loc( in a comment
      %1 = stablehlo.custom_call @loc(%0) : (tensor<4xf32>) -> tensor<4xf32> loc(#call)
      %2 = stablehlo.abs %1 : tensor<4xf32> loc(fused["a)", "b"])
      %3 = stablehlo.negate %2 : tensor<4xf32> loc("negate"("u.py":5:6))
      return %3 : tensor<4xf32>
    }
    #name = loc("f(")
    #call = loc(callsite(#name at "g"))
    """
    module = parse_module(text, "m.mlir", first_line=11)
    places = [place_of(op.location) for op in operations(module)]
    assert places[3] == Place("u.py", 5, 6)
    assert [p.line for p in places] == [12, 14, 15, 5, 17]
    assert {p.file for p in places} == {"m.mlir", "u.py"}
    assert str(operations(module)[0].location) == 'loc("negate"("m.mlir":12:12))'


def test_blanking_keeps_every_position():
    for text in (JAX_STYLE, 'loc( "a)b" )x\n#l1 = loc(unknown)\n"loc("y'):
        bare = without_locations(text)
        assert len(bare) == len(text)
        assert [i for i, c in enumerate(bare) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
        assert all(b in (t, " ") for b, t in zip(bare, text, strict=True))
    assert bare.split() == ["x", '"loc("y']


def test_a_location_as_the_value_of_an_attribute_does_no_harm():
    """Blanking breaks such a text; the module is as MLIR read it."""
    module = parse_module('func.func @f() attributes {u.x = loc("y")} { return } loc(unknown)', "m.mlir")
    assert place_of(module.body.operations[0].location) == NOWHERE
    assert is_valid(module)


def test_text_in_the_generic_form_is_placed_alike():
    module = parse_module(JAX_STYLE, "m.mlir")
    generic = str(module.operation.get_asm(print_generic_op_form=True))
    again = parse_module(generic.replace("() -> ()\n", "() -> () loc(unknown)\n"), "g.mlir")
    assert {place_of(op.location).file for op in again.body.operations} == {"g.mlir"}


def test_a_complaint_has_mlirs_message_the_place_and_a_caret():
    (found,) = failure("\nfunc.func @f(%x: tensor<4xf33>)\n")
    assert (found.code, found.place) == ("SP101", Place("m.mlir", 2, 27))
    line, caret = found.excerpt.split("\n")
    assert line == "func.func @f(%x: tensor<4xf33>)"
    assert caret.index("^") == 26


def test_the_caret_stands_right_after_tabs_and_wide_letters():
    text = '\t// é\n\t"é" hello'
    (found,) = failure(text)
    line, caret = found.excerpt.split("\n")
    assert line[caret.index("^")] == "h"


def test_a_long_line_is_cut_around_the_fault():
    (found,) = failure("func.func @f(" + "%x: tensor<4xf32>, " * 500 + "!) {}")
    assert len(found.excerpt) < 250


def test_the_list_of_dialects_is_not_shown():
    (found,) = failure("func.func @f() { tosa.const }")
    assert "Dialect `tosa' not found" in found.message
    assert "affine" not in str(found)


def test_bytes_that_are_no_text_are_said_with_line_and_offset():
    (found,) = failure(b"func.func\n\xff")
    assert (found.code, found.place) == ("SP102", Place("m.mlir", 2))
    assert "byte 10" in found.message


def test_text_in_bytes_is_text():
    assert str(parse_module(MODULE.encode())) == str(parse_module(MODULE))


def test_bytecode_is_read_with_its_locations():
    data = io.BytesIO()
    parse_module(MODULE, "first.mlir").operation.write_bytecode(data)
    again = parse_module(data.getvalue(), "second.mlirbc")
    assert place_of(operations(again)[0].location) == Place("first.mlir", 2, 8)


def test_cut_bytecode_is_a_complaint_without_a_line():
    (found,) = failure(b"ML\xefR")
    assert found.place == Place("m.mlir", 0, 0)


def test_a_copy_is_equal_and_apart():
    module = parse_module("module @m attributes {u.x = 1 : i32} {\n" + MODULE + "}", "m.mlir")
    copied = copy_module(module)
    assert copied.operation.get_asm(enable_debug_info=True) == module.operation.get_asm(enable_debug_info=True)
    with module.context:
        copied.operation.attributes["u.y"] = ir.UnitAttr.get()
    assert "u.y" not in module.operation.attributes


def test_validity():
    module = parse_module(MODULE)
    assert is_valid(module)
    with module.context:
        module.body.operations[0].attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse("() -> ()"))
    assert not is_valid(module)


def test_a_list_too_long_for_the_parser_is_told_at_the_file() -> None:
    with pytest.raises(ShardpassError) as raised:
        parse_module(TOO_LONG, "rng.mlir")
    (found,) = raised.value.diagnostics
    assert (found.code, found.place) == ("SP125", Place("rng.mlir"))
    assert found.message == "MLIR's parser ran out of memory"
