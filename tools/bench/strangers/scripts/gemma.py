"""flax's gemma example over fsdp=4, tensor=2: its tiny configuration with two layers, fake packed tokens."""

import tempfile
from types import SimpleNamespace

import jax
import numpy as np
import train
from configs import tiny


def get_datasets(*, config, data_sharding, **_):
    tokens = np.ones((8 * config.per_device_batch_size, config.max_target_length), np.int32)
    names = "inputs", "inputs_position", "inputs_segmentation", "targets"
    batch = jax.device_put(dict.fromkeys(names, tokens), data_sharding)
    return [batch], [batch], SimpleNamespace(vocab_size=lambda: config.vocab_size, pad_id=lambda: 0)


train.input_pipeline.get_datasets = get_datasets
config = tiny.get_config()
config.tensor_parallelism = 2
config.restore_checkpoints = config.save_checkpoints = False
config.transformer_params |= {"num_layers": 2, "attention_types": (1, 1)}
train.train_and_evaluate(config, tempfile.mkdtemp())
