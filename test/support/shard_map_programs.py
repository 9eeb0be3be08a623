"""Random shard_map programs, right and wrong in what their out_specs promise; ``agree`` says which, by running them.

A program is a list of steps on local arrays of 4x4 f32; every choice comes from a seed. Collectives stand only where
all devices of a group come to them, so that no program waits for ever. Inputs are random whole numbers: two devices
that hold different functions of them hold different values.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

LOCAL = 4  # rows and columns of every local array
Values = list[Any]


@dataclass(frozen=True)
class Program:
    """``jitted(checked)`` is the program under jit, with JAX's own check of replication or without."""

    body: Callable[..., Any]
    mesh: Any
    in_specs: tuple[Any, ...]
    out_specs: tuple[Any, ...]
    names: tuple[str, ...]  # of the steps

    def jitted(self, checked: bool = False) -> Any:
        return jax.jit(
            jax.shard_map(
                self.body, mesh=self.mesh, in_specs=self.in_specs, out_specs=self.out_specs, check_vma=checked
            )
        )

    def arguments(self, seed: int) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        sizes = dict(self.mesh.shape)
        found = []
        for spec in self.in_specs:
            count = [
                int(np.prod([sizes[n] for n in (part if isinstance(part, tuple) else (part,))])) if part else 1
                for part in (*spec, None, None)[:2]
            ]
            found.append(rng.integers(-9, 10, [LOCAL * c for c in count]).astype(np.float32))
        return found

    def agree(self, seeds: range) -> bool:
        """Whether, run on these inputs, all devices that hold one tile of an output hold the same values."""
        run = self.jitted()
        for seed in seeds:
            for output in jax.block_until_ready(run(*self.arguments(seed))):
                tiles: dict[str, bytes] = {}
                for shard in output.addressable_shards:
                    data = np.asarray(shard.data).tobytes()
                    if tiles.setdefault(str(shard.index), data) != data:
                        return False
        return True


def make(seed: int) -> Program:
    rng = random.Random(seed)
    names, sizes = rng.choice([(("i", "j"), (4, 2)), (("i", "j"), (2, 4)), (("i", "j", "k"), (2, 2, 2))])
    mesh = jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(names), devices=jax.devices()[:8])
    size = dict(zip(names, sizes, strict=True))
    in_specs = tuple(_spec(rng, names) for _ in range(rng.randint(1, 3)))
    steps = [_step(rng, names, size) for _ in range(rng.randint(1, 6))]
    picks = [rng.choice([0, 0, 1, 2]) for _ in range(rng.randint(1, 2))]
    out_specs = tuple(_spec(rng, names) for _ in picks)

    def body(*arguments: Any) -> Any:
        values = list(arguments)
        for _, step in steps:
            values.append(step(values))
        return tuple(values[-1 - min(pick, len(values) - 1)] for pick in picks)

    return Program(body, mesh, in_specs, out_specs, tuple(name for name, _ in steps))


def _spec(rng: random.Random, names: tuple[str, ...]) -> Any:
    some = rng.sample(names, rng.randint(0, len(names)))
    cut = rng.randint(0, len(some))
    return P(tuple(some[:cut]) or None, tuple(some[cut:]) or None)


