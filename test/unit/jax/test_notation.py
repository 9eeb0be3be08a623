"""JAX's shardings: base offset maps held to ``devices_indices_map``, and the way there and back."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from shardpass.sharding import Mesh, Sharding, ShardingError, parse_sharding

jax = pytest.importorskip("jax")
from jax.sharding import AbstractMesh, PartitionSpec  # noqa: E402

from shardpass.jax import notation  # noqa: E402

MESH = AbstractMesh((4, 2), ("x", "y"))

CASES = [
    (PartitionSpec("x", "y"), [["x"], ["y"]]),
    (PartitionSpec(("y", "x")), [["y", "x"]]),
    (PartitionSpec(None, "y"), [[], ["y"]]),
    (PartitionSpec(), []),
]


@pytest.mark.parametrize(("spec", "dims"), CASES)
def test_there_and_back(spec: PartitionSpec, dims: list[list[str]]) -> None:
    ours = notation.from_partition_spec(spec, MESH)
    assert ours == Sharding.tiled(Mesh((("x", 4), ("y", 2))), dims)
    assert notation.to_partition_spec(ours) == spec


def test_a_dimension_without_an_entry_is_whole() -> None:
    assert notation.from_partition_spec(PartitionSpec("x"), MESH, rank=3).tile_counts(3) == (4, 1, 1)


def test_unconstrained_is_open() -> None:
    spec = PartitionSpec(PartitionSpec.UNCONSTRAINED, "y")
    ours = notation.from_partition_spec(spec, MESH)
    assert ours.notes.open == (0,)
    assert notation.to_partition_spec(ours) == spec


def test_partial_sums() -> None:
    spec = PartitionSpec("x", unreduced={"y"})
    ours = notation.from_partition_spec(spec, MESH)
    assert str(ours) == "{devices=[4,2]<=[8] last_tile_dims={unreduced}}"
    assert notation.to_partition_spec(ours) == spec


def test_a_part_of_an_axis_cannot_be_said() -> None:
    from shardpass.sharding import AxisRef

    ours = Sharding.tiled(Mesh((("x", 4), ("y", 2))), [[AxisRef("x", 1, 2)]])
    with pytest.raises(ShardingError, match="part of an axis"):
        notation.to_partition_spec(ours)


def test_too_many_entries() -> None:
    with pytest.raises(ShardingError, match="splits 2 dimensions, but the array has 1"):
        notation.from_partition_spec(PartitionSpec("x", "y"), MESH, rank=1)


def test_gspmd() -> None:
    from jax._src.lib import xla_client
    from jax._src.sharding_impls import GSPMDSharding

    text = "{devices=[1,1]<=[1]}"
    hlo = xla_client.HloSharding.from_string(text)
    assert notation.from_jax(GSPMDSharding(jax.devices()[:1], hlo)) == parse_sharding(text)


def test_a_single_device() -> None:
    ours = notation.from_jax(jax.sharding.SingleDeviceSharding(jax.devices()[0]), rank=2)
    assert ours.is_replicated
    assert ours.num_devices == 1


def test_to_jax_numbers_the_devices_as_the_sharding_does() -> None:
    parts = Sharding.tiled(Mesh((("x", 1),)), [["x"], []])
    there = notation.to_jax(parts, jax.devices()[:1])
    assert notation.from_jax(there, rank=2) == parts
    with pytest.raises(ShardingError, match="over 8 devices, not 1"):
        notation.to_jax(Sharding.tiled(Mesh((("x", 8),)), [["x"]]), jax.devices()[:1])
    with pytest.raises(ShardingError, match="cannot express"):
        notation.to_jax(Sharding.maximal(0), jax.devices()[:1])


def test_another_class() -> None:
    with pytest.raises(ShardingError, match="cannot express an object of class int"):
        notation.from_jax(3)


PROBE = """
    import json, sys
    import jax, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    devices = jax.devices()
    for line in sys.stdin:
        order, shape, names, spec, array = json.loads(line)
        mesh = Mesh(np.array([devices[d] for d in order], dtype=object).reshape(shape), names)
        entries = [tuple(e) if isinstance(e, list) else e for e in spec]
        sharding = NamedSharding(mesh, PartitionSpec(*entries))
        found = sharding.devices_indices_map(tuple(array))
        rows = [[s.indices(n)[:2] for s, n in zip(found[d], array)] for d in sharding._device_assignment]
        print(json.dumps([rows, sharding.shard_shape(tuple(array)), str(sharding._to_xla_hlo_sharding(len(array)))]))
