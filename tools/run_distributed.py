#!/usr/bin/env python
"""Run a command in P processes of one program, each with D devices, connected by ``jax.distributed``.

    python -m tools.run_distributed --processes 2 --devices-per-process 4 -- shardpass-run model.mlir partition --check
    python -m tools.run_distributed --processes 2 --devices-per-process 4 -- python train.py

``shardpass-run`` joins the other processes by itself; a program of your own begins with
``shardpass.runtime.processes.join()`` or with ``jax.distributed.initialize()``, which find all they need in the
environment. Each line of output begins with the number of its process (what Gloo says
of its connections is left out). When one process fails, the others are stopped,
and the exit status is that of the one that failed first.

State: the processes, each the leader of a session and a process group of its own, and one *guard*: a process that holds
one end of a pipe, and kills the groups if this process ends without having said that all is done, SIGKILL included.

Invariant: a process group is signalled only while its leader is not reaped, so its number belongs to nobody else.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, BinaryIO

from shardpass.diagnostics import table_runtime
from shardpass.runtime.process_environment import ADDRESS, COUNT, INDEX
from tools.processes import ROOT, environment, module_command

START = ROOT / "tools" / "distributed_start"
GRACE = 4.0  # seconds for the others to end by themselves, and to say why
PATIENCE = 3.0  # seconds from SIGTERM to SIGKILL: JAX catches SIGTERM and goes on
DRAIN = 2.0  # seconds for the last output
_CHATTER = b"Expected number of connected peer ranks is"  # Gloo's, once for every group of devices
GUARD, DONE = "--guard", b"done\n"


@dataclass(slots=True)
class Child:
    """A process of the program: ``ended`` is its exit status (negative: the signal) once it is known."""

    index: int
    process: subprocess.Popen[bytes]
    ended: int | None = None
    pending: dict[int, bytes] = field(default_factory=dict)  # by file: the beginning of a line
    owed: dict[int, int] = field(default_factory=dict)  # by file: ends of chatter that are to come

    def poll(self) -> bool:
        """Whether it has just ended. What it left in its group is killed before it is reaped."""
        if self.ended is not None:
            return False
        if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        self.signal(signal.SIGKILL)
        self.ended = self.process.wait()
        return True

    def signal(self, number: int) -> None:
        if self.ended is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or that of the process that failed first (128 + the signal that ended it)."""
    given = sys.argv[1:] if argv is None else list(argv)
    if given == [GUARD]:
        return guard(sys.stdin.buffer)
    parser = _parser()
    args = parser.parse_args(given)
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        parser.error("give the command to run, after --")
    if shutil.which(command[0]) is None:
        parser.error(f"there is no command {command[0]}")
    return Run(args.processes, args.devices_per_process, args.platform, command).run()


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "run_distributed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=_count, default=2, metavar="P", help="how many processes (default: 2)")
    parser.add_argument(
        "--devices-per-process", type=_count, default=4, metavar="D", help="devices of each (default: 4)"
    )
    parser.add_argument("--platform", choices=("cpu", "gpu"), default="cpu", help="what the devices are (default: cpu)")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what each process runs")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)


