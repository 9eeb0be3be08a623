"""Promises of the program of one device that the whole program does not make are not proved.

Each result is right where the promise is kept, and nothing checks that it is: a gather of sorted indices may be done in
one pass, and a scatter to unique ones in any order.
"""

import pytest

from shardpass.proving import prove
from test.unit.proving.pairs import local_text, side, verdict, whole_text

TABLE = side("tensor<8x4xf32>", "tensor<8x2xf32>", "{devices=[1,2]<=[2]}")
INDICES = side("tensor<6xi32>")
ROWS = side("tensor<6x4xf32>", "tensor<6x2xf32>", "{devices=[1,2]<=[2]}")
SIDES = [TABLE, INDICES, ROWS]
GATHER = """    %r = "stablehlo.gather"(%x0, INDICES) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, WIDTH>,
      indices_are_sorted = SORTED} : (tensor<8xWIDTHxf32>, tensor<6xi32>) -> tensor<6xWIDTHxf32>
    return %r : tensor<6xWIDTHxf32>"""
SCATTER = """    %r = "stablehlo.scatter"(%x0, INDICES, %x2) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = SORTED, unique_indices = UNIQUE}
      : (tensor<8xWIDTHxf32>, tensor<6xi32>, tensor<6xWIDTHxf32>) -> tensor<8xWIDTHxf32>
    return %r : tensor<8xWIDTHxf32>"""


def of(text, width, flags, indices="%x1"):
    for name in ("SORTED", "UNIQUE"):
        text = text.replace(name, "true" if name in flags else "false")
    return text.replace("WIDTH", str(width)).replace("INDICES", indices)


def proved(text, whole, local, more="", indices="%x1", result=None):
    one, other = of(text, 4, whole), more + of(text, 2, local, indices)
    return verdict(one, other, SIDES, [result or (ROWS if text is GATHER else TABLE)])


PROMISES = [
    (GATHER, (), (), True),
    (GATHER, ("SORTED",), ("SORTED",), True),
    (GATHER, ("SORTED",), (), True),
    (GATHER, (), ("SORTED",), False),
    (SCATTER, (), (), True),
    (SCATTER, ("UNIQUE",), ("UNIQUE",), True),
    (SCATTER, ("SORTED", "UNIQUE"), ("UNIQUE",), True),
    (SCATTER, ("SORTED", "UNIQUE"), (), True),
    (SCATTER, (), ("UNIQUE",), False),
    (SCATTER, (), ("SORTED",), False),
    (SCATTER, ("SORTED",), ("UNIQUE",), False),
    (SCATTER, ("UNIQUE",), ("SORTED", "UNIQUE"), False),
]


@pytest.mark.parametrize(("text", "whole", "local", "right"), PROMISES)
def test_promises_of_indices(text, whole, local, right):
    found = proved(text, whole, local)
    assert found.proved is right
    if not right:
        assert "promises" in (found.refuted or found.unknown).why
        assert (found.refuted or found.unknown).result is None


def test_a_promise_is_of_its_indices():
    """Both programs gather twice; the promise of the first gather is not one of the second, which is of 5 - x1."""
    five = "    %five = stablehlo.constant dense<5> : tensor<6xi32>\n    %turned = stablehlo.subtract %five, %x1 : tensor<6xi32>\n"  # noqa: E501
    first = of(GATHER, 4, ("SORTED",)).split("    return")[0]
    second = of(GATHER, 4, (), "%turned").replace("%r", "%q")
    whole = five + first + second
    local = five + of(GATHER, 2, ("SORTED",)).split("    return")[0] + of(GATHER, 2, (), "%turned").replace("%r", "%q")
    assert verdict(whole, local, SIDES, [ROWS]).proved
    both = (
        five
        + of(GATHER, 2, ("SORTED",)).split("    return")[0]
        + of(GATHER, 2, ("SORTED",), "%turned").replace("%r", "%q")
    )
    assert not verdict(whole, both, SIDES, [ROWS]).proved


