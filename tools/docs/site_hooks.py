"""Hooks that mkdocs calls while it builds the site (mkdocs.yml).

docs/diagnostics.md is one page, so that it can be read and searched as a file. The site has a page for each code, and
its page of diagnostics is the table of these.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DIAGNOSTICS = "diagnostics.md"
LINK = re.compile(r"\]\((?!\w+:|#)")  # to a file beside the page
CODE = re.compile(r"^### (SP\d{3}) \((\w+)\)\n\n(.*?)\n*(?=^##|\Z)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Leaves out of the navigation what is not written yet: a tutorial may come after the page that names it."""
    config["nav"] = _written(config["nav"], Path(config["docs_dir"]))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each code."""
    from mkdocs.structure.files import File

    for name, text in code_pages((Path(config["docs_dir"]) / DIAGNOSTICS).read_text()).items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fits ``markdown`` to the site.

    Named fenced blocks get the name as their title (in the files ```` ```json plan ```` is a block and its name), and
    the page of diagnostics becomes the table of its codes.
    """
    if page.file.src_uri == DIAGNOSTICS:
        markdown = code_table(markdown)
    return re.sub(r"^```(\w+) (\w+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)


def code_pages(diagnostics: str) -> dict[str, str]:
    """A page for each code of docs/diagnostics.md, by the path of its file."""
    return {
        f"diagnostics/{code}.md": LINK.sub("](../", f"# {code} ({severity})\n\n{text}\n\n[All codes]({DIAGNOSTICS})\n")
        for code, severity, text in CODE.findall(diagnostics)
    }


def code_table(diagnostics: str) -> str:
    """docs/diagnostics.md with a row for each code in place of its text. The anchors of codes stay."""

    def row(match: re.Match[str]) -> str:
        code, severity, text = match.groups()
        message = text.partition("\n")[0].replace("|", "\\|")
        anchor = f'<span id="{code.lower()}-{severity}"></span>'
        return f"| {anchor}[{code}](diagnostics/{code}.md) | {severity} | {message} |\n"

    table = CODE.sub(row, diagnostics)
    return re.sub(r"^(## .*\n\n)(?=\|)", r"\1| code | severity | message |\n|---|---|---|\n", table, flags=re.MULTILINE)


def _written(entry: Any, docs: Path) -> Any:
    """``entry`` of the navigation (a list, {title: entry}, or a file) less files that do not exist."""
    if isinstance(entry, list):
        return [kept for item in entry if (kept := _written(item, docs))]
    if isinstance(entry, dict):
        return {title: kept for title, item in entry.items() if (kept := _written(item, docs))}
    return entry if (docs / entry).exists() else None
