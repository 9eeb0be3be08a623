"""The summary of each public function starts with an imperative verb: "Return ...", not "Returns ..." or "The ...".

Properties and classes are named by nouns.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "shardpass"
ROOMS = sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE})
NO_VERBS = frozenset(
    [
        "A",
        "All",
        "Along",
        "An",
        "Any",
        "Each",
        "Every",
        "For",
        "How",
        "Inside",
        "Known",
        "Of",
        "One",
        "The",
        "What",
        "Where",
        "Whether",
        "Which",
        "Why",
    ]
)
ENDS_IN_S = frozenset(("Address", "Compress", "Express", "Pass", "Process"))


def is_imperative(summary: str) -> bool:
    """Whether ``summary`` starts as an imperative does, as far as its first word shows."""
    word = re.match(r"[A-Z][a-z]+\b", summary)
    return word is not None and word[0] not in NO_VERBS and (not word[0].endswith("s") or word[0] in ENDS_IN_S)


def summaries(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Yields those of public functions and methods that are no properties."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from summaries(node)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            text = ast.get_docstring(node)
            if text and "property" not in decorators and "overload" not in decorators:
                yield text.splitlines()[0]


@pytest.mark.parametrize(
    ("summary", "imperative"),
    [
        ("Return the bytes.", True),
        ("Pass the value on.", True),
        ("Returns the bytes.", False),
        ("The bytes.", False),
        ("Whether it fits.", False),
        ("0, or 1.", False),
    ],
)
def test_an_imperative_is_known(summary: str, imperative: bool) -> None:
    assert is_imperative(summary) == imperative


@pytest.mark.parametrize("room", ROOMS)
def test_summaries_are_imperatives(room: str) -> None:
    texts = [text for path in (PACKAGE / room).rglob("*.py") for text in summaries(ast.parse(path.read_text()))]
    bad = [text for text in texts if not is_imperative(text)]
    assert bad == []
