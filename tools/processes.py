"""Child processes of tools: a module of this checkout, run as ``python -m`` from anywhere.

A benchmark or a fuzzer asks a child where XLA or a peer may end the process, or where a fresh process is the thing that
is measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
MARK = "@"  # begins each answer of a child
ENDS = 10  # seconds from the end of a child's output to its own
LAST_WORDS = 600  # bytes of a child's stderr that are kept


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs ``module`` in this interpreter; the folder that it runs in is not searched for modules."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(**more: str) -> dict[str, str]:
    """The environment of a child: this one, with the checkout in front of all that is installed, and ``more``."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": path, **more}


class ChildFailed(Exception):
    """A child did not answer: it ended, or took too long (``hung``). ``words``: the end of what it wrote on stderr."""

    def __init__(self, message: str, words: str, *, hung: bool = False) -> None:
        super().__init__(message)
        self.words, self.hung = words, hung


class JsonChild:
    """A process that answers each line of JSON with a line of JSON; started when first asked, and after each failure.

    The child marks its answers with ``answer``; everything else that it prints is ignored.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], timeout: float = 300) -> None:
        self.command, self.env, self.timeout = list(command), dict(env), timeout
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: IO[bytes] | None = None

    def ask(self, question: Any, timeout: float | None = None) -> dict[str, Any]:
        """Return the answer to ``question``. Raises ChildFailed after ``timeout`` seconds (by default the child's)."""
        limit = self.timeout if timeout is None else timeout
        if self.process is None:
            self.errors = tempfile.TemporaryFile()  # noqa: SIM115  (``close`` closes it)
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                env=self.env,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        end = time.monotonic() + limit
        stdout, pending = self.process.stdout.fileno(), b""  # below Python's buffer, of which select knows nothing
        while select.select([stdout], [], [], max(0.0, end - time.monotonic()))[0]:
            data = os.read(stdout, 1 << 16)
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                if line.startswith(MARK.encode()):
                    found: dict[str, Any] = json.loads(line[len(MARK) :])
                    return found
            if not data:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(ENDS)
                status, words = self.close()
                raise ChildFailed(f"ended the process (status {status})", words)
        raise ChildFailed(f"took more than {limit:.0f} s", self.close()[1], hung=True)

    def close(self) -> tuple[int, str]:
        """End the process, if there is one. Returns its status and its last words on stderr."""
        if self.process is None or self.errors is None:
            return 0, ""
        self.process.kill()  # does nothing to a process that has ended
        status = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        with self.errors as errors:
            errors.seek(max(0, errors.tell() - LAST_WORDS))
            words = errors.read().decode(errors="replace").strip()
        self.process = self.errors = None
        return status, words


def answer(found: Mapping[str, Any]) -> None:
    """Prints an answer, in a child."""
    print(MARK + json.dumps(found), flush=True)
