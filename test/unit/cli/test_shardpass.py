"""The command ``shardpass``: each subcommand is the command of its name; and the list of machines."""

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from shardpass.cli import shardpass
from shardpass.cost.machine import MACHINES
from tools.catalogue import commands
from tools.processes import ROOT, module_command


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
    for words in (["abacus"], ["--abacus"]):
        assert shardpass.main(words) == 2
        assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_commands_are_listed_with_their_purpose(words, capsys):
    assert shardpass.main(words) == 0
    rows = [" ".join(row.split()) for row in capsys.readouterr().out.splitlines()]
    assert {f"{name} {purpose}" for name, purpose in shardpass.COMMANDS.items()} <= set(rows)


@pytest.mark.parametrize("typed", ["shardpass", "shardpass-explain"])
def test_usage_is_what_was_typed(typed, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"/usr/bin/{typed}"])
    assert shardpass.main(["explain", "--abacus"]) == 2
    assert f"usage: {'shardpass explain' if typed == 'shardpass' else typed} [-h]" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "parser"), commands().items())
def test_every_help_has_examples_that_the_command_takes(name, parser):
    """Each line is parsed by the parser of the command that it names; the modules of this repository are there."""
    parsers = {key.replace("shardpass-", "shardpass "): value for key, value in commands().items()}
    block = next(p for p in parser.epilog.split("\n\n") if p.startswith("examples:"))
    assert name.replace("-", " ", 1) in block
    for line in block.splitlines()[1:]:
        words = shlex.split(line.strip().partition("   ")[0])  # what follows three blanks is a note
        command = " ".join(words[:2])
        if words[1] != "COMMAND":
            parsers[command].parse_args(words[2:])
        assert all((ROOT / word).is_file() for word in words if word.startswith("examples/"))


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


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    """In bash itself, with a ``shardpass`` on the path that prints a help."""
    stub = tmp_path / "shardpass"
    stub.write_text("#!/bin/sh\necho 'usage: [--machine M] [--json]'\n")
    stub.chmod(0o755)
    script = subprocess.run(
        module_command("shardpass.cli.shardpass", "--completion", "bash"), capture_output=True, text=True, check=True
    ).stdout
    asked = """
        COMP_WORDS=(shardpass su); COMP_CWORD=1; _shardpass; echo "${COMPREPLY[@]}"
        COMP_WORDS=(shardpass plan --m); COMP_CWORD=2; _shardpass; echo "${COMPREPLY[@]}"
        COMP_WORDS=(shardpass plan f); COMP_CWORD=2; _shardpass; echo "${COMPREPLY[@]}"
    """
    found = subprocess.run(
        ["bash", "-c", script + asked], capture_output=True, text=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}
    )
    assert found.stdout.splitlines() == ["suggest", "--machine", ""], found.stderr
