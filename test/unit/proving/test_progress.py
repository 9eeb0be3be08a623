"""Devices that meet other collectives, or run forever, are not proved, though each result is that of the whole program.

Each program returns x, so its results are right where it ends; NumPy has no say in whether it does. That the devices
wait follows by hand: device 1 alone reaches the collective of both.
"""

import pytest

from test.unit.proving.pairs import all_reduce, side, verdict

VECTOR = side("tensor<4xf32>")
NUMBER = side("tensor<i32>")
TRUTH = side("tensor<i1>")
SENT = all_reduce("sum", "x0")
IS_ONE = """%one = stablehlo.constant dense<1> : tensor<ui32>
    %id = stablehlo.partition_id : tensor<ui32>
    %is = stablehlo.compare EQ, %id, %one : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %place = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>"""
F = f"""  func.func private @f(%x0: tensor<4xf32>) -> tensor<4xf32> {{
    {SENT}
    return %sum : tensor<4xf32>
  }}
  func.func private @g(%x0: tensor<4xf32>) -> tensor<4xf32> {{
    %r = func.call @f(%x0) : (tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }}"""
CALL_F, CALL_G = (f"%sum = func.call @{n}(%x0) : (tensor<4xf32>) -> tensor<4xf32>" for n in "fg")
WHOLE = "    return %x0 : tensor<4xf32>"


def choice(which, first, second, kind="stablehlo.if", word="i1"):
    return f"""%r = "{kind}"({which}) ({{
      {first}
      stablehlo.return %sum : tensor<4xf32>
    }}, {{
      {second}
      stablehlo.return %sum : tensor<4xf32>
    }}) : (tensor<{word}>) -> tensor<4xf32>"""


SAME = "%sum = stablehlo.add %x0, %x0 : tensor<4xf32>"
LOOP = """%zero = stablehlo.constant dense<0> : tensor<i32>
    %step = stablehlo.constant dense<1> : tensor<i32>
    %trips = TRIPS
    %r:2 = stablehlo.while(%i = %zero, %c = %x0) : tensor<i32>, tensor<4xf32>
     cond {
      %again = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    } do {
      %next = stablehlo.add %i, %step : tensor<i32>
      BODY
      stablehlo.return %next, %sum : tensor<i32>, tensor<4xf32>
    }"""
BY_DEVICE = "stablehlo.add %place, %step : tensor<i32>"
SENT_C = all_reduce("sum", "c")
NESTED = choice("%is", choice("%is", SENT, SAME).replace("%r =", "%sum ="), SAME)

WRONG = {
    "a branch of one device": choice("%is", SENT, SAME),
    "a call in a branch": choice("%is", CALL_F, SAME),
    "a call of a call in a branch": choice("%is", CALL_G, SAME),
    "the other branch": choice("%is", SAME, CALL_F),
    "other collectives in the branches": choice("%is", SENT, all_reduce("sum", "x0", channel=2)),
    "a case": choice("%place", SENT, SAME, "stablehlo.case", "i32"),
    "a call in a case": choice("%place", SAME, CALL_G, "stablehlo.case", "i32"),
    "a branch in a branch": NESTED,
    "a loop of other trips": LOOP.replace("TRIPS", BY_DEVICE).replace("BODY", SENT_C),
    "a loop of other trips with a call": LOOP.replace("TRIPS", BY_DEVICE).replace("BODY", CALL_F),
    "a loop in a branch": choice("%is", LOOP.replace("TRIPS", "stablehlo.constant dense<3> : tensor<i32>").replace("BODY", SENT_C) + "\n%sum = stablehlo.add %x0, %x0 : tensor<4xf32>", SAME).replace("%r:2", "%q:2"),  # noqa: E501
    "a loop without end": LOOP.replace("TRIPS", "stablehlo.constant dense<3> : tensor<i32>").replace("BODY", SAME).replace("%i, %step", "%i, %zero"),  # noqa: E501
    "a loop whose trips nobody knows": LOOP.replace("TRIPS", "stablehlo.add %x1, %x1 : tensor<i32>").replace("BODY", SAME),  # noqa: E501
    "a branch that follows from a tile": choice("%which", SENT, SAME),
    "a branch in a loop": LOOP.replace("TRIPS", "stablehlo.constant dense<3> : tensor<i32>").replace("BODY", choice("%is", SENT_C, SAME).replace("%r =", "%sum =")),  # noqa: E501
    "groups that leave a device out": all_reduce("sum", "x0", groups="[[0]]"),
}  # fmt: skip
TILE = """%zeros = stablehlo.constant dense<0.0> : tensor<1xf32>
    %truth = stablehlo.compare LT, %x2, %zeros : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %which = stablehlo.reshape %truth : (tensor<1xi1>) -> tensor<i1>"""
