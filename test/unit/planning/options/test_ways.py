"""The ways that the decision chose are the ways of the plan, by the kept table and by text alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shardpass
from shardpass.cost.fusion import Flops
from shardpass.cost.machine import IDEAL, find_machine
from shardpass.diagnostics import collect
from shardpass.element_types import element_type
from shardpass.ir.annotations import SPLIT
from shardpass.ops.model import Pointwise
from shardpass.ops.splits.factors import Factor, Kind, Rule
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.planning.decide.search import Decision, decide
from shardpass.planning.options.axes import whole_axes
from shardpass.planning.options.ways import ways
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.borders import Borders
from shardpass.planning.price.clock import clock_of
from shardpass.planning.price.steps import SplitPlan
from shardpass.program.program import array_of
from shardpass.program.table import table_of
from shardpass.sharding import Mesh

ROWS = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'


def lookups() -> str:
    """A table of 4096 rows split over eight devices; 1024 rows of it are looked up twice, and taken split over rows.

    In place a lookup makes partial sums of 1024 x 32 over all devices. The table in columns, brought there once, serves
    both: no value says so, neither the operands nor the result.
    """
    table, rows, taken = "tensor<4096x32xf32>", "tensor<1024x1xi32>", "tensor<1024x32xf32>"
    gather = (
        '"stablehlo.gather"(%table, {rows}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
        f"slice_sizes = array<i64: 1, 32>}}}}> : ({table}, {rows}) -> {taken}"
    )
    body = f"%a = {gather.format(rows='%i')} %b = {gather.format(rows='%j')} return %a, %b : {taken}, {taken}"
    results = f"({taken} {ROWS}, {taken} {ROWS})"
    main = f"func.func @main(%table: {table} {ROWS}, %i: {rows}, %j: {rows}) -> {results} {{ {body} }}"
    return f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} }}"


def decision(text: str, effort: int) -> tuple[Decision, ProgramPlan]:
    with collect():
        module = shardpass.run_pipeline(text, "shardpass-import")
        with module.context:
            program = table_of(module, "propagate").program
            found = decide(program, {}, effort)
            return found, plan_program(program, found.shardings)


def test_a_way_that_no_value_suggests() -> None:
    """The table moves once: 4096 x 32 x 4 / 8 bytes a device, 7/8 of them from others; results likewise."""
    found, plan = decision(lookups(), 1)
    assert found.shardings.ways
    assert plan.bytes_received == (4096 * 32 + 2 * 1024 * 32) * 4 // 8 * 7 // 8
    assert price(plan) < price(decision(lookups(), 0)[1])


@pytest.mark.parametrize("between", ["kept", "text"])
def test_text_says_the_same_as_the_table(between: str) -> None:
    with collect():
        if between == "kept":
            module = shardpass.run_pipeline(lookups(), "shardpass-import,shardpass-propagate,shardpass-partition")
        else:
            module = shardpass.run_pipeline(lookups(), "shardpass-import,shardpass-propagate")
            assert SPLIT in str(module)
            module = shardpass.run_pipeline(str(module), "shardpass-partition")
    text = str(module)
    assert text.count("shardpass.redistribute(") == 3
    assert "all_reduce" not in text
    assert "reduce_scatter" not in text
    assert SPLIT not in text


def test_a_split_in_text_that_no_value_can_say_is_no_harm() -> None:
    """Of another rank, of another dimension, and none at all."""
    with collect():
        module = shardpass.run_pipeline(lookups(), "shardpass-import,shardpass-propagate")
        text = str(module)
        begin = text.index(f'{SPLIT} = "') + len(f'{SPLIT} = "')
        written = text[begin : text.index('"', begin)]
        for other in ("{devices=[1,8,1,1]<=[8]}", "{devices=[8,1]<=[8]}", "{replicated}"):
            module = shardpass.run_pipeline(text.replace(written, other), "shardpass-partition")
            assert "stablehlo.gather" in str(module)


PRODUCT = Rule(
    (Factor(8), Factor(4, Kind.REDUCTION), Factor(16)), (((0,), (1,)), ((1,), (2,))), (((0,), (2,)),), combiner="add"
)
DIAGONAL = Rule((Factor(8),), (((0,), (0,)),), (((0,),),))
JOINED = Rule((Factor(2), Factor(8)), (((0,), (1,)),), (((0, 1),),))


@pytest.mark.parametrize(
    ("rule", "shapes", "splits"),
    [
        (PRODUCT, ((8, 4), (4, 16), (8, 16)), 17),  # 4 places for each axis, both orders, and not both on the 4
        (DIAGONAL, ((8, 8), (8,)), 5),  # rows of the operand alone say it: none, x, y, and both in both orders
        (JOINED, ((2, 8), (16,)), 3),  # none, x on the 2, and then y on the 8: other parts are no parts of the 16
    ],
)
def test_ways_are_the_splits_that_all_values_can_say(
    rule: Rule, shapes: tuple[tuple[int, ...], ...], splits: int
) -> None:
    mesh = prime_mesh(Mesh((("x", 2), ("y", 4))))
    arrays = [array_of(shape, element_type("f32")) for shape in shapes]
    types, made = tuple(arrays[:-1]), tuple(arrays[-1:])
    border = Borders((1,) * len(types), (True,), Flops.NEST)
    found = ways(Pointwise(rule), mesh, whole_axes(mesh), types, made, clock_of(IDEAL), border)
    assert len({way.factors for way in found}) == splits


def test_a_decided_way_is_completed_as_the_tables_price_it() -> None:
    """A small product partial over both axes and wanted in rows over one: the sum of all of it, of which each device
    keeps its rows, takes one start for two. Propagation alone scatters, as it receives less.
    """
    sharding = '{mhlo.sharding = "%s"}'
    x, w, y = "tensor<64x512xf32>", "tensor<512x64xf32>", "tensor<64x64xf32>"
    annotated = f"%x: {x} {sharding % '{devices=[1,8]<=[8]}'}, %w: {w} {ROWS}"
    result = f"({y} {sharding % '{devices=[2,1,4]<=[8] last_tile_dim_replicate}'})"
    body = f"%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {y} return %y : {y}"
    mesh = "shardpass.mesh = \"mesh['data'=2,'model'=4]\""
    main = f"func.func @main({annotated}) -> {result} {{ {body} }}"
    text = f"module attributes {{mhlo.num_partitions = 8 : i32, {mesh}}} {{ {main} }}"
    with collect():
        module = shardpass.run_pipeline(text, "shardpass-import")
        with module.context:
            program = table_of(module, "propagate").program
            alone = decide(program, {}, 0).shardings
            h100 = find_machine("h100")
            plan = plan_program(program, alone, machine=h100)
            (op,) = plan.body.ops
            assert isinstance(op, SplitPlan)
            factors = op.local.split.factors
            way = {op.op.number: tuple((factor, axes) for factor, axes in enumerate(factors) if axes)}
            decided = plan_program(program, replace(alone, ways=way), machine=h100)
    assert [sent.kind for sent in plan.collectives] == ["reduce_scatter", "all_reduce"]
    assert [sent.kind for sent in decided.collectives] == ["all_reduce"]
