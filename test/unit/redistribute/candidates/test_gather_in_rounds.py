"""Gathers in rounds, which hold less: taken where a limit asks for it, right on XLA, and less there too."""

import math

import execution as x
import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.redistribute import plan_redistribution
from shardpass.sharding import Mesh, Sharding
from tools.prove.numpy_programs import evaluate

M42 = Mesh((("a", 4), ("b", 2)))
M6 = Mesh((("a", 3), ("b", 2)))


def plan(mesh, source, target, limit, shape, element="i32"):
    sides = [Sharding.tiled(mesh, [tuple(dim) for dim in side]) for side in (source, target)]
    return plan_redistribution(shape, element, *sides, memory_limit=limit)


CASES = {
    "columns": (M42, ("", "a"), ("", ""), (24, 24)),
    "columns over both axes": (M42, ("", "ab"), ("", ""), (24, 24)),
    "columns of two": (M42, ("", "b"), ("", ""), (24, 24)),
    "rows and columns": (M42, ("b", "a"), ("", ""), (24, 24)),
    "columns whose minor axis stays": (M42, ("", "ab"), ("b", ""), (24, 24)),
    "three ways": (M6, ("b", "a"), ("", ""), (24, 24)),
    "columns that do not divide": (M6, ("", "a"), ("", ""), (23, 22)),
    "after an exchange": (M42, ("a", "b"), ("b", ""), (24, 24)),
    "a dimension in the middle": (M42, ("", "a", ""), ("", "", ""), (3, 24, 5)),
}


@pytest.mark.parametrize("case", CASES)
def test_less_memory_and_the_same_result(case):
    """The least limit that can be had: NumPy and XLA agree with slicing, and XLA's buffers are no more than before."""
    mesh, source, target, shape = CASES[case]
    free = plan(mesh, source, target, "max", shape)
    low, high = 0, free.peak_live_bytes  # the least limit, by halving
    while high - low > 1:
        middle = (low + high) // 2
        try:
            plan(mesh, source, target, middle, shape)
        except ShardpassError:
            low = middle
        else:
            high = middle
    lean = plan(mesh, source, target, high, shape)
    assert lean.peak_live_bytes == high
    whole = x.numbered(shape)
    x.expect_tiles(lean, whole, x.run_plan(lean, whole))
    base = np.asarray(lean.source.tile_offsets(shape, lean.num_devices))
    after = evaluate(lean.program, [x.tile_of(whole, row, lean.source_tile, 0) for row in base])
    x.expect_tiles(lean, whole, after)


def test_a_limit_changes_the_plan_and_what_xla_allocates():
    """Columns in four rounds: the result, and two of its quarters, where the default has it twice."""
    array = 4 * 256 * 256
    limit = array + array // 2
    free, lean = (plan(M42, ("", "a"), ("", ""), m, (256, 256), "f32") for m in ("max", limit))
    assert [step.kind for step in free.steps] == ["all_gather"]
    assert [step.kind for step in lean.steps] == ["collective_permute"] * 3
    assert free.bytes_received == lean.bytes_received == lean.lower_bound_bytes
    assert (free.peak_live_bytes, lean.peak_live_bytes) == (2 * array, limit)
    assert lean.seconds > free.seconds
    taken = []
    for found in (free, lean):
        stats = x.compile_text(found.to_module(), 8).get_compiled_memory_stats()
        taken.append(stats.temp_size_in_bytes + stats.output_size_in_bytes)
    scalars = 64  # offsets
    assert taken[0] >= 2 * array
    assert taken[1] <= limit + scalars


def test_along_the_leading_dimension_there_is_nothing_to_gain():
    """One all_gather holds its operand and its result; a byte less is too little, and said to be."""
    needed = 4 * (24 * 24 + 24 * 24 // 8)
    assert plan(M42, ("ab", ""), ("", ""), needed, (24, 24)).peak_live_bytes == needed
    with pytest.raises(ShardpassError, match=f"the least is {needed} bytes"):
        plan(M42, ("ab", ""), ("", ""), needed - 1, (24, 24))
    assert needed == math.prod((24, 24)) * 4 * 9 // 8
