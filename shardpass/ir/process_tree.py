"""End a process together with all processes that it started.

The process leads a session, so one signal reaches the processes that stay in it. Those that leave the session are
adopted by this process once their parents end, on Linux: it is their subreaper (``prctl``) as long as the tree lives.
So no process is lost, whatever its environment and its open files are. Where this process is killed, a pipe ends, and
the child, which reads it (``shardpass.jax.script``), ends its session.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

ALIVE = "SHARDPASS_ALIVE"  # names the file descriptor that ends with this process
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # of prctl


class ProcessTree:
    """A command that runs inside a ``with`` block, with all its processes; all are ended with the block.

    Its stdout is our stderr; a terminal is not its stdin, for it is no process of the foreground.
    """

    def __init__(self, command: Sequence[str], more: Mapping[str, str]) -> None:
        reading, self._alive = os.pipe()
        terminal = sys.stdin is None or sys.stdin.closed or sys.stdin.isatty()
        self._before = frozenset(_children_elsewhere())
        self._adopted = _adopt(True)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if terminal else None,
                stdout=sys.stderr,
                env={**os.environ, **more, ALIVE: str(reading)},
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
        self._process.wait()
        while orphans := set(_children_elsewhere()) - self._before:
            for pid in orphans:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except OSError:  # another user's, or gone
                    self._before |= {pid}
        _adopt(self._adopted)
        os.close(self._alive)


def _adopt(orphans: bool) -> bool:
    """Make this process the parent of its descendants whose parents end, or not; return whether it was."""
    if sys.platform != "linux":
        return False
    prctl, before = ctypes.CDLL(None).prctl, ctypes.c_int()
    prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(_SET_SUBREAPER, int(orphans), 0, 0, 0)
    return bool(before.value)


def _children_elsewhere() -> Iterator[int]:
    """Yield the children of this process that are in another session."""
    here, session = os.getpid(), os.getsid(0)
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        with contextlib.suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/stat") as file:
                    _, parent, _, its = file.read().rpartition(")")[2].split()[:4]
                if int(parent) == here and int(its) != session:
                    yield int(name)
