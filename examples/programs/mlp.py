"""A training step of a three-layer classifier, data parallel and tensor parallel on a 4x2 mesh.

The batch is split over "data". The weights follow Megatron's pattern: the first layer is split by columns
over "model", the second by rows, so that one sum over "model" serves both; the third is split by columns
again, so the logits are split over the classes.
"""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = {"data": 4, "model": 2}
BATCH, FEATURES, HIDDEN, CLASSES = 32, 64, 128, 16
LEARNING_RATE = 0.1

SPECS = {
    "w1": P(None, "model"),
    "b1": P("model"),
    "w2": P("model", None),
    "b2": P(),
    "w3": P(None, "model"),
    "b3": P("model"),
}
SHAPES = {
    "w1": (FEATURES, HIDDEN),
    "b1": (HIDDEN,),
    "w2": (HIDDEN, HIDDEN),
    "b2": (HIDDEN,),
    "w3": (HIDDEN, CLASSES),
    "b3": (CLASSES,),
}


def programs(mesh: Mesh):
    """name -> (jitted function, its arguments' shapes)."""

    def named(*spec):
        return NamedSharding(mesh, P(*spec))

    def loss_fn(params, images, labels):
        h = images @ params["w1"] + params["b1"]
        h = jax.nn.relu(h)
        h = h @ params["w2"] + params["b2"]
        h = jax.lax.with_sharding_constraint(h, named("data", None))
        h = jax.nn.relu(h)
        logits = h @ params["w3"] + params["b3"]
        shifted = logits - jax.lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True))
        log_norm = jnp.log(jnp.sum(jnp.exp(shifted), axis=1))
        picked = labels[:, None] == jnp.arange(CLASSES, dtype=jnp.int32)
        score = jnp.sum(jnp.where(picked, shifted, 0.0), axis=1)
        return jnp.mean(log_norm - score)

    def mlp_train_step(params, images, labels):
        loss, grads = jax.value_and_grad(loss_fn)(params, images, labels)
        new_params = {name: params[name] - LEARNING_RATE * grads[name] for name in params}
        return loss, new_params

    params = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
    step = jax.jit(
        mlp_train_step,
        in_shardings=(params, named("data", None), named("data")),
        out_shardings=(named(), params),
    )
    arguments = (
        {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in SHAPES.items()},
        jax.ShapeDtypeStruct((BATCH, FEATURES), jnp.float32),
        jax.ShapeDtypeStruct((BATCH,), jnp.int32),
    )
    return {"mlp_train_step": (step, arguments)}
