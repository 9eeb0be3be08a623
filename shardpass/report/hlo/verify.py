"""Compiles variants of a program by XLA, in one child process for virtual CPU devices; nothing runs.

State: the child, which stays alive from one variant to the next, so that Python and JAX start once. XLA ends the
process over some programs, and may take long over others: such a variant is an error, and the next starts a new child.
The child of ``shared`` serves all reports of this process, and ends after ``IDLE`` seconds without a program.

Protocol: on the child's stdin, for each variant, a line of JSON (the length of the module, and whether a draft will
do), and the module. On its stdout a line of JSON behind "@": XLA's statistics and the length of the HLO, and the HLO;
or what went wrong.
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
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO, cast

import numpy as np

from shardpass.cost.collective import ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from shardpass.cost.groups import seconds
from shardpass.cost.machine import Machine
from shardpass.diagnostics.table_runtime import PEER_FAILED
from shardpass.hlo.collectives import HloCollective, HloCollectives
from shardpass.hlo.read import HloProgram, read_program
from shardpass.hlo.slices import Slices
from shardpass.hlo.work import work_of
from shardpass.ir.child import making_files, temporary_file
from shardpass.runtime.hlo_traffic import received
from shardpass.runtime.peers import TIMEOUT

WAY = "xla"
IDLE = 60.0  # seconds after which the child of ``shared`` ends by itself
ENDED_IDLE = 75  # its status then
QUICK = "--xla_backend_optimization_level=0"  # of machine code, which is never run: HLO and memory stay the same


@dataclass(frozen=True)
class Compiled:
    """A variant as XLA compiles it: optimized HLO, and XLA's statistics of one device.

    ``donated``: bytes of results that lie in buffers of arguments.
    """

    hlo: str
    devices: int
    arguments: int
    results: int
    temporaries: int
    donated: int

    @property
    def memory(self) -> int:
        """Bytes of arguments, results and temporaries; a buffer that an argument and a result share counts once."""
        return self.arguments + self.results + self.temporaries - self.donated

    @cached_property
    def bytes_received(self) -> int:
        """Bytes received by the device that receives most, with collectives in loops multiplied by the trips."""
        return received(self.hlo, self.devices).total

    @cached_property
    def bytes_scattered(self) -> int:
        """The bytes received by the program that XLA compiles for GPUs and TPUs, counted as ``bytes_received``.

        A sum of which each device keeps its slice alone is a reduce_scatter there, of half the bytes.
        """
        sums = np.zeros(self.devices, object)
        for one, sliced in self._counted:
            sums += one.by_device(self.devices) * one.times * (1 - sliced / 2)
        most: int = round(max(sums))
        return most

    def seconds(self, machine: Machine, borders: Sequence[int] = ()) -> float:
        """Models the seconds of the collectives on ``machine``, one after the other, and then of a device's work.

        Sums are scattered as in ``bytes_scattered``. A loop counts as often as it runs, once where that is unknown.
        ``borders``: the strides of the mesh's axes, as ``cost.groups.seconds`` takes them.
        """
        total = sum(one.times * machine.seconds(one.work) for one in work_of(self._program))
        for one, sliced in self._counted:
            whole = max(one.received, default=0)
            size = max(map(len, one.groups))
            groups = np.array([group for group in one.groups if len(group) == size], dtype=np.int64)
            kind = ALL_TO_ALL if one.kind == "ragged_all_to_all" else one.kind
            for each, part in ((kind, whole * (1 - sliced)), (REDUCE_SCATTER, whole * sliced / 2)):
                total += one.times * seconds(machine, each, round(part), groups, borders)
        return total

    @cached_property
    def _program(self) -> HloProgram:
        return read_program(self.hlo)

    @cached_property
    def _counted(self) -> list[tuple[HloCollective, float]]:
        """The collectives, and of each sum the part of which devices keep slices alone."""
        slices = Slices(self._program)
        rows = (one for one in HloCollectives(self._program, self.devices).rows if one.counted)
        result = []
        for one in rows:
            size = sum(shape.bytes for shape in one.op.results)
            result.append((one, slices.sliced_bytes(one) / size if one.kind == ALL_REDUCE and size else 0.0))
        return result


class Verifier:
    """Compiles variants of annotated, unpartitioned modules with XLA's partitioner, for ``devices`` devices.

    A context manager: the child ends with the block. ``donate``: as of ``runtime.peers.build``. ``idle``: seconds
    without a variant after which the child ends by itself, and the next variant starts another; 0 is never.
    """

    def __init__(self, devices: int, *, donate: bool = True, timeout: float = TIMEOUT, idle: float = 0.0) -> None:
        self.devices, self.donate, self.timeout, self.idle = devices, donate, timeout, idle
        self.compiled = 0  # variants until now
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: BinaryIO | None = None  # what the child prints there, which no pipe would hold
        self._lock = threading.Lock()  # the child answers one variant after the other

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process that compiles."""
        if self._child is not None:
            self._end()

    def _end(self) -> str:
        """Ends the child and returns the last line of its stderr, or its exit status."""
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

    def build(self, module: bytes, *, draft: bool = False) -> Compiled:
        """Compiles ``module`` (MLIR's bytecode or text). ``draft``: as ``jax_private.drafts`` does.

        Raises ShardpassError (SP553) where XLA fails, ends its process, or takes too long.
        """
        with self._lock:
            self.compiled += 1
            facts, hlo = self._answer(module, draft)
        if "failed" in facts:
            raise PEER_FAILED.error(way=WAY, reason=facts["failed"][:300])
        return Compiled(hlo.decode(), self.devices, **facts)

    def _answer(self, module: bytes, draft: bool) -> tuple[dict[str, Any], bytes]:
        """Sends ``module`` to the child and returns its answer. Raises ShardpassError (SP553) where none comes."""
        while True:
            if self._child is None:
                with making_files():
                    self._child = self._start()
            child = self._child
            try:
                return self._ask(child, module, draft)
            except (OSError, EOFError, TimeoutError) as error:
                reason = self._end()
                if self.idle and child.returncode == ENDED_IDLE:
                    continue
                if isinstance(error, TimeoutError):
                    reason = f"it took more than {self.timeout:.0f} s"
                raise PEER_FAILED.error(way=WAY, reason=reason[:300]) from None

    def _start(self) -> subprocess.Popen[bytes]:
        call = f"from shardpass.report.hlo.verify import serve; serve({self.devices}, {self.donate}, {self.idle})"
        pipe, self._errors = subprocess.PIPE, temporary_file()
        flags = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {QUICK}".strip()}
        return subprocess.Popen(
            [sys.executable, "-c", call],
            stdin=pipe,
            stdout=pipe,
            stderr=self._errors,
            bufsize=0,
            env={**os.environ, **flags},
        )

    def _ask(self, child: subprocess.Popen[bytes], module: bytes, draft: bool) -> tuple[dict[str, Any], bytes]:
        pipes = _Pipes(child, time.monotonic() + self.timeout)
        pipes.write(json.dumps({"length": len(module), "draft": draft}).encode() + b"\n" + module)
        while not (line := pipes.line()).startswith(b"@"):
            pass  # what XLA prints
        facts = json.loads(line[1:])
        return facts, pipes.read(facts.pop("length", 0))


