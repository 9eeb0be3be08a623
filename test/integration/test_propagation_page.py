"""Every example of docs/propagation.md gives what the page prints below it.

The page is a sequence of fenced blocks. ``mlir`` is a program. The blocks up to the next program are its results:
``text`` holds what ``shardpass-propagate{effort=0 trace=true verbose=true}`` prints, without places; ``mlir result``
the module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import shardpass

PAGE = Path(__file__).parents[2] / "docs" / "propagation.md"
PASSES = "shardpass-import,shardpass-propagate{effort=0 trace=true verbose=true}"
FENCE = re.compile(r"^```(mlir|text|mlir result)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PLACE = re.compile(r"^\S+:\d+:\d+: ", re.MULTILINE)


@dataclass
class Example:
    title: str
    program: str
    results: dict[str, str] = field(default_factory=dict)  # kind of block -> its text


def examples() -> list[Example]:
    page = PAGE.read_text()
    found: list[Example] = []
    for block in FENCE.finditer(page):
        kind, text = block.groups()
        if kind == "mlir":
            title = re.findall(r"^#+ (.*)$", page[: block.start()], re.MULTILINE)[-1]
            found.append(Example(title, text))
        else:
            assert kind not in found[-1].results, f"{found[-1].title}: two blocks of {kind}"
            found[-1].results[kind] = text
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.title for e in EXAMPLES])
def test_example(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    module = shardpass.run_pipeline(example.program, PASSES)
    printed = PLACE.sub("", capsys.readouterr().err)
    assert printed == example.results["text"]
    if "mlir result" in example.results:
        assert str(module).split() == example.results["mlir result"].split()


def test_examples_are_numbered_and_none_is_lost() -> None:
    numbers = [int(n) for n in re.findall(r"^### Example (\d+)", PAGE.read_text(), re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(EXAMPLES) >= len(numbers)
    assert PAGE.read_text().count("```") == 2 * sum(1 + len(e.results) for e in EXAMPLES)
