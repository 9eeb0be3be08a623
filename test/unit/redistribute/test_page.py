"""docs/redistribution.md says what the commands and the tables say."""

import shlex
from pathlib import Path

from shardpass.cli.plan import main

PAGE = (Path(__file__).parents[3] / "docs" / "redistribution.md").read_text()


def test_the_command_prints_what_the_page_shows(capsys):
    block = PAGE.split("## In use\n\n")[1].split("\n\n`received`")[0]
    shown = [line.removeprefix("    ") for line in block.splitlines()]
    blank = shown.index("")
    command = shlex.split(" ".join(line.rstrip("\\") for line in shown[:blank]).removeprefix("$ shardpass-plan"))
    assert main(command) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed[3:] == shown[blank + 1 :]
