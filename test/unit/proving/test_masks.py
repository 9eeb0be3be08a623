"""A gather that is masked where its index lies outside of the operand, and one whose mask says more than that."""

import pytest

from shardpass.proving import prove

BOUNDARY = ' {{mhlo.sharding = "{{manual}}", shardpass.global_type = {t}, shardpass.sharding = "{{replicated}}"}}'
TABLE, PLACES, ROWS = "tensor<4x2xf32>", "tensor<3xi32>", "tensor<3x2xf32>"


def program(mask, boundary=""):
    """``%d`` says that the index %i lies in the table; ``%j`` has nothing to do with it."""
    t, i, r = (kind + boundary.format(t=kind) for kind in (TABLE, PLACES, ROWS))
    return f"""module attributes {{mhlo.num_partitions = 1 : i32}} {{
  func.func @main(%t: {t}, %i: {i}, %j: {i}) -> ({r}) {{
    %lo = stablehlo.constant dense<0> : {PLACES}
    %hi = stablehlo.constant dense<4> : {PLACES}
    %most = stablehlo.constant dense<3> : {PLACES}
    %a = stablehlo.compare GE, %i, %lo, SIGNED : ({PLACES}, {PLACES}) -> tensor<3xi1>
    %b = stablehlo.compare LT, %i, %hi, SIGNED : ({PLACES}, {PLACES}) -> tensor<3xi1>
    %c = stablehlo.compare GE, %j, %lo, SIGNED : ({PLACES}, {PLACES}) -> tensor<3xi1>
    %n = stablehlo.compare GE, %i, %most, SIGNED : ({PLACES}, {PLACES}) -> tensor<3xi1>
    %d = stablehlo.and %a, %b : tensor<3xi1>
    %x = stablehlo.compare LT, %i, %lo, SIGNED : ({PLACES}, {PLACES}) -> tensor<3xi1>
    %y = stablehlo.compare GT, %i, %most, SIGNED : ({PLACES}, {PLACES}) -> tensor<3xi1>
    %o = stablehlo.or %x, %y : tensor<3xi1>
    %z = stablehlo.constant dense<0.0> : {ROWS}
    %g = "stablehlo.gather"(%t, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}}>
      : ({TABLE}, {PLACES}) -> {ROWS}
    {mask}
    return %r : {ROWS}
  }}
}}"""


def chosen(condition, first="%g", second="%z"):
    return f"""%e = stablehlo.and {condition}, {condition} : tensor<3xi1>
    %m = stablehlo.broadcast_in_dim %e, dims = [0] : (tensor<3xi1>) -> tensor<3x2xi1>
    %r = stablehlo.select %m, {first}, {second} : tensor<3x2xi1>, {ROWS}"""


WHOLE = program(chosen("%d"))


def test_both_forms_of_the_mask_are_one():
    assert prove(WHOLE, program(chosen("%d"), BOUNDARY), refute=False).proved
    assert prove(WHOLE, program(chosen("%o", "%z", "%g").replace("and", "or"), BOUNDARY), refute=False).proved


@pytest.mark.parametrize(
    "mask",
    [
        chosen("%d").replace("%d, %d", "%d, %c"),  # another integer decides too
        chosen("%d").replace("%d, %d", "%d, %n"),  # the index is bounded again, more narrowly
        chosen("%a"),  # one bound is missing
        chosen("%o", "%g", "%z").replace("and", "or"),  # the other way round
        chosen("%o", "%z", "%g").replace("%o, %o", "%o, %c").replace("and", "or"),
    ],
)
def test_a_mask_that_says_something_else_is_not_proved(mask):
    assert not prove(WHOLE, program(mask, BOUNDARY)).proved
