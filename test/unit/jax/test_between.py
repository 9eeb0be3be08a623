"""``redistribute`` to other devices: the same numbers, within the plan's memory, and nothing lost by a failure."""

import random
import sys
from collections import Counter

import jax
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from support.stopped_moves import every_moment, in_moves

import shardpass.jax as spj
from shardpass import ShardpassError
from shardpass.jax import between, transport
from tools.prove.between import differences

DEVICES = np.array(jax.devices())
SIX = Mesh(DEVICES[:6], ("x",))
FOUR = Mesh(DEVICES[4:8].reshape(2, 2), ("a", "b"))


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 100).astype(dtype)


def put(values, mesh, *spec):
    return jax.device_put(values, NamedSharding(mesh, P(*spec)))


@pytest.mark.turns(3)
@pytest.mark.parametrize("seed", range(1000, 1012))
def test_shards_are_slices(seed):
    assert differences(seed, jax.devices()) == []


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.int4, np.bool_, np.complex64])
def test_element_types(dtype):
    values = numbers(12, 4, dtype=dtype)
    moved = spj.redistribute(put(values, SIX, "x"), NamedSharding(FOUR, P("b", "a")))
    np.testing.assert_array_equal(np.asarray(moved), values)
    assert moved.dtype == dtype


def test_a_tree_with_arrays_of_both_sorts():
    """One array goes to other devices, one to another sharding on its own, one is on a single device, one is a key."""
    tree = {"far": put(numbers(12, 4), SIX, "x"), "near": put(numbers(8, 4), FOUR, "a"), "one": numbers(8, 4),
            "key": put(jax.random.key(3), SIX)}  # fmt: skip
    targets = {"far": P("b"), "near": P(None, "b"), "one": P("a"), "key": P()}
    targets = {name: NamedSharding(FOUR, spec) for name, spec in targets.items()}
    moved = spj.redistribute(tree, targets)
    for name, array in moved.items():
        assert array.sharding.is_equivalent_to(targets[name], array.ndim)
        if name != "key":
            np.testing.assert_array_equal(np.asarray(array), np.asarray(tree[name]))
    assert jax.random.key_data(moved["key"]).tolist() == jax.random.key_data(jax.random.key(3)).tolist()
    assert not any(array.is_deleted() for name, array in tree.items() if name != "one")


@pytest.mark.parametrize("shape", [(), (0, 4)])
def test_scalars_and_nothing(shape):
    moved = spj.redistribute(put(numbers(*shape), SIX), NamedSharding(FOUR, P()))
    assert moved.shape == shape
    np.testing.assert_array_equal(np.asarray(moved), numbers(*shape))
    assert len(moved.addressable_shards) == 4


def test_a_source_is_freed_when_it_is_asked():
    source, kept = (put(numbers(12, 4), SIX, "x") for _ in range(2))
    spj.redistribute(kept, NamedSharding(FOUR, P("a")))
    spj.redistribute([source, source], NamedSharding(FOUR, P("a")), donate=True)
    assert source.is_deleted()
    assert not kept.is_deleted()


def alive():
    """Bytes by device of all buffers that JAX knows, each once."""
    sizes = {}
    for array in jax.live_arrays():
        for shard in array.addressable_shards:
            sizes[shard.device.id, shard.data.unsafe_buffer_pointer()] = shard.data.nbytes
    total = Counter()
    for (device, _), size in sizes.items():
        total[device] += size
    return total


@pytest.mark.parametrize("limit", ["max", 90_000])
def test_live_buffers_stay_within_the_plan(limit, monkeypatch):
    """After each round, and where pieces are in flight: sources, targets and one round's pieces."""
    before = alive()
    tree = [put(numbers(96, 64), SIX, "x") for _ in range(6)]
    target = NamedSharding(FOUR, P(None, "b"))
    seen, plans = Counter(), []
    place, plan = between._Tiles.round, between.planned

    def watched(tiles, pieces, how):
        place(tiles, pieces, how)
        seen.update({d: max(0, size - before[d] - seen[d]) for d, size in alive().items()})

    class Watching(transport.Copies):
        def exchange(self, pieces, values):
            for arrived in super().exchange(pieces, values):
                seen.update({d: max(0, size - before[d] - seen[d]) for d, size in alive().items()})
                yield arrived

    monkeypatch.setattr(between._Tiles, "round", watched)
    monkeypatch.setattr(between, "Copies", Watching)
    monkeypatch.setattr(between, "planned", lambda *given: plans.append(plan(*given)) or plans[-1])
    spj.redistribute(tree, target, donate=True, memory_limit=limit)
    (made,) = plans
    assert (len(made.waves) > 1) == (limit != "max")
    assert all(array.is_deleted() for array in tree)
    assert max(seen.values()) > 0
    for device, size in seen.items():
        assert size <= made.alive.get(device, 0), device
    if limit != "max":
        assert max(seen.values()) <= limit


@pytest.mark.parametrize("donate", [False, True])
def test_nothing_is_lost_when_a_transfer_fails(donate, monkeypatch):
    """The second wave fails in its second round: arrays of the first have moved, the others are where they were."""
    values = [numbers(96, 64) + k for k in range(6)]
    tree = [put(one, SIX, "x") for one in values]
    target = NamedSharding(FOUR, P(None, "b"))
    rounds = []

    class Broken(transport.Copies):
        def exchange(self, pieces, values):
            rounds.append(pieces)
            if len(rounds) == len(first.rounds) + 2:
                raise RuntimeError("the cable is cut\nand so on")
            return super().exchange(pieces, values)

    facts = tuple((x.shape, x.dtype, x.sharding, target) for x in tree)
    first = between.planned(facts, between.machine_of_mesh(FOUR), 90_000).waves[0]
    monkeypatch.setattr(between, "Copies", Broken)
    with pytest.raises(ShardpassError) as raised:
        spj.redistribute(tree, target, donate=donate, memory_limit=90_000)
    error = raised.value
    assert error.diagnostics[0].code == "SP617"
    assert error.diagnostics[0].message.endswith(
        f"moved {len(first.arrays)} of 6 arrays to their new devices, and then stopped: the cable is cut"
    )
    for k, array in enumerate(error.arrays):
        np.testing.assert_array_equal(np.asarray(array), values[k])
        assert array.sharding == (target if k in first.arrays else tree[k].sharding)
    assert [array.is_deleted() for array in tree] == [donate and k in first.arrays for k in range(6)]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.13 traces some instructions of a frame only")
