"""Print reports and diagnostics, with colors on a terminal and as plain text elsewhere.

Colors follow what other tools do: none where the stream is no terminal, where NO_COLOR is set or TERM is dumb; always
where FORCE_COLOR is set. Headings are bold, lines of a diff have the colors of ``git diff``, and words such as
``error:`` stand out. The text is the same with and without colors.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_RESET = "\x1b[0m"
_BOLD, _RED, _GREEN, _YELLOW, _CYAN = (f"\x1b[{code}m" for code in ("1", "31", "32", "33", "36"))
_SEVERITIES = {"error": _BOLD + _RED, "warning": _BOLD + _YELLOW, "remark": _BOLD + _CYAN, "help": _GREEN}
_SEVERITY = re.compile(rf"(?:(?<=^)|(?<= ))({'|'.join(_SEVERITIES)}):(?= )")
_HUNK = re.compile(r" *@@ .* @@")
_HEADING = re.compile(r"[a-z][^:]*:$")
_SIGNS = {"+": _GREEN, "-": _RED, "@": _CYAN, " ": "", "\\": ""}


def show(text: object, stream: TextIO | None = None) -> None:
    """Print ``text`` on ``stream``, stdout by default, and flush it."""
    stream = stream or sys.stdout
    print(colored(str(text)) if _has_colors(stream) else text, file=stream, flush=True)


def _has_colors(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def colored(text: str) -> str:
    """Return ``text``, which has no escapes, with colors."""
    return "\n".join(_lines(text))


def _lines(text: str) -> Iterator[str]:
    indent = None  # of the diff that the line may belong to
    for line in text.split("\n"):
        if _HUNK.match(line):
            indent = len(line) - len(line.lstrip())
        if indent is not None and line.startswith(" " * indent) and line[indent : indent + 1] in _SIGNS:
            style = _SIGNS[line[indent : indent + 1]]
        elif line.lstrip().startswith(("--- a/", "+++ b/")) or _HEADING.match(line):
            indent, style = None, _BOLD
        else:
            indent, style = None, ""
        if style:
            yield f"{style}{line}{_RESET}"
        else:
            yield _SEVERITY.sub(lambda match: f"{_SEVERITIES[match[1]]}{match[0]}{_RESET}", line, count=1)
