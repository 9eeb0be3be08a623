"""The loss of a language model and its gradients: batch over data, the vocabulary of the logits over model."""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
f32, i32 = jnp.float32, jnp.int32
VOCABULARY = 4096


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def loss(params, tokens):
    x = params["table"][tokens]
    x = x + jnp.tanh(x @ params["up"]) @ params["down"]
    logp = jax.nn.log_softmax(x @ params["head"])
    wanted = jax.nn.one_hot(tokens[:, 1:], VOCABULARY, dtype=f32)
    return -jnp.mean(jnp.sum(logp[:, :-1] * wanted, axis=-1))


specs = {"table": s(None, "model"), "up": s(None, "model"), "down": s("model"), "head": s(None, "model")}
jitted = jax.jit(jax.value_and_grad(loss), in_shardings=(specs, s("data")), out_shardings=(None, specs))
arguments = (
    {
        "table": jax.ShapeDtypeStruct((VOCABULARY, 128), f32),
        "up": jax.ShapeDtypeStruct((128, 512), f32),
        "down": jax.ShapeDtypeStruct((512, 128), f32),
        "head": jax.ShapeDtypeStruct((128, VOCABULARY), f32),
    },
    jax.ShapeDtypeStruct((16, 64), i32),
)
