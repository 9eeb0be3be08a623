"""The generator of sharding texts as a hypothesis strategy, so that what fails is shrunk."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import daily

from shardpass.sharding import ShardingError, ShardingParseError, TupleSharding, parse_sharding
from shardpass.sharding.notations import by_grammar, mhlo, named_mesh
from tools.fuzz import sharding as fuzz

texts = st.builds(
    lambda rng, spoiled: fuzz.mutated(rng, fuzz.generated(rng)) if spoiled else fuzz.generated(rng),
    st.randoms(use_true_random=False, note_method_calls=False),
    st.booleans(),
)


@settings(max_examples=daily.scaled(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
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


@settings(max_examples=daily.scaled(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts)
def test_what_the_strict_parser_takes_the_lenient_one_takes_alike(text: str) -> None:
    try:
        strict = parse_sharding(text)
    except (ShardingError, ShardingParseError):
        return
    if "last_tile_dim_replicate" not in text.rpartition("}")[2]:  # the document's own form, which XLA refuses
        assert str(parse_sharding(text, strict=False)) == str(strict)


@settings(max_examples=daily.scaled(200), deadline=None)
@given(st.integers(0, 2**32))
def test_an_error_points_into_the_text(seed: int) -> None:
    rng = random.Random(seed)
    text = fuzz.mutated(rng, fuzz.generated(rng))
    found = problem(text)
    if found is not None:
        assert found.code.startswith("SP0")
        assert "^" in found.diagnostics[0].excerpt or not isinstance(found, ShardingParseError)


@st.composite
def plain_shardings(draw: st.DrawFn) -> str:
    """Texts of the two forms that are read without the grammar: a plain iota and a word alone."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(("{replicated}", "{manual}", "{unknown}")))
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 4, 8)), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(shape))))
    turned = f"T({','.join(map(str, order))})" if len(shape) > 1 else ""
    dims = ",".join(map(str, draw(st.permutations(shape))))
    last = draw(st.sampled_from(("", " last_tile_dim_replicate")))
    return f"{{devices=[{dims}]<=[{','.join(map(str, shape))}]{turned}{last}}}"


@st.composite
def plain_meshes(draw: st.DrawFn) -> str:
    name = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,4}", fullmatch=True)
    names = draw(st.lists(name, min_size=1, max_size=4, unique=True))
    axes = [f"'{one}'={draw(st.integers(1, 999))}" for one in names]
    return f"mesh[{','.join(axes)}]"


@st.composite
def spoiled(draw: st.DrawFn, plain: st.SearchStrategy[str]) -> str:
    """A plain text with one letter more, fewer, or another: most are for the grammar."""
    text = draw(plain)
    at = draw(st.integers(0, len(text)))
    letter = draw(st.sampled_from("01234 ,-+=<[](){}T'\"_axd\n\t\u0663\u00b2"))
    return text[:at] + draw(st.sampled_from(("", letter))) + text[at + draw(st.integers(0, 1)) :]


def all_of(sharding: object) -> object:
    """Notes are no part of a sharding's equality."""
    return sharding, str(sharding), getattr(sharding, "notes", None), getattr(sharding, "axes", None)


@settings(max_examples=daily.scaled(300), deadline=None)
@given(plain_shardings(), st.booleans())
def test_plain_shardings_read_without_the_grammar_are_as_the_grammar_says(text: str, strict: bool) -> None:
    found = mhlo._plain(text)
    assert found is not None
    assert all_of(found) == all_of(by_grammar.parsed(text, strict))


@settings(max_examples=daily.scaled(300), deadline=None)
@given(plain_meshes())
def test_plain_meshes_read_without_the_grammar_are_as_the_grammar_says(text: str) -> None:
    found = named_mesh._plain(text)
    assert found is not None
    assert all_of(found) == all_of(named_mesh._parsed(text))


@settings(max_examples=daily.scaled(600), deadline=None)
@given(spoiled(plain_shardings()), st.booleans())
def test_what_is_read_without_the_grammar_is_what_the_grammar_takes(text: str, strict: bool) -> None:
    found = mhlo._plain(text)
    if found is not None:  # else the grammar reads the text
        assert all_of(found) == all_of(by_grammar.parsed(text, strict))


@settings(max_examples=daily.scaled(600), deadline=None)
@given(spoiled(plain_meshes()))
def test_meshes_read_without_the_grammar_are_what_the_grammar_takes(text: str) -> None:
    found = named_mesh._plain(text)
    if found is not None:
        assert all_of(found) == all_of(named_mesh._parsed(text))


def problem(text: str) -> ShardingError | ShardingParseError | None:
    try:
        parse_sharding(text)
    except (ShardingError, ShardingParseError) as error:
        return error
    return None
