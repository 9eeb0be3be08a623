"""What a device computes and moves through memory, worked out by hand."""

import pytest

from shardpass.cost.machine import find_machine
from shardpass.hlo.read import read_program
from shardpass.hlo.work import work_of

DOT = "dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def totals(body, more=""):
    lines = "\n".join(f"  {line}" for line in body)
    text = f"HloModule m\n\n{more}\nENTRY %main (a: f32[8,32]) -> f32[8,16] {{\n{lines}\n}}\n"
    found = work_of(read_program(text))
    return sum(one.times * one.work.flops for one in found), sum(one.times * one.work.bytes for one in found)


OPERANDS = ["%a = f32[8,32] parameter(0)", "%b = f32[32,16] parameter(1)"]
MOVED = 4 * (8 * 32 + 32 * 16 + 8 * 16)


def test_a_product():
    assert totals([*OPERANDS, f"ROOT %c = f32[8,16] {DOT}"]) == (2 * 8 * 32 * 16, MOVED)


def test_a_product_in_a_fusion_reads_what_the_fusion_reads():
    inner = "\n".join(
        ["%f (a: f32[8,32]) -> f32[8,16] {", *(f"  {one}" for one in OPERANDS), f"  ROOT %d = f32[8,16] {DOT}"]
    )
    body = [*OPERANDS, "ROOT %c = f32[8,16] fusion(%a, %b), kind=kOutput, calls=%f"]
    assert totals(body, f"{inner}\n}}\n") == (2 * 8 * 32 * 16, MOVED)


def test_what_returns_a_token_computes_nothing():
    """XLA:TPU hands scatters of a v5p to its sparse cores, and prepares such a call by others."""
    one, other = (f'%{n} = token[] custom-call(), custom_call_target="{n}"' for n in ("PrepareAsyncCallDone", "Mine"))
    text = f"HloModule m\n\nENTRY %main () -> token[] {{\n  {one}\n  ROOT {other}\n}}\n"
    (mine,) = work_of(read_program(text))
    assert (mine.op.name, mine.work.flops, find_machine("h100").seconds(mine.work)) == ("Mine", 0.0, 0.0)


def test_a_convolution():
    """3 x 3 over 4 channels, 8 of the result: each of 1 x 6 x 6 x 8 elements adds up 36 products."""
    body = [
        "%a = f32[1,8,8,4] parameter(0)",
        "%b = f32[3,3,4,8] parameter(1)",
        "ROOT %c = f32[1,6,6,8] convolution(%a, %b), window={size=3x3}, dim_labels=b01f_01io->b01f",
    ]
    assert totals(body)[0] == 2 * 6 * 6 * 8 * 36


def test_a_loops_body_runs_as_often_as_the_loop():
    inside = ["%p = (f32[8,32], f32[32,16]) parameter(0)"]
    inside += ["%a = f32[8,32] get-tuple-element(%p), index=0", "%b = f32[32,16] get-tuple-element(%p), index=1"]
    inside += [f"%c = f32[8,16] {DOT}", "ROOT %t = (f32[8,32], f32[32,16]) tuple(%a, %b)"]
    more = "\n".join(["%body (p: f32[8]) -> f32[8] {", *(f"  {one}" for one in inside), "}", ""])
    more += "\n".join(["%cond (p: f32[8]) -> pred[] {", "  ROOT %x = pred[] constant(true)", "}", ""])
    trips = 'backend_config={"known_trip_count":{"n":"12"}}'
    body = ["%s = (f32[8,32], f32[32,16]) parameter(0)"]
    body += [f"ROOT %w = (f32[8,32], f32[32,16]) while(%s), condition=%cond, body=%body, {trips}"]
    assert totals(body, more) == (12 * 2 * 8 * 32 * 16, 12 * MOVED)


def test_of_an_array_that_is_sliced_only_the_slice_is_read():
    inner = ["%p = f32[100,8] parameter(0)", "%i = s32[] parameter(1)"]
    inner += [
        "%s = f32[1,8] dynamic-slice(%p, %i, %i), dynamic_slice_sizes={1,8}",
        "ROOT %e = f32[1,8] exponential(%s)",
    ]
    more = "\n".join(["%f (p: f32[100,8]) -> f32[1,8] {", *(f"  {one}" for one in inner), "}", ""])
    body = ["%p = f32[100,8] parameter(0)", "%i = s32[] parameter(1)"]
    body += ["ROOT %c = f32[1,8] fusion(%p, %i), kind=kLoop, calls=%f"]
    moved = totals(body, more)[1]
    assert moved == 32 + 32 + 4


def test_of_an_array_that_is_updated_only_the_update_is_read_and_written():
    body = ["%p = f32[100,8] parameter(0)", "%u = f32[1,8] parameter(1)", "%i = s32[] parameter(2)"]
    body += ["ROOT %d = f32[100,8] dynamic-update-slice(%p, %u, %i, %i)"]
    assert totals(body) == (0, 32 + 32)


