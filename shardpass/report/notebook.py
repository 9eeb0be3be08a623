"""What notebooks show: text as HTML, without scripts."""

from __future__ import annotations

from shardpass.diagnostics.printable import as_html


def preformatted(words: str) -> str:
    """``words`` as they stand."""
    return f'<pre style="line-height:1.25">{as_html(words)}</pre>'
