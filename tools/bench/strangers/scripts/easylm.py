"""EasyLM's llama_train over dp=2, fsdp=2, mp=2: two layers, fake tokens."""

import sys
from types import SimpleNamespace
from unittest import mock

import numpy as np
from absl import flags

LENGTH = 256
sys.argv = [
    "llama_train",
    "--mesh_dim=2,2,2",
    "--llama.hidden_size=512",
    "--llama.intermediate_size=1536",
    "--llama.num_hidden_layers=2",
    "--llama.num_attention_heads=8",
    "--llama.num_key_value_heads=8",
    f"--llama.max_position_embeddings={LENGTH}",
]
from EasyLM.models.llama import llama_train  # noqa: E402  its flags are read from the command line


class Dataset(SimpleNamespace):
    def __iter__(self):
        tokens = np.ones((32, LENGTH), np.int32)
        yield {"input_tokens": tokens, "target_tokens": tokens, "loss_masks": np.ones((32, LENGTH), np.float32)}, {}


llama_train.AutoTokenizer = mock.MagicMock()
llama_train.DatasetFactory.load_dataset = lambda *_: Dataset(seq_length=LENGTH, tokenizer=None)
flags.FLAGS(sys.argv)
llama_train.main([])
