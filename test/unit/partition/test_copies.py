"""What is at hand under several shardings: redistributions start from the nearest copy. Results as on one device."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check_text

SPLIT, WHOLE = "{devices=[4]<=[4]}", "{replicated}"
X = np.random.default_rng(5).standard_normal(10).astype(np.float32)

# the body is put where %x (whole) and %s (its constraint, split) are there
PROGRAM = """
module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<10xf32> {{mhlo.sharding = "{argument}"}})
      -> (tensor<10xf32> {{mhlo.sharding = "{result}"}}) {{
    %s = stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = "{constraint}"}} : (tensor<10xf32>) -> tensor<10xf32>
    {body}
  }}
}}
"""

SORT = """
    %0 = "stablehlo.sort"(%s) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<10xf32>) -> tensor<10xf32>
    return %0 : tensor<10xf32>
"""


def test_what_was_cut_from_a_whole_array_is_not_gathered_again_where_constraints_are_free() -> None:
    """The operand of the sort is whole before its constraint, its result is before it is cut."""
    text = PROGRAM.format(argument=WHOLE, constraint=SPLIT, result=WHOLE, body=SORT)
    assert check_text(text, [X], pipeline="partition{constraints=free}").kinds == []


def test_a_user_of_a_constraint_starts_from_its_copy() -> None:
    """The sort takes %s whole, and %s is there in tiles alone; its result is whole before it is cut and is annotated.

    A device has 3 of 10 elements, padded to 12, and receives the others once for each of the two.
    """
    text = PROGRAM.format(argument=WHOLE, constraint=SPLIT, result=WHOLE, body=SORT)
    assert check_text(text, [X]).kinds == ["all_gather", "all_gather"]


def test_the_users_constraint_is_gathered_once() -> None:
    """Two constraints of one array: the second is made from the first, and the result from the argument."""
    again = """
    %t = stablehlo.custom_call @Sharding(%s) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<10xf32>) -> tensor<10xf32>
    %0 = stablehlo.negate %s {mhlo.sharding = "{replicated}"} : tensor<10xf32>
    %1 = stablehlo.add %t, %0 {mhlo.sharding = "{devices=[4]<=[4]}"} : tensor<10xf32>
    return %1 : tensor<10xf32>
"""
    seen = check_text(PROGRAM.format(argument=SPLIT, constraint=WHOLE, result=SPLIT, body=again), [X])
    assert seen.kinds == ["all_gather"]


LOOP = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%k = %zero, %v = %x) : tensor<i32>, tensor<10xf32> attributes {{
        mhlo.sharding = "{{{{replicated}}, {{devices=[4]<=[4]}}}}"}}
    cond {{
      %three = stablehlo.constant dense<3> : tensor<i32>
      %c = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %r = stablehlo.reverse %{taken}, dims = [0] {{mhlo.sharding = "{inside}"}} : tensor<10xf32>
      %n = stablehlo.add %v, %r {{mhlo.sharding = "{{devices=[4]<=[4]}}"}} : tensor<10xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %l = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %l, %n : tensor<i32>, tensor<10xf32>
    }}
    %1 = stablehlo.reverse %x, dims = [0] {{mhlo.sharding = "{after}"}} : tensor<10xf32>
    %2 = stablehlo.subtract %0#1, %1 {{mhlo.sharding = "{{replicated}}"}} : tensor<10xf32>
    return %2 : tensor<10xf32>
"""


@pytest.mark.parametrize("argument", [SPLIT, WHOLE])
@pytest.mark.parametrize("inside", [SPLIT, WHOLE])
@pytest.mark.parametrize("after", [SPLIT, WHOLE])
@pytest.mark.parametrize("taken", ["x", "s", "v"])
def test_a_loops_copies_are_its_own(argument: str, inside: str, after: str, taken: str) -> None:
    """A copy from before the loop may serve in it; one that was made in it is not there after it."""
    body = LOOP.format(inside=inside, after=after, taken=taken)
    check_text(PROGRAM.format(argument=argument, constraint=SPLIT, result=WHOLE, body=body), [X])
