"""docs/redistribution.md says what the commands and the tables say."""

import json
import re
import shlex
from pathlib import Path

import pytest

from shardpass.cli.plan import main
from shardpass.redistribute.terms.costs import PROFILES, Link
from shardpass.redistribute.terms.profiles import from_json

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
    assert (profile.latency, profile.bandwidth, profile.copies) == (25e-6, 12.5e9, 1e12)
    assert (*profile.blocks, *profile.axes)[0][1] == Link(5e-6, 150e9)


def test_every_profile_stands_in_the_table():
    rows = dict(re.findall(r"^\| `([\w-]+)`[^|]*\|(.*)\|$", PAGE.split("## Machines")[1], re.MULTILINE))
    assert set(rows) == set(PROFILES)
    for name, row in rows.items():
        said = [float(n) * scale for n, scale in numbers(row)]
        profile = PROFILES[name]
        links = [*(link for _, link in profile.blocks), profile.link]
        want = [link.latency for link in links] + [link.bandwidth for link in links] + [profile.copies]
        assert name == "paper" or said == pytest.approx(want)


def numbers(row):
    units = {"us": 1e-6, "GB/s": 1e9, "TB/s": 1e12}
    return [(number, units[unit]) for number, unit in re.findall(r"([\d.]+) (us|GB/s|TB/s)", row)]
