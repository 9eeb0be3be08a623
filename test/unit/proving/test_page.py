"""The example of docs/proving.md does what the page says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "proving.md"


def test_the_example_of_the_page(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(example, str(PAGE), "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert f"`{first}`" in PAGE.read_text().replace("\n", " ")
    assert second in ("stablehlo.all_reduce", "stablehlo.reduce_scatter")
