"""Programs as experts annotate them; ``FORMS`` holds them by name, at real sizes."""

from collections.abc import Mapping

from tools.bench.expert_programs.attention import GatheredKeys, Ring, Ulysses
from tools.bench.expert_programs.data import Hybrid, Zero
from tools.bench.expert_programs.experts import Experts
from tools.bench.expert_programs.form import Form, Formula, lowered
from tools.bench.expert_programs.inference import Decode, WeightGathered, WeightStationary1D, WeightStationary2D
from tools.bench.expert_programs.llama import FSDP_405B, FsdpRemat, FsdpTensor
from tools.bench.expert_programs.tensor import SMALL, DataTensor, MegatronMlp, ReadmeBlock, TiedEmbedding

FORMS: Mapping[str, Form] = {
    "ulysses": Ulysses(),
    "ulysses_train": Ulysses(train=True),
    "gathered_keys": GatheredKeys(),
    "ring": Ring(),
    "megatron_mlp": MegatronMlp(),
    "llama_fsdp_tensor": FsdpTensor(),
    "llama_sequence": FsdpTensor(sequence=True),
    "llama_fsdp_remat": FsdpRemat(),
    "llama_405b_fsdp": FSDP_405B,
    "hsdp": Hybrid(),
    "decode_70b": Decode(),
    "transformer_data_model": DataTensor(),
    "transformer_small": DataTensor(sizes=SMALL),
    "readme_block": ReadmeBlock(),
    "tied_embedding": TiedEmbedding(),
    "experts": Experts(),
    "zero1": Zero(1),
    "zero2": Zero(2, parts=4),
    "zero3": Zero(3),
    "weight_stationary_1d": WeightStationary1D(),
    "weight_stationary_2d": WeightStationary2D(),
    "weight_gathered": WeightGathered(),
}
__all__ = ["FORMS", "Form", "Formula", "lowered"]
