"""Plans between device sets: right by NumPy's own slices, and as fast as an optimum by enumeration."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from support.machines import switched

from shardpass import ShardpassError, parse_sharding, plan_redistribution

sys.path.insert(0, str(Path(__file__).parent))
import problems
from support import daily
from support.transfers import simulate

FLAT = switched("flat", 0.0, 1.0, 1.0)  # a byte a second at each port


def slices(shape, text, devices):
    """The tile of each device, by the sharding's own offsets."""
    if text == "{replicated}":
        return dict.fromkeys(devices, problems.whole(shape))
    sharding = parse_sharding(text)
    values, tile = problems.whole(shape), sharding.tile_shape(shape)
    found = {}
    for device, offset in zip(devices, sharding.tile_offsets(shape), strict=True):
        part = values[tuple(slice(a, a + n) for a, n in zip(offset, tile, strict=True))]
        if part.size:
            found[device] = part
    return found


@pytest.mark.parametrize("seed", daily.drawn(range(60), 20))
def test_devices_end_with_the_tiles_of_the_target(seed):
    shape, source, target, senders, receivers, machine = problems.problem(seed)
    plan = plan_redistribution(
        shape, "i32", source, target, source_devices=senders, target_devices=receivers, machine=machine
    )
    (tiles,) = simulate(plan, [problems.whole(shape)])
    wanted = slices(shape, target, receivers)
    assert tiles.keys() == wanted.keys()
    for device, tile in wanted.items():
        np.testing.assert_array_equal(tiles[device], tile)
    assert plan.seconds >= plan.bound_seconds * (1 - 1e-9)
    held = slices(shape, source, senders)
    for device in {*held, *wanted}:
        both = sum(4 * tiles.get(device, np.empty(0)).size for tiles in (held, wanted))
        rounds = max((traffic(messages, device) for messages in plan.rounds), default=0)
        assert plan.alive.get(device, 0) <= both + rounds


def traffic(messages, device):
    return sum(one.bytes * ((one.sender == device) + (one.receiver == device)) for one in messages)


