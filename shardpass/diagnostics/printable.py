"""Escape text for display: characters that a terminal, browser or review tool would interpret or hide.

Names of files, of axes and of arguments come from strangers. An escape sequence moves the cursor, a newline begins a
line that looks like one of ours, and the controls of bidirectional text (U+202E) show other characters than there are.
Each character of the categories below becomes ``\\x1b``, ``\\u202e`` or ``\\U000e0001``; so do bytes of the command
line that are no UTF-8, which Python has as lone surrogates. Every printer goes through a function of this file:
terminals, HTML, SVG and SARIF. JSON and modules contain names as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from unicodedata import category

# controls (C0, C1 with NEL), formats (bidirectional, zero width), separators of lines and paragraphs, surrogates
WRITTEN_OUT = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
_SHORT = {"\n": "\\n", "\t": "\\t"}


def printable(text: str) -> str:
    """Escape unprintable characters in ``text``; lines and tabs are kept."""
    return text.translate({ord(c): _written(c) for c in _odd(text) if c not in _SHORT})


def on_one_line(name: str) -> str:
    """Escape a name: newlines and tabs are escaped too."""
    return name.translate({ord(c): _SHORT.get(c) or _written(c) for c in _odd(name)})


def joined(lines: Iterable[str]) -> str:
    """Join lines of a report and escape line breaks inside each line."""
    return "\n".join(map(on_one_line, lines))


def as_html(text: str) -> str:
    """Escape ``text`` for HTML or SVG, in an element or an attribute."""
    return escape(printable(text))


def _odd(text: str) -> list[str]:
    return [] if text.isprintable() else [c for c in set(text) if category(c) in WRITTEN_OUT]


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
