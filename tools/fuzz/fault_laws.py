"""What holds of a command whatever happens to it: laws 1 to 5 of ``faults``, in words where they are broken."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from tools.fuzz.fault_cases import COMMANDS, SCRIPT, Case, Fault

OLD = b"what was there before\n"
CODE = re.compile(r"\[SP\d{3}\]")


@dataclass(frozen=True)
class Ended:
    status: int
    out: bytes
    err: str
    seconds: float
    stray: bool


@dataclass(frozen=True)
class Usual:
    """What a command does when nothing happens."""

    output: bytes | None
    seconds: float


def of_ends(case: Case, ended: Ended) -> list[str]:
    found = []
    allowed = {0, 1}
    if case.fault in (Fault.INTERRUPT, Fault.BETWEEN):
        allowed = {0, 130, -signal.SIGINT}
    elif case.fault is Fault.LEAVES:
        allowed = {0, 141}
    elif case.fault is Fault.UNWRITABLE:
        allowed = {1}
    if ended.status not in allowed:
        found.append(f"status {ended.status}, not of {sorted(allowed)}: {ended.err[-300:]}")
    if ended.status == 1 and not CODE.search(ended.err):
        found.append(f"an error without a code: {ended.err[-300:]!r}")
    if "internal error" in ended.err:
        found.append(f"an internal error: {ended.err[-300:]!r}")
    if "Traceback" in ended.err:
        found.append(f"a traceback: {ended.err[-500:]}")
    if "\x1b" in ended.err or b"\x1b" in ended.out:
        found.append("an escape sequence reaches the terminal")
    if ended.stray:
        found.append("a process stays behind")
    return found


def of_output(case: Case, now: bytes, ended: Ended, usual: Usual) -> list[str]:
    found = []
    judged = case.fault not in (Fault.TORN, Fault.CHANGED)
    if now != OLD and judged and now != usual.output:
        found.append(f"the output is neither the old one nor whole: {len(now)} bytes")
    if ended.status == 0 and now == OLD and COMMANDS[case.command][1]:
        found.append("status 0, and no output")
    if ended.status != 0 and now != OLD and case.fault not in (Fault.INTERRUPT, Fault.LEAVES):
        found.append(f"status {ended.status}, and yet an output")
    if case.command == "html" and SCRIPT.encode() in now:
        found.append("an element that the input named is in the page")
    return found
