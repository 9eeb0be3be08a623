"""Cache the program that was read from a module for the next passes of a pipeline.

Between passes the text is the contract; the table saves a pass from reading the facts of its predecessor again. It must
agree with the text, so a pipeline keeps it only while passes run that leave the module's ops unchanged
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
from shardpass.program.shardings import Shardings, annotated_shardings


@dataclass(frozen=True)
class Table:
    """A module's facts. ``shardings``: the result of propagation, None before it.

    ``decided``: the decisions of the program's plans so far (``planning.choose``), for later plans. ``plan``: the
    plan of ``shardings`` (``planning.plan``), where the decision made it.
    """

    program: Program
    handles: Handles
    shardings: Shardings | None = None
    decided: Any = None
    plan: Any = None

    def all_shardings(self) -> Shardings:
        """Return the shardings of all values: from propagation in this run, or else from the text."""
        return annotated_shardings(self.program, self.handles) if self.shardings is None else self.shardings


_kept: ContextVar[Table | None] = ContextVar("_kept", default=None)


@contextmanager
def scope() -> Iterator[None]:
    """Limit kept tables to the run of one pipeline."""
    token = _kept.set(None)
    try:
        yield
    finally:
        _kept.reset(token)


def keep(table: Table) -> None:
    """Keep ``table`` for later passes of the pipeline."""
    _kept.set(table)


def forget() -> None:
    """Drop the kept table, as the module may have changed."""
    _kept.set(None)


def table_of(module: Any, pipeline: str) -> Table:
    """Return the kept table if it is of ``module``; otherwise read one. Raises as ``read_program``."""
    kept = _kept.get()
    if kept is not None and kept.handles.module is module:
        return kept
    return Table(*read_program(module, pipeline))
