"""Write the report as one HTML page without other files or network access.

The page contains the report as JSON (``page_contents``), and scripts that draw it. Except for the title, no text of
the program is part of the markup: scripts set it as text. A policy in the page's head allows only its own scripts
and styles, by their hashes, so a browser runs and loads nothing else even if a name were parsed as markup.

The files of ``assets`` are concatenated in the order of ``SCRIPTS``. The same report gives the same bytes. Without
scripts, a browser shows the report as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from string import Template
from typing import Any

from shardpass.diagnostics.printable import as_html, on_one_line
from shardpass.report.page_contents import contents
from shardpass.report.report import Report
from shardpass.report.text import text

SCRIPTS = (
    "elements",
    "axes",
    "bars",
    "layout",
    "steps",
    "details",
    "table",
    "loops",
    "schedule",
    "plot",
    "program",
    "main",
)
_MARKUP = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def to_html(report: Report) -> str:
    """Write the page. Lines of the program are quoted if ``report.sources`` allows."""
    style = _asset("page.css")
    script = f'"use strict";\n(() => {{\n{"".join(_asset(f"{name}.js") for name in SCRIPTS)}}})();\n'
    return Template(_asset("page.html")).substitute(
        title=as_html(on_one_line(report.file)),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=as_data(contents(report)),
        text=as_html(text(report, top=0)),
    )


def as_data(value: object) -> str:
    """Write JSON for an HTML element, escaped so that no character ends the element."""
    return json.dumps(_for_eyes(value), separators=(",", ":"), allow_nan=False).translate(_MARKUP)


def _for_eyes(value: Any) -> Any:
    """Copy ``value`` with every text on one line, in the format of scripts."""
    if isinstance(value, str):
        return on_one_line(value)
    if isinstance(value, Mapping):
        return {key: _for_eyes(inner) for key, inner in value.items()}
    return [_for_eyes(inner) for inner in value] if isinstance(value, list | tuple) else value


def _hash(body: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()


@cache
def _asset(name: str) -> str:
    return (resources.files("shardpass.report") / "assets" / name).read_text(encoding="utf-8")
