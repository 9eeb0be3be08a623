"""The train_step of jax-ai-stack's notebook on pretraining over 4x2: fake tokens."""

import jax
import jax.numpy as jnp
import JAX_for_LLM_pretraining as notebook
import optax
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

model = notebook.create_model(rngs=nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))
tokens = jnp.ones((64, notebook.maxlen), jnp.int32)
batch = jax.device_put((tokens, tokens), NamedSharding(notebook.mesh, P("batch", None)))
notebook.train_step(model, optimizer, metrics, batch)
