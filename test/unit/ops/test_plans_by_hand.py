"""What a plan lists is what is built: ops that index, reduce, order, draw and make.

One op of a small function is made local by hand: its arguments become tiles, its model plans the split, and the plan is
emitted. The collectives found in the text of the function are then those of the plan, in kind and bytes. The bytes
themselves are worked out in the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from jaxlib.mlir import ir

from shardpass.ir.collectives import collectives
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import operation, retype, shape_of
from shardpass.ops.model import LocalPlan, Site, Split
from shardpass.ops.registry import find
from shardpass.ops.splits.factors import DimAxes, project
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.sharding import Mesh

MESH = prime_mesh(Mesh((("x", 2), ("y", 3)), None))  # sub-axis 0 is x, sub-axis 1 is y
X, Y, NO = (0,), (1,), ()

ARGMAX = """^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
  %c = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %m = stablehlo.select %c, %a, %b : tensor<i1>, tensor<f32>
  %k = stablehlo.select %c, %i, %j : tensor<i1>, tensor<i32>
  stablehlo.return %m, %k : tensor<f32>, tensor<i32>"""
ADD = """^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %s = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %s : tensor<f32>"""


@dataclass(frozen=True)
class Sample:
    """``split``: of operand ``operand``, or of result ``result`` where that is said; ``sent``: (kind, bytes)."""

    arguments: str
    op: str
    split: DimAxes
    sent: tuple[tuple[str, int], ...] = ()
    operand: int = 0
    result: int | None = None


def _reduce(count: int, types: str, body: str, dims: str, result: str) -> str:
    operands = ", ".join(f"%arg{i}" for i in range(2 * count))
    return f'"stablehlo.reduce"({operands}) ({{ {body} }}) {{dimensions = array<i64: {dims}>}} : ({types}) -> {result}'


PAIR = "tensor<4x12xf32>, tensor<4x12xi32>, tensor<f32>, tensor<i32>"
GATHER = (
    "tensor<12x4xf32>, tensor<5x1xi32>",
    '"stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], '
    "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>} : "
    "(tensor<12x4xf32>, tensor<5x1xi32>) -> tensor<5x4xf32>",
)
SCATTER = (
    "tensor<12x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>",
    f'"stablehlo.scatter"(%arg0, %arg1, %arg2) ({{ {ADD} }}) {{scatter_dimension_numbers = #stablehlo.scatter<'
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
    "index_vector_dim = 1>} : "
    "(tensor<12x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<12x4xf32>",
)
SLICE = (
    "tensor<12x4xf32>, tensor<i32>, tensor<i32>",
    "stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [5, 4] : "
    "(tensor<12x4xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>",
)
UPDATE = (
    "tensor<12x4xf32>, tensor<5x4xf32>, tensor<i32>, tensor<i32>",
    "stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : "
    "(tensor<12x4xf32>, tensor<5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<12x4xf32>",
)
BITS = (
    "tensor<2xui64>",
    "stablehlo.rng_bit_generator %arg0, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7x3xui32>)",
)
TOP_K = "chlo.top_k(%arg0, k = 5) : tensor<4x12xf32> -> (tensor<4x5xf32>, tensor<4x5xi32>)"

SAMPLES: dict[str, Sample] = {
    # 2 other devices' parts of 4 rows each, an f32 and an i32
    "argmax": Sample(
        PAIR,
        _reduce(2, f"{PAIR}", ARGMAX, "1", "(tensor<4xf32>, tensor<4xi32>)"),
        (NO, Y),
        (("all_gather", 2 * 4 * 4),) * 2,
    ),
    # 4 rows over x leave 2 on a device
    "argmax of split rows": Sample(
        PAIR,
        _reduce(2, f"{PAIR}", ARGMAX, "1", "(tensor<4xf32>, tensor<4xi32>)"),
        (X, Y),
        (("all_gather", 2 * 2 * 4),) * 2,
    ),
    "argmax beside the split": Sample(
        PAIR, _reduce(2, f"{PAIR}", ARGMAX, "1", "(tensor<4xf32>, tensor<4xi32>)"), (X, NO)
    ),
    "sum": Sample(
        "tensor<4x12xf32>, tensor<f32>",
        _reduce(1, "tensor<4x12xf32>, tensor<f32>", ADD, "1", "tensor<4xf32>"),
        (NO, Y),
    ),
    # tiles of 4 give 4 candidates, though 5 are wanted: 2 others' of 4 rows
    "top_k": Sample("tensor<4x12xf32>", TOP_K, (NO, Y), (("all_gather", 2 * 4 * 4 * 4),) * 2),
    "top_k beside the split": Sample("tensor<4x12xf32>", TOP_K, (X, NO)),
    "gather of rows": Sample(*GATHER, (Y, NO)),
    "gather of columns": Sample(*GATHER, (NO, X)),
    "gather at split positions": Sample(*GATHER, (X, NO), operand=1),
    "scatter into rows": Sample(*SCATTER, (Y, NO)),
    "scatter of split updates": Sample(*SCATTER, (X, NO), operand=1),
    "slice within tiles": Sample(*SLICE, (NO, X)),
    "slice across tiles": Sample(*SLICE, (Y, NO)),
    "update across tiles": Sample(*UPDATE, (Y, X)),
    # 6 devices; a ring receives 5/6 of the 48 bytes twice
    "rng": Sample(
        "tensor<f32>, tensor<f32>, tensor<1xi64>",
        "stablehlo.rng %arg0, %arg1, %arg2, distribution = UNIFORM : "
        "(tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<12xf32>",
        (NO,),
        (("all_reduce", 2 * 48 * 5 // 6),),
        result=0,
    ),
    "bits": Sample(*BITS, (X, NO), result=1),
    "bits, whole": Sample(*BITS, (NO, NO), result=1),
    "constant": Sample("", "stablehlo.constant dense<1.5> : tensor<4x12xbf16>", (X, Y), result=0),
    "complex constant": Sample("", "stablehlo.constant dense<(1.0, -0.0)> : tensor<4xcomplex<f32>>", (X,), result=0),
    "iota": Sample("", "stablehlo.iota dim = 1 : tensor<4x12xbf16>", (X, Y), result=0),
    "size": Sample(
        "tensor<4x12xf32>", "stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<4x12xf32>) -> tensor<i32>", (X, Y)
    ),
}


def _module(sample: Sample) -> Any:
    kinds = [kind for kind in sample.arguments.split(", ") if kind]
    arguments = ", ".join(f"%arg{i}: {kind}" for i, kind in enumerate(kinds))
    many = sample.op.rstrip().endswith(")")
    left = "%out:2" if many else "%out"
    return parse_module(
        f"module attributes {{mhlo.num_partitions = 6 : i32}} {{\n"
        f"func.func @main({arguments}) {{\n{left} = {sample.op}\nreturn\n}}\n}}"
    )


def _made_local(sample: Sample, module: Any) -> tuple[LocalPlan, list[tuple[int, ...]]]:
    """The plan of the function's op, and the shapes of what takes the place of its results."""
    block = module.body.operations[0].regions[0].blocks[0]
    op, end = (operation(o) for o in block.operations)
    entry = find(op.name)
    assert entry is not None
    model = entry.read(op)
    assert model is not None
    rule = model.rule
    shapes = tuple(map(shape_of, op.operands)), tuple(map(shape_of, op.results))
    if sample.result is None:
        dim_map, shape = rule.operands[sample.operand], shapes[0][sample.operand]
    else:
        dim_map, shape = rule.results[sample.result], shapes[1][sample.result]
    split = Split.of(rule, MESH, project(rule, dim_map, shape, sample.split, MESH.sizes), *shapes)
    plan = model.plan(split)
    with ir.Location.unknown(module.context):
        for index, argument in enumerate(block.arguments):
            argument.set_type(retype(argument.type, split.operand_tile(index)))
        tiles = model.emit(plan, Site(op, split, end, count(1)))
    assert [shape_of(tile) for tile in tiles] == [split.result_tile(i) for i in range(len(tiles))]
    return plan, [shape_of(tile) for tile in tiles]


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_planned_is_emitted(name: str) -> None:
    sample = SAMPLES[name]
    module = _module(sample)
    plan, _ = _made_local(sample, module)
    planned = [(c.kind, c.bytes) for c in plan.collectives]
    assert planned == list(sample.sent)
    found = collectives(module)
    assert [(use.kind, use.bytes_received) for use in found] == planned
    assert [(use.axes, use.reason) for use in found] == [(MESH.names(c.axes), c.cause) for c in plan.collectives]


def test_equal_ops_share_a_model() -> None:
    """Also where the operands that make them differ."""
    module = parse_module(
        """func.func @main(%a: tensor<f32>) {
             %0 = stablehlo.constant dense<1.0> : tensor<4xf32>
             %1 = stablehlo.constant dense<2.0> : tensor<4xf32>
             %2 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
             return
           }"""
    )
    ops = [operation(op) for op in module.body.operations[0].regions[0].blocks[0].operations][:-1]
    entry = find("stablehlo.constant")
    assert entry is not None
    one, two, several = map(entry.read, ops)
    assert one is two
    assert one is not several
