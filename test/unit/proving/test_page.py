"""The examples of docs/proving.md do what the page says."""

import re
from pathlib import Path

import pytest

import shardpass
from shardpass.diagnostics import ShardpassError

PAGE = Path(__file__).parents[3] / "docs" / "proving.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_example_of_the_page(capsys):
    example, _ = EXAMPLES
    exec(compile(example, str(PAGE), "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert f"`{first}`" in PAGE.read_text().replace("\n", " ")
    assert second in ("stablehlo.all_reduce", "stablehlo.reduce_scatter")


def test_the_pipeline_of_the_page_asks_for_a_proof():
    _, example = EXAMPLES
    names = {}
    exec(compile(example, str(PAGE), "exec"), names)
    with pytest.raises(ShardpassError, match="SP957"):  # the pass compares with what the pipeline was given
        shardpass.run_pipeline(names["local"], "shardpass-prove{prove=true}")
    assert shardpass.prove(names["whole"], names["local"]).proved
