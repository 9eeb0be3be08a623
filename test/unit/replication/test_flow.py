"""Control flow and borders, on regions written by hand over mesh x=2, y=2; labels worked out by hand.

Each body computes %r from %v, which varies over x and y, and %a, which varies over x alone.
"""

from __future__ import annotations

import numpy as np
import pytest

from shardpass.pipeline.run import run_pipeline
from shardpass.replication.flow import Flow

ALL, X, Y, NONE = [0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]
OVER_X, OVER_Y = "[[0, 2], [1, 3]]", "[[0, 1], [2, 3]]"


def total(result: str, operand: str, groups: str) -> str:
    return f"""{result} = "stablehlo.all_reduce"({operand}) <{{
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
        replica_groups = dense<{groups}> : tensor<2x2xi64>}}> ({{
      ^bb0(%p: tensor<i32>, %q: tensor<i32>):
        %s = stablehlo.add %p, %q : tensor<i32>
        stablehlo.return %s : tensor<i32>
      }}) : (tensor<i32>) -> tensor<i32>"""


def branch(predicate: str, inside: str, otherwise: str = "%a") -> str:
    return f"""{predicate}
      %r = "stablehlo.if"(%c) ({{
        {inside}
        stablehlo.return %t : tensor<i32>
      }}, {{
        stablehlo.return {otherwise} : tensor<i32>
      }}) : (tensor<i1>) -> tensor<i32>"""


def loop(limit: str, body: str, returned: str) -> str:
    return f"""%r:3 = stablehlo.while(%k = %zero, %m = %a, %n = %zero) : tensor<i32>, tensor<i32>, tensor<i32>
      cond {{
        %g = stablehlo.compare LT, %k, {limit} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
      }} do {{
        %k1 = stablehlo.add %k, %one : tensor<i32>
        {body}
        stablehlo.return %k1, {returned} : tensor<i32>, tensor<i32>, tensor<i32>
      }}"""


BY_X = """%half = stablehlo.divide %id, %two : tensor<ui32>
      %c = stablehlo.compare EQ, %half, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>"""
BY_DATA = "%c = stablehlo.compare GT, %a, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>"

# name -> (body, the value that is asked for, its labels)
CASES = {
    "known predicate, agreeing branch": (branch(BY_X, total("%t", "%v", OVER_Y)), "%r", X),
    # one branch varies over y, and the devices of x=1 do not take it
    "known predicate, one branch varies": (branch(BY_X, "%t = stablehlo.add %v, %v : tensor<i32>"), "%r", [0, 1, 2, 2]),
    "a collective that not all of a group come to": (
        branch(BY_X, total("%t", "%v", OVER_X), "%zero"), "%r", [0, 1, 2, 2],
    ),
    "data decides, all branches agree": (
        branch(BY_DATA, "%t = stablehlo.add %one, %one : tensor<i32>", "%zero"), "%r", X,
    ),
    "data decides, collective over the other axis": (branch(BY_DATA, total("%t", "%v", OVER_Y)), "%r", X),
    "data decides, collective over the same axis": (branch(BY_DATA, total("%t", "%zero", OVER_X)), "%r", ALL),
    "a counted loop leaves with what its body returned": (
        loop("%three", total("%t", "%m", OVER_X), "%t, %n"), "%r#1", NONE,
    ),
    "a loop that may not run leaves with what it began with": (
        loop("%zero", total("%t", "%m", OVER_X), "%t, %n"), "%r#1", X,
    ),
    "values that swap places vary as both": (loop("%three", "", "%n, %m"), "%r#2", X),
    "trips that vary over x": (loop("%a", "", "%m, %k1"), "%r#2", X),
    "a counter that all devices share": (loop("%three", "", "%v, %k1"), "%r#2", NONE),
    # device x=1 may be in its third trip while x=0 has left
    "a collective over an axis that the trips vary over": (
        loop("%a", total("%t", "%n", OVER_X), "%m, %t"), "%r#2", ALL,
    ),
    "a collective over an axis that the trips do not vary over": (
        loop("%a", total("%t", "%v", OVER_Y), "%m, %t"), "%r#2", X,
    ),
}  # fmt: skip


def flow_of(body: str, result: str) -> tuple[Flow, object]:
    text = f"""
    sdy.mesh @m = <["x"=2, "y"=2]>
    func.func @main(%v0: tensor<2x2xi32>, %a0: tensor<2xi32>) -> tensor<2x2xi32> {{
      %out = sdy.manual_computation(%v0, %a0) in_shardings=[<@m, [{{"x"}}, {{"y"}}]>, <@m, [{{"x"}}]>]
          out_shardings=[<@m, [{{"x"}}, {{"y"}}]>] manual_axes={{"x", "y"}}
          (%vt: tensor<1x1xi32>, %at: tensor<1xi32>) {{
        %v = stablehlo.reshape %vt : (tensor<1x1xi32>) -> tensor<i32>
        %a = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
        %id = stablehlo.partition_id : tensor<ui32>
        %none = stablehlo.constant dense<0> : tensor<ui32>
        %two = stablehlo.constant dense<2> : tensor<ui32>
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %three = stablehlo.constant dense<3> : tensor<i32>
        {body}
        %o = stablehlo.reshape {result} : (tensor<i32>) -> tensor<1x1xi32>
        sdy.return %o : tensor<1x1xi32>
      }} : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
      return %out : tensor<2x2xi32>
    }}"""
    module = run_pipeline(text, "shardpass-import")
    with module.context:
        flow = Flow(module.body.operations[0], 4)
    (found,) = flow.exits.values()
    return flow, found.actual


@pytest.mark.parametrize("name", CASES)
def test_who_agrees(name: str) -> None:
    body, result, labels = CASES[name]
    flow, found = flow_of(body, result)
    assert found is flow.all.of(np.array(labels))
