"""What a loop adds up on each device is summed once, behind the loop, where nothing in the loop reads it.

The loop runs five times and adds a product that is split over its contraction. Products are of whole numbers, and the
whole program on one device is the witness. Expected bytes are arithmetic: an all_reduce on four devices receives 2 x
3/4 of the array.
"""

from __future__ import annotations

import pytest
from support.differential import Outcome, check_text
from support.loop_sums import ADD, TRIPS, P, program

import shardpass
from shardpass.ir.annotations import WAITS
from shardpass.pipeline.plan import plan_module

ONCE = 2 * 16 * 32 * 4 * 3 // 4


def received(text: str) -> tuple[Outcome, list[tuple[str, int, int]]]:
    """The checked program, and (kind, bytes, times) of each collective of the plan."""
    plan = plan_module(text, machine="ideal")
    return check_text(text), [(sent.kind, sent.bytes, sent.times) for sent in plan.collectives]


@pytest.mark.parametrize(
    "body",
    [
        ADD,
        f"%s = stablehlo.add %p, %acc : {P}",
        f"%s = stablehlo.subtract %acc, %p : {P}",
        f"%s = stablehlo.subtract %p, %acc : {P}",
        f"%n = stablehlo.negate %p : {P} %s = stablehlo.add %acc, %n : {P}",
        f"%b = stablehlo.add %p, %r : {P} %s = stablehlo.add %acc, %b : {P}",
    ],
)
def test_summed_once_behind_the_loop(body: str) -> None:
    outcome, sent = received(program(body))
    assert sent == [("all_reduce", ONCE, 1)]
    assert outcome.kinds == ["all_reduce"]


def test_the_loop_begins_with_an_array_that_devices_have_whole() -> None:
    """It counts once, on the first device."""
    outcome, sent = received(program(carried="%r"))
    assert sent == [("all_reduce", ONCE, 1)]
    assert outcome.kinds == ["all_reduce"]


READ = {
    "the body": program(
        f"%t = stablehlo.tanh %acc : {P} %b = stablehlo.add %t, %p : {P} %s = stablehlo.add %acc, %b : {P}"
    ),
    "the body, behind the addition": program(f"{ADD} %t = stablehlo.tanh %s : {P}", returned="%t"),
    "the condition": program(
        condition="""%c = stablehlo.constant dense<0> : tensor<i32>
          %e = stablehlo.slice %acc [0:1, 0:1] : (tensor<16x32xf32>) -> tensor<1x1xf32>
          %f = stablehlo.reshape %e : (tensor<1x1xf32>) -> tensor<f32>
          %g = stablehlo.convert %f : (tensor<f32>) -> tensor<i32>
          %h = stablehlo.compare GE, %g, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %k = stablehlo.or %h, %more : tensor<i1> %l = stablehlo.and %k, %more : tensor<i1>
          stablehlo.return %l : tensor<i1>"""
    ),
    "a product": program(f"%s = stablehlo.multiply %acc, %p : {P}", carried="%r"),
}


@pytest.mark.parametrize("reader", READ)
def test_summed_in_the_loop_where_it_is_read_there(reader: str) -> None:
    check_text(READ[reader])
    sums = [sent for sent in plan_module(READ[reader], machine="ideal").collectives if sent.kind != "all_gather"]
    assert sums
    assert all(sent.times == TRIPS or not sent.times_known for sent in sums)


def test_a_loop_of_unknown_trips_sums_in_each() -> None:
    """It may run once, or never."""
    text = program().replace(
        f"%five = stablehlo.constant dense<{TRIPS}> : tensor<i32>",
        "%five = stablehlo.convert %first : (tensor<f32>) -> tensor<i32>",
    )
    text = text.replace(
        "%zero = stablehlo",
        "%e = stablehlo.slice %r [0:1, 0:1] : (tensor<16x32xf32>) -> tensor<1x1xf32> "
        "%first = stablehlo.reshape %e : (tensor<1x1xf32>) -> tensor<f32> %zero = stablehlo",
    )
    assert [sent.times_known for sent in plan_module(text, machine="ideal").collectives] == [False]
    assert check_text(text).kinds == ["all_reduce"]


def test_nothing_reads_the_result() -> None:
    outcome, sent = received(program(behind=f"return %r : {P}"))
    assert not sent
    assert not outcome.kinds


def test_text_is_enough() -> None:
    propagated = str(shardpass.run_pipeline(program(), "propagate"))
    assert propagated.count(WAITS) == 1
    rest = "builtin.module(shardpass-partition,shardpass-redistribute,canonicalize,cse)"
    built = str(shardpass.run_pipeline(propagated, rest))
    assert built.count('"stablehlo.all_reduce"') == 1
    assert built.index('"stablehlo.all_reduce"') > built.index("stablehlo.while")
    assert "stablehlo.return" in built[: built.index('"stablehlo.all_reduce"')]
