"""What notebooks show: text as HTML, without scripts."""

from __future__ import annotations

import html


def preformatted(words: str) -> str:
    """``words`` as they stand."""
    return f'<pre style="line-height:1.25">{html.escape(words)}</pre>'
