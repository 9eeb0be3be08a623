"""Names and lines of ops, through calls that shardpass inlines and through ops that it joins."""

import pytest
from jaxlib.mlir import ir

from shardpass.diagnostics import Place
from shardpass.ir.context import make_context, parse_module
from shardpass.ir.locations import Within, first_names, joined, named_below, place_of


@pytest.fixture(autouse=True)
def context():
    with make_context():
        yield


def at(name, *lines):
    """``name`` around a stack of calls in user.py, innermost line first."""
    stack = [ir.Location.name("f", ir.Location.file("user.py", line, 1)) for line in lines]
    inner = (
        ir.Location.unknown()
        if not stack
        else stack[0]
        if len(stack) == 1
        else ir.Location.callsite(stack[0], stack[1:])
    )
    return ir.Location.name(name, inner)


def test_a_call_puts_its_name_and_its_stack_around_those_of_the_op():
    found = Within(at("jit(f)/jit(g)", 7)).location(at("dot_general", 3))
    assert found == at("jit(f)/jit(g)/dot_general", 3, 7)
    assert place_of(found) == Place("user.py", 3, 1)


def test_an_op_of_a_library_gets_the_line_of_the_call():
    found = Within(at("jit(f)/jit(log_softmax)", 7)).location(at("reduce_max"))
    assert found == at("jit(f)/jit(log_softmax)/reduce_max", 7)


@pytest.mark.parametrize(
    ("call", "inner", "expected"),
    [
        (("jit(f)",), None, ("jit(f)",)),
        (None, ("dot", 3), ("dot", 3)),
        (None, None, None),
    ],
    ids=["an op without a location", "a call without one", "both"],
)
def test_what_is_unknown_is_left_out(call, inner, expected):
    one, other, wanted = (ir.Location.unknown() if it is None else at(*it) for it in (call, inner, expected))
    assert Within(one).location(other) == wanted


def test_names_below():
    assert named_below(at("jit(f)/dot_general", 3), "operand_1") == at("jit(f)/dot_general/operand_1", 3)
    assert named_below(ir.Location.unknown(), "operand_1") == ir.Location.unknown()


@pytest.mark.parametrize(
    ("names", "together"),
    [
        (["jit(f)/a", "jit(f)/a"], "jit(f)/a"),
        (["jit(f)/a", "jit(f)/b"], "jit(f)/(a:b)"),
        (["jit(f)/g/a", "jit(f)/g/b/c", "jit(f)/g/a"], "jit(f)/g/(a:b/c)"),
        (["jit(f)", "jit(f)/a"], "(jit(f):jit(f)/a)"),
    ],
)
def test_one_op_for_several_has_a_name_in_the_form_of_xla(names, together):
    assert joined([at(name, k + 1) for k, name in enumerate(names)]) == at(together, 1)


def test_equal_ops_that_cse_has_joined_are_called_by_the_first():
    module = parse_module("module { func.func @main() { return } }")
    with module.context:
        op = module.body.operations[0].operation
        op.location = ir.Location.fused([at("jit(f)/a", 1), at("jit(f)/b", 2)])
        first_names(module.operation)
        assert op.location == at("jit(f)/a", 1)


CALLS = """
module {{
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
    %0 = call @g(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(f)/jit(g)"("user.py":7:1))
    return %0 : tensor<8xf32>
  }}
  func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> {{
    %0 = stablehlo.negate %x : tensor<8xf32> loc("neg")
    return %0 : tensor<8xf32>
  }}{function}
}}
"""


def test_in_a_text_an_op_of_a_library_is_given_no_line_of_the_text():
    """JAX gives the function the line of the user's call; without it the line of the text is the best there is."""
    for function, line in [(' loc("jit:"("user.py":7:1))', None), ("", 8)]:
        module = parse_module(CALLS.format(function=function), "dump.mlir")
        negate = module.body.operations[1].regions[0].blocks[0].operations[0]
        wanted = '"neg"' if line is None else f'"neg"("dump.mlir":{line}:10)'
        assert str(negate.location) == f"loc({wanted})"
