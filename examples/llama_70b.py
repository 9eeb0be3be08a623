"""A training step of Llama 70B on 256 devices, from shapes alone: nothing is allocated, and no accelerator is needed.

    shardpass explain examples/llama_70b.py:step --partitioner xla --machine h100

The weights are split as in FSDP with tensor parallelism, the batch over fsdp. One constraint is missing: shardpass
names its line.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

LAYERS, WIDTH, HEADS, KV, HIDDEN, WORDS = 80, 8192, 64, 8, 28672, 32000
BATCH, LENGTH = 256, 4096
mesh = jax.make_mesh((64, 4), ("fsdp", "tensor"), axis_types=(AxisType.Auto,) * 2)

WEIGHTS = {  # shape and sharding
    "embed": ((WORDS, WIDTH), P("tensor", "fsdp")),
    "q": ((LAYERS, WIDTH, HEADS, 128), P(None, "fsdp", "tensor", None)),
    "k": ((LAYERS, WIDTH, KV, 128), P(None, "fsdp", "tensor", None)),
    "v": ((LAYERS, WIDTH, KV, 128), P(None, "fsdp", "tensor", None)),
    "o": ((LAYERS, HEADS, 128, WIDTH), P(None, "tensor", None, "fsdp")),
    "gate": ((LAYERS, WIDTH, HIDDEN), P(None, "fsdp", "tensor")),
    "up": ((LAYERS, WIDTH, HIDDEN), P(None, "fsdp", "tensor")),
    "down": ((LAYERS, HIDDEN, WIDTH), P(None, "tensor", "fsdp")),
    "head": ((WIDTH, WORDS), P("fsdp", "tensor")),
}


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-5).astype(x.dtype)


def layer(x, p):
    h = norm(x)
    q, k, v = (jnp.einsum("ble,ehd->blhd", h, p[name]) for name in "qkv")
    x = x + jnp.einsum("blhd,hde->ble", jax.nn.dot_product_attention(q, k, v, is_causal=True), p["o"])
    h = norm(x)
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], None


def loss(params, tokens):
    x = params["embed"][tokens[:, :-1]]
    stacked = {name: value for name, value in params.items() if name not in ("embed", "head")}
    x, _ = jax.lax.scan(jax.checkpoint(layer), x, stacked)
    scores = jax.nn.log_softmax((norm(x) @ params["head"]).astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(scores, tokens[:, 1:, None], -1))


@jax.jit
def step(params, momentum, tokens):
    value, grads = jax.value_and_grad(loss)(params, tokens)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g.astype(m.dtype), momentum, grads)
    return value, jax.tree.map(lambda p, m: p - (1e-4 * m).astype(p.dtype), params, momentum), momentum


def shapes(dtype):
    return {n: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(mesh, spec)) for n, (s, spec) in WEIGHTS.items()}


tokens = jax.ShapeDtypeStruct((BATCH, LENGTH + 1), jnp.int32, sharding=NamedSharding(mesh, P("fsdp")))
step.lower(shapes(jnp.bfloat16), shapes(jnp.float32), tokens).compile()
