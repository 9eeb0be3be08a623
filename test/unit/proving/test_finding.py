"""Where a proof ends: at the op that the walk over elements does not know, where that went further than the boxes."""

import pytest

from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.proving.refuting import counterexample
from test.unit.proving.pairs import side, verdict

BOUNDARY = '{{mhlo.sharding = "{{manual}}", shardpass.global_type = {type}, shardpass.sharding = "{sharding}"}}'
NORM = """    %n = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s)
      {{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}}
      : ({t}, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> {t}"""
NOISE = """    %noise = stablehlo.custom_call @a_call_of_no_rule(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>"""


def local(*body):
    rows = BOUNDARY.format(type="tensor<4x3xf32>", sharding="{devices=[2,1]<=[2]}")
    scale = BOUNDARY.format(type="tensor<3xf32>", sharding="{replicated}")
    lines = "\n".join([NORM.format(t="tensor<2x3xf32>"), *body])
    return f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%x: tensor<2x3xf32> {rows}, %s: tensor<3xf32> {scale}) -> (tensor<2x3xf32> {rows}) {{
{lines}
    return %r : tensor<2x3xf32>
  }}
}}"""


WHOLE = f"""module {{
  func.func @main(%x: tensor<4x3xf32>, %s: tensor<3xf32>) -> tensor<4x3xf32> {{
{NORM.format(t="tensor<4x3xf32>")}
    %r = stablehlo.tanh %n : tensor<4x3xf32>
    return %r : tensor<4x3xf32>
  }}
}}"""


def test_a_batch_norm_of_rows_is_proved():
    assert prove(WHOLE, local("    %r = stablehlo.tanh %n : tensor<2x3xf32>"), refute=False).proved


@pytest.mark.parametrize("after", [True, False])
def test_the_op_at_which_the_elements_are_lost_is_named(after):
    """The noise that is added after the batch norm, or before, is the end."""
    lines = ["    %t = stablehlo.tanh %n : tensor<2x3xf32>", NOISE]
    found = prove(
        WHOLE,
        local(*(lines if after else lines[::-1]), "    %r = stablehlo.add %t, %noise : tensor<2x3xf32>"),
        refute=False,
    )
    assert found.unknown.op == "stablehlo.custom_call"
    assert not found.unknown.why.startswith("in the whole program")


def test_a_scatter_changes_no_other_reader_of_its_operand():
    """The interpreter writes into the operand of a scatter; z is read again in the one program, y in the other."""
    manual = '{mhlo.sharding = "{manual}", shardpass.global_type = KIND, shardpass.sharding = "{replicated}"}'
    body = """    %z = stablehlo.constant dense<0.0> : tensor<4xf32>
    %y = stablehlo.constant dense<0.0> : tensor<4xf32>
    %u = stablehlo.constant dense<7.0> : tensor<1xf32>
    %r = "stablehlo.scatter"(%z, %i, %u) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>} : (tensor<4xf32>, tensor<1x1xi32>, tensor<1xf32>) -> tensor<4xf32>
    %q = stablehlo.add %r, %READ : tensor<4xf32>
    return %q : tensor<4xf32>
  }
}"""
    index, result = ("tensor<1x1xi32>", "tensor<4xf32>")
    whole = f"module {{\n  func.func @main(%i: {index}) -> {result} {{\n{body.replace('READ', 'z')}"
    sides = [f"{kind} {manual.replace('KIND', kind)}" for kind in (index, result)]
    local = f"""module attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%i: {sides[0]}) -> ({sides[1]}) {{
{body}"""
    assert counterexample(parse_module(whole), parse_module(local.replace("READ", "y"))).startswith("run with 4 inputs")
    assert counterexample(parse_module(whole), parse_module(local.replace("READ", "r"))).result == 0


SIDE = side("tensor<8xf32>", "tensor<4xf32>", "{devices=[2]<=[2]}")
BITS = side("tensor<8xi1>", "tensor<4xi1>", "{devices=[2]<=[2]}")


def powered(by):
    return f"""%c = stablehlo.constant dense<{by}> : tensor<SIZExf32>
    %r = stablehlo.power %x0, %c : tensor<SIZExf32>"""


ALIKE = {  # (whole, local, type of the result, what is said)
    "an attribute": (
        "%r = stablehlo.compare LT, %x0, %x1 : (tensor<SIZExf32>, tensor<SIZExf32>) -> tensor<SIZExi1>",
        "%r = stablehlo.compare LE, %x0, %x1 : (tensor<SIZExf32>, tensor<SIZExf32>) -> tensor<SIZExi1>",
        BITS,
        "it holds a value of compare, with LE, not LT",
    ),
    "an operand": (
        "%r = stablehlo.power %x0, %x1 : tensor<SIZExf32>",
        "%r = stablehlo.power %x1, %x0 : tensor<SIZExf32>",
        SIDE,
        "it holds a value of power, of argument 1, not argument 0",
    ),
    "a constant": (
        powered(2.0),
        powered(3.0),
        SIDE,
        "it holds a value of power, of the constant 3.0, not the constant 2.0",
    ),
    "where elements lie": (
        "%r = stablehlo.negate %x0 : tensor<SIZExf32>",
        """%v = stablehlo.reverse %x0, dims = [0] : tensor<SIZExf32>
    %r = stablehlo.negate %v : tensor<SIZExf32>""",
        SIDE,
        "it holds a value of negate, from index [3], not [0]",
    ),
}


@pytest.mark.parametrize(("whole", "local", "result", "said"), ALIKE.values(), ids=ALIKE)
def test_a_message_says_how_two_values_of_one_op_differ(whole, local, result, said):
    def body(text, size, kind):
        return f"    {text.replace('SIZE', str(size))}\n    return %r : {kind}"

    found = verdict(body(whole, 8, result[0]), body(local, 4, result[1]), [SIDE, SIDE], [result])
    assert said in found.unknown.why