@dataclass
class _Shared:
    """The verifier of this process. ``key``: all that its child depends on."""

    verifier: Verifier | None = None
    key: tuple[object, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, devices: int) -> Verifier:
        key = os.getpid(), devices, os.environ.get("XLA_FLAGS")
        with self.lock:
            if self.verifier is None or self.key != key:
                self.close()
                self.verifier, self.key = Verifier(devices, idle=IDLE), key
            return self.verifier

    def close(self) -> None:
        """Ends the child, unless this process is a fork of the one that started it."""
        if self.verifier is not None and self.key[0] == os.getpid():
            self.verifier.close()


_shared = _Shared()
atexit.register(_shared.close)


def shared(devices: int) -> Verifier:
    """Returns the verifier for ``devices`` devices that all reports of this process use, so that JAX starts once for
    them.
    """
    return _shared.of(devices)


class _Pipes:
    """Writes to a child and reads from it until ``deadline``.

    Raises EOFError where the child ends, TimeoutError at the deadline.
    """

    def __init__(self, child: subprocess.Popen[bytes], deadline: float) -> None:
        self.child, self.deadline = child, deadline
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
        ready, _, _ = select.select([self.out], [], [], self._time_left())
        if not ready:
            raise TimeoutError
        data = os.read(self.out, 1 << 20)
        if not data:
            raise EOFError
        self.known += data

    def _time_left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())


def serve(devices: int, donate: bool, idle: float) -> None:
    """Runs in the child process: compiles the modules on stdin until its end, or until ``idle`` seconds without one."""
    import jax

    from shardpass.ir import jax_private

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)
    given = sys.stdin.buffer
    while True:
        if idle and not select.select([given], [], [], idle)[0]:
            sys.exit(ENDED_IDLE)
        if not (line := given.readline()):
            return
        asked = json.loads(line)
        with jax_private.drafts() if asked["draft"] else nullcontext():
            answer, hlo = _answer(given.read(asked["length"]), donate)
        sys.stdout.buffer.write(b"\n@" + json.dumps(answer).encode() + b"\n" + hlo)
        sys.stdout.buffer.flush()


def _answer(module: bytes, donate: bool) -> tuple[dict[str, Any], bytes]:
    from shardpass.ir.context import parse_module
    from shardpass.runtime.reference import compile_by_xla

    try:
        executable = compile_by_xla(parse_module(module, trusted=True), donate=donate)
    except Exception as error:  # whatever XLA raises: the parent says it
        return {"failed": " ".join(str(error).split())}, b""
    stats = executable.memory_stats()
    hlo = executable.hlo_text().encode()
    return {
        "length": len(hlo),
        "arguments": stats.argument_size_in_bytes,
        "results": stats.output_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "donated": stats.alias_size_in_bytes,
    }, hlo
