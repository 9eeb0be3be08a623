"""--verify-diagnostics: reading the comments and matching them."""

import pytest

from shardpass.cli.expectations import compare, read_expectations
from shardpass.diagnostics import NOWHERE, Diagnostic, Place, Severity, ShardpassError, note

FILE = "m.mlir"


def error(message, line, code="", notes=(), severity=Severity.ERROR):
    return Diagnostic(severity, code, message, Place(FILE, line, 1) if line else NOWHERE, notes=notes)


def outcome(text, *found, first_line=1):
    return [d.code for d in compare(read_expectations(text, FILE, first_line), found, FILE)]


@pytest.mark.parametrize(
    ("comment", "line"),
    [("", 2), ("@+1", 3), ("@-1", 1), ("@below", 3), ("@above", 1), ("@unknown", 0)],
)
def test_lines(comment, line):
    (found,) = read_expectations(f"a\n// expected-error{comment} {{{{text}}}}\nb", FILE)
    assert (found.line, found.place.line, found.text) == (line, 2, "text")


def test_above_and_below_skip_other_expectations():
    text = "a\n// expected-error@above {{x}}\n// expected-error@above {{y}}\n// expected-note@below {{z}}\n"
    text += "// expected-note@below {{w}}\nb"
    assert [e.line for e in read_expectations(text, FILE)] == [1, 1, 6, 6]


def test_lines_count_from_the_first_line_of_the_part():
    assert outcome("op // expected-error {{x}}", error("x", 40), first_line=40) == []


def test_the_text_is_found_anywhere_in_message_and_code():
    assert outcome("op // expected-error {{ad thing [SP9}}", error("bad thing", 1, "SP901")) == []


def test_plain_text_is_no_pattern():
    assert outcome("op // expected-error {{a.c}}", error("abc", 1)) == ["SP130", "SP131"]


def test_patterns_hold_expressions_in_nested_braces():
    text = "op // expected-error-re {{size {{[0-9]+}} (of {{x|y}})}}"
    assert outcome(text, error("bad size 12 (of y)", 1)) == []
    assert outcome(text, error("bad size 12 (of z)", 1)) == ["SP130", "SP131"]


def test_notes_are_expected_like_all_others():
    found = error("bad", 1, notes=(note("look here", Place(FILE, 2, 1)),))
    assert outcome("a // expected-error {{bad}}\nb // expected-note {{look}}", found) == []
    assert outcome("a // expected-error {{bad}}\nb", found) == ["SP130"]


def test_mlirs_own_note_needs_no_expectation():
    found = error("bad", 1, notes=(note("see current operation: x", Place(FILE, 1, 1)),))
    assert outcome("a // expected-error {{bad}}", found) == []


def test_severity_counts():
    assert outcome("a // expected-warning {{bad}}", error("bad", 1)) == ["SP130", "SP131"]
    assert outcome("a // expected-remark {{bad}}", error("bad", 1, severity=Severity.REMARK)) == []


def test_each_expectation_takes_one_diagnostic():
    assert outcome("a // expected-error {{bad}}", error("bad", 1), error("bad", 1)) == ["SP130"]


def test_unknown_takes_what_has_no_place_in_the_file():
    assert outcome("// expected-error@unknown {{bad}}", error("bad", 0)) == []
    elsewhere = Diagnostic(Severity.ERROR, "", "bad", Place("other.py", 1))
    assert outcome("// expected-error@unknown {{bad}}", elsewhere) == []
    assert outcome("// expected-error@unknown {{bad}}", error("bad", 1)) == ["SP130", "SP131"]


def test_what_stands_outside_comments_is_no_expectation():
    assert read_expectations('op {x = "expected-error {{x}}"}\n// unexpected-errors happen', FILE) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("// expected-error bad", "must end with"),
        ("// expected-error@sideways {{bad}}", "must end with"),
        ("// expected-error@-5 {{bad}}", "no line -5"),
        ("// expected-error@below {{bad}}", "no line below"),
        ("// expected-error-re {{ {{(}} }}", "regular expression is wrong"),
    ],
)
def test_a_comment_that_is_almost_one_is_an_error(line, reason):
    with pytest.raises(ShardpassError, match=reason) as caught:
        read_expectations(line, FILE)
    assert caught.value.code == "SP132"
    assert caught.value.diagnostics[0].place == Place(FILE, 1, 4)
