"""Whether two partitioned programs differ, seen in one process that runs the reference interpreter again and again.

The interpreter aborts its process on some programs, and waits in others; then the process is replaced, and nothing is
known of the program. A process for each run takes a second to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.proving.refuting import counterexample
from shardpass.runtime.inputs import random_inputs
from shardpass.runtime.interpreter import interpret
from shardpass.runtime.partitioned_signature import read_signature

SECONDS = 120.0
PADDING = 7


class Observer:
    """Starts its process with the first program."""

    def __init__(self) -> None:
        self._process: Any = None
        self._ours: Any = None

    def observed(self, whole: bytes, local: bytes, faulty: bytes) -> tuple[bool | None, bool]:
        """Whether ``faulty`` gives other results than ``local``, and whether it is refuted; (None, False): not run."""
        if self._process is None:
            context = get_context("spawn")
            self._ours, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        self._ours.send((whole, local, faulty))
        try:
            if self._ours.poll(SECONDS):
                answer: tuple[bool | None, bool] = self._ours.recv()
                return answer
        except EOFError:
            pass
        self.close()
        return None, False

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._ours.close()
            self._process = None


def _serve(connection: Connection) -> None:
    while True:
        try:
            whole, local, faulty = connection.recv()
        except EOFError:
            return
        try:
            differs: bool | None = apart(_results(faulty), _expected(local))
        except (ShardpassError, ValueError):  # devices wait for each other, for instance
            differs = None
        refuted = differs is not None and not isinstance(
            counterexample(_read(whole), _read(faulty), isolated=False), str
        )
        connection.send((differs, refuted))


def _read(program: bytes) -> Any:
    """Parse bytecode of our own making here; other bytecode is parsed in a process of its own, a second each."""
    return parse_module(program, trusted=True)


def _results(program: bytes) -> list[Any]:
    module = _read(program)
    arrays = random_inputs(read_signature(module).arguments, 0)
    return interpret(module, *arrays, padding=PADDING, isolated=False)


_expected = lru_cache(maxsize=256)(_results)


def apart(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether results differ by more than rounding explains."""
    for one, other in zip(found, wanted, strict=True):
        if one.dtype.kind in "fc":
            if not np.allclose(one, other, rtol=1e-3, atol=1e-3, equal_nan=True):
                return True
        elif one.dtype.kind not in "iub":
            if not np.allclose(one.astype(np.float64), other.astype(np.float64), rtol=0.1, atol=0.1, equal_nan=True):
                return True
        elif (one != other).any():
            return True
    return False
