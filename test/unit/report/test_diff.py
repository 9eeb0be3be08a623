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
    given = {"axes": ("x",), "group_size": 4, "array": "w", "place": Place("m.py", line, 1), **fields}
    return Row("all_gather", bytes_each=size, **given)  # type: ignore[arg-type]


def test_equal_collectives_are_counted_and_not_listed() -> None:
    diff = report(row(10), row(5, line=4)).diff(report(row(10), row(7, line=4)))
    (change,) = diff.changes
    assert (change.kind, change.bytes, change.delta) == ("changed", (5, 7), 2)
    assert diff.same == 1
    assert diff.costs_more
    assert "1 collective is the same" in str(diff)


def test_collectives_appear_and_go() -> None:
    diff = report(row(10)).diff(report(row(3, axes=("y",))))
    shown = [(change.kind, change.row.axes, change.bytes) for change in diff.changes]
    assert shown == [("went", ("x",), (10, 0)), ("appeared", ("y",), (0, 3))]
    assert not diff.costs_more


def test_layers_are_one_change() -> None:
    layers = [row(4, array=f"w[{k}]") for k in range(6)]
    (change,) = report(*layers).diff(report(*layers[:2])).changes
    assert (change.bytes, change.counts) == ((24, 8), (6, 2))
    shown = str(report(*layers).diff(report(*layers[:2])))
    assert "6 to 2 x all_gather over x: w[*]" in " ".join(shown.split())


def test_equal_reports() -> None:
    assert "every collective is the same" in str(report(row(1)).diff(report(row(1))))
    assert "Every collective is the same" in report(row(1)).diff(report(row(1))).markdown()


def test_a_line_that_moved_is_the_same_line(tmp_path: Path) -> None:
    for name, text in (("a.py", "y = x @ w\n"), ("b.py", "# new\n\ny = x @ w\n")):
        (tmp_path / name).write_text(text)
    old = report(row(8, place=Place(str(tmp_path / "a.py"), 1, 0)), folder=tmp_path)
    new = report(row(8, place=Place(str(tmp_path / "b.py"), 3, 0)), folder=tmp_path)
    assert old.diff(new).changes == ()


def test_an_equal_collective_of_another_line_moved() -> None:
    (change,) = report(row(8, line=3)).diff(report(row(8, line=9, array="v"))).changes
    assert (change.kind, change.delta, change.row.line) == ("moved", 0, 9)
    assert "m.py:3 to m.py:9" in str(report(row(8, line=3)).diff(report(row(8, line=9))))


def test_markdown_lists_the_changes() -> None:
    table = report(row(10)).diff(report(row(2048, axes=("y",), array="a|b"))).markdown()
    assert "| appeared | +2.0 KiB | 0 B | 2.0 KiB | all_gather | y | m.py:3 | a\\|b |" in table
