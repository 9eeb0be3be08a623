"""The train_step of scalax's notebook on FSDP with tensor parallelism over 4x2: fake tokens."""

import jax
import llama_fsdp_tp as notebook
import numpy as np

tokens = np.ones((8, notebook.seq_length), np.int32)
names = "input_tokens", "target_tokens", "attention_mask", "position_ids"
train_state = notebook.init_fn(jax.random.PRNGKey(42))
notebook.train_step(train_state, dict.fromkeys(names, tokens))
