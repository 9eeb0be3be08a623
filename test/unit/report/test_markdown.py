"""Reports in Markdown: totals, the collectives, and the edits that save."""

from __future__ import annotations

from shardpass.diagnostics import Place
from shardpass.report.explanation import Explanation
from shardpass.report.findings import REPLACE, Figures, Finding, Findings
from shardpass.report.markdown import MOST_ROWS
from shardpass.report.rows import Row


def row(size: int, line: int = 3) -> Row:
    place = Place("m.py", line, 1)
    return Row("all_gather", ("x",), 4, size, array="w[0]|b", place=place, reason="gathers <w>")


def test_rows_are_those_with_most_bytes_and_their_text_is_no_markup() -> None:
    lines = Explanation("m.mlir", 4, (("x", 4),), (row(1, 4), row(2048))).markdown().splitlines()
    assert lines[0] == "### Collectives of m.mlir"
    assert lines[2].startswith("**2.0 KiB received**; 4 devices x=4")
    assert lines[6] == "| 2.0 KiB | 1 | all_gather | x | m.py:3 | w[\\*]\\|b | gathers &lt;w> |"
    assert lines[7].startswith("| 1 B |")
    many = Explanation("m.mlir", 4, (), tuple(row(1, line) for line in range(1, MOST_ROWS + 3))).markdown()
    assert many.endswith("\nand 2 collectives more")
    assert Explanation("m.mlir", 4, (), ()).markdown().endswith("No collectives.")


def test_findings_have_their_diff_and_their_figures() -> None:
    before, after = Figures(2048, 64, 0, 1.0), Figures(1024, 64, 0, 1.0)
    one = Finding(REPLACE, "w is replicated", (), ("w = P('x')",), before, after, place=Place("m.py", 3, 1))
    program = Explanation("m.mlir", 4, (), (row(1),), partitioner="xla", find_findings=lambda: Findings((one,)))
    assert program.markdown().endswith(
        "#### Findings, compiled by XLA\n\n1. m.py:3: w is replicated\n\n```python\nw = P('x')\n```\n\n"
        "received 2.0 KiB -> 1.0 KiB"
    )