def test_nothing_is_lost_by_an_exception_before_any_instruction():
    moments, faults = every_moment(in_moves, 48)
    assert moments > 500
    assert faults == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_carries_the_arrays(kind, monkeypatch):
    """The leaf that stays on its devices is in its new sharding, the others are where they were."""

    class Interrupted(transport.Copies):
        def exchange(self, pieces, values):
            raise kind("of the user")

    monkeypatch.setattr(between, "Copies", Interrupted)
    tree = {"far": put(numbers(12, 4), SIX, "x"), "near": put(numbers(8, 4), FOUR, "a")}
    to = NamedSharding(FOUR, P("b"))
    with pytest.raises(kind, match="of the user") as raised:
        spj.redistribute(tree, to, donate=True)
    far, near = raised.value.arrays
    assert far is tree["far"]
    assert near.sharding == to
    np.testing.assert_array_equal(np.asarray(far), numbers(12, 4))
    np.testing.assert_array_equal(np.asarray(near), numbers(8, 4))
    (note,) = raised.value.__notes__
    assert "moved 0 of 1 arrays" in note
    assert "`error.arrays`" in note


@pytest.mark.parametrize("donate", [True, False])
def test_an_interrupt_while_jax_lists_the_shards_of_a_source(donate):
    """JAX keeps a list that ended in the middle, and the array cannot be read."""
    here, there = NamedSharding(Mesh(DEVICES[:4], ("x",)), P("x")), NamedSharding(Mesh(DEVICES[4:8], ("x",)), P("x"))
    numbers = np.arange(32.0).reshape(8, 4)
    source = jax.device_put(numbers, here)
    jax.block_until_ready(source)
    calls = 0

    def trace(frame, event, argument):
        nonlocal calls
        if event == "call" and frame.f_code.co_name in ("make_single_device_sharding", "get_memory_space"):
            calls += 1
            if calls == 2:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    arrays = [source]
    sys.settrace(trace)
    try:
        between.move(arrays, {0: there}, "ideal", "max", donate)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    np.testing.assert_array_equal(np.asarray(arrays[0]), numbers)
    if not source.is_deleted():
        assert len(source.addressable_shards) == 4


def test_a_source_is_kept_while_a_leaf_has_its_buffers():
    source, stays, target = put(numbers(12, 4), SIX), NamedSharding(SIX, P()), NamedSharding(FOUR, P("a"))
    other_name = jax.device_put(source, NamedSharding(SIX, P(None, None)))
    moved = spj.redistribute([source, other_name, source], [target, stays, target], donate=True)
    for array in moved:
        np.testing.assert_array_equal(np.asarray(array), numbers(12, 4))
    assert not source.is_deleted()


def test_no_source_is_freed_before_all_processes_agree(monkeypatch):
    """Another process that has stopped never agrees: both ends of the wave's arrays are whole here."""

    class Alone(transport.Copies):
        def agree(self):
            raise RuntimeError("the other process has ended")

    monkeypatch.setattr(between, "Copies", Alone)
    tree = [put(numbers(12, 4) + k, SIX, "x") for k in range(3)]
    with pytest.raises(ShardpassError) as raised:
        spj.redistribute(tree, NamedSharding(FOUR, P("b")), donate=True)
    for ends in (tree, raised.value.arrays):
        for k, array in enumerate(ends):
            np.testing.assert_array_equal(np.asarray(array), numbers(12, 4) + k)
    assert all(array.sharding.mesh == FOUR for array in raised.value.arrays)


def test_devices_of_another_backend(monkeypatch):
    source, target = put(numbers(12, 4), SIX, "x"), NamedSharding(FOUR, P("a"))
    monkeypatch.setattr(jax, "devices", lambda *_: list(DEVICES[:6]))
    with pytest.raises(ShardpassError) as raised:
        spj.redistribute(source, target)
    assert raised.value.diagnostics[0].code == "SP616"


@pytest.mark.parametrize("limit", [[], 2.5, "lots", -1])
def test_limits_that_are_none(limit):
    with pytest.raises(ShardpassError) as raised:
        spj.redistribute(put(numbers(12, 4), SIX, "x"), NamedSharding(FOUR, P("a")), memory_limit=limit)
    assert raised.value.diagnostics[0].code == "SP412"


def test_no_device_sends_or_receives_twice_in_a_program():
    rng = random.Random(5)
    pairs = list({(rng.randrange(6), rng.randrange(6)) for _ in range(25)})
    groups = transport.one_each(pairs)
    assert sorted(pair for group in groups for pair in group) == sorted(pairs)
    for group in groups:
        for end in zip(*group, strict=True):
            assert len(set(end)) == len(end)


def test_permutes_in_one_process(monkeypatch):
    """The way of several processes gives the same arrays."""
    row = Mesh(DEVICES, ("device",))
    monkeypatch.setattr(between, "_transport", lambda facts: transport.Permutes(row))
    for seed in (2001, 2002, 2003):
        assert differences(seed, jax.devices()) == []
