"""What notebooks show: reports, plans and shardings as HTML without scripts."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardpass.report.explanation import Explanation


def explanation(found: Explanation) -> str:
    """The text of a report, in a block of its own."""
    return f'<pre style="line-height:1.25">{html.escape(str(found))}</pre>'
