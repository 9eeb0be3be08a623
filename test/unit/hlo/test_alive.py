"""The arrays that are alive where the temporaries of a scheduled program need most; figures are sums of shapes."""

import pytest

from shardpass.hlo.alive import alive_at_peak
from shardpass.hlo.read import read_program

EXAMPLE = """HloModule m, is_scheduled=true

ENTRY %main (p: f32[1024]) -> f32[1024] {
  %p = f32[1024]{0} parameter(0)
  %a = f32[1024]{0} exponential(%p)
  %b = f32[2048]{0} concatenate(%a, %a), dimensions={0}
  %c = f32[1024]{0} slice(%b), slice={[0:1024]}
  ROOT %r = f32[1024]{0} add(%c, %a)
}
"""
# the body makes 3 times its carried value, at once; a tuple and its elements are names
LOOP = """HloModule m, is_scheduled=true

%wide (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  ROOT %n = f32[256]{0} negate(%x)
}

%body (s: (s32[], f32[256])) -> (s32[], f32[256]) {
  %s = (s32[], f32[256]{0}) parameter(0)
  %k = s32[] get-tuple-element(%s), index=0
  %v = f32[256]{0} get-tuple-element(%s), index=1
  %w = f32[768]{0} concatenate(%v, %v, %v), dimensions={0}
  %u = f32[256]{0} slice(%w), slice={[0:256]}
  ROOT %t = (s32[], f32[256]{0}) tuple(%k, %u)
}

%cond (s: (s32[], f32[256])) -> pred[] {
  %s.1 = (s32[], f32[256]{0}) parameter(0)
  ROOT %less = pred[] constant(true)
}

ENTRY %main (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  %zero = s32[] constant(0)
  %first = f32[256]{0} fusion(%p), kind=kLoop, calls=%wide
  %fast = f32[512]{0:S(1)} concatenate(%first, %first), dimensions={0}
  %state = (s32[], f32[256]{0}) tuple(%zero, %first)
  %loop = (s32[], f32[256]{0}) while(%state), condition=%cond, body=%body
  %last = f32[256]{0} get-tuple-element(%loop), index=1
  ROOT %r = f32[256]{0} negate(%last)
}
"""
UPDATE = """HloModule m, is_scheduled=true

%put (q: f32[64], whole: f32[1024], at: s32[]) -> f32[1024] {
  %whole = f32[1024]{0} parameter(1)
  %q = f32[64]{0} parameter(0)
  %at = s32[] parameter(2)
  ROOT %d = f32[1024]{0} dynamic-update-slice(%whole, %q, %at)
}

ENTRY %main (p: f32[1024], q: f32[64], at: s32[]) -> f32[] {
  %p = f32[1024]{0} parameter(0)
  %q.1 = f32[64]{0} parameter(1)
  %at.1 = s32[] parameter(2)
  %a = f32[1024]{0} negate(%p)
  %b = f32[1024]{0} fusion(%q.1, %a, %at.1), kind=kLoop, calls=%put
  %c = f32[1024]{0} negate(%b)
  ROOT %r = f32[] reduce(%c, %at.1), dimensions={0}, to_apply=%put
}
"""


@pytest.mark.parametrize(
    ("text", "names", "size"),
    [
        (EXAMPLE, ["b", "a", "c"], 4 * (2048 + 1024 + 1024)),
        (LOOP, ["w", "first"], 4 * (768 + 256)),
        (UPDATE, ["a", "c"], 4 * 2048),
    ],
    ids=["example", "loop", "update in place"],
)
def test_the_arrays_at_the_peak(text, names, size):
    alive = alive_at_peak(read_program(text))
    assert [one.op.name for one in alive] == names
    assert sum(one.shape.bytes for one in alive) == size
