"""The train_step of flax's lm1b example over 2x2x2, with its logical rules: two layers, a fake packed batch."""

import jax
import jax.numpy as jnp
import models
import optax
import train
import utils
from configs import default
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

config = default.get_config()
config.num_layers = 2
config.dcn_data_parallelism = 1
config.ici_data_parallelism = config.ici_fsdp_parallelism = config.ici_tensor_parallelism = 2
train_config = models.TransformerConfig(
    vocab_size=config.vocab_size,
    output_vocab_size=config.vocab_size,
    logits_via_embedding=config.logits_via_embedding,
    dtype=jnp.bfloat16 if config.use_bfloat16 else jnp.float32,
    emb_dim=config.emb_dim,
    num_heads=config.num_heads,
    num_layers=config.num_layers,
    qkv_dim=config.qkv_dim,
    mlp_dim=config.mlp_dim,
    max_len=config.max_target_length,
    dropout_rate=config.dropout_rate,
    attention_dropout_rate=config.attention_dropout_rate,
)
mesh = Mesh(utils.create_device_mesh(config), config.mesh_axes)
rng = jax.random.PRNGKey(0)
schedule = train.create_learning_rate_schedule(config.learning_rate, config.warmup_steps)
optimizer = optax.adamw(schedule, b1=0.9, b2=0.98, eps=1e-9, weight_decay=config.weight_decay)
model = models.TransformerLM(train_config.replace(deterministic=True))
state, annotations = utils.setup_initial_state(model, optimizer, config, rng, mesh)
jit_train_step = jax.jit(
    train.train_step,
    in_shardings=(annotations, NamedSharding(mesh, P(config.data_sharding)), None),
    out_shardings=(annotations, None),
    static_argnums=(2, 3, 4),
    donate_argnums=0,
)
tokens = jnp.ones((8 * config.per_device_batch_size, config.max_target_length), jnp.int32)
batch = {"inputs": tokens, "inputs_position": tokens, "inputs_segmentation": tokens}
jit_train_step(state, batch, train_config, schedule, 0.0, rng)
