"""Compile and run partitioned modules, on XLA or on StableHLO's reference interpreter.

Names are looked up on first use: the interpreter's own process needs no JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardpass.runtime.compiling import compile
    from shardpass.runtime.executable import Executable
    from shardpass.runtime.interpreter import interpret
    from shardpass.runtime.reference import compile_by_xla, compile_single

__all__ = ["Executable", "compile", "compile_by_xla", "compile_single", "interpret"]

_HOME = {
    "Executable": "executable",
    "compile": "compiling",
    "compile_by_xla": "reference",
    "compile_single": "reference",
    "interpret": "interpreter",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
