"""Colors of reports and diagnostics: on a terminal, or where they are asked for, and never in what a file gets."""

from __future__ import annotations

import io
import re

import pytest

from shardpass.cli.color import colored, show

REPORT = """findings, compiled by XLA:
1. the constraint of `h` to P('data') costs 256.0 KiB
   --- a/train.py
   +++ b/train.py
   @@ -14,3 +14,3 @@
    def forward(params, x):
   -    h = constrain(h)
   +    return h
   received 384.0 KiB -> 0 B
error: `x` is unknown [SP100]
    help: write y"""
ESCAPES = re.compile(r"\x1b\[[0-9]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(stream: io.StringIO) -> str:
    show(REPORT, stream)
    return stream.getvalue()


def test_lines_have_the_colors_of_git_diff() -> None:
    lines = colored(REPORT).split("\n")
    assert "\n".join(ESCAPES.sub("", line) for line in lines) == REPORT
    assert [line[: line.index("m") + 1] for line in lines if line.startswith("\x1b")] == [
        "\x1b[1m", "\x1b[1m", "\x1b[1m", "\x1b[36m", "\x1b[31m", "\x1b[32m", "\x1b[1m",
    ]  # fmt: skip
    assert lines[5] == "    def forward(params, x):"
    assert lines[8] == "   received 384.0 KiB -> 0 B"
    assert lines[9].startswith("\x1b[1m\x1b[31merror:\x1b[0m `x`")
    assert lines[10].startswith("    \x1b[32mhelp:\x1b[0m")


@pytest.mark.parametrize(
    ("environment", "terminal", "file"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
    ],
)
def test_where_colors_are(
    environment: dict[str, str], terminal: bool, file: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b" in printed(Terminal())) == terminal
    assert ("\x1b" in printed(io.StringIO())) == file
    assert ESCAPES.sub("", printed(Terminal())) == f"{REPORT}\n"