"""


def random_problem(rng: random.Random) -> list[object]:
    shape = [rng.choice([1, 2, 2, 3, 4, 6]) for _ in range(rng.randint(1, 3))]
    while int(np.prod(shape)) > 24:
        shape.pop()
    names = ["a", "b", "c"][: len(shape)]
    order = list(range(int(np.prod(shape))))
    rng.shuffle(order)
    rank = rng.randint(1, 4)
    spec: list[object] = [[] for _ in range(rank)]
    for name in rng.sample(names, len(names)):
        if rng.random() < 0.8:
            rng.choice(spec).append(name)  # type: ignore[attr-defined]
    sizes = dict(zip(names, shape, strict=True))
    array = [int(np.prod([sizes[n] for n in entry])) * rng.randint(1, 3) for entry in spec]  # type: ignore[attr-defined]
    entries = [None if not e else e[0] if len(e) == 1 and rng.random() < 0.5 else e for e in spec]  # type: ignore[index,arg-type]
    return [order, shape, names, entries, array]


def test_base_offset_maps_equal_jax_for_1000_random_meshes_and_specs() -> None:
    rng = random.Random(20)
    problems = [random_problem(rng) for _ in range(1000)]
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=24", "JAX_PLATFORMS": "cpu"}
    text = "\n".join(map(json.dumps, problems))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROBE)], input=text, env=env, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 1000
    for (_, shape, names, spec, array), line in zip(problems, lines, strict=True):
        rows, shard_shape, hlo = json.loads(line)
        mesh = Mesh(zip(names, shape, strict=True))  # type: ignore[call-overload]
        ours = notation.from_partition_spec(spec, mesh, rank=len(array))  # type: ignore[arg-type]
        assert ours.tile_shape(array) == tuple(shard_shape)  # type: ignore[arg-type]
        offsets = ours.tile_offsets(array, mesh.size)  # type: ignore[arg-type]
        assert offsets.tolist() == [[start for start, _ in row] for row in rows]
        tile = ours.tile_shape(array)  # type: ignore[arg-type]
        assert (offsets + tile).tolist() == [[stop for _, stop in row] for row in rows]
        assert str(ours) == hlo or ours.is_replicated


BACK = """
    import sys
    import jax, numpy as np
    from shardpass.jax import notation
    from shardpass.sharding import parse_sharding
    for line in sys.stdin:
        text = line.strip()
        ours = parse_sharding(text)
        there = notation.to_jax(ours, jax.devices()[: ours.num_devices])
        shape = tuple(8 * c for c in ours.tile_counts(len(ours.dims)))
        found = there.devices_indices_map(shape)
        for device, row in zip(jax.devices(), ours.tile_offsets(shape).tolist()):
            assert [s.indices(n)[0] for s, n in zip(found[device], shape)] == row, (text, device)
    print("done")
"""


def test_to_jax_places_every_tile_on_its_device() -> None:
    texts = [
        "{devices=[4,2]<=[2,4]T(1,0)}", "{devices=[4]3,1,2,0}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
        "{mesh['x'=4,'y'=2], [{'x':(2)2}, {'y'}]}", "{mesh['x'=8], device_ids=(7,6,5,4,3,2,1,0), [{}, {'x':(1)4}]}",
    ]  # fmt: skip
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BACK)], input="\n".join(texts), env=env, capture_output=True, text=True
    )
    assert done.stdout.strip() == "done", done.stderr
