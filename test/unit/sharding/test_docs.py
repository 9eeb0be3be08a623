"""The sharding page of the documentation: its examples run, and its table of forms is read as it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from shardpass.sharding import ShardingParseError, TupleSharding, parse_sharding

PAGE = Path(__file__).parents[3] / "docs" / "sharding.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_examples() -> None:
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, "sharding.md", str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    result = runner.run(test)
    assert result.attempted > 20
    assert result.failed == 0


FORMS = re.findall(r"^\| `(\{.*?\}[^`]*)` \| ", TEXT, re.MULTILINE)


@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str) -> None:
    found = parse_sharding(text)
    again = parse_sharding(str(found))
    assert again == found
    assert isinstance(found, TupleSharding) == text.startswith("{{")
    if text.endswith("replicate"):
        with pytest.raises(ShardingParseError):
            parse_sharding(text, strict=False)


def test_the_table_is_there() -> None:
    assert len(FORMS) >= 17
