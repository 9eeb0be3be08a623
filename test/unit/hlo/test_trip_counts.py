"""Loops of HLO: counted by XLA, or by an induction variable that a condition compares with a constant."""

import pytest

from shardpass.hlo.read import read_program
from shardpass.hlo.trip_counts import trip_count

LOOP = """HloModule m

%add_one (a: s32[]) -> s32[] {{
  %a = s32[] parameter(0)
  %s = s32[] constant({step})
  ROOT %r = s32[] add(%a, %s)
}}

%less (a: s32[], b: s32[]) -> pred[] {{
  %a = s32[] parameter(0)
  %b = s32[] parameter(1)
  ROOT %r = pred[] compare(%a, %b), direction={direction}
}}

%body (t: (s32[], f32[8], s32[])) -> (s32[], f32[8], s32[]) {{
  %t = (s32[], f32[8], s32[]) parameter(0)
  %k = s32[] get-tuple-element(%t), index=0
  %n = s32[] get-tuple-element(%t), index=2
  %x = f32[8] get-tuple-element(%t), index=1
  %next = s32[] fusion(%k), kind=kLoop, calls=%add_one
  ROOT %out = (s32[], f32[8], s32[]) tuple(%next, %x, {held})
}}

%condition (t: (s32[], f32[8], s32[])) -> pred[] {{
  %t = (s32[], f32[8], s32[]) parameter(0)
  %k = s32[] get-tuple-element(%t), index=0
  %n = s32[] get-tuple-element(%t), index=2
  %fixed = s32[] constant(12)
  ROOT %c = pred[] fusion(%k, {bound}), kind=kLoop, calls=%less
}}

ENTRY %main (x: f32[8], free: s32[]) -> f32[8] {{
  %x = f32[8] parameter(0)
  %free = s32[] parameter(1)
  %zero = s32[] constant(2)
  %copied = s32[] copy(%zero)
  %most = s32[] constant(20)
  %init = (s32[], f32[8], s32[]) tuple({start}, %x, %most)
  ROOT %w = (s32[], f32[8], s32[]) while(%init), condition=%condition, body=%body{more}
}}
"""


def trips(step="1", direction="LT", bound="%fixed", held="%n", start="%copied", more=""):
    given = {"step": step, "direction": direction, "bound": bound, "held": held, "start": start, "more": more}
    program = read_program(LOOP.format(**given))
    return trip_count(program, "main", program.computations["main"].ops["w"])


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({}, len(range(2, 12))),
        ({"direction": "LE"}, len(range(2, 13))),
        ({"step": "3"}, len(range(2, 12, 3))),
        ({"bound": "%n"}, len(range(2, 20))),  # handed on unchanged from a constant
        ({"bound": "%n", "held": "%next"}, None),
        ({"start": "%free"}, None),
        ({"step": "-1"}, None),
        ({"direction": "GT"}, None),
        ({"more": ', backend_config={"known_trip_count":{"n":"5"}}'}, 5),
        ({"more": ', backend_config="{\\"known_trip_count\\":{\\"n\\":\\"5\\"}}"'}, 5),
    ],
)
def test_trips(given, count):
    assert trips(**given) == count


def test_ops_in_a_circle_are_no_count():
    text = LOOP.format(step=1, direction="LT", bound="%fixed", held="%n", start="%copied", more="")
    for circle in (
        "s32[] get-tuple-element(%zero), index=0",
        "s32[] copy(%copied)",
        "s32[] fusion(%copied), calls=%add_one",
    ):
        program = read_program(text.replace("s32[] constant(2)", circle))
        assert trip_count(program, "main", program.computations["main"].ops["w"]) is None
