"""The generator of sharding texts as a hypothesis strategy, so that what fails is shrunk."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shardpass.sharding import ShardingError, ShardingParseError, TupleSharding, parse_sharding
from tools.fuzz import sharding as fuzz

texts = st.builds(
    lambda rng, spoiled: fuzz.mutated(rng, fuzz.generated(rng)) if spoiled else fuzz.generated(rng),
    st.randoms(use_true_random=False, note_method_calls=False),
    st.booleans(),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts)
def test_canonical_text_reads_back_as_the_same_sharding(text: str) -> None:
    try:
        sharding = parse_sharding(text, strict=False)
    except (ShardingError, ShardingParseError):
        return
    leaves = sharding if isinstance(sharding, TupleSharding) else [sharding]
    if any(leaf.notes.problems for leaf in leaves):
        return  # XLA takes and prints texts that mean nothing; strict parsing does not
    if any(leaf.num_devices == 1 for leaf in leaves):
        return  # XLA drops axes of size 1, and prints {devices=[]<=[1]} where none is left
    again = parse_sharding(str(sharding), strict=False)
    assert again == sharding
    assert str(parse_sharding(str(again), strict=False)) == str(again)
    # XLA prints {unreduced} as tiles if a subgroup of size 1 stood beside it, and in one word when read again
    if not any(leaf.is_unreduced for leaf in leaves):
        assert str(again) == str(sharding)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts)
def test_what_the_strict_parser_takes_the_lenient_one_takes_alike(text: str) -> None:
    try:
        strict = parse_sharding(text)
    except (ShardingError, ShardingParseError):
        return
    if "last_tile_dim_replicate" not in text.rpartition("}")[2]:  # the document's own form, which XLA refuses
        assert str(parse_sharding(text, strict=False)) == str(strict)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_an_error_points_into_the_text(seed: int) -> None:
    rng = random.Random(seed)
    text = fuzz.mutated(rng, fuzz.generated(rng))
    found = problem(text)
    if found is not None:
        assert found.code.startswith("SP0")
        assert "^" in found.diagnostics[0].excerpt or not isinstance(found, ShardingParseError)


def problem(text: str) -> ShardingError | ShardingParseError | None:
    try:
        parse_sharding(text)
    except (ShardingError, ShardingParseError) as error:
        return error
    return None
