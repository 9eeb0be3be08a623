"""Runs partitioned modules on XLA's CPU devices, for tests: place, execute, gather, in NumPy terms.

A helper of the tests alone, so that plans are judged by XLA and NumPy and not by shardpass.runtime.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxlib import _jax
from jaxlib import xla_client as xc

from shardpass.redistribute import Plan


def compile_text(text: str, devices: int) -> Any:
    """A module of per-device shapes, compiled so that XLA adds no collective of its own."""
    places = tuple(jax.devices("cpu")[:devices])
    options = xc.CompileOptions()
    options.num_replicas, options.num_partitions = 1, devices
    options.device_assignment = xc.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, devices
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = False
    return places[0].client.compile_and_load(text, _jax.DeviceList(places), options)


def execute(compiled: Any, locals_: list[np.ndarray]) -> list[np.ndarray]:
    """One local array for each device in, one out."""
    places = jax.devices("cpu")[: len(locals_)]
    mesh = jax.sharding.Mesh(np.array(places), ("d",))
    shape = locals_[0].shape
    spec = jax.sharding.PartitionSpec("d") if shape else jax.sharding.PartitionSpec()
    whole = (len(places) * shape[0], *shape[1:]) if shape else shape
    shards = [jax.device_put(x, p) for x, p in zip(locals_, places, strict=True)]
    argument = jax.make_array_from_single_device_arrays(whole, jax.sharding.NamedSharding(mesh, spec), shards)
    result = compiled.execute_sharded([argument]).disassemble_into_single_device_arrays()[0]
    return [np.asarray(x) for x in result]


def tile_of(whole: np.ndarray, base: np.ndarray, tile: tuple[int, ...], filler: Any) -> np.ndarray:
    """The tile of ``whole`` at ``base`` by NumPy slicing; what lies past the end is ``filler``."""
    out = np.full(tile, filler, whole.dtype)
    part = whole[tuple(slice(int(b), int(b) + n) for b, n in zip(base, tile, strict=True))]
    out[tuple(slice(0, n) for n in part.shape)] = part
    return out


def offsets(sharding: Any, shape: tuple[int, ...], devices: int) -> np.ndarray:
    return np.asarray(sharding.tile_offsets(shape, devices))


def run_plan(plan: Plan, whole: np.ndarray) -> list[np.ndarray]:
    """The result of ``plan`` on every device, from XLA."""
    before = _locals(plan, plan.source, whole, plan.source_tile, 1)
    return execute(compile_text(plan.to_module(), plan.num_devices), before)


def expect_tiles(plan: Plan, whole: np.ndarray, got: list[np.ndarray]) -> None:
    """Every element of every target tile, but the padding, is the one that NumPy slicing finds."""
    for d, result in enumerate(got):
        assert result.shape == plan.target_tile
        if plan.target.is_maximal:
            if d == plan.target.device:
                np.testing.assert_array_equal(result, whole)
            continue
        base = offsets(plan.target, plan.shape, plan.num_devices)[d]
        want = whole[tuple(slice(int(b), int(b) + n) for b, n in zip(base, plan.target_tile, strict=True))]
        np.testing.assert_array_equal(result[tuple(slice(0, n) for n in want.shape)], want, f"device {d}")


def _locals(plan: Plan, sharding: Any, whole: np.ndarray, tile: tuple[int, ...], filler: Any) -> list[np.ndarray]:
    if sharding.is_maximal:
        empty = np.full(tile, filler, whole.dtype)
        return [whole if d == sharding.device else empty for d in range(plan.num_devices)]
    base = offsets(sharding, plan.shape, plan.num_devices)
    return [tile_of(whole, row, tile, filler) for row in base]


def numbered(shape: tuple[int, ...], dtype: Any = np.int32) -> np.ndarray:
    """An array in which every element differs, as far as the type can tell."""
    return np.arange(1, int(np.prod(shape)) + 1, dtype=np.int64).reshape(shape).astype(dtype)
