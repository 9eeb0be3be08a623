"""Show the current stage of a command and its seconds on stderr.

A terminal shows both all the time. Elsewhere, as in the log of a job, each minute of a stage prints one line, as a sign
that the command does not hang.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Thread

EVERY = 60.0  # seconds between two lines where stderr is no terminal

Pause = Callable[[], AbstractContextManager[None]]


@contextmanager
def progress(stage: str, *, passes: bool = True) -> Iterator[Pause]:
    """Show ``stage`` and its seconds inside the block; with ``passes``, each pass of a pipeline is a separate stage.

    Yields a function whose context hides the stage, for output meanwhile.
    """
    if not sys.stderr.isatty():
        with _lines(stage):
            yield nullcontext
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from shardpass.pipeline.run import watched

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as shown:
        shown.console.show_cursor()  # Ctrl-C ends the process at once, and would leave the terminal without one
        task = shown.add_task(stage, total=None)

        @contextmanager
        def pause() -> Iterator[None]:
            shown.stop()
            yield
            shown.start()
            shown.console.show_cursor()

        def show(name: str) -> None:
            if passes:
                shown.reset(task, description=name.removeprefix("shardpass-"))

        with watched(show):
            yield pause


@contextmanager
def _lines(stage: str) -> Iterator[None]:
    """Print a line on stderr after each minute inside the block."""
    ended, began = Event(), time.monotonic()

    def run() -> None:
        while not ended.wait(EVERY):
            print(f"shardpass: {stage}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
