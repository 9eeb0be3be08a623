"""The prefill of jax-llm-examples' llama3 over 1x4x2, without weights of 8 bits: two layers, a fake prompt."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from llama3_jax import model

mesh = jax.make_mesh((1, 4, 2), ("x", "y", "z"), axis_types=(AxisType.Explicit,) * 3)
cfg = model.Config(
    embed=512,
    ffw_size=2048,
    q_heads=16,
    kv_heads=4,
    num_layers=2,
    head_dim=64,
    vocab_size=16_384,
    max_seq_len=256,
    causal=True,
    use_prefill_attn_kernel=False,
    use_decode_attn_kernel=False,
    mesh=mesh,
    quant_layer=False,
    quant_cache=False,
)
with jax.sharding.set_mesh(mesh):
    weights = model.Weights.init(jax.random.key(0), cfg)
    cache = model.KVCache.init(jax.random.key(1), cfg, 4)
    model.prefill(jnp.ones((4, 128), jnp.int32), weights, cache, cfg)
