"""Compile programs for a target in a child process, without running them.

State: the child, which stays alive from one program to the next, so that Python, JAX and the compiler start once. XLA
ends the process over some programs, and may take long over others: such a program is an error, and the next starts a
new child. The child of ``shared`` serves all reports of this process, and ends after ``IDLE`` seconds without work.

Protocol (``shardpass.targets.child`` is the other side): on the child's stdin, for each program, a line of JSON (the
length of the module, its partitioner, and whether a draft will do), and the module. On its stdout a line of JSON that
starts with "@": XLA's statistics and the length of the HLO, then the HLO; or what went wrong.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_cost import TARGET_FAILED
from shardpass.diagnostics.table_runtime import PEER_FAILED
from shardpass.ir.child import making_files, temporary_file
from shardpass.runtime.peers import XLA
from shardpass.targets.compiled import Compiled
from shardpass.targets.target import CPU, Target
from shardpass.targets.versions import compiler_version

TIMEOUT = 600.0
IDLE = 60.0  # seconds after which the child of ``shared`` ends by itself
ENDED_IDLE = 75  # its status then
# libtpu asks a server of metadata for its host unless it is named, and locks a file that the calling process may hold
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
}
QUICK = "--xla_backend_optimization_level=0"  # of machine code, which is never run: HLO and memory stay the same


TOLD = 5.0  # seconds of a compile between two messages
tell: Callable[[str], None] | None = None  # where a command says that a long compile goes on


class Compiler:
    """Compile annotated modules with XLA's partitioner, and partitioned modules unchanged, for ``target``.

    A context manager: the child ends with the block. ``donate``: results may lie in donated arguments, as in the
    program that ``jax.jit`` runs. ``idle``: seconds without a program after which the child ends by itself, and the
    next program starts another; 0 is never.

    Raises ShardpassError (SP909) where the compiler is not installed.
    """

    def __init__(self, target: Target, *, donate: bool = True, timeout: float = TIMEOUT, idle: float = 0.0) -> None:
        self.target, self.donate, self.timeout, self.idle = target, donate, timeout, idle
        self.version = compiler_version(target)
        self.compiled = 0  # programs until now
        self.spent = 0.0  # processor seconds of the child for them
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: BinaryIO | None = None  # what the child prints there, which no pipe would hold
        self._lock = threading.Lock()  # the child answers one variant after the other

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that compiles."""
        if self._child is not None:
            self._end()

    def _end(self) -> str:
        """End the child and return the last line of its stderr, or its exit status."""
        child, errors = self._child, self._errors
        assert child is not None
        assert errors is not None
        assert child.stdin is not None
        assert child.stdout is not None
        with suppress(OSError):
            child.stdin.close()  # upon which it ends, unless it is stuck
        with suppress(subprocess.TimeoutExpired):
            child.wait(1)
        child.kill()
        child.wait()
        child.stdout.close()
        self._child = self._errors = None
        errors.seek(0)
        lines = [line for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
        errors.close()
        return lines[-1] if lines else f"its process ended with status {child.returncode}"

    def compile(self, module: bytes, *, draft: bool = False, way: str = XLA) -> Compiled:
        """Compile ``module`` (MLIR's bytecode or text). ``draft``: as ``jax_private.drafts`` does. ``way``: the
        partitioner of an annotated module, XLA or SHARDY.

        Raises ShardpassError (SP911; SP553 of CPU devices) where XLA fails, ends its process, or takes too long.
        """
        with self._lock:
            self.compiled += 1
            facts, hlo = self._answer(module, draft, way)
            self.spent += facts.get("spent", 0.0)
        if "failed" in facts:
            raise self._failed(facts["failed"], way)
        return Compiled(hlo.decode(), self.target, **facts, version=self.version)

    def _failed(self, reason: str, way: str) -> ShardpassError:
        if self.target.platform == CPU:
            return PEER_FAILED.error(way=way, reason=reason[:300])
        target, devices = str(self.target), self.target.devices
        return TARGET_FAILED.error(compiler=self.target.compiler, target=target, reason=reason[:600], devices=devices)

    def _answer(self, module: bytes, draft: bool, way: str) -> tuple[dict[str, Any], bytes]:
        """Send ``module`` to the child and return its answer. Raises ShardpassError if no answer arrives."""
        while True:
            if self._child is None:
                with making_files():
                    self._child = self._start()
            child = self._child
            try:
                return self._ask(child, module, draft, way)
            except (OSError, EOFError, TimeoutError) as error:
                reason = self._end()
                if self.idle and child.returncode == ENDED_IDLE:
                    continue
                if isinstance(error, TimeoutError):
                    reason = f"it took more than {self.timeout:.0f} s"
                raise self._failed(reason, way) from None

    def _start(self) -> subprocess.Popen[bytes]:
        call = f"from shardpass.targets.child import serve; serve({str(self.target)!r}, {self.donate}, {self.idle})"
        pipe, self._errors = subprocess.PIPE, temporary_file()
        return subprocess.Popen(
            [sys.executable, "-c", call],
            stdin=pipe,
            stdout=pipe,
            stderr=self._errors,
            bufsize=0,
            env=child_environment(),
        )

    def _ask(
        self, child: subprocess.Popen[bytes], module: bytes, draft: bool, way: str
    ) -> tuple[dict[str, Any], bytes]:
        pipes = _Pipes(child, time.monotonic() + self.timeout, f"{self.target.compiler} compiles for {self.target}")
        pipes.write(json.dumps({"length": len(module), "draft": draft, "way": way}).encode() + b"\n" + module)
        while not (line := pipes.line()).startswith(b"@"):
            pass  # what XLA prints
        facts = json.loads(line[1:])
        return facts, pipes.read(facts.pop("length", 0))


def child_environment() -> dict[str, str]:
    """Return the environment of a process that compiles."""
    return {**os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {QUICK}".strip(), **ENVIRONMENT}


@dataclass
class _Shared:
    """The compiler of this process. ``key``: all that its child depends on."""

    compiler: Compiler | None = None
    key: tuple[object, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, target: Target) -> Compiler:
        key = os.getpid(), target, os.environ.get("XLA_FLAGS")
        with self.lock:
            if self.compiler is None or self.key != key:
                self.close()
                self.compiler, self.key = Compiler(target, idle=IDLE), key
            return self.compiler

    def close(self) -> None:
        """End the child, unless this process is a fork of the one that started it."""
        if self.compiler is not None and self.key[0] == os.getpid():
            self.compiler.close()


_shared = _Shared()
atexit.register(_shared.close)


def shared(target: Target) -> Compiler:
    """Return the compiler for ``target`` that all reports of this process share, so that JAX starts only once."""
    return _shared.of(target)


class _Pipes:
    """Writes to a child process and reads from it until ``deadline``. ``work``: the activity, named in messages.

    Raises EOFError if the child exits, and TimeoutError at the deadline.
    """

    def __init__(self, child: subprocess.Popen[bytes], deadline: float, work: str) -> None:
        self.child, self.deadline, self.work = child, deadline, work
        self.began = time.monotonic()
        self.known = b""
        assert child.stdin is not None
        self.into, self.out = child.stdin.fileno(), cast(BinaryIO, child.stdout).fileno()

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        os.set_blocking(self.into, False)
        while left:
            _, ready, _ = select.select([], [self.into], [], self._time_left())
            if not ready:
                raise TimeoutError
            left = left[os.write(self.into, left) :]

    def line(self) -> bytes:
        while b"\n" not in self.known:
            self._more()
        line, _, self.known = self.known.partition(b"\n")
        return line

    def read(self, length: int) -> bytes:
        while len(self.known) < length:
            self._more()
        data, self.known = self.known[:length], self.known[length:]
        return data

    def _more(self) -> None:
        while not select.select([self.out], [], [], min(TOLD, self._time_left()))[0]:
            if not self._time_left():
                raise TimeoutError
            if tell is not None:
                tell(f"{self.work}: {time.monotonic() - self.began:.0f} s")
        data = os.read(self.out, 1 << 20)
        if not data:
            raise EOFError
        self.known += data

    def _time_left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())
