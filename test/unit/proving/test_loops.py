"""Loops that carry their values in another order than the whole program's, fewer of them, or more.

In each program x is added to, y is multiplied, and z is what both are computed with: x + z, y * z for n trips, so no
walk over the trips proves them.
"""

import pytest
from support.pairs import Pair, Side, constant, reduced, summed

from shardpass.proving import prove

MANUAL = 'tensor<2xf32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<4xf32>, shardpass.sharding = "{devices=[2]<=[2]}"}'  # noqa: E501
TRIPS = (
    'tensor<i32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<i32>, shardpass.sharding = "{replicated}"}'
)
COUNT = """    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
"""
WHOLE = f"""module {{
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>, %n: tensor<i32>)
      -> (tensor<4xf32>, tensor<4xf32>) {{
{COUNT}    %r:5 = stablehlo.while(%k = %z, %i = %zero, %a = %x, %d = %y, %b = %y)
        : tensor<4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
     cond {{
      %again = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    }} do {{
      %next = stablehlo.add %i, %one : tensor<i32>
      %sum = stablehlo.add %a, %k : tensor<4xf32>
      %dead = stablehlo.subtract %d, %k : tensor<4xf32>
      %product = stablehlo.multiply %b, %k : tensor<4xf32>
      stablehlo.return %k, %next, %sum, %dead, %product
        : tensor<4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }}
    return %r#2, %r#4 : tensor<4xf32>, tensor<4xf32>
  }}
}}"""
BODY = (
    COUNT
    + """    %r:4 = stablehlo.while(%i = %zero, %a = %x, %b = %y, %k = %z)
        : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
     cond {
      %again = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      %sum = stablehlo.add %a, %k : tensor<2xf32>
      %product = stablehlo.multiply %b, %k : tensor<2xf32>
      stablehlo.return %next, %sum, %product, %k : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
    return %r#1, %r#2 : tensor<2xf32>, tensor<2xf32>"""
)
FAULTS = {
    "results exchanged": ("return %r#1, %r#2 :", "return %r#2, %r#1 :"),
    "entries exchanged": ("%a = %x, %b = %y", "%a = %y, %b = %x"),
    "another entry of what is returned as given": ("%k = %z", "%k = %x"),
    "what a trip should return as given is changed": ("%product, %k :", "%product, %sum :"),
    "a trip of another op": ("stablehlo.add %a, %k", "stablehlo.multiply %a, %k"),
    "trips with the other value": ("stablehlo.add %a, %k", "stablehlo.add %b, %k"),
    "one trip less": ("%zero = stablehlo.constant dense<0>", "%zero = stablehlo.constant dense<1>"),
    "the values exchanged after each trip": ("%next, %sum, %product,", "%next, %product, %sum,"),
    "one value for both": ("%next, %sum, %product,", "%next, %sum, %sum,"),
}


def local(body):
    arguments = ", ".join([*(f"%{name}: {MANUAL}" for name in "xyz"), f"%n: {TRIPS}"])
    return f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main({arguments}) -> ({MANUAL}, {MANUAL}) {{
{body}
  }}
}}"""


def test_fewer_values_in_another_order():
    verdict = prove(WHOLE, local(BODY), refute=False)
    assert verdict.proved, str(verdict)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_loop_is_not_proved(fault):
    old, new = FAULTS[fault]
    assert BODY.count(old) == 1
    assert not prove(WHOLE, local(BODY.replace(old, new)), refute=False).proved


def test_another_count_decides():
    """Two counts begin as one; the trips are those of the second, which steps by two."""
    two = BODY.replace("%r:4 = stablehlo.while(%i = %zero,", "%r:5 = stablehlo.while(%i = %zero, %j = %zero,")
    two = two.replace(": tensor<i32>, tensor<2xf32>", ": tensor<i32>, tensor<i32>, tensor<2xf32>")
    two = two.replace("%next = ", "%more = stablehlo.add %j, %two : tensor<i32>\n      %next = ")
    two = two.replace("return %next,", "return %next, %more,").replace("r#2", "r#3").replace("r#1", "r#2")
    two = "    %two = stablehlo.constant dense<2> : tensor<i32>\n" + two
    faulty = two.replace("LT, %i", "LT, %j")
    assert faulty != two
    assert not prove(WHOLE, local(faulty), refute=False).proved


SPLIT = "{devices=[2]<=[2]}"


def loop_over(kind):
    """Squares %y of type ``kind`` %n times."""
    return f"""{COUNT}    %q:2 = stablehlo.while(%i = %zero, %a = %y) : tensor<i32>, tensor<{kind}>
     cond {{
      %again = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    }} do {{
      %next = stablehlo.add %i, %one : tensor<i32>
      %p = stablehlo.multiply %a, %a : tensor<{kind}>
      stablehlo.return %next, %p : tensor<i32>, tensor<{kind}>
    }}
    %r = stablehlo.optimization_barrier %q#1 : tensor<{kind}>"""


def most(name, rows):
    return reduced(name, "x", f"{rows}xi32", "i32", "0", "maximum")


@pytest.mark.parametrize(
    ("local", "proved"),
    [
        ([most("m", 4), summed("n", "m", "i32", "maximum")], True),  # 0 is joined once for each device
        ([most("n", 4)], False),  # each device its own trips
        ([most("m", 4), summed("n", "m", "i32", "minimum")], False),
        ([most("m", 4), constant("c", "7", "i32"), "  %k = stablehlo.minimum %m, %c : tensor<i32>",
          summed("n", "k", "i32", "maximum")], False),
    ],
)  # fmt: skip
def test_trips_that_a_maximum_over_devices_counts(local, proved):
    arguments = [Side("4xi32", "8xi32", SPLIT), Side("2xf32", "4xf32", SPLIT)]
    whole = "\n".join((most("n", 8), loop_over("4xf32")))
    pair = Pair(arguments, Side("2xf32", "4xf32", SPLIT), whole, "\n".join((*local, loop_over("2xf32"))))
    assert prove(pair.whole, pair.local, refute=False).proved is proved
