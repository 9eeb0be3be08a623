"""Receivers in groups with holders of their own, and trees that leave by all ports of a host."""

import pytest

from shardpass import plan_reshard_tree
from shardpass.cost.machine import find_machine
from shardpass.redistribute.between.cells import Cell, Demand
from shardpass.redistribute.between.groups import grouped
from shardpass.redistribute.between.idle import idle
from shardpass.redistribute.between.ports import ports_of
from shardpass.redistribute.between.shares import loads, shares
from shardpass.redistribute.between.trees import trees

H100, FLAT = ports_of(find_machine("h100")), ports_of(find_machine("ideal"))


def demand(holders, receivers, size=1000):
    return Demand(tuple(holders), tuple(receivers), (Cell((0,), ((0,), (size,)), 8),))


def test_hosts_serve_hosts():
    first, second = grouped(demand(range(16), range(16, 48)), H100)
    assert (first.holders, first.receivers) == (tuple(range(8)), tuple(range(16, 32)))
    assert (second.holders, second.receivers) == (tuple(range(8, 16)), tuple(range(32, 48)))


@pytest.mark.parametrize("ports", [H100, FLAT])
@pytest.mark.parametrize(("holders", "receivers"), [(3, 11), (11, 3), (1, 9), (9, 1), (20, 50)])
def test_every_device_is_in_one_group(ports, holders, receivers):
    groups = grouped(demand(range(holders), range(100, 100 + receivers)), ports)
    assert sorted(device for group in groups for device in group.holders) == list(range(holders))
    assert sorted(device for group in groups for device in group.receivers) == list(range(100, 100 + receivers))
    assert all(group.holders and group.receivers for group in groups)


def test_a_replicated_tree_to_twice_as_many_devices():
    """500 arrays of 1 MiB on 64 devices to 128: each receiver gets all at the rate of its port, but for the start."""
    tree = [((2**20,), "i8", "{replicated}", "{replicated}")] * 500
    plan = plan_reshard_tree(tree, source_devices=range(64), target_devices=range(64, 192), machine="ideal")
    least = 500 * 2**20 / 50e9
    assert least <= plan.bound_seconds <= plan.seconds <= 1.02 * least
    ends = {(message.sender, message.receiver) for messages in plan.rounds for message in messages}
    assert all((receiver - 64) // 2 == (sender if sender < 64 else (sender - 64) // 2) for sender, receiver in ends)


@pytest.mark.parametrize("receivers", [range(2, 37), range(16, 40), (1, 9, 17, 18)])
def test_trees_bring_every_receiver_one_copy_from_who_has_it(receivers):
    receivers = [device for device in receivers if device not in (9, 10)]
    for tree in trees((9, 10), receivers, H100, relay=True, wide=True):
        assert sorted(edge.receiver for edge in tree) == receivers
        for at, edge in enumerate(tree):
            assert edge.after < at
            assert edge.sender in (9, 10) if edge.after < 0 else edge.sender == tree[edge.after].receiver


def test_the_ports_of_the_smallest_host_are_the_only_limit():
    """To 2..36 from 9 and 10 of the same ids: host 4 has five cards, over which a copy takes size / 250 GB/s."""
    size = 64_000_000
    wanted = demand((9, 10), [device for device in range(2, 37) if device not in (9, 10)], size)
    ways = trees(wanted.holders, wanted.receivers, H100, relay=True, wide=True)
    busy = {}
    for tree, amount in shares([wanted], [ways], H100)[0]:
        for port, count in loads(tree, H100).items():
            busy[port] = busy.get(port, 0) + count * amount / H100.rates[port[1]]
    assert max(busy.values()) == pytest.approx(size / 250e9, rel=1e-4)


def test_ports_wait_for_the_first_bytes():
    """Holder 0, receivers 1 and 8 to 15: ports of host 1 inside of it wait for the card, 15 us, and last 10 us."""
    receivers = (1, *range(8, 16))
    used = [(True, 0, 1), (True, 0, 8), (True, 1, 8), (False, 0, 8), (False, 1, 0)]
    waits, starts = idle([demand((0,), receivers)], H100, used)
    wanted = {(True, 0, 1): 10, (True, 0, 8): 25, (True, 1, 8): 15, (False, 0, 8): 25, (False, 1, 0): 15}
    assert {port: round(wait * 1e6, 6) for port, wait in waits.items()} == wanted
    assert starts == []
