"""All-reduces whose results are only sliced, in HLO written by hand: 4 devices, an f32[8] of 32 bytes.

An all-reduce receives 2 * 32 * 3/4 = 48 bytes, the reduce-scatter that it may become 24.
"""

import pytest

from tools.bench.hlo_slices import read_op
from tools.bench.hlo_traffic import traffic

REDUCED = "%a = f32[8]{0} all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%add"
DEVICE = "%id = u32[] partition-id()"
START = "%start = u32[] multiply(%id, %two)"
SLICE = "%s = f32[2]{0} dynamic-slice(%a, %start), dynamic_slice_sizes={2}"
FUSED = """
%fused (q: f32[8], i: u32[]) -> f32[2] {
  %q = f32[8]{0} parameter(0)
  %i = u32[] parameter(1)
  %start = u32[] multiply(%i, %i)
  %same = f32[8]{0} bitcast(%q)
  ROOT %s = f32[2]{0} dynamic-slice(%same, %start), dynamic_slice_sizes={2}
}
"""


def received(*lines, more=""):
    text = f"HloModule m\n{more}\nENTRY %main (p: f32[8]) -> f32[2] {{\n" + "".join(f"  {x}\n" for x in lines) + "}\n"
    counted, plain = traffic(text, 4, scattered=True), traffic(text, 4)
    assert plain.by_kind[0][0] == "all-reduce"
    return plain.bytes, counted.bytes


@pytest.mark.parametrize(
    "lines",
    [
        (REDUCED, DEVICE, START, SLICE),
        (REDUCED, DEVICE, START, SLICE, SLICE.replace("%s ", "%t ")),
        (REDUCED, DEVICE, "%c = bf16[8]{0} convert(%a)", START, SLICE.replace("%a,", "%c,")),
        (REDUCED, DEVICE, START, SLICE.replace("f32[2]", "f32[1]")),
    ],
    ids=["slice", "two slices", "converted first", "smaller slice"],
)
def test_an_all_reduce_that_is_only_sliced_counts_half(lines):
    assert received(*lines) == (48, 24)


@pytest.mark.parametrize(
    "lines",
    [
        (REDUCED, DEVICE, START),
        (REDUCED, DEVICE, START, SLICE, "%b = f32[8]{0} negate(%a)"),
        (REDUCED, DEVICE, START, SLICE.replace("f32[2]", "f32[4]")),
        (REDUCED, "%start = u32[] get-tuple-element(%carried), index=0", SLICE),
        (REDUCED.replace("%a", "ROOT %a", 1), DEVICE, START, SLICE),
    ],
    ids=["not used", "used whole too", "half of it", "start of every device alike", "returned"],
)
def test_every_other_all_reduce_counts_whole(lines):
    assert received(*lines) == (48, 48)


def test_a_slice_in_a_fusion():
    fusion = "ROOT %f = f32[2]{0} fusion(%a, %id), kind=kLoop, calls=%fused"
    assert received(REDUCED, DEVICE, fusion, more=FUSED) == (48, 24)
    same_everywhere = fusion.replace("%id", "%zero")
    assert received(REDUCED, "%zero = u32[] constant(0)", same_everywhere, more=FUSED) == (48, 48)


def test_elements_of_a_combined_all_reduce_count_one_by_one():
    combined = "%r = (f32[8]{0}, f32[]) all-reduce(%p, %q), replica_groups={{0,1,2,3}}, to_apply=%add"
    lines = (combined, "%a = f32[8]{0} get-tuple-element(%r), index=0", DEVICE, START, SLICE)
    assert received(*lines, "%b = f32[] get-tuple-element(%r), index=1", "%n = f32[] negate(%b)") == (48 + 6, 24 + 6)


LOOP = """
%body (c: (s32[], u32[], f32[8])) -> (s32[], u32[], f32[8]) {
  %c = (s32[], u32[], f32[8]{0}) parameter(0)
  %step = s32[] get-tuple-element(%c), index=0
  %offset = u32[] get-tuple-element(%c), index=1
  %x = f32[8]{0} get-tuple-element(%c), index=2
  %next = s32[] add(%step, %step)
  %a = f32[8]{0} all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%add
  %s = f32[2]{0} dynamic-slice(%a, %START), dynamic_slice_sizes={2}
  ROOT %again = (s32[], u32[], f32[8]{0}) tuple(%next, %offset, %x)
}
"""


@pytest.mark.parametrize(("start", "counted"), [("offset", 72), ("step", 144)])
def test_in_a_loop_by_an_offset_from_before_it_and_not_by_its_step(start, counted):
    known = 'backend_config={"known_trip_count":{"n":"3"}}'
    lines = (
        DEVICE,
        "%zero = s32[] constant(0)",
        "%t = (s32[], u32[], f32[8]{0}) tuple(%zero, %id, %p)",
        f"%w = (s32[], u32[], f32[8]{{0}}) while(%t), condition=%c, body=%body, {known}",
    )
    assert received(*lines, more=LOOP.replace("START", start)) == (3 * 48, counted)


def test_operands_and_what_follows_them():
    op = read_op('  ROOT %x.1 = (f32[2]{0}, s32[]) while(%a, (%b)), body=%c, backend_config={"n":"(1)"}')
    assert op is not None
    assert (op.name, op.op, op.operands, op.is_root) == ("x.1", "while", ("a", "b"), True)
    assert op.rest.startswith(", body=%c")
    assert read_op("}") is None
