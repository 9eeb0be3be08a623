"""Applies a unified diff to a text, as ``patch`` does with no fuzz."""

from __future__ import annotations

import re

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def applied(text: str, diff: str) -> str:
    """``text`` with ``diff`` applied. Raises ValueError where a line of the diff is not at its place."""
    lines, out, at = text.splitlines(keepends=True), [], 0
    for row in diff.splitlines(keepends=True)[2:]:
        hunk = _HUNK.match(row)
        if hunk is not None:
            start = int(hunk[1]) - (hunk[2] != "0")
            out += lines[at:start]
            at = start
        elif row[0] in " -":
            if at >= len(lines) or lines[at].rstrip("\n") != row[1:].rstrip("\n"):
                raise ValueError(f"line {at + 1} is not {row[1:]!r}")
            out += [lines[at]] if row[0] == " " else []
            at += 1
        elif row[0] == "+":
            out.append(row[1:])
    return "".join([*out, *lines[at:]])
