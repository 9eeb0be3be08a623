"""What the page is given: axes of each dimension, the steps of redistributions, lines of the program, curves.

Tiles are held to NumPy: a sharding ``{devices=[a,b]<=[...]}`` lists the devices of its tiles in row-major order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardpass.cli.explain import explain
from shardpass.diagnostics import Place
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.stages import covered, stages
from shardpass.report.explanation import Explanation
from shardpass.report.page_contents import contents
from shardpass.report.page_program import MOST_POINTS
from shardpass.report.rows import BACKWARD, MemoryFacts, OpFact, Row, ValueFact

EIGHT = "mhlo.num_partitions = 8 : i32, shardpass.mesh = \"mesh['data'=4,'model'=2]\""
ROWS, BLOCKS = "{devices=[8,1]<=[8]}", "{devices=[2,4]<=[4,2]T(1,0)}"


def moved(source: str, target: str, attributes: str = EIGHT, shape: str = "256x128") -> Explanation:
    """A program that gives its argument back in another sharding."""
    text = f"""
module attributes {{{attributes}}} {{
  func.func @main(%a: tensor<{shape}xf32> {{mhlo.sharding = "{source}"}})
      -> (tensor<{shape}xf32> {{mhlo.sharding = "{target}"}}) {{
    %0 = stablehlo.negate %a : tensor<{shape}xf32>
    return %0 : tensor<{shape}xf32>
  }}
}}"""
    return explain(text.encode(), "moved.mlir", effort=0)


def tiles(panel: Any) -> list[tuple[str, ...]]:
    """What each device holds, in the order of the mesh: the text of its part of each dimension that is drawn."""
    held = [[str(dim["parts"][part]) for part in dim["of"]] for dim in panel["dims"]]
    return list(zip(*held, strict=True))


def test_rows_say_the_axes_of_each_dimension() -> None:
    row = moved(ROWS, BLOCKS).rows[0]
    assert row.source_dims == (("data", "model"), ())
    assert row.target_dims == (("model",), ("data",))


def test_partial_sums_are_split_as_their_sum_but_for_the_axes_that_are_added() -> None:
    """The product sums over columns that model splits; its rows are over data."""
    product = f"""
module attributes {{{EIGHT}}} {{
  func.func @main(%a: tensor<16x8xf32> {{mhlo.sharding = "{{devices=[4,2]<=[8]}}"}},
                  %b: tensor<8x4xf32> {{mhlo.sharding = "{{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}}"}})
      -> (tensor<16x4xf32> {{mhlo.sharding = "{{devices=[4,1,2]<=[8] last_tile_dim_replicate}}"}}) {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
    return %0 : tensor<16x4xf32>
  }}
}}"""  # noqa: E501
    (row,) = explain(product.encode(), "product.mlir", effort=0).rows
    assert (row.kind, row.axes) == ("all_reduce", ("model",))
    assert row.source_dims == row.target_dims == (("data",), ())


def test_panels_hold_what_devices_hold() -> None:
    """The ends by NumPy's order of devices. Between them rows have moved along data: every fourth pair of tiles."""
    data = contents(moved(ROWS, BLOCKS))
    (way,) = data["ways"]
    assert [(step["kind"], step["axes"]) for step in way["steps"]] == [
        ("all_to_all", ["data"]),
        ("all_to_all", ["model"]),
    ]
    before, between, after = way["panels"]
    rows = [f"[[{32 * device}, {32 * device + 32}]]" for device in range(8)]
    assert tiles(before) == [(part, "[[0, 128]]") for part in rows]
    order = np.arange(8).reshape(4, 2).T.reshape(2, 4)  # the devices of the target's tiles
    at = {int(device): place for place, device in np.ndenumerate(order)}
    ends = [
        (f"[[{128 * at[d][0]}, {128 * at[d][0] + 128}]]", f"[[{32 * at[d][1]}, {32 * at[d][1] + 32}]]")
        for d in range(8)
    ]
    assert tiles(after) == ends
    assert [dim["axes"] for dim in after["dims"]] == [["model"], ["data"]]
    columns = [tile[1] for tile in tiles(between)]
    assert columns == [tile[1] for tile in ends]  # columns are right after the first step
    assert [tile[0] for tile in tiles(between)] == [
        str([[32 * (2 * data + model), 32 * (2 * data + model) + 32] for data in range(4)]) for model in [0, 1] * 4
    ]


