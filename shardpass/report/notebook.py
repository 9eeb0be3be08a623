"""Output for notebooks: text as HTML, and the page of a report in a frame."""

from __future__ import annotations

from html import escape

from shardpass.diagnostics.printable import as_html


def preformatted(words: str) -> str:
    """Format ``words`` for a notebook with their line breaks and spaces."""
    return f'<pre style="line-height:1.25">{as_html(words)}</pre>'


def framed(page: str, words: str) -> str:
    """Put the document ``page`` into a sandboxed frame that only runs the page's script; ``words`` are folded below.

    Viewers that show no frames, such as those of code hosts, show ``words``.
    """
    style = "width:100%;height:640px;border:1px solid #8886"
    frame = f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'
    return f"{frame}<details><summary>as text</summary>{preformatted(words)}</details>"
