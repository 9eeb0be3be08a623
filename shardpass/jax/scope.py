"""Track which code runs inside ``use()``, and the mode of programs compiled there.

Problem. JAX has to know whether a block is entered, because that is part of the key of its compiled programs; it
reads values of a thread (``jax.make_user_context``). But asyncio runs coroutines in turns on one thread, and a block
that one coroutine keeps open across an ``await`` must not affect other coroutines.

State: the context variable ``_entered`` is authoritative: Python gives each task its own, and a task starts with the
values of the code that created it. It names the thread, so that a copy of the context in another thread
(``asyncio.to_thread``) has no effect there. ``_of_jax`` is JAX's copy of it for the thread; ``_here.open`` is its
last change.

Invariant: whenever code of the user runs, JAX's copy equals the context variable. It is updated where a block begins
and ends, and where asyncio enters and leaves a callback, which includes each step of a task (``_followed``).

Not supported: other event loops than asyncio's (uvloop, trio), code that runs between the eager start of a task and
the next callback, and a generator that yields inside a block, which Python runs in the context of its caller.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import jax

PIPELINE = "partition"
TRIALS = 40  # variants of a program that is pinned


@dataclass(frozen=True, slots=True)
class Pinning:
    """The options for pinning programs: see ``jax.pin``. ``machine``: "" for that of a program's devices."""

    machine: str = ""
    verify: bool = True
    trials: int = TRIALS


@dataclass(frozen=True, slots=True)
class Mode:
    """The options of a ``use`` scope. ``strict``: raise an error instead of falling back to XLA's partitioner.

    ``pin``: add constraints and let XLA partition. ``prove``: fall back to XLA if the result cannot be proved correct.
    """

    active: bool
    strict: bool = False
    pipeline: str = PIPELINE
    machine: str = ""  # "" for that of a program's devices
    pin: Pinning | None = None
    prove: bool = False


_OFF = Mode(False)
_of_jax = jax.make_user_context(_OFF)
_here = threading.local()
_entered: ContextVar[tuple[int, Mode] | None] = ContextVar("shardpass_use", default=None)


def current() -> Mode:
    """Return the mode of the code that runs, in this thread."""
    mode: Mode = _of_jax.value
    return mode


@contextmanager
def entered(mode: Mode) -> Iterator[None]:
    """Set the mode of programs compiled inside the block, in this thread and in this task of asyncio."""
    _follow_asyncio()
    token = _entered.set((threading.get_ident(), mode))
    _tell_jax(_entered.get())
    try:
        yield
    finally:
        with suppress(ValueError):  # begun in another context, whose variable nobody here can change
            _entered.reset(token)
        _tell_jax(_entered.get())


def _tell_jax(entered: tuple[int, Mode] | None) -> None:
    mode = entered[1] if entered is not None and entered[0] == threading.get_ident() else _OFF
    if current() == mode:
        return
    if (before := getattr(_here, "open", None)) is not None:
        before.__exit__(None, None, None)  # back to what JAX had before the first block
    _here.open = _of_jax(mode) if mode.active else None
    if _here.open is not None:
        _here.open.__enter__()


@functools.cache
def _follow_asyncio() -> None:
    """Make asyncio update JAX's mode when it enters or leaves a callback; runs once per process.

    Relies on ``asyncio.Handle._run``, which asyncio's loops call for each callback and each step of a task.
    """
    handles: Any = asyncio.Handle
    run = handles._run

    @functools.wraps(run)
    def _followed(handle: Any) -> Any:
        _tell_jax(handle._context.get(_entered))
        try:
            return run(handle)
        finally:
            _tell_jax(_entered.get())

    handles._run = _followed
