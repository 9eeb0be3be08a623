"""What a terminal obeys, a browser turns round, or an eye does not see, is written out."""

import html
from xml.etree import ElementTree

import pytest

from shardpass.diagnostics import Diagnostic, Place, Severity, on_one_line, printable
from shardpass.diagnostics.printable import as_html, joined

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LINES = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"  # with \n and \r, what str.splitlines ends a line at
HIDDEN = "\x00\x07\x1b\x7f\x9b\xad\u200b\ufeff\U000e0041"


@pytest.mark.parametrize("character", [*BIDI, *LINES, *HIDDEN, "\r"])
def test_each_is_written_out(character: str) -> None:
    for show in (printable, on_one_line):
        shown = show(f"a{character}b")
        assert shown.isascii()
        assert shown.isprintable()
        # in Python's notation
        assert shown[1:-1].encode().decode("unicode_escape") == character


def test_text_of_several_lines_keeps_them_and_a_name_does_not() -> None:
    assert printable("a\n\tb") == "a\n\tb"
    assert on_one_line("a\n\tb") == "a\\n\\tb"
    assert joined(["a\nb", "c"]) == "a\\nb\nc"


def test_words_of_all_languages_stay() -> None:
    words = "épée 東京\u3000木 עברית \U0001f600 a\u0301"
    assert printable(words) == on_one_line(words) == words


def test_bytes_that_are_no_text() -> None:
    assert printable("a\udcff") == "a\\udcff"


def test_a_file_forges_no_line() -> None:
    place = Place("a\nb.mlir: error: forged [SP000]\u2028c", 3)
    found = Diagnostic(
        Severity.ERROR, "SP001", "the axis 'x\ny.mlir: error: forged'", place, "write\nmore", "as\nit is"
    )
    first, *rest = str(found).splitlines()
    assert first == ("a\\nb.mlir: error: forged [SP000]\\u2028c:3: error: the axis 'x\\ny.mlir: error: forged' [SP001]")
    assert rest == ["    as", "    it is", "    help: write\\nmore"]


def test_html() -> None:
    shown = as_html("<b>\u202e'\"&")
    assert html.unescape(shown) == "<b>\\u202e'\"&"
    (element,) = ElementTree.fromstring(f'<a><c d="{shown}">{shown}</c></a>')
    assert element.text == element.get("d") == "<b>\\u202e'\"&"