SIDES = [VECTOR, NUMBER, side("tensor<2xf32>", "tensor<1xf32>", "{devices=[2]<=[2]}"), TRUTH]


def proved(body, whole=WHOLE):
    local = f"    {IS_ONE}\n    {TILE}\n    {body}\n    return %x0 : tensor<4xf32>"
    return verdict(whole, local, SIDES, [VECTOR], F)


@pytest.mark.parametrize("fault", WRONG)
def test_devices_that_do_not_meet_are_not_proved(fault):
    verdict = proved(WRONG[fault])
    assert not verdict.proved
    assert verdict.unknown.result is None
    assert "(progress, effects or promises)" in str(verdict)


WAITS = [
    ("a branch of one device", 1),
    ("a call of a call in a branch", 1),
    ("a case", 0),
    ("a loop of other trips", 1),
]


@pytest.mark.parametrize(("fault", "device"), WAITS)
def test_a_run_says_who_waits_for_whom(fault, device):
    local = f"    {IS_ONE}\n    {TILE}\n    {WRONG[fault]}\n    return %x0 : tensor<4xf32>"
    found = verdict(WHOLE, local, SIDES, [VECTOR], F, refute=True)
    assert f"device {device} waits at stablehlo.all_reduce for device {1 - device}" in found.refuted.why
    assert f"device {device} waits" in found.json()["waits"]["why"]


RIGHT = {
    "both devices": SENT,
    "a call": CALL_G,
    "a branch that all take": choice("%x3", SENT, SAME),
    "a call in a branch that all take": choice("%x3", CALL_G, SAME),
    "a branch of one device without collectives": choice("%is", SAME, SAME.replace("add", "multiply")),
    "a loop of known length": LOOP.replace("TRIPS", "stablehlo.constant dense<3> : tensor<i32>").replace(
        "BODY", SENT_C
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_devices_that_meet_are_proved(case):
    found = proved(RIGHT[case])
    assert found.proved, str(found)


LOOPED = LOOP.replace("TRIPS", "stablehlo.add %x1, %step : tensor<i32>").replace(
    "BODY", "%sum = stablehlo.add %c, %c : tensor<4xf32>"
)
IN_BRANCH = f"""    %w = "stablehlo.if"(%x3) ({{
      {LOOPED}
      stablehlo.return %r#1 : tensor<4xf32>
    }}, {{
      stablehlo.return %x0 : tensor<4xf32>
    }}) : (tensor<i1>) -> tensor<4xf32>
    return %w : tensor<4xf32>"""
ALWAYS = f"""    {LOOPED}
    %w = "stablehlo.if"(%x3) ({{
      stablehlo.return %r#1 : tensor<4xf32>
    }}, {{
      stablehlo.return %x0 : tensor<4xf32>
    }}) : (tensor<i1>) -> tensor<4xf32>
    return %w : tensor<4xf32>"""


def test_a_loop_moved_out_of_its_branch_is_not_proved():
    """Where x3 is false the whole program runs no loop, and the other one may run for ever."""
    assert verdict(IN_BRANCH, IN_BRANCH, SIDES, [VECTOR]).proved
    assert not verdict(IN_BRANCH, ALWAYS, SIDES, [VECTOR]).proved
