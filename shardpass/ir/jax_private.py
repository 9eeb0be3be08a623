"""The one file that touches private API of JAX and jaxlib; its test says clearly what moved."""

from __future__ import annotations

from typing import Any

from jax._src.interpreters import mlir as _jax_mlir


def make_ir_context() -> Any:
    """A fresh ``ir.Context`` with the dialects that JAX's modules use."""
    return _jax_mlir.make_ir_context()
