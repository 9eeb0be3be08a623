"""Show the current stage of a command and its seconds, if stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def progress(stage: str) -> Iterator[None]:
    """Show ``stage`` and its seconds inside the block; each pass of a pipeline is a separate stage."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from shardpass.pipeline.run import watched

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(stage, total=None)
        with watched(lambda name: shown.reset(task, description=name.removeprefix("shardpass-"))):
            yield
