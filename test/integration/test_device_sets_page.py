"""docs/device_sets.md: its command prints what the page shows, and its Python runs and leaves what the page says."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from shardpass.cli.plan import main

PAGE = (Path(__file__).parents[2] / "docs" / "device_sets.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(*numbers):
    """The variables after some examples, and what these print."""
    pytest.importorskip("orbax.checkpoint")  # of the extra `test`
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for number in numbers:
            exec(compile(EXAMPLES[number], f"docs/device_sets.md, example {number}", "exec"), names)
    return names, printed.getvalue()


def test_the_command_prints_what_the_page_shows(capsys):
    block = PAGE.split("```\n$ shardpass-plan ")[1].split("```")[0]
    command, *shown = block.rstrip().splitlines()
    assert main(shlex.split(command)) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines()] == shown


def test_six_devices_to_four():
    """Each row goes from its holder to where it is needed, once."""
    names, _ = run(0)
    sent = [
        (message.sender, message.receiver, row)
        for messages in names["plan"].rounds
        for message in messages
        for cell in message.cells
        for row in range(cell.box[0][0], cell.box[1][0])
    ]
    assert sorted(sent) == sorted((row // 2, 6 + row // 3, row) for row in range(12))


def test_from_a_trainer_to_a_sampler():
    names, printed = run(1)
    assert printed.rstrip().endswith("True")
    np.testing.assert_array_equal(names["served"]["up"], np.arange(96).reshape(12, 8))
    np.testing.assert_array_equal(names["served"]["down"], np.arange(96).reshape(24, 4))
    for name, array in names["served"].items():
        assert array.sharding == names["wanted"][name]


def test_a_checkpoint_of_eight_devices_on_four():
    names, printed = run(1, 2)
    assert printed.splitlines()[-1] == "4 True"
    assert names["again"]["w"].sharding == names["eight"]
    np.testing.assert_array_equal(names["smaller"]["w"], np.arange(64).reshape(8, 8))


def test_the_format_of_json(capsys):
    """The fields of the table are those of the text."""
    block = PAGE.split("```\n$ shardpass-plan ")[1].split("\n")[0]
    assert main([*shlex.split(block), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    listed = re.findall(
        r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE.split("## The schedule as JSON")[1], re.M))
    )
    assert listed == list(data)
    assert set(data["rounds"][0][0]) == {"sender", "receiver", "pieces"}
