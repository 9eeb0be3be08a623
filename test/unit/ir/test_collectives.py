"""What each collective receives. The redistribution planner's own count is the second witness, on random problems."""

import random

import pytest

from shardpass.diagnostics import Place
from shardpass.ir.collectives import axes_of_groups, collectives, total_bytes
from shardpass.ir.context import parse_module
from shardpass.redistribute import plan_redistribution
from shardpass.sharding import Mesh

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
PAIRS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
FOUR = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
SUM = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32> })"""


def uses(body, attributes="mhlo.num_partitions = 4 : i32"):
    text = f"module attributes {{{attributes}}} {{ func.func @main(%a: tensor<4x8xf32>) {{\n{body}\nreturn }} }}"
    return collectives(parse_module(text, "m.mlir"))


# 4x8xf32 is 128 bytes
@pytest.mark.parametrize(
    ("op", "received", "group"),
    [
        (f'"stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {PAIRS}, {CHANNEL}}}>'
         ": (tensor<4x8xf32>) -> tensor<8x8xf32>", 128, 2),
        (f'"stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {FOUR}, {CHANNEL}}}>'
         ": (tensor<4x8xf32>) -> tensor<16x8xf32>", 3 * 128, 4),
        (f'"stablehlo.all_to_all"(%a) <{{split_dimension = 1 : i64, concat_dimension = 0 : i64, '
         f"split_count = 4 : i64, {FOUR}, {CHANNEL}}}> : (tensor<4x8xf32>) -> tensor<16x2xf32>", 96, 4),
        (f'"stablehlo.all_reduce"(%a) <{{{FOUR}, {CHANNEL}}}> {SUM} : (tensor<4x8xf32>) -> tensor<4x8xf32>', 192, 4),
        (f'"stablehlo.reduce_scatter"(%a) <{{scatter_dimension = 0 : i64, {FOUR}, {CHANNEL}}}> {SUM}'
         ": (tensor<4x8xf32>) -> tensor<1x8xf32>", 96, 4),
        (f'"stablehlo.collective_permute"(%a) <{{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, '
         f"{CHANNEL}}}> : (tensor<4x8xf32>) -> tensor<4x8xf32>", 128, 2),
        (f'"stablehlo.collective_permute"(%a) <{{source_target_pairs = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, '
         f"{CHANNEL}}}> : (tensor<4x8xf32>) -> tensor<4x8xf32>", 0, 1),
        (f'"stablehlo.collective_broadcast"(%a) <{{{PAIRS}, {CHANNEL}}}> : (tensor<4x8xf32>) -> tensor<4x8xf32>',
         128, 2),
        # no groups: all devices are one group
        (f'"stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, replica_groups = dense<> : tensor<0x0xi64>, '
         f"{CHANNEL}}}> : (tensor<4x8xf32>) -> tensor<16x8xf32>", 3 * 128, 4),
        # groups of one move nothing
        ('"stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0], [1], [2], [3]]> : tensor<4x1xi64>, '
         f"{CHANNEL}}}> {SUM} : (tensor<4x8xf32>) -> tensor<4x8xf32>", 0, 1),
    ],
)  # fmt: skip
def test_bytes(op, received, group):
    (use,) = uses(f"%0 = {op}")
    assert (use.bytes_received, use.group_size) == (received, group)
    assert use.kind in op


def test_a_total_is_added_up_by_device():
    """128 bytes to device 1, to 2, to 2 and 3, and a broadcast in pairs to 1 and 3: 1, 2 and 3 receive 256 each."""
    pairs = ["[[0, 1]]", "[[0, 2], [1, 1]]", "[[0, 2], [1, 3]]"]
    sizes = [pair.count("[") - 1 for pair in pairs]
    ops = [
        f'"stablehlo.collective_permute"(%a) <{{source_target_pairs = dense<{pair}> : tensor<{n}x2xi64>, {CHANNEL}}}>'
        for pair, n in zip(pairs, sizes, strict=True)
    ]
    ops.append(f'"stablehlo.collective_broadcast"(%a) <{{{PAIRS}, {CHANNEL}}}>')
    found = uses("\n".join(f"%{i} = {op} : (tensor<4x8xf32>) -> tensor<4x8xf32>" for i, op in enumerate(ops)))
    assert [use.receivers for use in found] == [(1,), (2,), (2, 3), (1, 3)]
    assert total_bytes(found) == 256
    assert total_bytes(found[:3]) == 256
    assert total_bytes(found[:2]) == 128


def test_narrow_types_are_packed_and_predicates_take_a_byte():
    body = "\n".join(
        f'%{i} = "stablehlo.custom_call"() <{{call_target_name = "x"}}> : () -> tensor<8x{t}>\n'
        f'%g{i} = "stablehlo.all_gather"(%{i}) <{{all_gather_dim = 0 : i64, {PAIRS}, {CHANNEL}}}>'
        f" : (tensor<8x{t}>) -> tensor<16x{t}>"
        for i, t in enumerate(["i1", "i4", "bf16", "complex<f64>"])
    )
    assert [use.bytes_received for use in uses(body)] == [8, 4, 16, 128]


def test_what_an_op_says_of_itself_is_kept():
    op = f'%0 = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {PAIRS}, {CHANNEL}}}>'
    (use,) = uses(
        op + '{shardpass.axes = "model", shardpass.cause = "operand 1 of dot"}'
        ' : (tensor<4x8xf32>) -> tensor<8x8xf32> loc("train.py":12:3)'
    )
    assert (use.axes, use.reason, use.place) == ("model", "operand 1 of dot", Place("train.py", 12, 3))
    assert str(use) == "all_gather over model, 128 bytes at train.py:12:3: operand 1 of dot"
    assert use.as_dict()["line"] == 12
    assert "place" not in use.as_dict()


def test_axes_are_found_from_the_groups_where_the_op_does_not_say_them():
    op = f'%0 = "stablehlo.all_reduce"(%a) <{{{PAIRS}, {CHANNEL}}}> {SUM} : (tensor<4x8xf32>) -> tensor<4x8xf32>'
    mesh = "shardpass.mesh = \"mesh['x'=2,'y'=2]\""
    assert [use.axes for use in uses(op, f"mhlo.num_partitions = 4 : i32, {mesh}")] == ["y"]
    assert [use.axes for use in uses(op)] == [""]


GATHER = (
    f'"stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {PAIRS}, {CHANNEL}}}>'
    " : (tensor<4x8xf32>) -> tensor<8x8xf32>"
)


def test_what_stands_in_a_loop_runs_as_often_as_the_loop():
    """Two loops, one in the other, of 3 and 4 trips: 12 times 128 bytes."""

    def loop(name, trips, body):
        return f"""
          %s{name} = stablehlo.constant dense<0> : tensor<i32>
          %r{name} = stablehlo.while(%i{name} = %s{name}) : tensor<i32> cond {{
            %n{name} = stablehlo.constant dense<{trips}> : tensor<i32>
            %c{name} = stablehlo.compare LT, %i{name}, %n{name} : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c{name} : tensor<i1>
          }} do {{
            {body}
            %o{name} = stablehlo.constant dense<1> : tensor<i32>
            %j{name} = stablehlo.add %i{name}, %o{name} : tensor<i32>
            stablehlo.return %j{name} : tensor<i32>
          }}"""

    (use,) = uses(loop("a", 3, loop("b", 4, f"%0 = {GATHER}")))
    assert (use.times, use.unknown_loops, use.bytes_each, use.bytes_received) == (12, 0, 128, 12 * 128)


def test_of_the_branches_of_a_conditional_the_dearest_counts():
    """One branch gathers once, the other twice; only one of them is taken."""
    branch = "}}, {{ {} stablehlo.return %a : tensor<4x8xf32>"
    body = "".join(branch.format(f"%x = {GATHER}" + (f" %y = {GATHER}" if twice else "")) for twice in (False, True))
    found = uses(f"""%p = stablehlo.constant dense<true> : tensor<i1>
      %r = "stablehlo.if"(%p) ({body.removeprefix("}, ")} }}) : (tensor<i1>) -> tensor<4x8xf32>""")
    assert [use.counted for use in found] == [False, True, True]
    assert total_bytes(found) == 256


def test_a_loop_of_unknown_length_counts_once_and_is_marked():
    gather = f'"stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {PAIRS}, {CHANNEL}}}>'
    found = uses(f"""
      %t = stablehlo.constant dense<true> : tensor<i1>
      %w = stablehlo.while(%i = %t) : tensor<i1> cond {{
        stablehlo.return %i : tensor<i1>
      }} do {{
        %0 = {gather} : (tensor<4x8xf32>) -> tensor<8x8xf32>
        stablehlo.return %i : tensor<i1>
      }}
      %1 = {gather} : (tensor<4x8xf32>) -> tensor<8x8xf32>""")
    assert [use.unknown_loops for use in found] == [1, 0]
    assert total_bytes(found) == 256


MESH = Mesh([("x", 4), ("y", 2)])  # device = 2 x + y


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        ([[0, 2, 4, 6], [1, 3, 5, 7]], "x"),
        ([[6, 0, 2, 4], [3, 5, 7, 1]], "x"),
        ([[0, 1], [2, 3], [4, 5], [6, 7]], "y"),
        ([[0, 4], [1, 5], [2, 6], [3, 7]], "x:(1)2"),
        ([[0, 2], [1, 3], [4, 6], [5, 7]], "x:(2)2"),
        ([[0, 1, 2, 3], [4, 5, 6, 7]], "x:(2)2,y"),
        ([[0, 1, 4, 5], [2, 3, 6, 7]], "x:(1)2,y"),
        ([[0, 1, 2, 3, 4, 5, 6, 7]], "x,y"),
        ([[0, 3], [1, 2], [4, 7], [5, 6]], ""),  # diagonals of x:(2)2 and y
        ([[0, 1, 2], [3, -1, -1]], ""),
        ([[0, 8]], ""),
    ],
)
def test_axes_of_groups(groups, axes):
    import numpy as np

    assert axes_of_groups(MESH, np.array(groups)) == axes


def test_axes_of_a_mesh_with_an_order_of_its_own():
    import numpy as np

    mesh = Mesh([("x", 2), ("y", 2)], [0, 3, 1, 2])  # y joins 0 with 3 and 1 with 2
    assert axes_of_groups(mesh, np.array([[0, 3], [1, 2]])) == "y"
    assert axes_of_groups(mesh, np.array([[0, 1], [3, 2]])) == "x"


SHARDINGS = (
    "{devices=[8,1]<=[8]}",
    "{devices=[1,8]<=[8]}",
    "{devices=[2,4]<=[8]}",
    "{devices=[4,2]<=[4,2]T(1,0)}",
    "{devices=[2,2,2]<=[8] last_tile_dim_replicate}",
    "{devices=[1,2,4]<=[2,4]T(1,0) last_tile_dim_replicate}",
    "{replicated}",
)


def test_a_broadcast_to_many_devices_is_what_each_receives():
    """256 f32 from one device to 8 others, in rounds of permutes: each receives 1,024 bytes, once."""
    plan = plan_redistribution((256,), "f32", "{maximal device=0}", "{replicated}", num_devices=9)
    found = collectives(parse_module(plan.to_module()))
    assert len(found) > 1
    assert total_bytes(found) == plan.bytes_received == 1024


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_planners_count(seed):
    """A plan of one kind of step a time: the sum over the module is the sum over the plan."""
    pick = random.Random(seed)
    source, target = pick.sample(SHARDINGS, 2)
    plan = plan_redistribution((16, 32), "f32", source, target, planner="rink", num_devices=8)
    found = collectives(parse_module(plan.to_module()))
    steps = [step.kind for step in plan.steps if step.kind != "dynamic_slice"]
    assert [use.kind for use in found] == steps
    assert total_bytes(found) == plan.bytes_received
