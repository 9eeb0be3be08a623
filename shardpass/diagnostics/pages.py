"""Format the meaning of each code as Markdown, for docs/diagnostics.md and ``shardpass explain SP240``."""

from __future__ import annotations

import re
import string

from shardpass.diagnostics.core import Code, codes


def code_of(id: str) -> Code | None:
    """Return the code with the id ``id``, or None."""
    return next((row for row in codes() if row.id == id), None)


def section(row: Code) -> list[str]:
    """Format lines of Markdown: the message with its values as code, a fixed remedy, and the explanation."""
    lines = [f"### {row.id} ({row.severity})", "", _template(row.message), ""]
    if row.remedy and not re.fullmatch(r"\{\w+\}", row.remedy):
        lines += [f"Remedy: {_template(row.remedy)}", ""]
    if row.explanation:
        lines += [row.explanation, ""]
    return lines


def _template(text: str) -> str:
    """Format a message template as Markdown: values as code, doubled braces as single ones."""
    out, in_code = "", False
    for literal, name, _, _ in string.Formatter().parse(text):
        for index, span in enumerate(literal.split("`")):
            in_code ^= index > 0
            out += ("`" if index else "") + (span if in_code else span.replace("<", "&lt;"))
        if name is not None:
            out += f"{{{name}}}" if in_code else f"`{{{name}}}`"
    return out
