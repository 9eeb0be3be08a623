"""What lives together: beside NumPy's own buffers as a program runs, beside XLA's, and by hand."""

import inspect
import itertools
import math
import random
import typing

import execution as x
import numpy as np
import pytest
from support import daily

from shardpass.element_types import element_type
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.memory import Memory
from shardpass.sharding import Mesh, Sharding
from tools.prove.numpy_programs import evaluate

F32 = element_type("f32")


def random_plan(rng, planner):
    sizes = rng.choice([(8,), (2, 4), (2, 2, 2), (2, 3), (2, 2, 3)])
    mesh = Mesh(tuple((f"m{i}", n) for i, n in enumerate(sizes)))
    rank = rng.randint(1, 3)
    sides = []
    for _ in range(2):
        dims = [[] for _ in range(rank)]
        for axis in rng.sample(range(len(sizes)), len(sizes)):
            place = rng.randint(-1, rank - 1)
            if place >= 0:
                dims[place].append(f"m{axis}")
        sides.append(Sharding.tiled(mesh, dims))
    unit = rng.choice([1, 24])
    shape = tuple(unit * rng.randint(1, 12) for _ in range(rank))
    return plan_redistribution(shape, "f32", *sides, planner=planner, num_devices=mesh.size)


EXCHANGE = (ops.BeginBoxExchange, ops.BoxRound, ops.EndBoxExchange)
INSIDE = (*EXCHANGE, ops.ChunkRounds, ops.Slide)  # these fill buffers of their own


@pytest.mark.parametrize("planner", ["rink", "best"])
@pytest.mark.parametrize("seed", daily.drawn(range(40), 13))
def test_shapes_and_buffers_are_those_of_numpy(planner, seed):
    """Op by op on real arrays: what is counted as live is at least what NumPy holds before and after."""
    plan = random_plan(random.Random(seed), planner)
    memory = Memory(plan.source_tile, F32)
    values = [np.zeros(plan.source_tile, np.float32) for _ in range(plan.num_devices)]
    exchange = any(isinstance(op, EXCHANGE) for op in plan.program)
    for count, op in enumerate(plan.program, 1):
        live = memory.follow(plan.program[:count])
        before = values[0]
        if not exchange:  # whose ops share an accumulator: evaluated as one, below
            values = evaluate((op,), values)
            assert memory.shape == values[0].shape
            whole = before.nbytes if isinstance(op, ops.Reshape) else before.nbytes + values[0].nbytes
            assert live >= whole
            more = 3 if isinstance(op, INSIDE) else 2 if isinstance(op, ops.AllGather | ops.ReduceScatter) else 1
            assert live <= more * whole
    if exchange:
        assert memory.shape == evaluate(plan.program, values)[0].shape
    assert memory.shape == plan.target_tile
    assert memory.peak == plan.peak_live_bytes
    assert plan.peak_live_bytes >= plan.peak_bytes
    assert all(step.live <= plan.peak_live_bytes for step in plan.steps)


def test_an_exchange_holds_value_accumulator_and_boxes():
    """16 elements in, 20 in the accumulator, boxes of 4 that are cut out, that come, and that are masked."""
    here = np.arange(2)
    table = np.zeros((2, 1), np.int64)
    begin, end = ops.BeginBoxExchange((16,), (20,)), ops.EndBoxExchange((16,), table)
    whole, part = np.full((2, 1), 4), np.array([[4], [3]])
    for source_of, extents, boxes in ((here, whole, 1), (here[::-1], whole, 2), (here[::-1], part, 3)):
        memory = Memory((16,), F32)
        program = (begin, ops.BoxRound((4,), source_of, table, table, extents), end)
        live = [memory.follow(program[:n]) // 4 for n in (1, 2, 3)]
        assert live == [16 + 20, 16 + 20 + 4 * boxes, 20 + 16]
        assert memory.copied == 4 * (20 + 2 * 4 + 16)


def test_rounds_hold_the_result_beside_the_value():
    """Four rounds of a quarter each: 16 in, 16 out, the chunk on its way out and the one that comes."""
    source_of = np.array([[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]])
    take = np.zeros((4, 4, 1), np.int64)
    memory = Memory((16,), F32)
    memory.follow([ops.ChunkRounds((4,), (4,), 0, source_of, take, np.arange(4))])
    assert (memory.peak, memory.shape) == (4 * (16 + 16 + 4 + 4), (16,))
    assert memory.copied == 4 * (16 + 16)


@pytest.mark.parametrize(
    "op",
    [
        ops.AsBits(),
        ops.Reshape((2, 8)),
        ops.Permute(np.array([1, 0])),
        ops.AllReduce(np.array([[0, 1]]), "add"),
        ops.AllGather(0, np.array([[0, 1]])),
        ops.ReduceScatter(0, np.array([[0, 1]]), "add"),
    ],
    ids=lambda op: type(op).__name__,
)
def test_what_travels_or_is_seen_otherwise_is_not_copied(op):
    memory = Memory((4, 4), F32)
    memory.follow([op])
    assert memory.copied == 0


def test_steps_say_what_lives_in_them():
    """A slice of half, then an all_to_all of what is left."""
    plan = plan_redistribution(
        (8, 8), "f32", "{mesh['a'=2,'b'=2], [{'b'}, {}]}", "{mesh['a'=2,'b'=2], [{}, {'b', 'a'}]}"
    )
    tiles = [math.prod(plan.source_tile), *(math.prod(step.tile_after) for step in plan.steps)]
    assert [step.live for step in plan.steps] == [4 * (a + b) for a, b in itertools.pairwise(tiles)]


@pytest.mark.parametrize("axis", range(3))
def test_gathers_as_xla_makes_them(axis):
    """Along any axis but the leading one XLA keeps a second buffer of the whole result: we count it."""
    groups = np.arange(4)[None]
    memory = Memory((16, 16, 16), F32)
    memory.follow([ops.AllGather(axis, groups)])
    spec = ", ".join("{'x'}" if i == axis else "{}" for i in range(3))
    shape = tuple(64 if i == axis else 16 for i in range(3))
    plan = plan_redistribution(shape, "f32", f"{{mesh['x'=4], [{spec}]}}", "{replicated}", planner="rink")
    assert [type(op) for op in plan.program] == [ops.AllGather]
    stats = x.compile_text(plan.to_module(), 4).get_compiled_memory_stats()
    buffers = stats.temp_size_in_bytes + stats.output_size_in_bytes
    if axis == 0:
        buffers += stats.argument_size_in_bytes
    assert memory.peak == plan.peak_live_bytes == buffers


def test_every_op_is_known():
    said = inspect.getsource(Memory)
    assert [op.__name__ for op in typing.get_args(ops.Op) if f"ops.{op.__name__}()" not in said] == []
    memory = Memory((4,), F32)
    with pytest.raises(TypeError, match="object is no op of a device program"):
        memory.follow([object()])