def test_one_index_promises_nothing():
    one = side("tensor<1xi32>")
    text = GATHER.replace("6x", "1x")
    row = side("tensor<1x4xf32>", "tensor<1x2xf32>", "{devices=[1,2]<=[2]}")
    assert verdict(of(text, 4, ()), of(text, 2, ("SORTED",)), [TABLE, one], [row]).proved


# ---------------------------------------------------------------- custom calls

VALUE = side("tensor<4x4xf32>")
CALL = """    %r = stablehlo.custom_call @ducc_fft(%x0) {MORE} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %r : tensor<4x4xf32>"""
BODY = """  func.func private @f(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.OP %a, %b : tensor<f32>
    return %0 : tensor<f32>
  }"""
ALIAS = "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]"  # noqa: E501


def called(whole, local, ops=("add", "add")):
    one, other = (BODY.replace("OP", op) for op in ops)
    texts = (CALL.replace("MORE", more) for more in (whole, local))
    return verdict(*texts, [VALUE], [VALUE], other, whole_functions=one)


F = "called_computations = [@f]"


@pytest.mark.parametrize(
    ("whole", "local", "ops", "right"),
    [
        (F, F, ("add", "add"), True),
        (F, F, ("add", "multiply"), False),
        (F, "", ("add", "add"), False),
        (F, "called_computations = [@f, @f]", ("add", "add"), False),
        ("", "", ("add", "add"), True),
        ("called_computations = []", "", ("add", "add"), True),
        (ALIAS, ALIAS, ("add", "add"), True),
        (ALIAS, "", ("add", "add"), True),
        ("", ALIAS, ("add", "add"), False),
        ('backend_config = "a"', 'backend_config = "a"', ("add", "add"), True),
        ('backend_config = "a"', 'backend_config = "b"', ("add", "add"), False),
        ("mhlo.backend_config = {n = 1 : i64}", "mhlo.backend_config = {n = 2 : i64}", ("add", "add"), False),
        ("", "has_side_effect = true", ("add", "add"), False),
        ("has_side_effect = true", "", ("add", "add"), False),
    ],
)
def test_custom_calls_are_compared_by_content(whole, local, ops, right):
    assert called(whole, local, ops).proved is right


def test_functions_are_compared_by_what_they_compute_and_not_by_name():
    other = BODY.replace("OP", "add").replace("@f", "@h")
    whole, local = (CALL.replace("MORE", f"called_computations = [@{n}]") for n in "fh")
    assert verdict(whole, local, [VALUE], [VALUE], other, whole_functions=BODY.replace("OP", "add")).proved


DONATED = [
    ("", "tf.aliasing_output = 0 : i32", False),
    ("", "jax.buffer_donor = true", False),
    ("tf.aliasing_output = 0 : i32", "tf.aliasing_output = 1 : i32", False),
    ("tf.aliasing_output = 0 : i32", "tf.aliasing_output = 0 : i32", True),
    ("jax.buffer_donor = true", "tf.aliasing_output = 1 : i32", True),
    ("jax.buffer_donor = true", "jax.buffer_donor = true", True),
    ("jax.buffer_donor = true", "", True),
]


@pytest.mark.parametrize(("whole", "local", "right"), DONATED)
def test_an_argument_is_donated_where_the_whole_program_donates_it(whole, local, right):
    """A caller that keeps its array must not lose it."""

    def body(kind):
        return f"""    %n = stablehlo.negate %x0 : {kind}
    %m = stablehlo.abs %x0 : {kind}
    return %n, %m : {kind}, {kind}"""

    one = whole_text(body(ROWS[0]), [ROWS], [ROWS, ROWS]).replace(ROWS[0], f"{ROWS[0]} {{{whole}}}", 1)
    other = local_text(body(ROWS[1]), [ROWS], [ROWS, ROWS])
    other = other.replace("{mhlo.sharding", f"{{{local}, mhlo.sharding" if local else "{mhlo.sharding", 1)
    found = prove(one, other, refute=False)
    assert found.proved is right
    if not right:
        assert found.refuted is not None
        assert "donates argument 0" in found.refuted.why
        assert found.refuted.about == "progress, effects or promises"
