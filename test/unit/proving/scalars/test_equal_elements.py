"""Elements with one number have one value: each value of a program, and of that program with one fault, is run.

The witness is StableHLO's reference interpreter, with indices that repeat, are negative or lie beyond their array.
"""

import numpy as np
import pytest
from jaxlib.mlir import ir

from shardpass.ir.annotations import main_of
from shardpass.ir.context import copy_module, parse_module
from shardpass.ir.tensors import every_op, operation
from shardpass.proving.proof import _body
from shardpass.proving.relations.calls import functions_of
from shardpass.proving.relations.evaluate import type_of
from shardpass.proving.scalars.proof import RULES
from shardpass.proving.scalars.table import Scalars
from shardpass.proving.scalars.walk import ScalarWalk, Value
from shardpass.runtime.interpreter import evaluate
from tools.prove.proof_faults import faults, ops_of

SUM = "({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %pq = stablehlo.add %p, %q : tensor<f32> stablehlo.return %pq : tensor<f32> })"  # noqa: E501
ROWS = """ {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
      index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}"""
INTO = """ {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}"""
X, Y, PART, INDICES = "tensor<5x2xf32>", "tensor<5x2xf32>", "tensor<3x2xf32>", "tensor<3xi32>"
SHIFTED = f"""    %c = stablehlo.constant dense<2> : {INDICES}
    %most = stablehlo.constant dense<2> : {INDICES}
    %none = stablehlo.constant dense<0> : {INDICES}
    %j = stablehlo.subtract %i, %c : {INDICES}
    %k = stablehlo.clamp %none, %j, %most : {INDICES}
    %low = stablehlo.compare GE, %j, %none, SIGNED : ({INDICES}, {INDICES}) -> tensor<3xi1>
    %high = stablehlo.compare LE, %j, %most, SIGNED : ({INDICES}, {INDICES}) -> tensor<3xi1>
    %in = stablehlo.and %low, %high : tensor<3xi1>
    %mask = stablehlo.broadcast_in_dim %in, dims = [0] : (tensor<3xi1>) -> tensor<3x2xi1>
    %z = stablehlo.constant dense<0.0> : tensor<3x2xf32>
"""
V = "tensor<2xf32>"
PROGRAMS = {
    "sums": f"""    %0 = stablehlo.add %x, %y : {X}
    %1 = stablehlo.subtract %0, %x : {X}
    %2 = stablehlo.negate %1 : {X}
    %3 = stablehlo.add %2, %y : {X}
    %4 = stablehlo.multiply %0, %1 : {X}
    %5 = stablehlo.maximum %4, %y : {X}
    %6 = stablehlo.maximum %y, %5 : {X}
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %7 = "stablehlo.reduce"(%0, %zero) {SUM} {{dimensions = array<i64: 0>}} : ({X}, tensor<f32>) -> {V}
    %8 = "stablehlo.reduce"(%y, %zero) {SUM} {{dimensions = array<i64: 0>}} : ({X}, tensor<f32>) -> {V}
    %9 = stablehlo.subtract %7, %8 : {V}
    %10 = stablehlo.dot_general %x, %9, contracting_dims = [1] x [0] : ({X}, {V}) -> tensor<5xf32>
    %r = stablehlo.constant dense<0.0> : {X}""",
    "windows": f"""    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %zero) {SUM} {{window_dimensions = array<i64: 3, 1>,
      padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}} : ({X}, tensor<f32>) -> {X}
    %1 = stablehlo.pad %x, %zero, low = [1, 0], high = [1, 0], interior = [0, 0] : ({X}, tensor<f32>) -> tensor<7x2xf32>
    %2 = stablehlo.slice %1 [0:5, 0:2] : (tensor<7x2xf32>) -> {X}
    %3 = stablehlo.slice %1 [2:7, 0:2] : (tensor<7x2xf32>) -> {X}
    %4 = stablehlo.add %2, %3 : {X}
    %5 = stablehlo.add %4, %x : {X}
    %a = stablehlo.reshape %x : ({X}) -> tensor<1x5x2xf32>
    %b = stablehlo.slice %y [0:3, 0:2] : ({Y}) -> tensor<3x2xf32>
    %k = stablehlo.reshape %b : (tensor<3x2xf32>) -> tensor<3x2x1xf32>
    %6 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [2],
      pad = [[1, 1]], lhs_dilate = [2], reverse = [true]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
      : (tensor<1x5x2xf32>, tensor<3x2x1xf32>) -> tensor<1x5x1xf32>
    %7 = stablehlo.reverse %x, dims = [0] : {X}
    %r = stablehlo.concatenate %7, %x, dim = 0 : ({X}, {X}) -> tensor<10x2xf32>""",
    "gathered rows": f"""{SHIFTED}    %all = "stablehlo.gather"(%x, %i){ROWS} : ({X}, {INDICES}) -> tensor<3x2xf32>
    %part = stablehlo.slice %x [2:5, 0:2] : ({X}) -> tensor<3x2xf32>
    %rest = stablehlo.slice %x [0:2, 0:2] : ({X}) -> tensor<2x2xf32>
    %0 = "stablehlo.gather"(%part, %j){ROWS} : (tensor<3x2xf32>, {INDICES}) -> tensor<3x2xf32>
    %1 = "stablehlo.gather"(%part, %k){ROWS} : (tensor<3x2xf32>, {INDICES}) -> tensor<3x2xf32>
    %2 = stablehlo.select %mask, %0, %z : tensor<3x2xi1>, tensor<3x2xf32>
    %3 = "stablehlo.gather"(%rest, %i){ROWS} : (tensor<2x2xf32>, {INDICES}) -> tensor<3x2xf32>
    %before = stablehlo.not %mask : tensor<3x2xi1>
    %4 = stablehlo.select %before, %3, %z : tensor<3x2xi1>, tensor<3x2xf32>
    %5 = stablehlo.add %2, %4 : tensor<3x2xf32>
    %6 = stablehlo.subtract %5, %all : tensor<3x2xf32>
    %7 = stablehlo.reshape %i : ({INDICES}) -> tensor<3x1xi32>
    %8 = stablehlo.slice %7 [0:1, 0:1] : (tensor<3x1xi32>) -> tensor<1x1xi32>
    %9 = stablehlo.reshape %8 : (tensor<1x1xi32>) -> tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %10 = stablehlo.add %9, %one : tensor<i32>
    %11 = stablehlo.dynamic_slice %x, %9, %10, sizes = [2, 1] : ({X}, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
    %r = stablehlo.dynamic_update_slice %y, %11, %10, %one : ({X}, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> {X}""",
    "scattered rows": f"""{SHIFTED}    %u = stablehlo.slice %y [0:3, 0:2] : ({Y}) -> {PART}
    %all = "stablehlo.scatter"(%x, %i, %u) {SUM}{INTO} : ({X}, {INDICES}, {PART}) -> {X}
    %part = stablehlo.slice %x [2:5, 0:2] : ({X}) -> {PART}
    %0 = "stablehlo.scatter"(%part, %j, %u) {SUM}{INTO} : ({PART}, {INDICES}, {PART}) -> {PART}
    %1 = stablehlo.slice %all [2:5, 0:2] : ({X}) -> {PART}
    %2 = stablehlo.subtract %0, %1 : {PART}
    %3 = stablehlo.select %mask, %u, %z : tensor<3x2xi1>, {PART}
    %r = "stablehlo.scatter"(%part, %k, %3) {SUM}{INTO} : ({PART}, {INDICES}, {PART}) -> {PART}""",
    "choices": f"""    %c = stablehlo.constant dense<[0, 1, 2]> : {INDICES}
    %0 = stablehlo.compare EQ, %i, %c, SIGNED : ({INDICES}, {INDICES}) -> tensor<3xi1>
    %1 = stablehlo.select %0, %c, %i : tensor<3xi1>, {INDICES}
    %2 = stablehlo.convert %i : ({INDICES}) -> tensor<3xi8>
    %3 = stablehlo.convert %2 : (tensor<3xi8>) -> {INDICES}
    %4 = stablehlo.convert %2 : (tensor<3xi8>) -> tensor<3xui8>
    %5 = stablehlo.convert %4 : (tensor<3xui8>) -> {INDICES}
    %6 = stablehlo.maximum %5, %c : {INDICES}
    %7 = stablehlo.minimum %6, %3 : {INDICES}
    %8 = stablehlo.slice %7 [0:1] : ({INDICES}) -> tensor<1xi32>
    %9 = stablehlo.reshape %8 : (tensor<1xi32>) -> tensor<i32>
    %d = "stablehlo.case"(%9) ({{
      %t = stablehlo.tanh %x : {X}
      stablehlo.return %t : {X}
    }}, {{
      stablehlo.return %x : {X}
    }}, {{
      stablehlo.return %y : {X}
    }}) : (tensor<i32>) -> {X}
    %r = stablehlo.subtract %d, %y : {X}""",
}


