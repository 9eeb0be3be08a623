"""tools/bench/suggest_llama.py: small steps are those that are meant; a suggestion costs no more than the forms."""

from __future__ import annotations

import pytest

from tools.bench.expert_programs.layers import Sizes
from tools.bench.suggest import measure, planned
from tools.bench.suggest_llama import SMALL, LlamaStep

SIZES = Sizes(model=32, heads=4, kv=2, head=8, hidden=64)
# 2 * 32*8*(4 + 2) elements of attention, 3 * 32*64 of the MLP, two norms of 32
LAYER = 3072 + 6144 + 64
WEIGHTS = 2 * LAYER + 2 * 64 * 32 + 32  # two layers, both tables of words, the last norm


@pytest.mark.parametrize("scanned", [False, True])
def test_the_state_is_donated_and_as_large_as_it_should_be(scanned: bool) -> None:
    step = LlamaStep("small", SIZES, 2, (SMALL,), scanned=scanned, length=16, batch=8, words=64)
    weights, first, second, _ = step.arguments()
    assert sum(_elements(tree) for tree in (weights, first, second)) == 3 * WEIGHTS
    whole = planned(step.free(), "h100").alive
    assert whole.arguments - whole.donated == 8 * 17 * 4  # the words, in 32 bits


def test_a_suggestion_costs_no_more_than_the_forms() -> None:
    step = LlamaStep("small", SIZES, 1, (SMALL,), length=16, batch=8, words=64)
    assert [name for name, _ in step.forms(SMALL)] == ["all axes", "tensor", "sequence"]
    row, _ = measure(step, SMALL, 1)
    assert not row.failure
    assert row.ratio <= 1


def _elements(tree: object) -> int:
    import jax

    return sum(leaf.size for leaf in jax.tree.leaves(tree))
