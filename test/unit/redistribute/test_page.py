"""docs/redistribution.md says what the commands and the tables say."""

import json
import shlex
from pathlib import Path

import pytest

from shardpass.cli.plan import main
from shardpass.cost.links import Switch
from shardpass.cost.profiles import from_json

PAGE = (Path(__file__).parents[3] / "docs" / "redistribution.md").read_text()


def test_the_command_prints_what_the_page_shows(capsys):
    block = PAGE.split("## In use\n\n")[1].split("\n\n`received`")[0]
    shown = [line.removeprefix("    ") for line in block.splitlines()]
    blank = shown.index("")
    command = shlex.split(" ".join(line.rstrip("\\") for line in shown[:blank]).removeprefix("$ shardpass-plan"))
    assert main(command) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed[3:] == shown[blank + 1 :]


@pytest.mark.parametrize("block", [part.split("```")[0] for part in PAGE.split("```json profile\n")[1:]])
def test_profiles_of_the_page_are_read(block):
    profile = from_json(json.loads(block), "mine")
    assert profile.memory_bandwidth == 1e12
    assert profile.links == (Switch(8, 5e-6, 150e9), Switch(None, 25e-6, 12.5e9))