class Run:
    """The processes of one program, from their start until all have ended."""

    def __init__(self, processes: int, devices: int, platform: str, command: Sequence[str]) -> None:
        self.command = list(command)
        self.places = [place_of(k, processes, devices, platform) for k in range(processes)]
        port = _free_port()
        for place in self.places:
            place |= {ADDRESS: f"127.0.0.1:{port}", "JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{port}"}
        self.children: list[Child] = []
        self.streams = selectors.DefaultSelector()
        self.begun = time.monotonic()
        self.stopped_by = 0  # the signal that this process got

    def run(self) -> int:
        with _signals(self._note), self._guarded() as tell:
            try:
                for index, place in enumerate(self.places):
                    self._start(index, place)
                    tell(f"{self.children[-1].process.pid}\n".encode())
                failed = self._until_one_fails()
            finally:
                self._stop()
            tell(DONE)
        if self.stopped_by:
            return 128 + self.stopped_by
        return 0 if failed is None else self._report(failed)

    def _start(self, index: int, place: Mapping[str, str]) -> None:
        process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_with_start(environment(**place)),
            start_new_session=True,
        )
        child = Child(index, process)
        self.children.append(child)
        for stream, out in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self.streams.register(stream, selectors.EVENT_READ, (child, out))

    def _until_one_fails(self) -> Child | None:
        """The first child that ends with another status than 0, once the others had time to end too."""
        failed, until = None, float("inf")
        while any(child.ended is None for child in self.children) and time.monotonic() < until:
            self._pass_on(0.1)
            for child in self.children:
                if child.poll() and child.ended and failed is None:
                    failed, until = child, time.monotonic() + GRACE
            if self.stopped_by:
                break
        return failed

    def _stop(self) -> None:
        """Ends the children that are left, and shows their last output."""
        for number, seconds in ((signal.SIGTERM, PATIENCE), (signal.SIGKILL, PATIENCE)):
            until = time.monotonic() + seconds
            for child in self.children:
                child.signal(number)
            while [c for c in self.children if not c.poll() and c.ended is None] and time.monotonic() < until:
                self._pass_on(0.05)
        until = time.monotonic() + DRAIN
        while self.streams.get_map() and time.monotonic() < until:
            self._pass_on(0.05)
        self.streams.close()

    def _report(self, failed: Child) -> int:
        status = failed.ended or 0
        how = f"ended with status {status}" if status > 0 else f"was killed by {signal.Signals(-status).name}"
        seconds = time.monotonic() - self.begun
        told = table_runtime.PROCESS_ENDED.at(index=failed.index, count=len(self.children), how=how, seconds=seconds)
        print(told, file=sys.stderr, flush=True)
        return status if status > 0 else 128 - status

    # --- output

    def _pass_on(self, seconds: float) -> None:
        """Waits at most so long for output, and shows the lines that are complete."""
        for key, _ in self.streams.select(seconds):
            child, out = key.data
            stream: Any = key.fileobj
            data = stream.read(1 << 16)
            before = child.pending.pop(key.fd, b"")
            if not data:  # closed; None does not come after select
                self.streams.unregister(stream)
                stream.close()
                _show(child.index, _without_chatter(child, key.fd, [before] if before else []), out)
                continue
            *lines, rest = (before + data).split(b"\n")
            child.pending[key.fd] = rest
            _show(child.index, _without_chatter(child, key.fd, lines), out)

    # --- being ended

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.stopped_by = number

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[Any]:
        """Inside, a process stands ready to end the groups of which it is told, should this one be killed."""
        command = module_command("tools.run_distributed", GUARD)
        keeper = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment(), start_new_session=True)
        pipe = keeper.stdin
        assert pipe is not None

        def tell(text: bytes) -> None:
            pipe.write(text)
            pipe.flush()

        try:
            yield tell
        finally:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
            keeper.wait()


def _without_chatter(child: Child, file: int, lines: Iterable[bytes]) -> Iterator[bytes]:
    """``lines`` less what Gloo says. Its threads write at once: where two stand in one line, an end of one follows."""
    for line in lines:
        said, owed = line.count(_CHATTER), child.owed.get(file, 0)
        if said:
            child.owed[file] = owed + said - 1
        elif owed and not line.strip(b" 0123456789"):
            child.owed[file] = owed - 1
        else:
            yield line


def _show(index: int, lines: Iterable[bytes], out: Any) -> None:
    with contextlib.suppress(BrokenPipeError):
        for line in lines:
            out.write(f"[{index}] {line.decode(errors='backslashreplace')}\n")
        out.flush()


def guard(told: BinaryIO) -> int:
    """Reads the numbers of process groups until it is told that all is done; kills them if that is never said."""
    lines = told.readlines()
    for line in [] if DONE in lines else lines:
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            os.killpg(int(line), signal.SIGKILL)
    return 0


@contextlib.contextmanager
def _signals(handler: Any) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)


# --- what the processes find in the environment


def place_of(index: int, processes: int, devices: int, platform: str) -> dict[str, str]:
    """Who process ``index`` is, for shardpass and for JAX, which knows the variables of Open MPI's launcher."""
    own = {
        COUNT: str(processes),
        INDEX: str(index),
        "OMPI_MCA_orte_hnp_uri": "0.0;tcp://127.0.0.1:1",
        "OMPI_COMM_WORLD_SIZE": str(processes),
        "OMPI_COMM_WORLD_RANK": str(index),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(index),
        "PYTHONUNBUFFERED": "1",
    }
    if platform == "gpu":
        own["JAX_LOCAL_DEVICE_IDS"] = ",".join(str(index * devices + k) for k in range(devices))
    else:
        own["JAX_PLATFORMS"] = "cpu"
        own["JAX_NUM_CPU_DEVICES"] = str(devices)
        own["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "gloo"
    return own


def _with_start(env: dict[str, str]) -> dict[str, str]:
    """``env``, in which Python loads distributed_start/sitecustomize.py as it starts."""
    return {**env, "PYTHONPATH": os.pathsep.join([str(START), env["PYTHONPATH"]])}


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        number: int = held.getsockname()[1]
        return number


if __name__ == "__main__":
    sys.exit(main())
