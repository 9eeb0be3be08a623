"""MLIR's pipeline syntax. MLIR's own parser is the second witness: what it takes we take, with the same nesting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir.passmanager import PassManager

from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import make_context
from shardpass.pipeline.text import MOST_NESTED, Element, OptionText, parse, split_options


def test_nested_anchors_and_options():
    elements = parse("builtin.module(a,func.func(b{x=1 y},any(c)),d)")
    inner = Element("func.func", 17, children=(
        Element("b", 27, "x=1 y", 29), Element("any", 36, children=(Element("c", 40),)),
    ))  # fmt: skip
    assert elements == (Element("builtin.module", 0, children=(Element("a", 15), inner, Element("d", 44))),)


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_blank_text_has_no_elements(text):
    assert parse(text) == ()


def test_spaces_are_free_between_elements():
    assert [str(e) for e in parse("  a , func.func ( b , c {x=1} ) ")] == ["a", "func.func(b,c{x=1})"]


def test_braces_quotes_and_parentheses_in_options_do_not_end_them():
    text = """inline{default-pipeline="a,b)" op-pipelines={func.func(canonicalize{x=1},cse)}},cse"""
    first, second = parse(text)
    assert first.options == text[7:-5]
    assert second.name == "cse"


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("a,", 3, "the name of a pass"),
        (",a", 1, "the name of a pass"),
        ("a)", 2, "',' or the end"),
        ("f(a", 4, "',' or ')'"),
        ("f(a b)", 5, "',' or ')'"),
        ("a{x", 4, "'}' to close the '{' at column 2"),
        ('a{x="1}', 8, "to close the one at column 5"),
        ("a{x=(1}", 8, "')' to close the '{' at column 2"),
    ],
)
def test_a_fault_is_pointed_at(text, column, expected):
    with pytest.raises(ShardpassError) as caught:
        parse(text)
    (found,) = caught.value.diagnostics
    assert (found.code, found.place.column) == ("SP103", column)
    assert expected in found.message
    source, caret = found.excerpt.split("\n")
    assert source == text
    assert caret.index("^") == column - 1


def test_a_long_pipeline_shows_the_part_around_the_fault():
    with pytest.raises(ShardpassError) as caught:
        parse("canonicalize," * 100 + ")")
    source, caret = caught.value.diagnostics[0].excerpt.split("\n")
    assert len(source) <= 110
    assert source[caret.index("^")] == ")"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a=1", [("a", "1")]),
        ("a=1 b", [("a", "1"), ("b", None)]),
        ("a= b=2", [("a", ""), ("b", "2")]),
        ("""a='x y' b="p\\"q" """, [("a", "x y"), ("b", 'p"q')]),
        ("a={x y} b=2", [("a", "x y"), ("b", "2")]),
        ("a=f(x, y) b=2", [("a", "f(x, y)"), ("b", "2")]),
        ("a=1,b=2", [("a", "1,b=2")]),  # as in MLIR: commas do not separate options
    ],
)
def test_options(text, expected):
    assert [(o.key, o.value) for o in split_options(text)] == expected


def test_options_keep_their_place_in_the_pipeline():
    text = "cse,pass{first=1  second=2}"
    (_, element) = parse(text)
    found = split_options(element.options, text, element.options_offset)
    assert found == (OptionText("first", "1", 9), OptionText("second", "2", 18))


NAMES = st.sampled_from(["cse", "canonicalize", "symbol-dce", "canonicalize{max-iterations=3 top-down=false}"])
SPACE = st.sampled_from(["", " ", "  "])


def lists(inner):
    return st.lists(st.tuples(SPACE, inner, SPACE).map("".join), min_size=1, max_size=3).map(",".join)


PIPELINES = st.recursive(lists(NAMES), lambda inner: lists(inner.map(lambda text: f"any({text})")), max_leaves=8)


@given(PIPELINES)
def test_agrees_with_mlirs_parser(text):
    """MLIR prints what it understood of the text, and the same for what we print after parsing it."""
    ours = ",".join(map(str, parse(text)))
    context = make_context()
    theirs = PassManager("builtin.module", context)
    theirs.add(text)
    again = PassManager("builtin.module", context)
    again.add(ours)
    assert str(theirs) == str(again)


def test_anchors_nest_to_a_limit() -> None:
    """Each is one more call of the parser by itself: thousands would end Python's stack."""
    fits = "func.func(" * MOST_NESTED + "cse" + ")" * MOST_NESTED
    (element,) = parse(fits)
    assert [inner.name for inner in element.passes()] == ["cse"]
    for depth in (MOST_NESTED + 1, 5000):
        with pytest.raises(ShardpassError, match=f"{MOST_NESTED} anchors") as caught:
            parse("func.func(" * depth + "cse" + ")" * depth)
        assert caught.value.code == "SP103"
