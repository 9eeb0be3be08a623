"""The bytes that XLA's collectives bring to a device, worked out by hand, and on a program that XLA compiled."""

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardpass.runtime.hlo_traffic import received

FOUR, PAIRS = "replica_groups={{0,1,2,3}}", "replica_groups={{0,1},{2,3}}"


def hlo(*lines, more=""):
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n\n{more}\nENTRY %main (p: f32[8]) -> f32[8] {{\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("line", "kind", "size"),
    [
        # a result of 8 f32, 32 bytes, of which 3 of 4 parts, or 1 of 2, come from others
        (f"%a = f32[8]{{0}} all-gather(%p), {FOUR}, dimensions={{0}}", "all_gather", 24),
        (f"%a = f32[8]{{0}} all-gather(%p), {PAIRS}, dimensions={{0}}", "all_gather", 16),
        (f"%a = f32[8]{{0}} all-to-all(%p), {FOUR}, dimensions={{0}}", "all_to_all", 24),
        # in and out again: twice that
        (f"%a = f32[8]{{0}} all-reduce(%p), {FOUR}, to_apply=%add", "all_reduce", 48),
        (f"%a = f32[8]{{0}} all-reduce(%p), {PAIRS}, to_apply=%add", "all_reduce", 32),
        # the result is one part of four; three others bring as much
        (f"%a = f32[8]{{0}} reduce-scatter(%p), {FOUR}, dimensions={{0}}, to_apply=%add", "reduce_scatter", 96),
        (f"%a = f32[8]{{0}} reduce-scatter(%p), {PAIRS}, dimensions={{0}}, to_apply=%add", "reduce_scatter", 32),
        ("%a = f32[8]{0} collective-permute(%p), source_target_pairs={{0,1},{1,0}}", "collective_permute", 32),
        (f"%a = f32[8]{{0}} collective-broadcast(%p), {PAIRS}", "collective_broadcast", 32),
        # several in one; narrow elements; a scalar
        (f"%a = (f32[8]{{0}}, bf16[4]{{0}}) all-reduce(%p, %q), {FOUR}, to_apply=%add", "all_reduce", 48 + 12),
        (f"%a = pred[8]{{0}} all-gather(%p), {FOUR}, dimensions={{0}}", "all_gather", 6),
        (f"%a = s4[7]{{0}} all-gather(%p), {PAIRS}, dimensions={{0}}", "all_gather", 2),
        (f"%a = f32[] all-reduce(%p), {FOUR}, to_apply=%add", "all_reduce", 6),
        # of an asynchronous pair the half of its type that is the result
        (f"%a = (f32[2]{{0}}, f32[8]{{0}}) all-gather-start(%p), {FOUR}, dimensions={{0}}", "all_gather", 24),
        # but that of a sum is of results alone
        (f"%a = f32[8]{{0}} all-reduce-start(%p), {FOUR}, to_apply=%add", "all_reduce", 48),
        (f"%a = (f32[8]{{0}}, bf16[4]{{0}}) all-reduce-start(%p, %q), {FOUR}, to_apply=%add", "all_reduce", 48 + 12),
    ],
)  # fmt: skip
def test_one_collective(line, kind, size):
    found = received(hlo(line), 4)
    assert found.bytes == {kind: size}
    assert found.runs == {kind: 1}
    assert found.total == size


@pytest.mark.parametrize(
    "line",
    [
        "%a = f32[8]{0} all-reduce(%p), replica_groups={{0},{1},{2},{3}}, to_apply=%add",
        "%a = f32[8]{0} collective-permute(%p), source_target_pairs={{0,0},{1,1}}",
        "%a = f32[8]{0} add(%p, %p)",
    ],
)
def test_what_moves_nothing_is_no_collective(line):
    found = received(hlo(line), 4)
    assert (found.runs, found.total) == ({}, 0)


def test_groups_of_several_sizes_and_permutes_are_added_up_by_device():
    """Device 0 gathers 3 of 4 parts with three others, device 4 half with device 5; then 4 is sent 32 bytes, twice."""
    groups = "replica_groups={{0,1,2,3},{4,5}}"
    one = "collective-permute(%p), source_target_pairs={{0,4}}"
    lines = [f"%a = f32[8]{{0}} all-gather(%p), {groups}, dimensions={{0}}", f"%b = f32[8]{{0}} {one}"]
    assert received(hlo(*lines), 6).total == 16 + 32
    other = "collective-permute(%p), source_target_pairs={{4,0}}"
    assert received(hlo(*lines, f"%c = f32[8]{{0}} {other}"), 6).total == 24 + 32
    assert received(hlo(*lines, f"%c = f32[8]{{0}} {other}"), 6).bytes == {"all_gather": 24, "collective_permute": 32}


BODY = f"""%body (q: f32[8]) -> f32[8] {{
  %g = f32[8]{{0}} all-gather(%q), {FOUR}, dimensions={{0}}
}}
%twice (q: f32[8]) -> f32[8] {{
  %r = f32[8]{{0}} all-reduce(%q), {FOUR}, to_apply=%add
  %s = f32[8]{{0}} call(%r), to_apply=%body
}}
%condition (q: f32[8]) -> pred[] {{
  %x = pred[] all-gather(%q), {PAIRS}, dimensions={{0}}
}}
"""
WHILE = "%w = f32[8]{0} while(%p), condition=%condition, body=%body"


def test_a_loop_counts_as_often_as_it_is_known_to_run():
    known = ', backend_config={"known_trip_count":{"n":"5"}}'
    found = received(hlo(WHILE + known, more=BODY), 4)
    assert found.runs == {"all_gather": 10}
    assert found.total == 5 * (24 + 1)  # half of a predicate is sent as a byte
    assert received(hlo(WHILE, more=BODY), 4).total == 24 + 1


def test_a_call_counts_what_it_calls_each_time():
    lines = [f"%c{k} = f32[8]{{0}} call(%p), to_apply=%twice" for k in range(2)]
    assert received(hlo(*lines, more=BODY), 4).bytes == {"all_reduce": 96, "all_gather": 48}


@pytest.mark.parametrize(
    "branches",
    ["branch_computations={%body, %twice}", "true_computation=%body, false_computation=%twice"],
)
def test_of_a_conditional_the_branch_that_receives_most_counts(branches):
    found = received(hlo(f"%c = f32[8]{{0}} conditional(%i, %p, %p), {branches}", more=BODY), 4)
    assert found.bytes == {"all_reduce": 48, "all_gather": 24}


def test_a_product_that_xla_partitions():
    """x @ y over a split contraction of 4 devices: a sum of [8, 8] f32, 256 bytes, of which 3/4 go in and 3/4 out."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    x = jax.device_put(np.ones((8, 16), np.float32), NamedSharding(mesh, P(None, "x")))
    y = jax.device_put(np.ones((16, 8), np.float32), NamedSharding(mesh, P("x", None)))
    compiled = jax.jit(jax.numpy.matmul, out_shardings=NamedSharding(mesh, P())).lower(x, y).compile()
    assert received(compiled.as_text(), 4).bytes == {"all_reduce": 2 * 256 * 3 // 4}
