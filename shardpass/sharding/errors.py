"""The two exceptions of the sharding language, and excerpts that point at an error in a text."""

from __future__ import annotations

from dataclasses import replace

from shardpass.diagnostics import Code, Diagnostic, Place
from shardpass.diagnostics.table_sharding import ShardingError, ShardingParseError

__all__ = ["ShardingError", "ShardingParseError", "excerpt", "fault", "placed"]

_WIDTH = 76


def excerpt(text: str, offset: int, length: int = 1) -> str:
    """Quote the line of ``text`` at ``offset``, with a caret below the place; a long line is shortened."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)]
    column = offset - start
    left = 0
    if len(line) > _WIDTH:
        left = max(0, min(column - _WIDTH // 2, len(line) - _WIDTH))
        shown = line[left : left + _WIDTH]
        head, tail = "..." if left else "", "..." if left + _WIDTH < len(line) else ""
        line, column = head + shown + tail, column - left + len(head)
    line = "".join(c if c.isprintable() else " " for c in line)
    return f"{line}\n{' ' * column}{'^' * max(1, min(length, len(line) - column))}"


def place_of(text: str, offset: int) -> Place:
    start = text.rfind("\n", 0, offset) + 1
    return Place("<sharding>", text.count("\n", 0, offset) + 1, offset - start + 1)


def placed(error: ShardingError, text: str, offset: int, length: int = 1) -> ShardingParseError:
    """Add the place ``offset`` of ``text`` to ``error``."""
    first = error.diagnostics[0]
    shown = replace(first, place=place_of(text, offset), excerpt=excerpt(text, offset, length))
    return ShardingParseError(shown, *error.diagnostics[1:])


def fault(code: Code, text: str, offset: int, length: int = 1, **values: object) -> ShardingParseError:
    """Make the error ``code`` at ``offset`` of ``text``, with an excerpt."""
    error = code.exception(
        Diagnostic(
            code.severity,
            code.id,
            code.message.format(**values),
            place_of(text, offset),
            code.remedy.format(**values),
            excerpt(text, offset, length),
        )
    )
    assert isinstance(error, ShardingParseError)
    return error
