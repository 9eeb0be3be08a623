"""Sharding rules and rewrites for each op of StableHLO and CHLO. Packages add ops with ``register_custom_call``."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["register_custom_call"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Load ``register_custom_call`` at its first use: the families need the rest of this package first."""
    if name not in __all__:
        raise AttributeError(f"module 'shardpass.ops' has no attribute {name!r}")
    return getattr(importlib.import_module("shardpass.ops.families.call_rules"), name)
