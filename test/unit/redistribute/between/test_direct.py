"""Regular problems of any size: equal to the bound, which arithmetic gives, without a search."""

import numpy as np
import pytest

from shardpass import plan_redistribution, plan_reshard_tree
from shardpass.redistribute.between.meeting import circulant, greedy

ROWS, COLUMNS = "{{devices=[{0},1]<=[{0}]}}", "{{devices=[1,{0}]<=[{0}]}}"


def test_rows_of_256_to_columns_of_128():
    """Each receiver gets 1/128 of 40 arrays of 32 MiB over its card of 50 GB/s, and nobody waits."""
    tree = [((4096, 4096), "bf16", ROWS.format(256), COLUMNS.format(128))] * 40
    plan = plan_reshard_tree(tree, source_devices=range(256), target_devices=range(256, 384), machine="h100")
    wanted = 40 * 2 * 4096 * 4096 / 128 / 50e9 + 15e-6
    assert plan.seconds == pytest.approx(wanted)
    assert plan.bound_seconds == pytest.approx(wanted)
    assert sum(len(messages) for messages in plan.rounds) == 256 * 128
    assert plan.bytes_received == plan.lower_bound_bytes == 40 * 2 * 4096 * 4096 // 128


@pytest.mark.parametrize("count", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_fully_sharded_to_tensors_in_parallel(count):
    """Copies of 8 parts: a receiver gets 1/8 of all, of which senders have unequal parts where rows meet rows."""
    copies = f"{{{{devices=[{{0}},{{1}},{count}]<=[{count},8]T(1,0) last_tile_dim_replicate}}}}"
    senders, receivers = 16 * count, 8 * count
    tree = [
        ((4096, 2048), "bf16", ROWS.format(senders), copies.format(1, 8)),
        ((2048, 4096), "bf16", ROWS.format(senders), copies.format(8, 1)),
    ] * 30
    plan = plan_reshard_tree(
        tree, source_devices=range(senders), target_devices=range(senders, senders + receivers), machine="h100"
    )
    least = 60 * 2 * 4096 * 2048 / 8 / 50e9
    assert least <= plan.bound_seconds <= plan.seconds <= 1.02 * (least + 15e-6)


def test_receivers_of_one_holder_set_ask_different_holders():
    """Four copies and four receivers whose ids are all 0 modulo 4: each copy is asked once, in one round."""
    plan = plan_redistribution(
        (2**22,), "i8", "{replicated}", "{devices=[4]<=[4]}",
        source_devices=range(4), target_devices=(4, 8, 12, 16), machine="ideal",
    )  # fmt: skip
    assert [sorted(message.sender for message in messages) for messages in plan.rounds] == [[0, 1, 2, 3]]
    assert plan.seconds == pytest.approx(plan.bound_seconds)


def test_a_message_to_a_host_without_waiting():
    """Half of two hosts of 8 hold the array: every receiver has another holder in its host, and no card is needed."""
    plan = plan_redistribution(
        (2**25,), "i8", "{replicated}", "{devices=[8]<=[8]}",
        source_devices=(0, 1, 2, 3, 8, 9, 10, 11), target_devices=(4, 5, 6, 7, 12, 13, 14, 15), machine="h100",
    )  # fmt: skip
    ways = {plan.way: plan.seconds, **plan.refused}
    assert ways["one message a pair"] == pytest.approx(2**22 / 480e9 + 10e-6)
    assert plan.seconds <= ways["one message a pair"]


def ends(order, i, j, seconds):
    """The end of the schedule; no port has two messages at once."""
    start = order(i, j, seconds)
    for port in (i, j):
        for k in np.unique(port):
            mine = np.argsort(start[port == k])
            begin, stop = start[port == k][mine], (start + seconds)[port == k][mine]
            assert (begin[1:] >= stop[:-1] * (1 - 1e-9)).all()
    return float((start + seconds).max())


@pytest.mark.parametrize("order", [circulant, greedy])
@pytest.mark.parametrize("seed", range(8))
def test_no_port_has_two_messages_at_once(order, seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 12, 2)
    i, j = np.nonzero(rng.random((m, n)) < 0.7)
    if not len(i):
        i, j = np.array([0]), np.array([0])
    i, j = (np.unique(side, return_inverse=True)[1] for side in (i, j))
    seconds = rng.integers(1, 9, len(i)).astype(float)
    busiest = max(np.bincount(i, seconds).max(), np.bincount(j, seconds).max())
    assert busiest <= ends(order, i, j, seconds) <= seconds.sum() + 1e-9


def test_greedy_needs_less_where_pairs_differ():
    """Receiver 0 needs 4 from each of 4 senders, 1 and 2 need 1: the busiest port is done at 16."""
    i, j = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    seconds = np.where(j == 0, 4.0, 1.0)
    assert ends(greedy, i, j, seconds) == 16.0