def exposed(module):
    """A copy that returns each value of main."""
    copy = copy_module(module)
    with copy.context, ir.Location.unknown():
        main = operation(main_of(copy))
        block = main.regions[0].blocks[0]
        *body, end = [operation(op) for op in block.operations]
        values = [*block.arguments, *(result for op in body for result in op.results)]
        for op in [op for op in every_op(operation(copy.operation)) if op.name == "stablehlo.scatter"]:
            with ir.InsertionPoint(op):  # the interpreter writes into the operand of a scatter
                kind = op.operands[0].type
                order = {"permutation": ir.DenseI64ArrayAttr.get(range(len(kind.shape)))}
                op.operands[0] = ir.Operation.create("stablehlo.transpose", [kind], [op.operands[0]], order).results[0]
        with ir.InsertionPoint(end):
            ir.Operation.create("func.return", [], values)
        end.operation.erase()
        kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in values])
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
    return copy


def no_monoid(module, fault):
    """Whether the fault makes a reduction's body one that has another result for each way to put brackets."""
    return fault.what == "operand of another copy" and ops_of(module)[fault.index].parent.name != "func.func"


def inputs(seed):
    rng = np.random.default_rng(seed)
    floats = [(rng.integers(-6, 7, (5, 2)) / 2).astype(np.float32) for _ in range(2)]
    return [*floats, np.array([[0, 4, 4], [-1, 2, 9], [1, 1, -300]][seed], np.int32)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_with_one_number_have_one_value(name):
    text = f"module {{\n  func.func @main(%x: {X}, %y: {Y}, %i: {INDICES}) {{\n{PROGRAMS[name]}\n    return\n  }}\n}}"
    base, table = parse_module(text), Scalars()
    arguments = [Value(table.fresh(k, s)[None], e) for k, (s, e) in enumerate(map(type_of, _body(base).arguments))]
    ids, values, versions = [], [], 0
    for fault in [None, *faults(base)]:
        module = base if fault is None else fault.made(base)
        if module is None or (fault is not None and no_monoid(base, fault)):
            continue
        module, versions, table.work = exposed(module), versions + 1, 0
        found = ScalarWalk(table, 1, functions_of(module), RULES, len(table.terms)).block(_body(module), arguments)
        runs = [evaluate(module.operation.get_asm().encode(), inputs(seed)) for seed in range(3)]
        for k, value in enumerate(found):
            assert value is not None or fault is not None, (name, k)
            if value is None:
                continue
            ids.append(value.ids.ravel())
            values.append(np.stack([np.asarray(run[k], np.float64).ravel() for run in runs]))
    ids, values = np.concatenate(ids), np.concatenate(values, axis=1)
    assert versions > 10
    unique, group = np.unique(ids, return_inverse=True)
    assert len(unique) < len(ids) / 4
    for row in values:
        low, high = np.full(len(unique), np.inf), np.full(len(unique), -np.inf)
        np.minimum.at(low, group, row)
        np.maximum.at(high, group, row)
        apart = np.flatnonzero(high - low > 1e-4 * np.maximum(1, np.abs(high)))
        assert [(table.terms[unique[k]], low[k], high[k]) for k in apart] == []
        known = table.known(unique)
        assert (table.values(unique)[known] == low[known]).all()
