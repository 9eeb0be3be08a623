"""A transformer block, forward and backward, sharded as in Megatron-LM on a 2x4 mesh.

The batch is split over "data"; attention heads and the hidden units of the MLP over "model". Between the two
halves of the block the activations are whole over "model", which the constraints on the residual stream say.
"""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
BATCH, SEQ, D_MODEL, HEADS, D_FF = 8, 32, 64, 4, 128
D_HEAD = D_MODEL // HEADS

SPECS = {
    "norm1_scale": P(),
    "norm1_bias": P(),
    "wq": P(None, "model", None),
    "wk": P(None, "model", None),
    "wv": P(None, "model", None),
    "wo": P("model", None, None),
    "norm2_scale": P(),
    "norm2_bias": P(),
    "w_up": P(None, "model"),
    "b_up": P("model"),
    "w_down": P("model", None),
    "b_down": P(),
}
SHAPES = {
    "norm1_scale": (D_MODEL,),
    "norm1_bias": (D_MODEL,),
    "wq": (D_MODEL, HEADS, D_HEAD),
    "wk": (D_MODEL, HEADS, D_HEAD),
    "wv": (D_MODEL, HEADS, D_HEAD),
    "wo": (HEADS, D_HEAD, D_MODEL),
    "norm2_scale": (D_MODEL,),
    "norm2_bias": (D_MODEL,),
    "w_up": (D_MODEL, D_FF),
    "b_up": (D_FF,),
    "w_down": (D_FF, D_MODEL),
    "b_down": (D_MODEL,),
}


def layer_norm(x, scale, bias):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * scale + bias


def attention(p, x):
    q = jnp.einsum("bse,ehd->bhsd", x, p["wq"])
    k = jnp.einsum("bse,ehd->bhsd", x, p["wk"])
    v = jnp.einsum("bse,ehd->bhsd", x, p["wv"])
    scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / jnp.sqrt(jnp.float32(D_HEAD))
    causal = jnp.arange(SEQ)[:, None] >= jnp.arange(SEQ)[None, :]
    scores = jnp.where(causal, scores, -1e9)
    weights = jax.nn.softmax(scores, axis=-1)
    mixed = jnp.einsum("bhst,bhtd->bhsd", weights, v)
    return jnp.einsum("bhsd,hde->bse", mixed, p["wo"])


def feed_forward(p, x):
    hidden = jax.nn.gelu(x @ p["w_up"] + p["b_up"])
    return hidden @ p["w_down"] + p["b_down"]


def programs(mesh: Mesh):
    """name -> (jitted function, its arguments' shapes)."""

    def named(*spec):
        return NamedSharding(mesh, P(*spec))

    def residual(x):
        return jax.lax.with_sharding_constraint(x, named("data", None, None))

    def block(p, x):
        x = residual(x + attention(p, layer_norm(x, p["norm1_scale"], p["norm1_bias"])))
        return residual(x + feed_forward(p, layer_norm(x, p["norm2_scale"], p["norm2_bias"])))

    def loss_fn(params, x, target):
        error = block(params, x) - target
        return jnp.mean(error * error)

    def transformer_block(params, x, target):
        return jax.value_and_grad(loss_fn, argnums=(0, 1))(params, x, target)

    params = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
    stream = named("data", None, None)
    step = jax.jit(
        transformer_block,
        in_shardings=(params, stream, stream),
        out_shardings=(named(), (params, stream)),
    )
    activations = jax.ShapeDtypeStruct((BATCH, SEQ, D_MODEL), jnp.float32)
    arguments = (
        {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in SHAPES.items()},
        activations,
        activations,
    )
    return {"transformer_block": (step, arguments)}