def test_the_largest_array_counts_unless_a_product_or_vector_memory_takes_it():
    body = [
        "%a = f32[8,32] parameter(0)",
        "%b = f32[32,16] parameter(1)",
        f"%c = f32[8,16] {DOT}",
        "%d = f32[8,16]{1,0:T(8,128)S(1)} copy(%c)",
        "%e = f32[8,16]{0,1:T(8,128)S(1)} copy(%d)",
        "ROOT %n = f32[8,32] negate(%a)",
    ]
    lines = "\n".join(f"  {line}" for line in body)
    found = work_of(read_program(f"HloModule m\n\nENTRY %main (a: f32[8,32]) -> f32[8,32] {{\n{lines}\n}}\n"))
    assert {one.op.name: one.work.elements for one in found} == {"c": 0, "d": 8 * 16, "e": 0, "n": 8 * 32}


def test_products_windows_and_turned_copies_wait_for_memory():
    """XLA:TPU expects 2,130 cycles of the least kernel on a v5p. Of products it expects 2,364 if the result lies in the
    device's memory, and 4,470 if an operand does, too; in vector memory 258 on a v5e if the result is of whole tiles,
    else 2,066. A window takes 3,811 there, and 6,450 on a v5p from memory to memory."""
    contracted = DOT.partition(", ")[2]
    body = [
        "%a = f32[8,32] parameter(0)",
        "%b = f32[32,16] parameter(1)",
        f"%c = f32[8,16] {DOT}",
        f"%d = f32[8,8]{{1,0:T(8,128)S(1)}} {DOT}",
        f"%e = f32[8,8]{{1,0:T(8,128)S(1)}} dot(%d, %d), {contracted}",
        f"%f = f32[8,8]{{1,0:T(8,128)}} dot(%e, %e), {contracted}",
        f"%k = bf16[8,8]{{1,0:T(8,128)(2,1)S(1)}} dot(%e, %e), {contracted}",
        "%g = f32[8,8]{1,0:T(8,128)} copy(%f)",
        "%h = f32[8,8]{0,1:T(8,128)} copy(%f)",
        "%s = f32[] constant(0)",
        "%v = f32[8,8]{1,0:T(8,128)S(1)} reduce-window(%e, %s), window={size=1x3 pad=0_0x1_1}, to_apply=%add",
        "%w = f32[8,32] reduce-window(%a, %s), window={size=1x3 pad=0_0x1_1}, to_apply=%add",
        "ROOT %n = f32[8,32] negate(%a)",
    ]
    lines = "\n".join(f"  {line}" for line in body)
    found = work_of(read_program(f"HloModule m\n\nENTRY %main (a: f32[8,32]) -> f32[8,32] {{\n{lines}\n}}\n"))
    waits = {one.op.name: one.work.waits for one in found}
    assert waits == {"c": 2, "d": 1, "e": 0, "f": 1, "k": 1, "g": 0, "h": 2, "v": 2, "w": 3, "n": 0}
    assert [one.work.product for one in found] == [one.work.flops > 0 for one in found]
    packed = {one.op.name: one.work.elements for one in found if one.work.flops}
    assert packed == {"c": 0, "d": 0, "e": 0, "f": 0, "k": 64}
    moved = {one.op.name: one.work.bytes for one in found}
    assert (moved["d"], moved["e"], moved["f"]) == (4 * (8 * 32 + 32 * 16), 0, 4 * 8 * 8)


def brute_force(array, kernel, stride, low, high, spread, gaps):
    """Pairs of an element of the kernel and one of the array that meet, of one spatial dimension."""
    dilated = [0] * ((array - 1) * spread + 1)
    dilated[::spread] = [1] * array
    padded = [0] * low + dilated + [0] * high if low >= 0 else (dilated + [0] * high)[-low:]
    reach = (kernel - 1) * gaps + 1
    starts = range(0, len(padded) - reach + 1, stride)
    return len(starts), sum(padded[start + tap * gaps] for start in starts for tap in range(kernel))


@pytest.mark.parametrize(
    ("array", "kernel", "stride", "low", "high", "spread", "gaps"),
    [
        (32, 32, 31, 0, 0, 32, 1),
        (8, 3, 1, 1, 1, 1, 1),
        (8, 3, 2, 1, 1, 1, 1),
        (4, 3, 1, 1, 2, 2, 1),
        (9, 3, 1, 2, 2, 1, 2),
    ],
)
def test_a_convolution_counts_what_meets(array, kernel, stride, low, high, spread, gaps):
    """[4, array, 6] by a kernel of 6 to 5 features: two operations a pair, batch, and feature."""
    count, pairs = brute_force(array, kernel, stride, low, high, spread, gaps)
    window = f"size={kernel} stride={stride} pad={low}_{high} lhs_dilate={spread} rhs_dilate={gaps}"
    text = f"""
HloModule m

ENTRY %main (x: f32[4,{array},6], k: f32[{kernel},6,5]) -> f32[4,{count},5] {{
  %x = f32[4,{array},6] parameter(0)
  %k = f32[{kernel},6,5] parameter(1)
  ROOT %y = f32[4,{count},5] convolution(%x, %k), window={{{window}}}, dim_labels=b0f_0io->b0f
}}
"""
    (one,) = work_of(read_program(text))
    assert one.work.flops == 2 * 4 * 5 * 6 * pairs
