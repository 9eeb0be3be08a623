"""What holds of a command whatever it is given: the laws of ``doors``, in words where they are broken."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import dataclass, field
from functools import cache

from tools.fuzz.door_case import BAD_USAGE, GIVEN, OUT, Case

CODE = re.compile(r"\[(SP\d{3})\]")
INTERNAL = "SP199"
ERROR = re.compile(r"(?:^|: )error: .*", re.MULTILINE)
_LOG = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d|^WARNING: All log messages|^\S+\.py:\d+: \w*Warning: ", re.MULTILINE)
_BYTECODE = b"ML\xefR"  # no terminal gets it: the command asks for a file there
SAID = 400  # characters that a finding quotes
MOST_SAID = 1 << 20  # bytes that a command may say of a case


@dataclass(frozen=True, slots=True)
class Ended:
    """How a case ended. ``status``: negative for a signal; ``faulty``: why the output is not what it should be."""

    status: int
    out: bytes = b""
    err: str = ""
    hung: str = ""
    raised: str = ""
    faulty: str = ""
    files: frozenset[str] = field(default_factory=frozenset)  # that lie there afterwards


@cache
def documented() -> frozenset[str]:
    """The codes of the tables of diagnostics."""
    from shardpass.diagnostics.core import codes

    return frozenset(code.id for code in codes())


def broken(case: Case, ended: Ended) -> list[str]:
    """The laws that ``ended`` breaks."""
    if ended.hung:
        return [ended.hung]
    if ended.status < 0:
        name = signal.Signals(-ended.status).name
        return [f"ended by {name}: {ended.err[-SAID:]}"]
    return [*_of_status(case, ended), *_of_words(case, ended), *_of_json(case, ended), *_of_files(case, ended)]


def _of_status(case: Case, ended: Ended) -> list[str]:
    found = [f"an exception leaves the command: {ended.raised[-SAID:]}"] if ended.raised else []
    allowed = {0, 1, BAD_USAGE} if case.usage else {0, 1}
    if ended.status not in allowed:
        found.append(f"status {ended.status}, not of {sorted(allowed)}: {ended.err[-SAID:]}")
    elif ended.status == BAD_USAGE and not (ended.err.startswith("usage: ") and "error: " in ended.err):
        found.append(f"status 2 without a word on usage: {ended.err[-SAID:]}")
    elif ended.status == 1:
        found += _of_error(ended.err if ERROR.search(ended.err) else ended.err + ended.out.decode("utf-8", "replace"))
    elif ended.status == 0 and ERROR.search(ended.err) and CODE.search(ended.err):
        found.append(f"status 0, and yet an error: {ended.err[-SAID:]}")
    return found


def _of_error(said: str) -> list[str]:
    named = set(CODE.findall(said)) | set(re.findall(r'"(SP\d{3})"', said))
    if not named:
        return [f"status 1 without a code: {said[-SAID:]!r}"]
    if unknown := named - documented():
        return [f"codes that no table has: {', '.join(sorted(unknown))}"]
    return [f"an internal error: {said[:SAID]}"] if INTERNAL in named else []


def _of_words(case: Case, ended: Ended) -> list[str]:
    found = []
    if "Traceback (most" in ended.err:
        found.append(f"a traceback: {ended.err[-SAID:]}")
    if "\x1b" in ended.err or (b"\x1b" in ended.out and not ended.out.startswith(_BYTECODE)):
        found.append("an escape sequence reaches the terminal")
    if noise := _LOG.search(ended.err):
        found.append(f"noise: {ended.err[noise.start() :][:SAID]}")
    if len(ended.err) > MOST_SAID:
        found.append(f"{len(ended.err):,} characters of complaint")
    return found


def _of_json(case: Case, ended: Ended) -> list[str]:
    """One document on stdout, where nothing but JSON was asked for."""
    if case.usage or not {"--json", "json", "sarif"} & set(case.words) or (ended.status and "--json" in case.words):
        return []
    try:
        json.loads(ended.out, parse_constant=_no_number)
    except ValueError as error:
        return [f"no JSON on stdout: {error}"]
    return []


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON's")


def _of_files(case: Case, ended: Ended) -> list[str]:
    found = []
    left = ended.files - case.files.keys() - {OUT}
    if hidden := {name for name in left if name.startswith(".")}:
        found.append(f"left behind: {', '.join(sorted(hidden))}")
    elif left and not case.writes:
        found.append(f"files that nobody asked for: {', '.join(sorted(left))}")
    if GIVEN in case.files and GIVEN not in ended.files:
        found.append("the input is gone")
    # shardpass-check writes what it completed although other parts are wrong
    if ended.status == 1 and OUT in ended.files and case.command != "check" and not case.writes:
        found.append("status 1, and yet an output")
    if ended.status == 0 and case.form and OUT not in ended.files:
        found.append("status 0, and no output")
    if ended.faulty:
        found.append(f"the output is faulty: {ended.faulty[:SAID]}")
    return found
