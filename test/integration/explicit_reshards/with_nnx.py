"""Programs of flax nnx, each with a wasteful type at the marked line, and with types that it needs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from integration.explicit_reshards.cases import known
from jax.sharding import NamedSharding, reshard
from jax.sharding import PartitionSpec as P


def _weight(mesh: Any, spec: Any, *shape: int) -> Any:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return nnx.Param(jax.device_put(values, NamedSharding(mesh, spec)))


class Block(nnx.Module):
    """A layer of two products."""

    def __init__(self, mesh: Any) -> None:
        self.up = _weight(mesh, P(None, "model"), 64, 256)
        self.down = _weight(mesh, P("model", None), 256, 64)

    def __call__(self, x: Any) -> Any:
        h = jax.nn.relu(x @ self.up[...])
        return jnp.matmul(h, self.down[...], out_sharding=P("data", None))


class GatheredBlock(Block):
    def __call__(self, x: Any) -> Any:
        h = jax.nn.relu(x @ self.up[...])
        h = reshard(h, P("data", None))  # wasteful
        h = reshard(h, P("data", "model"))
        return jnp.matmul(h, self.down[...], out_sharding=P("data", None))


class RepeatingBlock(Block):
    def __call__(self, x: Any) -> Any:
        y = super().__call__(x)
        return reshard(y, P("data", None))  # wasteful


class WholeWeightBlock(Block):
    def __call__(self, x: Any) -> Any:
        up = reshard(self.up[...], P(None, None))  # wasteful
        h = jax.nn.relu(x @ reshard(up, P(None, "model")))
        return jnp.matmul(h, self.down[...], out_sharding=P("data", None))


def _forward(block: Any, x: Any) -> Any:
    return x + block(x)


@nnx.jit
def _step(block: Any, x: Any) -> Any:
    def loss(block: Any, x: Any) -> Any:
        y = reshard(block(x), P(None, None))  # wasteful
        return jnp.mean(reshard(y, P("data", None)) ** 2)

    return nnx.value_and_grad(loss)(block, x)


def _residual(block: Any, x: Any) -> Any:
    x = reshard(x, P(None, None))  # wasteful
    return reshard(x, P("data", None)) + block(reshard(x, P("data", None)))


def _program(name: str, function: Any, kind: Any, marked: Any) -> None:
    def make(mesh: Any) -> tuple[Any, tuple[Any, ...]]:
        x = jax.device_put(np.ones((16, 64), np.float32), NamedSharding(mesh, P("data", None)))
        return function, (kind(mesh), x)

    known(name, make, marked)


_program("nnx_gathers_its_hidden_layer", nnx.jit(_forward), GatheredBlock, GatheredBlock.__call__)
_program("nnx_repeats_a_type", nnx.jit(_forward), RepeatingBlock, RepeatingBlock.__call__)
_program("nnx_gathers_a_weight", nnx.jit(_forward), WholeWeightBlock, WholeWeightBlock.__call__)
_program("nnx_step_gathers_its_output", _step, Block, _step.fun)
_program("nnx_residual_gathers_its_batch", nnx.jit(_residual), Block, _residual)
