"""Lower jitted functions; over an abstract mesh, which has no devices, for the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CPU = "cpu"


def lowered(jitted: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any], platform: str | None = None) -> Any:
    """Lower ``jitted`` for ``platform``, by default that of its devices."""
    if platform is None or not hasattr(jitted, "trace"):
        try:
            return jitted.lower(*arguments, **keywords)
        except ValueError as error:
            if not _needs_platform(error) or not hasattr(jitted, "trace"):
                raise
    return jitted.trace(*arguments, **keywords).lower(lowering_platforms=(platform or CPU,))


def lowered_trace(traced: Any, platform: str | None = None) -> Any:
    """Lower ``traced``, the ``trace`` of a jitted function, for ``platform``; by default, for its devices."""
    if platform is None:
        try:
            return traced.lower()
        except ValueError as error:
            if not _needs_platform(error):
                raise
    return traced.lower(lowering_platforms=(platform or CPU,))


def _needs_platform(error: ValueError) -> bool:
    return "lowering_platforms" in str(error)
