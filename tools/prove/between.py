#!/usr/bin/env python
"""Arrays from one set of devices to another, executed and compared: random problems on the devices of JAX.

    python -m tools.prove.between                                   100 problems in one process of 16 devices
    python -m tools.prove.between --processes 2 --problems 20       2 processes of 8 devices (4: of 4)

A problem is a tree of one to three arrays of random shapes, element types and shardings, from a random list of devices
to another one. ``shardpass.jax.redistribute`` moves the tree; each shard that a process holds is compared with NumPy's
slice of the whole array, byte by byte, and so is where it lies. Every second problem frees its sources.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tools.processes import ROOT, environment, module_command

WORKER = "--worker"
DEVICES = 16
ELEMENTS = ("float32", "bfloat16", "int8", "bool", "int32", "float8_e4m3fn", "complex64", "int4")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 1 where a problem differs or fails."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "between", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=1, choices=(1, 2, 4), metavar="P")
    parser.add_argument("--problems", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument(WORKER, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.worker:
        return work(args.problems, args.seed)
    given = ["--problems", str(args.problems), "--seed", str(args.seed)]
    options = ["--processes", str(args.processes), "--devices-per-process", str(DEVICES // args.processes)]
    command = module_command(
        "tools.run_distributed", *options, "--", *module_command("tools.prove.between", WORKER, *given)
    )
    return subprocess.run(command, env=environment(), cwd=ROOT).returncode


def work(problems: int, seed: int) -> int:
    from shardpass.runtime.processes import join

    join()
    import jax

    failed = 0
    for number in range(seed, seed + problems):
        reasons = differences(number, jax.devices())
        failed += bool(reasons)
        for reason in reasons:
            print(f"problem {number}: {reason}", flush=True)
    if jax.process_index() == 0:
        print(
            f"{problems - failed} of {problems} problems arrive equal, in {jax.process_count()} processes", flush=True
        )
    return int(failed > 0)


def differences(number: int, devices: Sequence[Any]) -> list[str]:
    """What is wrong with problem ``number``; nothing where every shard of this process is right."""
    import jax

    import shardpass.jax as spj

    rng = random.Random(number)
    meshes = [random_mesh(rng, devices) for _ in range(2)]
    tree: dict[str, Any] = {}
    targets: dict[str, Any] = {}
    wholes: dict[str, Any] = {}
    for name in "abc"[: rng.randint(1, 3)]:
        source, target, shape = random_ends(rng, *meshes)
        values = np.random.default_rng(number).integers(0, 100, shape)
        whole = wholes[name] = values.astype(jax.numpy.dtype(rng.choice(ELEMENTS)))
        shards = [jax.device_put(whole[at], d) for d, at in source.addressable_devices_indices_map(shape).items()]
        tree[name] = jax.make_array_from_single_device_arrays(shape, source, shards, dtype=whole.dtype)
        targets[name] = target
    moved = spj.redistribute(tree, targets, machine=rng.choice(("h100", "ideal")), donate=number % 2 == 0)
    wrong = []
    for name, array in moved.items():
        if not array.sharding.is_equivalent_to(targets[name], array.ndim):
            wrong.append(f"{name} is on {array.sharding}")
        for shard in array.addressable_shards:
            if np.asarray(shard.data).tobytes() != np.ascontiguousarray(wholes[name][shard.index]).tobytes():
                wrong.append(f"{name} {wholes[name].dtype}{list(array.shape)} differs on device {shard.device.id}")
    return wrong


def random_mesh(rng: random.Random, devices: Sequence[Any]) -> Any:
    """A mesh of some devices, in any order, with one or two axes."""
    import jax

    count = rng.choice([n for n in (1, 2, 3, 4, 5, 6, 8, 12, 16) if n <= len(devices)])
    rows = rng.choice([n for n in range(1, count + 1) if count % n == 0])
    chosen = np.array(rng.sample(list(devices), count)).reshape(rows, count // rows)
    return jax.sharding.Mesh(chosen, ("x", "y"))


def random_ends(rng: random.Random, before: Any, after: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Two shardings, and a shape that both divide."""
    from jax.sharding import NamedSharding, PartitionSpec

    rank = rng.randint(1, 3)
    sizes = [1] * rank
    shardings = []
    for mesh in (before, after):
        spec: list[list[str]] = [[] for _ in range(rank)]
        counts = [1] * rank
        for axis in rng.sample(["x", "y"], 2):
            if (dim := rng.randrange(rank + 1)) < rank:
                spec[dim].append(axis)
                counts[dim] *= mesh.shape[axis]
        sizes = [int(np.lcm(size, count)) for size, count in zip(sizes, counts, strict=True)]
        shardings.append(NamedSharding(mesh, PartitionSpec(*(tuple(axes) or None for axes in spec))))
    return shardings[0], shardings[1], tuple(size * rng.randint(1, 3) for size in sizes)


if __name__ == "__main__":
    sys.exit(main())
