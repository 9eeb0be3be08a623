"""The facts of a module, kept from one pass of a pipeline to the next.

Between passes the text is the contract; the table spares a pass from reading again what the pass before it has in
hand. It must agree with the text, so a pipeline keeps it only while passes run that leave the module's ops as they are
(``ModulePass.keeps_table``), and forgets it before any other step, MLIR's own among them.

State: one table in a context variable, for the run of one pipeline (``scope``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from shardpass.program.program import Program
from shardpass.program.read import Handles, read_program
from shardpass.program.shardings import Shardings, shardings_said


@dataclass(frozen=True)
class Table:
    """A module's facts. ``shardings``: what propagation found, None before it.

    ``decided``: what plans of the program have decided so far (``planning.choose``), for those that follow.
    """

    program: Program
    handles: Handles
    shardings: Shardings | None = None
    decided: Any = None

    def found(self) -> Shardings:
        """The shardings of all values: what propagation found in this run, or what the text says."""
        return shardings_said(self.program, self.handles) if self.shardings is None else self.shardings


_kept: ContextVar[Table | None] = ContextVar("_kept", default=None)


@contextmanager
def scope() -> Iterator[None]:
    """The run of one pipeline: nothing is kept at its beginning, and nothing after it."""
    token = _kept.set(None)
    try:
        yield
    finally:
        _kept.reset(token)


def keep(table: Table) -> None:
    """Hands ``table`` on to the passes that follow."""
    _kept.set(table)


def forget() -> None:
    """The module has changed, or may have."""
    _kept.set(None)


def table_of(module: Any, pipeline: str) -> Table:
    """The table that was kept, if it is of ``module``; else one that is read. Raises as ``read_program``."""
    kept = _kept.get()
    if kept is not None and kept.handles.module is module:
        return kept
    return Table(*read_program(module, pipeline))
