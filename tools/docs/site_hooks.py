"""What mkdocs calls while it builds the site (mkdocs.yml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Leaves out of the navigation what is not written yet: a tutorial may come after the page that names it."""
    config["nav"] = _written(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Names fenced blocks as the site's Markdown does; on the pages ```` ```json plan ```` is a block and its name."""
    return re.sub(r"^```(\w+) (\w+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)


def _written(entry: Any, docs: Path) -> Any:
    """``entry`` of the navigation (a list, {title: entry}, or a file) less files that do not exist."""
    if isinstance(entry, list):
        return [found for one in entry if (found := _written(one, docs))]
    if isinstance(entry, dict):
        return {title: found for title, one in entry.items() if (found := _written(one, docs))}
    return entry if (docs / entry).exists() else None
