"""Two reports beside each other: what changes is shown, what is equal is counted."""

from __future__ import annotations

from pathlib import Path

from shardpass.diagnostics import Place
from shardpass.report.explanation import Explanation
from shardpass.report.naming import Sources
from shardpass.report.rows import Row


def report(*rows: Row, folder: Path | None = None) -> Explanation:
    return Explanation("m.mlir", 4, (("x", 4),), rows, sources=Sources([] if folder is None else [folder]))


def row(size: int, line: int = 3, **fields: object) -> Row:
    given = {"axes": "x", "group_size": 4, "array": "w", "place": Place("m.py", line, 1), **fields}
    return Row("all_gather", bytes_each=size, **given)  # type: ignore[arg-type]


def test_what_is_equal_is_only_counted() -> None:
    found = report(row(10), row(5, line=4)).diff(report(row(10), row(7, line=4)))
    (change,) = found.changes
    assert (change.before, change.after, change.delta) == (5, 7, 2)
    assert found.same == 1
    assert "1 row is the same" in str(found)


def test_what_comes_and_what_goes_is_told() -> None:
    found = report(row(10)).diff(report(row(3, axes="y")))
    assert [(c.row.axes, c.before, c.after) for c in found.changes] == [("x", 10, 0), ("y", 0, 3)]


def test_repeated_rows_are_one_change() -> None:
    layers = [row(4, array=f"w[{k}]") for k in range(6)]
    (change,) = report(*layers).diff(report(*layers[:2])).changes
    assert (change.before, change.after, change.runs_before, change.runs_after) == (24, 8, 6, 2)
    shown = str(report(*layers).diff(report(*layers[:2])))
    assert "6 to 2 x all_gather over x: w[*]" in " ".join(shown.split())


def test_equal_reports_say_so() -> None:
    assert "every row is the same" in str(report(row(1)).diff(report(row(1))))


def test_a_line_that_moved_is_the_same_line(tmp_path: Path) -> None:
    for name, text in (("a.py", "y = x @ w\n"), ("b.py", "# new\n\ny = x @ w\n")):
        (tmp_path / name).write_text(text)
    old = report(row(8, place=Place(str(tmp_path / "a.py"), 1, 0)), folder=tmp_path)
    new = report(row(8, place=Place(str(tmp_path / "b.py"), 3, 0)), folder=tmp_path)
    assert old.diff(new).changes == ()
