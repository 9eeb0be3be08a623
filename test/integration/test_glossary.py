"""docs/glossary.md keeps its form: each term once, with an example, a table, or the generated page that explains it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
ENTRY = re.compile(r"^\*\*([^*]+)\*\*.*?(?=^\*\*|^#|\Z)", re.DOTALL | re.MULTILINE)
ENTRIES = {found[1]: found[0] for found in ENTRY.finditer(PAGE)}
SHARED = {"join"}  # a step of propagation, and a pass: the page says so


def test_no_term_stands_twice() -> None:
    terms = Counter(term for names in ENTRIES for term in names.split(", "))
    assert {term for term, times in terms.items() if times > 1} == SHARED
    assert len(terms) > 50


@pytest.mark.parametrize("term", ENTRIES)
def test_every_term_has_an_example(term: str) -> None:
    text = " ".join(ENTRIES[term].split())
    assert "Example:" in text or "](passes.md)" in text or "| Shardy |" in text, text
