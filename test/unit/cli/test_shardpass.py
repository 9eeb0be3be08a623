"""The command ``shardpass``: each subcommand is the command of its name; and the list of machines."""

import re
from importlib import import_module

import pytest

from shardpass.cli import shardpass
from shardpass.cost.machine import MACHINES
from tools.processes import ROOT


def test_every_script_is_a_subcommand():
    scripts = re.findall(r'^shardpass-([\w-]+) = "([\w.]+):main"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert {name for name, _ in scripts} <= set(shardpass.COMMANDS)
    assert all(f"shardpass.cli.{name.replace('-', '_')}" == module for name, module in scripts)


@pytest.mark.parametrize("name", shardpass.COMMANDS)
def test_a_subcommand_is_the_command(name, capsys):
    assert shardpass.main([name, "--help"]) == 0
    told = capsys.readouterr().out
    assert import_module(f"shardpass.cli.{name.replace('-', '_')}").main(["--help"]) == 0
    assert capsys.readouterr().out == told


def test_what_is_no_subcommand_is_bad_usage(capsys):
    for words in ([], ["abacus"], ["--abacus"]):
        assert shardpass.main(words) == 2
        assert "error: " in capsys.readouterr().err
    assert shardpass.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in shardpass.COMMANDS)


def test_the_machines_are_listed_and_the_usual_one_is_marked(capsys, monkeypatch):
    for usual in ("v5p", "pod"):
        monkeypatch.setenv("SHARDPASS_MACHINE", usual)
        assert shardpass.main(["machines"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert {line.split()[0] for line in lines if line[0] != " "} == {*MACHINES, usual}
        assert [line.split()[0] for line in lines if line.split()[1:2] == ["*"]] == [usual]
    monkeypatch.setenv("SHARDPASS_MACHINE", "abacus")
    assert shardpass.main(["machines"]) == 1
    assert "SP901" in capsys.readouterr().err
