"""Sums over devices behind a loop: proved as sums in the loop, and no other program is."""

from __future__ import annotations

import re

import pytest
from support.loop_sums import ADD, P, program

import shardpass
from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.proving.loop_sums import summed_inside


def partitioned(text: str) -> str:
    """shardpass's program of one device, with its one sum behind the loop."""
    local = str(shardpass.run_pipeline(text, "partition"))
    assert local.count('"stablehlo.all_reduce"') == 1
    assert local.index('"stablehlo.all_reduce"') > local.index("} do {")
    return local


@pytest.mark.parametrize("start", ["%r", "%zeros"])
@pytest.mark.parametrize(
    "body",
    [
        ADD,
        f"%s = stablehlo.add %p, %acc : {P}",
        f"%s = stablehlo.subtract %acc, %p : {P}",
        f"%s = stablehlo.subtract %p, %acc : {P}",
    ],
)
def test_proved(body: str, start: str) -> None:
    text = program(body, carried=start)
    assert prove(parse_module(text), parse_module(partitioned(text))).proved


FAULTS = {
    "the sum is left out": (r'%\d+ = "stablehlo.all_reduce"\((%\d+#1)\)[^}]*}\) \{[^}]*\} : [^\n]*\n', ""),
    "what enters counts on each device": (
        r"stablehlo\.select %\d+, %arg2, %cst\b",
        "stablehlo.select %2, %arg2, %arg2",
    ),
    "a group of two": (r"dense<\[\[0, 1, 2, 3\]\]> : tensor<1x4xi64>", "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"),
    "a maximum": (r"stablehlo\.add %arg3, %arg4", "stablehlo.maximum %arg3, %arg4"),
    "one trip less": (r"stablehlo\.constant dense<5> : tensor<i32>", "stablehlo.constant dense<4> : tensor<i32>"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_not_proved(fault: str) -> None:
    text = program(carried="%r")
    local = partitioned(text)
    pattern, by = FAULTS[fault]
    if fault == "the sum is left out":
        total = re.search(r'(%\d+) = "stablehlo.all_reduce"\((%\d+#1)\).*?\}\) \{[^}]*\} : [^\n]*\n', local, re.DOTALL)
        assert total is not None
        wrong = local.replace(total.group(0), "").replace(f"return {total.group(1)} :", f"return {total.group(2)} :")
    else:
        wrong = re.sub(pattern, by, local)
    assert wrong != local
    assert not prove(parse_module(text), parse_module(wrong), refute=False).proved


def test_a_loop_that_reads_what_it_adds_up_stays() -> None:
    """The carried sum is read twice: it is no summand."""
    text = program(f"%t = stablehlo.tanh %acc : {P} %b = stablehlo.add %t, %p : {P} %s = stablehlo.add %acc, %b : {P}")
    module = parse_module(str(shardpass.run_pipeline(text, "partition")))
    assert summed_inside(module) is module
