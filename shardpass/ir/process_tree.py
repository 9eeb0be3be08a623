"""End a process together with all processes that it started.

The process leads a session, so one signal reaches the processes that stay in it. Those that leave the session
are known by a variable of their environment, on Linux. Where this process is killed, a pipe ends, and the child, which
reads it (``shardpass.jax.script``), ends its session.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

ALIVE = "SHARDPASS_ALIVE"  # names the file descriptor that ends with this process
_MARK = "SHARDPASS_TREE"


class ProcessTree:
    """A command that runs inside a ``with`` block, with all its processes; all are ended with the block.

    ``mark``: a text that no other tree has. Its stdout is our stderr; a terminal is not its stdin, for it is no process
    of the foreground.
    """

    def __init__(self, command: Sequence[str], mark: str, more: Mapping[str, str]) -> None:
        self._mark = f"{_MARK}={mark}".encode()
        reading, self._alive = os.pipe()
        terminal = sys.stdin is None or sys.stdin.closed or sys.stdin.isatty()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if terminal else None,
                stdout=sys.stderr,
                env={**os.environ, **more, _MARK: mark, ALIVE: str(reading)},
                pass_fds=(reading,),
                start_new_session=True,
            )
        finally:
            os.close(reading)

    def __enter__(self) -> ProcessTree:
        return self

    def status(self, seconds: float) -> int | None:
        """Return the exit status of the process, waiting at most ``seconds``; None if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        while others := [pid for pid in _processes() if self._is_ours(pid)]:
            for pid in others:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._alive)

    def _is_ours(self, pid: int) -> bool:
        """Return whether the environment of a running process contains the mark."""
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return self._mark in file.read().split(b"\0")
        except OSError:
            return False


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
