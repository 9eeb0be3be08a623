"""Tuples are taken apart; a custom call that HLO tells from the one of several results gets its own back."""

import pytest

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.program.check_annotations import check_annotations

A, B = "tensor<8x4xf32>", "tensor<4xi32>"


def module_of(body, devices=1):
    return f"""module attributes {{mhlo.num_partitions = {devices} : i32}} {{
  func.func @main(%x: {A}, %y: {B}) -> {A} {{
    {body}
  }}
}}"""


def calls_of(module):
    return [
        (op.name, [str(v.type) for v in op.operands], [str(v.type) for v in op.results])
        for view in module.body.operations
        for op in (inner.operation for inner in view.regions[0].blocks[0].operations)
        if op.name == "stablehlo.custom_call"
    ]


OWN = {
    "of one": (f"tuple<{A}>", "[0]"),
    "nested": (f"tuple<tuple<{A}, {B}>, {B}>", "[0][0]"),
    "with an empty one": (f"tuple<tuple<>, {A}>", "[1]"),
}


@pytest.mark.parametrize("form", OWN)
def test_results_that_hlo_tells_from_several_ones_come_back(form):
    kind, path = OWN[form]
    lines, value, of = [f"%t = stablehlo.custom_call @f(%x) : ({A}) -> {kind}"], "%t", kind
    inner = {"[0]": [A], "[0][0]": [f"tuple<{A}, {B}>", A], "[1]": [A]}[path]
    for step, (index, result) in enumerate(zip(path.strip("[]").split("]["), inner, strict=True)):
        lines.append(f"%e{step} = stablehlo.get_tuple_element {value}[{index}] : ({of}) -> {result}")
        value, of = f"%e{step}", result
    final = shardpass.run_pipeline(module_of("\n".join([*lines, f"return {value} : {A}"])), "partition")
    assert calls_of(final) == [("stablehlo.custom_call", [A], [kind])]


def test_a_flat_tuple_is_several_results():
    body = f"""%t = stablehlo.custom_call @f(%x) : ({A}) -> tuple<{B}, {A}>
    %e = stablehlo.get_tuple_element %t[1] : (tuple<{B}, {A}>) -> {A}
    return %e : {A}"""
    assert calls_of(shardpass.run_pipeline(module_of(body), "partition")) == [("stablehlo.custom_call", [A], [B, A])]


def test_one_sharding_is_that_of_all_leaves():
    body = f"""%t = stablehlo.custom_call @f(%x) {{mhlo.sharding = "{{replicated}}"}} : ({A}) -> tuple<{B}, {A}>
    %e = stablehlo.get_tuple_element %t[1] : (tuple<{B}, {A}>) -> {A}
    return %e : {A}"""
    assert '"{{replicated}, {replicated}}"' in str(shardpass.run_pipeline(module_of(body, 2), "import"))


def test_tuples_of_a_manual_region_are_not_constrained():
    manual = '{mhlo.sharding = "{manual}"}'
    body = f"""%in = stablehlo.custom_call @SPMDFullToShardShape(%x) {manual} : ({A}) -> tensor<4x4xf32>
    %t = stablehlo.tuple %in, %in {{mhlo.sharding = "{{{{manual}}, {{manual}}}}"}} : tuple<tensor<4x4xf32>, tensor<4x4xf32>>
    %e = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4x4xf32>, tensor<4x4xf32>>) -> tensor<4x4xf32>
    %n = stablehlo.negate %e : tensor<4x4xf32>
    %out = stablehlo.custom_call @SPMDShardToFullShape(%n) {{mhlo.sharding = "{{devices=[2,1]<=[2]}}"}} : (tensor<4x4xf32>) -> {A}
    return %out : {A}"""  # noqa: E501
    text = module_of(body, 2).replace(f"%x: {A}", f'%x: {A} {{mhlo.sharding = "{{devices=[2,1]<=[2]}}"}}')
    imported = str(shardpass.run_pipeline(text, "import"))
    assert "@Sharding" not in imported
    assert "tuple" not in imported


def test_the_leaves_are_counted():
    body = f"""%t = stablehlo.tuple %x, %y {{mhlo.sharding = "{{{{replicated}}}}"}} : tuple<{A}, {B}>
    %e = stablehlo.get_tuple_element %t[0] : (tuple<{A}, {B}>) -> {A}
    return %e : {A}"""
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(module_of(body), "import")
    (problem,) = caught.value.diagnostics
    assert problem.code == "SP210"
    assert "has 1 leaves, but the op has 2 results" in problem.message


def test_a_checker_reads_the_sharding_of_a_tuple():
    body = f"""%t = stablehlo.tuple %x, %y {{mhlo.sharding = "{{{{devices=[2,1]<=[2]}}, {{devices=[2,1]<=[2]}}}}"}} : tuple<{A}, {B}>
    %e = stablehlo.get_tuple_element %t[0] : (tuple<{A}, {B}>) -> {A}
    return %e : {A}"""  # noqa: E501
    (problem,) = check_annotations(parse_module(module_of(body, 2)))
    assert problem.code == "SP203"
    assert f"the value is {B} and has 1" in problem.message
