"""Specs as values and as JAX's text: the axes that split each dimension."""

from __future__ import annotations

from collections.abc import Sequence

Spec = tuple[tuple[str, ...], ...]  # the axes that split each dimension


def spec_text(spec: Spec) -> str:
    """Format a spec: ``P('data', None, 'model')``, without ``None`` at the end."""
    length = max((place + 1 for place, names in enumerate(spec) if names), default=0)
    return f"P({', '.join(map(_entry, spec[:length]))})"


def full_text(spec: Spec) -> str:
    """Format a spec with an entry for each dimension: ``P('data', None)``; ``P()`` where nothing is split."""
    return f"P({', '.join(map(_entry, spec))})" if any(spec) else "P()"


def _entry(names: Sequence[str]) -> str:
    return "None" if not names else repr(names[0]) if len(names) == 1 else f"({', '.join(map(repr, names))})"
