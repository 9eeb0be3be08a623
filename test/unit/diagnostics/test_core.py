"""Places, diagnostics, codes, and where reports go."""

import pytest

from shardpass.diagnostics import NOWHERE, Code, Diagnostic, Place, Severity, ShardpassError, collect, note, report
from shardpass.diagnostics.internal import internal_error

BAD = Code("SP901", "dimension {dim} has size {size}", "make it {size} times {count}")
ODD = Code("SP902", "odd", severity=Severity.WARNING)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("a.mlir", 3, 7), "a.mlir:3:7"),
        (Place("a.mlir", 3), "a.mlir:3"),
        (Place("a.mlir"), "a.mlir"),
        (Place("", 3, 7), "<unknown>:3:7"),
        (Place("a.mlir", 0, 7), "a.mlir"),  # a column without a line says nothing
    ],
)
def test_places(place, text):
    assert str(place) == text


def test_a_diagnostic_says_where_what_and_what_to_do():
    found = BAD.at(Place("a.mlir", 3, 7), dim=1, size=5, count=2, excerpt="x = y\n    ^", notes=(note("seen here"),))
    assert str(found).splitlines() == [
        "a.mlir:3:7: error: dimension 1 has size 5 [SP901]",
        "    x = y",
        "        ^",
        "    help: make it 5 times 2",
        "  note: seen here",
    ]


def test_a_diagnostic_without_a_place_starts_with_its_severity():
    assert str(Diagnostic(Severity.REMARK, "", "fine", NOWHERE)) == "remark: fine"


def test_an_error_holds_its_diagnostics_and_shows_them():
    error = BAD.error(Place("a.mlir", 1), dim=0, size=2, count=3)
    assert isinstance(error, ShardpassError)
    assert error.code == "SP901"
    assert str(error) == str(error.diagnostics[0])
    assert ShardpassError().code == ""


def test_a_row_can_have_an_exception_of_its_own():
    class OwnError(ShardpassError):
        pass

    assert type(Code("SP903", "x", exception=OwnError).error()) is OwnError


def test_reports_go_to_the_innermost_collector(capsys):
    with collect() as outer:
        report(ODD.at())
        with collect() as inner:
            report(BAD.at(dim=1, size=2, count=3))
        report(ODD.at())
    assert [d.code for d in outer] == ["SP902", "SP902"]
    assert [d.code for d in inner] == ["SP901"]
    assert capsys.readouterr() == ("", "")


def test_reports_outside_any_collector_go_to_stderr(capsys):
    report(ODD.at(Place("a.mlir", 2)))
    assert capsys.readouterr() == ("", "a.mlir:2: warning: odd [SP902]\n")


def test_collecting_ends_where_the_block_raises(capsys):
    with pytest.raises(ValueError, match="stop"), collect():
        raise ValueError("stop")
    report(ODD.at())
    assert "odd" in capsys.readouterr().err


@pytest.mark.parametrize(("value", "shown"), [("", False), ("0", False), ("1", True)])
def test_internal_errors_show_their_traceback_on_request(monkeypatch, value, shown):
    monkeypatch.setenv("SHARDPASS_TRACEBACK", value)
    try:
        raise KeyError("x")
    except KeyError as error:
        text = str(internal_error("pass p", error))
    assert text.startswith("error: internal error in pass p: KeyError: 'x' [SP199]")
    assert ("Traceback" in text) is shown
