"""The headline and the remedies: what costs most, and the edits that save."""

from __future__ import annotations

from dataclasses import replace

from support.report_page import Opened, known, texts

import shardpass
from shardpass.diagnostics import Place
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Figures, Finding, Findings
from shardpass.report.rows import ConstraintFact, HintFact


def test_the_line_that_receives_most_is_the_headline(opened: Opened, step: Explanation) -> None:
    """Where no edit is known; and the page says who made it of what."""
    page, facts = opened(replace(step, command="shardpass explain step.mlir")), known(step)
    (sentence,) = texts(page, "#worst .sentence")
    first = facts["lines"][0]
    assert sentence.startswith(f"Most is received at mlp.py:{first['place'].rsplit(':', 1)[1]}: ")
    assert f"{first['bytes_received'] / 1024:.1f} KiB of {facts['total_bytes_received'] / 1024:.1f} KiB" in sentence
    assert "partitioned by shardpass" in texts(page, "#head")[0]
    (made,) = texts(page, "#made")
    assert made == f"shardpass {shardpass.__version__}, machine {facts['profile']}: shardpass explain step.mlir"
    assert texts(page, "#remedies") == []


def test_the_first_edit_is_the_headline(opened: Opened, step: Explanation) -> None:
    """Two edits: the first stands on top as a diff, the second under the remedies, with all else that saves."""
    before, after = Figures(8192, 100, 10, 1e-3), Figures(4096, 90, 10, 1e-4)
    edits = tuple(
        Finding("drop", f"the constraint of {name} costs", (), (f"drop {name}",), before, after, diff, Place("m.py", 6))
        for name, diff in (("a", "--- a/m.py\n+++ b/m.py\n@@ -6 +6 @@\n-x\n+y\n"), ("b", ""))
    )
    found = replace(
        step,
        find_findings=lambda: Findings(edits),
        find_constraints=lambda: (ConstraintFact(Place("m.py", 7), "P()", "f32[8]", 3072, 2048),),
        hints=(),
        partitioner="xla",
    )
    page = opened(found)
    assert texts(page, "#worst .sentence") == ["m.py:6: the constraint of a costs"]
    assert [text.strip() for text in texts(page, "#worst .edit.gone, #worst .edit.come")] == ["-x", "+y"]
    assert texts(page, "#worst > p.quiet") == [
        "received 8.0 KiB \u2192 4.0 KiB, step 1 ms \u2192 100 \u00b5s, as compiled"
    ]
    assert texts(page, "#findings li > p:first-child")[1] == "m.py:6: the constraint of b costs"
    assert texts(page, "#findings pre") == ["drop b\n"]
    told = texts(page, "#remedies ul li")
    assert told == [
        "m.py:7: 3.0 KiB to bring f32[8] to P() and on; saves 2.0 KiB if it did not hold",
    ]
    assert "No single annotation was found that saves." in texts(page, "#remedies p")
    assert "partitioned by XLA" in texts(page, "#head")[0]


def test_hints_and_a_limit_are_shown(opened: Opened, step: Explanation) -> None:
    hint = HintFact("line", "h", "P('data')", "P()", Place("m.py", 3, 1), 4096, 1024, 0)
    assert step.memory is not None
    page = opened(replace(step, hints=(hint,), memory_limit=step.memory.total - 1024))
    assert "m.py:3: h is P(); with_sharding_constraint(h, P('data')) saves 3.0 KiB of 4.0 KiB" in texts(page, "li")
    assert "1.0 KiB too much" in texts(page, "main .bad")[0]
    assert any(text.startswith("limit ") for text in texts(page, ".plot text"))
