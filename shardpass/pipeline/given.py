"""Keep a pipeline's input for passes that compare with it.

State: one copy in a context variable, for the run of one pipeline. A copy is made only where a pass asks for one
(``ModulePass.compares``), as the passes before it change the module in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_given: ContextVar[Any | None] = ContextVar("shardpass_given", default=None)


@contextmanager
def giving(copy: Any | None) -> Iterator[None]:
    """Set, for the run of one pipeline, the copy of its input. ``copy``: None if no pass reads the input."""
    token = _given.set(copy)
    try:
        yield
    finally:
        _given.reset(token)


def given_module() -> Any | None:
    """Return the input of the running pipeline's first pass; None outside of a pipeline."""
    return _given.get()
