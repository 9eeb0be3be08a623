"""The page of mistakes has every kind, and what it says of a kind is what a report says today."""

import jax
import pytest

from tools.bench.mistakes.table import MISTAKES
from tools.docs.make_cookbook import PAGE, WHY, findings, recipe


def test_every_kind_has_its_reason_and_its_place_on_the_page() -> None:
    assert set(WHY) == set(MISTAKES)
    titles = [line[3:] for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert titles == [kind[0].upper() + kind[1:] for kind in MISTAKES]


@pytest.mark.skipif(jax.__version_info__ >= (0, 12), reason="the page has the figures of XLA in jax 0.10")
@pytest.mark.parametrize("kind", ["leftover constraint", "results forced replicated"])
def test_what_the_page_says_is_what_a_report_says(kind: str) -> None:
    assert "\n".join(recipe(kind, MISTAKES[kind][0])) in PAGE.read_text()


def test_findings_end_where_the_gap_begins() -> None:
    rows = "\n\n\nthe program, and what is left to save:\nrest"
    report = f"head\n\nfindings, compiled by XLA:\n1. a\n   --- a/tmp/x/train.py{rows}"
    assert findings(report) == ["findings, compiled by XLA:", "1. a", "   --- a/train.py"]