@pytest.mark.parametrize("seed", daily.drawn(range(60), 20))
def test_a_port_has_one_message_a_round(seed):
    shape, source, target, senders, receivers, machine = problems.problem(seed)
    plan = plan_redistribution(
        shape, "i32", source, target, source_devices=senders, target_devices=receivers, machine=machine
    )
    hosts = {"h100": 8, "ideal": 10**6, "v5e-slices": 256}[machine]
    for messages in plan.rounds:
        ends = [(one.sender // hosts == one.receiver // hosts, one.sender) for one in messages]
        assert len(set(ends)) == len(ends)
        ends = [(one.sender // hosts == one.receiver // hosts, one.receiver) for one in messages]
        assert len(set(ends)) == len(ends)


def optimum(shape, source, target, senders, receivers):
    """The fewest elements at the busiest port, over every choice of a holder for each element and receiver."""
    before, after = slices(shape, source, senders), slices(shape, target, receivers)
    holders = {}
    for device, tile in before.items():
        for element in tile.flat:
            holders.setdefault(element, []).append(device)
    needs = [(d, e) for d, tile in after.items() for e in tile.flat if d not in holders[e]]
    most_in = max((sum(d == r for r, _ in needs) for d in receivers), default=0)
    best = [len(needs)]

    def assign(k, sent):
        if max(sent.values(), default=0) >= best[0]:
            return
        if k == len(needs):
            best[0] = max(sent.values(), default=0)
            return
        for device in holders[needs[k][1]]:
            assign(k + 1, {**sent, device: sent.get(device, 0) + 1})

    assign(0, {})
    return max(best[0], most_in)


@pytest.mark.parametrize("seed", daily.drawn(range(40), 13))
def test_the_busiest_port_is_that_of_the_best_assignment(seed):
    """Without receivers in common, whatever is passed on is nothing: the optimum is over holders alone."""
    rng = problems.random.Random(seed)
    size, senders = rng.randint(2, 6), rng.choice((2, 4))
    source = rng.choice((f"{{devices=[1,{senders}]<=[{senders}] last_tile_dim_replicate}}",
                         f"{{devices=[{senders // 2},2]<=[{senders}] last_tile_dim_replicate}}"))  # fmt: skip
    count = rng.randint(2, 4)
    lists = rng.sample(range(8), senders), rng.sample(range(8), count)
    given = (size,), source, f"{{devices=[{count}]<=[{count}]}}", *lists
    plan = plan_redistribution(
        (size,), "i8", *given[1:3], source_devices=lists[0], target_devices=lists[1], machine=FLAT
    )
    busiest = max([*plan.sent.values(), *plan.received.values()], default=0)
    assert busiest == optimum(*given)
    assert plan.bound_seconds <= busiest + 1e-9


def test_six_devices_to_four():
    """12 rows in tiles of 2 on devices 0 to 5 and of 3 on 6 to 9: device 6 needs rows 0..2 of 0 and row 2 of 1, ..."""
    plan = plan_redistribution(
        (12,), "f32", "{devices=[6]<=[6]}", "{devices=[4]<=[4]}",
        source_devices=range(6), target_devices=range(6, 10), machine=FLAT,
    )  # fmt: skip
    sent = sorted((m.sender, m.receiver, c.box) for r in plan.rounds for m in r for c in m.cells)
    total = {}
    for sender, receiver, box in sent:
        total[sender, receiver] = total.get((sender, receiver), 0) + box[1][0] - box[0][0]
    pairs = {(row // 2, 6 + row // 3) for row in range(12)}
    assert total == {pair: sum((row // 2, 6 + row // 3) == pair for row in range(12)) for pair in pairs}
    assert plan.bound_seconds == 12.0
    assert set(plan.received.values()) == {12}
    assert plan.seconds == 12.0


def test_replicas_share_the_work_of_a_sender():
    """One of two holders to two receivers: 8 bytes each, from a holder each, in half the time of a single sender."""
    plan = plan_redistribution(
        (8,), "i8", "{devices=[1,2]<=[2] last_tile_dim_replicate}", "{devices=[1,2]<=[2] last_tile_dim_replicate}",
        source_devices=[0, 1], target_devices=[2, 3], machine=FLAT,
    )  # fmt: skip
    assert plan.seconds == plan.bound_seconds == 8.0


def test_receivers_pass_on_what_many_need():
    """8 MB from one device to all of two hosts of 8: one copy in all, or in each host, leaves over the slow card."""
    plan = plan_redistribution(
        (8_000_000,), "i8", "{maximal device=0}", "{replicated}",
        source_devices=[0], target_devices=range(8, 24), machine="h100",
    )  # fmt: skip
    assert plan.way == "passed on"
    assert plan.bound_seconds == pytest.approx(15e-6 + 8e6 / 50e9)
    assert plan.seconds < 2 * plan.bound_seconds
    assert plan.refused["first holder"] > 14 * plan.bound_seconds


def test_meshes_of_jax_with_other_devices():
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    devices = np.array(jax.devices())
    old = NamedSharding(Mesh(devices[:6], ("x",)), PartitionSpec("x"))
    new = NamedSharding(Mesh(devices[4:8].reshape(2, 2), ("a", "b")), PartitionSpec(None, "b"))
    plan = plan_redistribution((12, 4), np.float32, old, new)
    assert plan.arrays[0].source.devices == (0, 1, 2, 3, 4, 5)
    assert plan.arrays[0].target.devices == (4, 5, 6, 7)
    (tiles,) = simulate(plan, [problems.whole((12, 4))])
    for device, (rows, columns) in zip(new.mesh.devices.flat, new.devices_indices_map((12, 4)).values(), strict=True):
        np.testing.assert_array_equal(tiles[device.id], problems.whole((12, 4))[rows, columns])


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"source_devices": [0, 1, 1, 2]}, "SP417"),
        ({"source_devices": "0123"}, "SP417"),
        ({"source_devices": []}, "SP417"),
        ({"source_devices": [0, 1, 2, -3]}, "SP417"),
        ({"source_devices": [0, 1, 2, 2.5]}, "SP417"),
        ({"source_devices": 7}, "SP417"),
        ({"source_devices": [0, 1, 2]}, "SP419"),
        ({"target_devices": [0, 1, 2]}, "SP419"),
        ({}, "SP402"),
    ],
)
def test_errors(given, code):
    with pytest.raises(ShardpassError) as raised:
        plan_redistribution((8,), "f32", "{devices=[4]<=[4]}", "{devices=[2]<=[2]}", **given)
    assert raised.value.diagnostics[0].code == code


def test_partial_sums_are_refused():
    partial = "{devices=[1,4]<=[4] last_tile_dims={unreduced}}"
    with pytest.raises(ShardpassError) as raised:
        plan_redistribution((8,), "f32", partial, "{replicated}", source_devices=range(4), target_devices=[9])
    assert raised.value.diagnostics[0].code == "SP418"


def test_nothing_moves_to_where_it_is():
    plan = plan_redistribution(
        (8, 0), "f32", "{devices=[4,1]<=[4]}", "{devices=[2,1]<=[2]}", source_devices=range(4), target_devices=[7, 8]
    )
    assert plan.rounds == ()
    assert plan.seconds == plan.bound_seconds == 0.0


def test_a_limit_of_memory_makes_messages_smaller():
    given = (4096,), "i8", "{devices=[2]<=[2]}", "{devices=[2]<=[2]}"
    lists = {"source_devices": [0, 1], "target_devices": [2, 3], "machine": "ideal"}
    assert plan_redistribution(*given, **lists).peak_bytes > 2048 + 64
    assert plan_redistribution(*given, **lists, memory_limit=2048 + 64).peak_bytes <= 2048 + 64
    with pytest.raises(ShardpassError) as raised:
        plan_redistribution(*given, **lists, memory_limit=2000)
    assert raised.value.diagnostics[0].code == "SP413"


def test_the_cut_of_permutations_has_every_order_of_devices():
    for order in itertools.permutations((5, 6, 7)):
        plan = plan_redistribution(
            (6,), "i32", "{devices=[2]<=[2]}", "{devices=[3]<=[3]}", source_devices=[6, 9], target_devices=order
        )
        (tiles,) = simulate(plan, [problems.whole((6,))])
        assert [tiles[device].tolist() for device in order] == [[1, 2], [3, 4], [5, 6]]


def test_devices_beside_a_holder_pass_on_to_other_hosts():
    """64 MB from 2 devices of a host to all of five hosts: the cards of the holders alone would take 4 copies / 2."""
    plan = plan_redistribution(
        (64_000_000,), "i8", "{devices=[1,2]<=[2] last_tile_dim_replicate}", "{replicated}",
        source_devices=[9, 10], target_devices=range(40), machine="h100",
    )  # fmt: skip
    assert plan.seconds < 0.9 * min(plan.refused["passed on"], 4 * 64e6 / 50e9 / 2)