def _step(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> tuple[str, Callable[[Values], Any]]:
    """A step with its choices taken: from the values so far to a new one of the local shape."""
    name = rng.choice(list(_STEPS))
    return name, _STEPS[name](rng, names, size)


def _value(rng: random.Random) -> Callable[[Values], Any]:
    back = rng.choice([0, 0, 1, 2, 3])
    return lambda values: values[-1 - min(back, len(values) - 1)]


def _axes(rng: random.Random, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(rng.sample(names, rng.randint(1, len(names))))


def _number(axes: tuple[str, ...]) -> Any:
    """An affine function of the device's place along ``axes``."""
    return sum((3 * k + 1) * lax.axis_index(a) for k, a in enumerate(axes))


def _elementwise(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, other = _value(rng), _value(rng)
    kind = rng.choice([jnp.add, jnp.subtract, jnp.maximum, lambda a, b: a @ b, lambda a, b: jnp.sort(a, 0) + 1])
    return lambda values: kind(one(values), other(values))


def _constant(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    return lambda values: jnp.arange(LOCAL * LOCAL, dtype=jnp.float32).reshape(LOCAL, LOCAL)


def _sum(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, axes, kind = _value(rng), _axes(rng, names), rng.choice([lax.psum, lax.pmax, lax.pmin])
    return lambda values: kind(one(values), axes)


def _gather(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, axes, place = _value(rng), _axes(rng, names), rng.choice([None, 0, -1])

    def step(values: Values) -> Any:
        found = lax.all_gather(one(values), axes)
        return found.sum(0) if place is None else found[place]

    return step


def _exchange(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, axis, dim = _value(rng), rng.choice(names), rng.choice([0, 1])
    return lambda values: lax.all_to_all(one(values), axis, dim, dim, tiled=True)


def _scatter(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, axis = _value(rng), rng.choice(names)
    return lambda values: jnp.tile(
        lax.psum_scatter(one(values), axis, scatter_dimension=0, tiled=True), (size[axis], 1)
    )


def _permute(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, axis = _value(rng), rng.choice(names)
    n = size[axis]
    pairs = rng.choice([[(k, (k + 1) % n) for k in range(n)], [(k, k + 1) for k in range(n - 1)], [(0, n - 1)]])
    return lambda values: lax.ppermute(one(values), axis, pairs)


def _by_number(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, other, axes, at = _value(rng), _value(rng), _axes(rng, names), rng.randint(0, 3)
    return lambda values: jnp.where(_number(axes) == at, one(values), other(values))


def _from_one(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, axis = _value(rng), rng.choice(names)
    return lambda values: lax.psum(jnp.where(lax.axis_index(axis) == 0, one(values), 0), axis)


def _arithmetic(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, axes, by, rest = _value(rng), _axes(rng, names), rng.randint(1, 3), rng.randint(1, 4)
    return lambda values: one(values) + ((_number(axes) + 5) // by % rest).astype(jnp.float32)


def _row(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, axes = _value(rng), _axes(rng, names)
    table = np.array([rng.randint(0, 2) for _ in range(20)], np.int32)

    def step(values: Values) -> Any:
        row = lax.dynamic_index_in_dim(one(values), jnp.asarray(table)[_number(axes)], 0)
        return jnp.broadcast_to(row, (LOCAL, LOCAL)) + 0

    return step


def _branch(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    """The predicate varies over ``axes``; a collective inside is over another axis."""
    one, other, axis = _value(rng), _value(rng), rng.choice(names)
    rest = tuple(n for n in names if n != axis)
    inside = rng.choice([lambda x: x + 1, lambda x: lax.psum(x, rest), lambda x: x * 0])

    def step(values: Values) -> Any:
        return lax.cond(lax.axis_index(axis) == 0, inside, lambda x: x - 1, one(values)) + 0 * other(values)

    return step


def _by_data(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, other = _value(rng), _value(rng)
    return lambda values: lax.cond(one(values).sum() > 0, lambda x: x + 1, lambda x: -x, other(values))


def _loop(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    one, other, axes, trips = _value(rng), _value(rng), _axes(rng, names), rng.randint(0, 3)
    kind = rng.choice(["sum", "add", "swap"])

    def step(values: Values) -> Any:
        def body(k: Any, carried: Any) -> Any:
            a, b = carried
            if kind == "sum":
                return lax.pmax(a, axes), b + 1
            return (a + b, b) if kind == "add" else (b, a)

        return lax.fori_loop(0, trips, body, (one(values), other(values)))[0]

    return step


def _counted(rng: random.Random, names: tuple[str, ...], size: dict[str, int]) -> Callable[[Values], Any]:
    """As many trips as the device's place along some axes says, or as data that may agree says."""
    one, other, axes, by_data = _value(rng), _value(rng), _axes(rng, names), rng.random() < 0.5

    def step(values: Values) -> Any:
        count = (jnp.abs(other(values).sum()) % 3).astype(jnp.int32) if by_data else jnp.asarray(_number(axes))
        return lax.while_loop(lambda c: c[0] < count, lambda c: (c[0] + 1, c[1] + 1), (jnp.int32(0), one(values)))[1]

    return step


_STEPS: dict[str, Callable[[random.Random, tuple[str, ...], dict[str, int]], Callable[[Values], Any]]] = {
    "elementwise": _elementwise,
    "constant": _constant,
    "sum": _sum,
    "sum again": _sum,
    "gather": _gather,
    "exchange": _exchange,
    "scatter": _scatter,
    "permute": _permute,
    "by number": _by_number,
    "from one": _from_one,
    "arithmetic": _arithmetic,
    "row": _row,
    "branch": _branch,
    "by data": _by_data,
    "loop": _loop,
    "counted": _counted,
}