def test_stages_end_at_the_target() -> None:
    plan = plan_redistribution((24, 30), "f32", "{devices=[6,1]<=[6]}", "{devices=[2,3]<=[3,2]T(1,0)}")
    found = stages(plan)
    assert found[0].title == "source"
    for device, (row, column) in enumerate(plan.target.tile_offsets((24, 30)).tolist()):
        assert covered(found[-1].state, device, 0) == ((row, row + 12),)
        assert covered(found[-1].state, device, 1) == ((column, column + 10),)


def test_devices_stand_in_the_order_of_the_mesh() -> None:
    data = contents(moved("{devices=[4,1]3,1,0,2}", "{replicated}", "mhlo.num_partitions = 4 : i32"))
    assert data["ids"] == [3, 1, 0, 2]
    assert data["rows"][0]["before"] == ((data["mesh"][0][0],), ())


@pytest.mark.parametrize("kind", ["collective_permute", "all_gather"])
def test_a_row_that_is_no_step_of_its_redistribution_has_no_way(kind: str) -> None:
    found = moved(ROWS, BLOCKS)
    from dataclasses import replace

    other = replace(found, rows=(replace(found.rows[0], kind=kind),))
    assert [row["way"] for row in contents(other)["rows"]] == [None]


# ---------------------------------------------------------------- the program


def op(number: int, line: int, name: str = "h", spec: str = "P()", **fields: Any) -> OpFact:
    value = ValueFact(name, "f32[8]", spec, ((),), 32)
    return OpFact(
        number, "stablehlo.tanh", Place("m.py", line, 1), fields.pop("direction", "forward"), (value,), **fields
    )


def program(*ops: OpFact, rows: tuple[Row, ...] = (), at: tuple[tuple[int, int], ...] = ()) -> dict[str, Any]:
    memory = MemoryFacts(10, 20, 5, at)
    return contents(Explanation("p", 4, (("x", 4),), rows, find_ops=lambda: ops, memory=memory))


def test_layers_are_told_once_and_those_that_differ_apart() -> None:
    layers = [op(k, 3, f"h[{k}]", "P('x')" if k == 5 else "P()") for k in range(24)]
    (line,) = program(*layers)["program"]
    assert [(value["name"], value["sharding"], value["count"]) for value in line["values"]] == [
        ("h[*]", "P()", 23),
        ("h[*]", "P('x')", 1),
    ]


def test_lines_stand_where_they_first_run_forward_and_backward_apart() -> None:
    found = program(op(0, 9), op(1, 3), op(2, 9, direction=BACKWARD), op(3, 9, depth=1), op(4, 3))
    assert [(one["place"], one["backward"], one["depth"], one["ops"]) for one in found["program"]] == [
        ("m.py:9", False, 0, 1),
        ("m.py:3", False, 0, 2),
        ("m.py:9", True, 0, 1),
        ("m.py:9", False, 1, 1),
    ]


def test_memory_is_told_by_op_the_most_of_each_and_results_at_the_end() -> None:
    course = program(op(0, 1), op(1, 1), op(2, 2), at=((1, 33), (1, 35), (2, 31), (-1, 30)))["course"]
    assert course["memory"] == [[0, 30], [1, 35], [2, 31], [3, 30]]  # 10 and 20 are there throughout
    assert course["places"] == [[0, "m.py:1"], [2, "m.py:2"]]


def test_a_long_curve_keeps_its_peak() -> None:
    count = 3 * MOST_POINTS
    at = tuple((k, 10**6 if k == 7001 else 100 + k % 7) for k in range(count))
    course = program(*(op(k, 1) for k in range(count)), at=at)["course"]
    assert len(course["memory"]) <= MOST_POINTS
    assert max(size for _, size in course["memory"]) == 10**6
    assert [number for number, _ in course["memory"]] == sorted({number for number, _ in course["memory"]})


def test_traffic_points_to_its_op_and_row() -> None:
    rows = (
        Row("all_gather", "x", 4, 10, op=1),
        Row("all_reduce", "x", 4, 70, op=None),
        Row("all_gather", "x", 4, 20, op=0),
    )
    found = program(op(0, 1), op(1, 1), rows=rows)
    kinds = [row["kind"] for row in found["rows"]]
    assert [(at, kinds[row], size) for at, row, size in found["course"]["traffic"]] == [
        (1, "all_gather", 10),
        (2, "all_reduce", 70),  # of a result, at the end
        (0, "all_gather", 20),
    ]


def test_ranges_of_the_backward_part() -> None:
    ops = [op(k, 1, direction=BACKWARD if k in (2, 3, 6) else "forward", depth=int(k > 4)) for k in range(8)]
    course = program(*ops)["course"]
    assert course["backward"] == [[2, 4], [6, 7]]
    assert course["loops"] == [[5, 8]]
