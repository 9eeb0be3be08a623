"""Runs the commands, one fork of this process for each case: what has been imported is there, what breaks is gone.

A command starts in 10 ms so, and not in a second. The process that forks has run no program of JAX's and holds no
context of MLIR's while it forks. What shardpass does in a Python of its own (``shardpass.ir.child``), it does in a
further fork.

A case may take ``CPU`` seconds of processor time and ``MEMORY`` bytes of address space; ``WALL`` seconds are for one
that waits for ever.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from tools.fuzz.door_case import Case
from tools.fuzz.door_laws import Ended
from tools.fuzz.door_outputs import faulty

CPU, WALL = 40, 300
MEMORY = 12 << 30
FILE = 256 << 20  # bytes that a case may write
GRACE = 2  # seconds after which a case that took too much is killed
WARM = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""


def prepare() -> None:
    """Loads all that a command may need, and makes the children of shardpass forks."""
    import gc

    import shardpass
    from shardpass.ir import child

    with suppress(ImportError):
        import onnx  # noqa: F401
    for module in pkgutil.walk_packages(shardpass.__path__, "shardpass."):
        importlib.import_module(module.name)
    warnings.filterwarnings("ignore", message=r".*fork\(\)")  # JAX and Python warn of threads: there are none of ours
    forks = {"run": _run_forked, "CompletedProcess": subprocess.CompletedProcess, "PIPE": subprocess.PIPE}
    vars(child)["subprocess"] = types.SimpleNamespace(**forks)
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder, "warm.mlir")
        warm.write_text(WARM)
        out = str(Path(folder, "out"))
        for command, *words in (("opt", "partition", "-o", out), ("explain", "--html", out), ("check", "-o", out)):
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
                _main(command)([str(warm), *words])
    gc.collect()
    gc.freeze()


def _main(command: str) -> Callable[[Sequence[str]], int]:
    main: Callable[[Sequence[str]], int] = importlib.import_module(f"shardpass.cli.{command.replace('-', '_')}").main
    return main


def run(case: Case, root: Path) -> Ended:
    """Runs ``case`` in a folder of its own below ``root``, which is gone afterwards."""
    base = Path(tempfile.mkdtemp(dir=root))
    folder = base / "case"
    folder.mkdir()
    try:
        for name, data in case.files.items():
            (folder / name).write_bytes(data)
        (base / "stdin").write_bytes(case.stdin)
        return _forked_case(case, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _forked_case(case: Case, base: Path) -> Ended:
    said, says = os.pipe()
    process = os.fork()
    if process == 0:
        _in_case(case, base, says)
    os.close(says)
    try:
        hung = _wait(said)
    finally:
        os.close(said)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)
    _, status, used = os.wait4(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and used.ru_utime + used.ru_stime >= CPU):
        hung = f"it took more than {CPU} s of processor time"
    told: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        told = json.loads((base / "told").read_text())
    # a death after the command ended is that of the reader of its output
    done = "status" in told
    return Ended(
        told["status"] if done else (code or -signal.SIGKILL),
        (base / "stdout").read_bytes() if (base / "stdout").exists() else b"",
        (base / "stderr").read_bytes().decode("utf-8", "replace") if (base / "stderr").exists() else "",
        hung,
        told.get("raised", ""),
        told.get("faulty", f"reading it ends the process (status {code})" if done else ""),
        frozenset(os.listdir(base / "case")),
    )


def _wait(said: int) -> str:
    """Waits until the other end is closed -> why it was not."""
    end = time.monotonic() + WALL
    while select.select([said], [], [], max(0.0, end - time.monotonic()))[0]:
        if not os.read(said, 4096):
            return ""
    return f"it did not end in {WALL} s"


def _in_case(case: Case, base: Path, says: int) -> None:
    """The process of a case: never returns."""
    told: dict[str, Any] = {}
    try:
        os.setpgid(0, 0)
        _redirect(base / "stdin", base / "stdout", base / "stderr")
        for what, limit in (
            (resource.RLIMIT_CPU, (CPU, 2 * CPU + GRACE)),
            (resource.RLIMIT_AS, (MEMORY, MEMORY)),
            (resource.RLIMIT_FSIZE, (FILE, FILE)),
            (resource.RLIMIT_CORE, (0, 0)),
        ):
            resource.setrlimit(what, limit)
        os.chdir(base / "case")
        try:
            told["status"] = _main(case.command)(list(case.words))
        except BaseException:
            told |= {"status": 1, "raised": traceback.format_exc()}
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        (base / "told").write_text(json.dumps(told))
        resource.setrlimit(resource.RLIMIT_CPU, (2 * CPU, 2 * CPU + GRACE))  # and as much to read it
        told["faulty"] = faulty(case, told["status"])
        (base / "told").write_text(json.dumps(told))
    finally:
        os._exit(0)


def _redirect(given: Path, out: Path, err: Path) -> None:
    for number, (path, flags) in enumerate(
        (
            (given, os.O_RDONLY),
            (out, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
            (err, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        )
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (the process ends with them)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115


# ---------------------------------------------------------------- the children of shardpass


def _run_forked(
    command: Sequence[str],
    *,
    input: bytes | None = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    capture_output: bool = False,
    check: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """As ``subprocess.run`` of ``python -c code``."""
    with tempfile.TemporaryDirectory() as folder:
        given, out, err = (Path(folder, name) for name in ("stdin", "stdout", "stderr"))
        given.write_bytes(input or b"")
        process = os.fork()
        if process == 0:
            status = 1
            try:
                _redirect(given, out, err)
                for number, file in ((0, stdin), (1, stdout)):
                    if hasattr(file, "fileno"):
                        os.dup2(file.fileno(), number)
                exec(command[2], {})
                sys.stdout.flush()
                status = 0
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(status)
        _, status = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(list(command), code, out.read_bytes(), err.read_bytes())
