"""Random shardings for the fuzzer's programs."""

from __future__ import annotations

from random import Random
from typing import Any

from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.sharding import AxisRef, Mesh, Sharding

MESHES = (
    Mesh((("x", 2), ("y", 2))),
    Mesh((("x", 4), ("y", 2))),
    Mesh((("x", 2), ("y", 3))),
    Mesh((("x", 8),)),
    Mesh((("x", 2), ("y", 2), ("z", 2))),
)


def random_sharding(rng: Random, mesh: Mesh, shape: tuple[int, ...]) -> str:
    """mhlo text of a sharding for a value of ``shape``: mostly of whole axes, at times in an order of its own."""
    dice = rng.random()
    if dice < 0.1:
        return "{replicated}"
    if dice < 0.13:
        return f"{{maximal device={rng.randrange(mesh.size)}}}"
    if dice < 0.2:
        ids = list(range(mesh.size))
        rng.shuffle(ids)
        mesh = Mesh(mesh.axes, tuple(ids))
    parts = list(prime_mesh(mesh).parts) if rng.random() < 0.25 else _axes(mesh)
    rng.shuffle(parts)
    dims: list[tuple[Any, ...]] = [()] * len(shape)
    fill = 0.7 if rng.random() < 0.8 else 1.0
    for part in parts:
        wide = [d for d, size in enumerate(shape) if size > 1 or rng.random() < 0.1]
        if wide and rng.random() < fill:
            dim = rng.choice(wide)
            dims[dim] += (part,)
    tiled = Sharding.tiled(mesh, tuple(dims))
    return "{replicated}" if tiled.is_replicated else str(tiled)


def _axes(mesh: Mesh) -> list[Any]:
    return [AxisRef(name) for name, _ in mesh.axes]
