"""Names between quotes: escapes written out by hand, and by their languages' own readers."""

import pytest
from jaxlib.mlir import ir

from shardpass.ir.dialects import make_context
from shardpass.sharding.quoting import (
    EscapeError,
    bare,
    c_quoted,
    c_unquoted,
    listed,
    mlir_quoted,
    mlir_unquoted,
    shown,
)

NAMES = ("", "x", "a'b", 'a"b', "a\\b", "a\nb", "\t\r\x00\x7f", "\u00e9", "\u202e\u2028", "\U0001f600", "\\22", "\\x41")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "''"),
        ("a'b", r"'a\'b'"),
        ('a"b', "'a\"b'"),
        ("a\\b", r"'a\\b'"),
        ("a\nb\t\r", r"'a\nb\t\r'"),
        ("\x001", r"'\0001'"),  # three digits of octal end the escape
        ("\u202e", r"'\342\200\256'"),
        ("\u00e9", "'\u00e9'"),
    ],
)
def test_c(name, text):
    assert c_quoted(name) == text
    assert c_unquoted(text[1:-1]) == name


@pytest.mark.parametrize("name", NAMES)
def test_mlir_reads_what_is_written_and_its_own_text_is_read(name):
    with make_context():
        assert ir.StringAttr(ir.Attribute.parse(mlir_quoted(name))).value == name
        assert mlir_unquoted(str(ir.StringAttr.get(name))[1:-1]) == name
    assert mlir_unquoted(mlir_quoted(name)[1:-1]) == name


def test_bytes_that_are_no_utf_8_stay_as_mlir_shows_them():
    assert mlir_unquoted(r"\C3\A9\FFz\C3") == "\u00e9\\FFz\\C3"


@pytest.mark.parametrize(
    ("read", "body", "escape"),
    [(c_unquoted, r"ab\q", r"\q"), (c_unquoted, r"ab\777", r"\777")],
)
def test_an_escape_that_the_language_does_not_have(read, body, escape):
    with pytest.raises(EscapeError) as caught:
        read(body)
    assert (caught.value.escape, caught.value.offset) == (escape, 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [("x", "x"), ("a b.c-d/e", "a b.c-d/e"), ("\u00e9", "\u00e9"), ("x:(1)2", "x:(1)2"), ("", "''"), ("a,b", "'a,b'"),
     (" x", "' x'"), ("a=b", "'a=b'"), ("a'", r"'a\''")],
)  # fmt: skip
def test_bare(name, text):
    assert bare(name) == text


def test_a_list_is_taken_apart():
    assert listed("") == []
    assert listed("x,y:(1)2") == ["x", "y:(1)2"]
    assert listed(r"x,'a,b':(2)3,'\',','',z:(1)2") == ["x", "'a,b':(2)3", r"'\','", "''", "z:(1)2"]


def test_what_is_shown_stays_on_its_line():
    assert shown("a\nb\u202e'\\") == "a\\nb\\342\\200\\256'\\"
