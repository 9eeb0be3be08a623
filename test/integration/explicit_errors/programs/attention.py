"""Attention and what is around it."""

import jax
import jax.numpy as jnp
from integration.explicit_errors.programs.feedforward import D, M, array
from jax.sharding import PartitionSpec as P


def attention(x, wq, wk, wv, wo):
    q = jnp.einsum("bsd,dhk->bshk", x, wq)
    k = jnp.einsum("bsd,dhk->bshk", x, wk)
    v = jnp.einsum("bsd,dhk->bshk", x, wv)
    scores = jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k) / 4.0, axis=-1)
    mixed_heads = jnp.einsum("bhqs,bshk->bqhk", scores, v)
    return jnp.einsum("bqhk,hkd->bqd", mixed_heads, wo, out_sharding=P("data", None, None))


def attention_arguments():
    heads = [array(64, (8, M), 16)] * 3
    return array((4, D), 32, 64), *heads, array((8, M), 16, 64)


def merged_heads(x, wqkv, wo):
    """Heads are split and merged by reshapes."""
    b, s, _ = x.shape
    qkv = jnp.einsum("bsd,de->bse", x, wqkv)
    qkv = jnp.reshape(qkv, (b, s, 3, 8, 16), out_sharding=P("data", None, None, "model"))
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k), axis=-1)
    out = jnp.einsum("bhqs,bshk->bqhk", scores, v)
    out = jnp.reshape(out, (b, s, 128), out_sharding=P("data", None, "model"))
    return jnp.matmul(out, wo, out_sharding=P("data", None, None))


def merged_heads_arguments():
    return array((4, D), 32, 64), array(64, (384, M)), array((128, M), 64)


def masked(q, k, v, mask):
    scores = jnp.einsum("bhqk,bhsk->bhqs", q, k)
    allowed = jax.reshard(jnp.broadcast_to(mask[:, None], scores.shape), P("data", "model"))
    scores = jnp.where(allowed, scores, jnp.full_like(scores, -1e9))
    return jnp.einsum("bhqs,bhsk->bhqk", jax.nn.softmax(scores, axis=-1), v)


def masked_arguments():
    heads = [array((4, D), (8, M), 32, 16)] * 3
    return *heads, array(4, 32, 32, dtype="bool")


def cache(keys, new, position):
    """A step of decoding writes its key."""
    new = jax.reshard(new, P("data", None, "model", None))
    return jax.lax.dynamic_update_slice(keys, new, (0, position, 0, 0))


def cache_arguments():
    return array((8, D), 128, (8, M), 16), array((8, D), 1, 8, 16), array(dtype="int32")


def prefix(keys, prefix_keys, queries):
    """Keys of a prefix that all examples share come before their own."""
    before = jax.reshard(prefix_keys, P("data", None, "model", None))
    every = jnp.concatenate([before, keys], axis=1)
    return jnp.einsum("bqhk,bshk->bhqs", queries, every)


def prefix_arguments():
    return array((8, D), 32, (8, M), 16), array(8, 16, 8, 16), array((8, D), 4, (8, M), 16)


def block(x, params):
    """A transformer block, heads and hidden units over 'model'."""

    def norm(h):
        return h * jax.lax.rsqrt(jnp.mean(h * h, axis=-1, keepdims=True) + 1e-6)

    h = norm(x)
    q, k, v = (jnp.einsum("bsd,dhk->bshk", h, params[name]) for name in ("q", "k", "v"))
    scores = jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k), axis=-1)
    mixed = jnp.einsum("bhqs,bshk->bqhk", scores, v)
    x = x + jnp.einsum("bqhk,hkd->bqd", mixed, params["o"], out_sharding=P("data", None, None))
    h = jax.nn.gelu(norm(x) @ params["up"])
    return x + jnp.matmul(h, params["down"], out_sharding=P("data", None, None))


def block_arguments():
    heads = {name: array(64, (8, M), 8) for name in ("q", "k", "v")}
    rest = {"o": array((8, M), 8, 64), "up": array(64, (256, M)), "down": array((256, M), 64)}
    return array((4, D), 32, 64), heads | rest


def block_train(x, params):
    return jax.grad(lambda params: jnp.mean(block(x, params) ** 2))(params)


block_train_arguments = block_arguments


def grouped(x, wq, keys, values):
    """Two queries share each head of keys and values, and these heads are over 'model'."""
    q = jnp.einsum("bsd,de->bse", x, wq)
    q = jnp.reshape(q, (*q.shape[:2], 2, 4, 16), out_sharding=P("data", None, None, "model", None))
    scores = jax.nn.softmax(jnp.einsum("bqghk,bshk->bghqs", q, keys), axis=-1)
    return jnp.einsum("bghqs,bshk->bqghk", scores, values)


def grouped_arguments():
    heads = [array((4, D), 64, (4, M), 16)] * 2
    return array((4, D), 32, 64), array(64, (128, M)), *heads


def sequence(x, norm, up, down):
    """Between layers the sequence is over 'model'; inside of one, the hidden units."""
    h = jax.reshard(x * norm, P("data", None, None))
    h = jax.nn.gelu(jnp.einsum("bsd,df->bsf", h, up))
    return x + jnp.einsum("bsf,fd->bsd", h, down, out_sharding=P("data", "model", None))


def sequence_arguments():
    return array((4, D), (64, M), 32), array(32), array(32, (128, M)), array((128, M), 32)
