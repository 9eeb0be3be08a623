"""Modules of flax nnx, whose layers take an ``out_sharding``."""

import jax
import jax.numpy as jnp
from flax import nnx
from integration.explicit_errors.programs.feedforward import D, M, array
from jax.sharding import PartitionSpec as P


class Feedforward(nnx.Module):
    def __init__(self, up, down):
        self.up = nnx.Linear(64, 256, use_bias=False, rngs=nnx.Rngs(0))
        self.down = nnx.Linear(256, 64, use_bias=False, rngs=nnx.Rngs(0))
        self.up.kernel, self.down.kernel = nnx.Param(up), nnx.Param(down)

    def __call__(self, x):
        return x + self.down(nnx.relu(self.up(x)), out_sharding=P("data", None))


def module(x, up, down):
    return Feedforward(up, down)(x)


def module_arguments():
    return array((32, D), 64), array(64, (256, M)), array((256, M), 64)


def module_train(x, up, down):
    def loss(weights):
        return jnp.mean(Feedforward(*weights)(x) ** 2)

    return jax.grad(loss)((up, down))


module_train_arguments = module_arguments


class Tokens(nnx.Module):
    def __init__(self, table):
        self.embed = nnx.Embed(1024, 64, rngs=nnx.Rngs(0))
        self.embed.embedding = nnx.Param(table)

    def __call__(self, ids):
        return self.embed(ids, out_sharding=P("data", None, None))


def tokens(table, ids):
    return Tokens(table)(ids)


def tokens_arguments():
    return array((1024, M), 64), array((16, D), 32, dtype="int32")


class Tied(nnx.Module):
    """Tokens in, scores of tokens out, by one table."""

    def __init__(self, table):
        self.embed = nnx.Embed(1024, 64, rngs=nnx.Rngs(0))
        self.embed.embedding = nnx.Param(table)
        self.norm = nnx.LayerNorm(64, use_scale=False, use_bias=False, rngs=nnx.Rngs(0))

    def __call__(self, h):
        return self.embed.attend(self.norm(h), out_sharding=P("data", None, None))


def scores(table, h):
    return Tied(table)(h)


def scores_arguments():
    return array(1024, (64, M)), array((16, D), 32, (64, M))
