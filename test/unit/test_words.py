"""The rooms whose code and prose are in the field's words hold none of those that docs/glossary.md replaces.

A private word is a name of a function, class, argument, variable or field, or a word of a docstring or comment.
Messages of parsers ("expected X, found Y") and keys of JSON are none.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = (
    "advise",
    "calibrating",
    "cli",
    "cost",
    "diagnostics",
    "hlo",
    "importing",
    "ir",
    "jax",
    "onnx",
    "ops",
    "partition",
    "passes",
    "pipeline",
    "planning",
    "program",
    "propagation",
    "proving",
    "redistribute",
    "replication",
    "report",
    "runtime",
    "sharding",
    "targets",
)

SECTION = (ROOT / "docs" / "glossary.md").read_text().partition("\n## Words to avoid\n")[2].partition("\n## ")[0]
WORDS = frozenset(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in SECTION.splitlines() if "| `" in line)))
CODE = re.compile(
    r"``[^`]*``|^\s*\w+: ", re.MULTILINE
)  # of prose: names between backquotes, and fields that it explains


def names_in(tree: ast.Module) -> set[str]:
    """All identifiers of a file but those of other packages' attributes and of keywords in calls."""
    out: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                out.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                out.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                out.add(name)
    return out


def prose_of(source: str, tree: ast.Module) -> list[str]:
    """The docstrings and comments of a file."""
    documented = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    comments = (t.string for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.COMMENT)
    return [*(ast.get_docstring(node) or "" for node in documented), *comments]


def private_words(source: str) -> set[str]:
    tree = ast.parse(source)
    prose = " ".join(CODE.sub(" ", text) for text in prose_of(source, tree)).lower()
    return (names_in(tree) | set(re.findall(r"\w+", prose))) & WORDS


def files() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / "shardpass" / room).rglob("*.py"))]


def test_the_glossary_names_words() -> None:
    assert {"found", "said", "told", "taken", "held", "settled", "dear", "dearer"} <= WORDS
    assert len(files()) > 300


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("found = 1", {"found"}),
        ("def f(held):\n    return held.size", {"held"}),
        ("class C:\n    taken: int", {"taken"}),
        ('"""The price is dear."""', {"dear"}),
        ("x = 1  # what the user said", {"said"}),
        ('"""Returns ``found`` as it is."""\nraise E(found="the end")', set()),
    ],
)
def test_a_private_word_is_noticed(source: str, words: set[str]) -> None:
    assert private_words(source) == words


@pytest.mark.parametrize("room", ROOMS)
def test_no_private_word(room: str) -> None:
    seen = {}
    for path in files():
        name = path.relative_to(ROOT / "shardpass").as_posix()
        if name.startswith(f"{room}/") and (words := private_words(path.read_text())):
            seen[name] = sorted(words)
    assert not seen
