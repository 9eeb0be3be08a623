"""Streams that are closed, full or left, and interrupts: the right exit status, no traceback, no part of a file."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# The commands close streams between fork and exec; JAX, which other tests import, warns of every fork.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

FULL = Path("/dev/full")
SPLITS = ["{devices=[2,1]<=[2]}", "{devices=[1,2]<=[2]}"]
MODULE = """
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
    -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) {
  %0 = stablehlo.sine %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
HEAR = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "


# JAX, which the tests import, sets the level of XLA's log for every process that it starts
QUIET = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}


def call(name: str, first: str = "") -> list[str]:
    return [sys.executable, "-c", f"{first}from shardpass.cli.{name} import main; import sys; sys.exit(main())"]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    return path


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "opt": lambda m: [*call("opt"), str(m), "partition"],
    "check": lambda m: [*call("check"), str(m)],
    "explain": lambda m: [*call("explain"), str(m)],
    "plan": lambda m: [*call("plan"), "f32[8,8]", *SPLITS],
    "show": lambda m: [*call("plan"), "--show", SPLITS[0], "f32[8,8]"],
    "run": lambda m: [*call("run"), str(m), "partition"],
    "help": lambda m: [*call("opt"), "--help"],
    "version": lambda m: [*call("check"), "--version"],
    "list": lambda m: [*call("opt"), "--list-passes"],
}


def run(command: list[str], **keywords: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, env=QUIET, **keywords)


def closing(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_a_full_device(name: str, module: Path) -> None:
    with FULL.open("w") as out:
        done = run(COMMANDS[name](module), stdout=out)
    assert done.returncode == 1
    assert "<stdout>: error: cannot write this file: No space left on device [SP121]\n" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["opt", "check", "plan", "help"])
def test_a_closed_stdout(name: str, module: Path) -> None:
    done = run(COMMANDS[name](module), preexec_fn=closing(1))
    assert (done.returncode, done.stderr.count("SP121"), "Traceback" in done.stderr) == (1, 1, False)


def test_a_closed_stdout_is_not_taken_by_the_output(module: Path, tmp_path: Path) -> None:
    """Its number is free, and the next file that is opened would get it, with all that is printed."""
    done = run([*call("explain"), str(module), "--html", str(tmp_path / "page.html")], preexec_fn=closing(1))
    assert done.returncode == 1
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")


def test_a_closed_stdin() -> None:
    done = run([*call("opt"), "-"], preexec_fn=closing(0), stdout=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.startswith("<stdin>: error: cannot read this file: Bad file descriptor [SP120]\n")


@pytest.mark.parametrize("numbers", [(2,), (0, 1, 2)])
def test_a_closed_stderr_says_nothing_anywhere(numbers: tuple[int, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("w") as stream:
        done = subprocess.run([*call("opt"), "/no/such/file"], stdout=stream, preexec_fn=closing(*numbers), timeout=60)
    assert (done.returncode, out.read_text()) == (1, "")


@pytest.mark.parametrize("name", ["opt", "explain", "plan", "run", "show"])
def test_a_reader_that_leaves(name: str, module: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = run(COMMANDS[name](module), stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


WRITING: dict[str, Callable[[Path, Path], list[str]]] = {
    "opt": lambda m, o: [*call("opt"), str(m), "-o", str(o)],
    "explain": lambda m, o: [*call("explain"), str(m), "--html", str(o)],
    "plan": lambda m, o: [*call("plan"), "f32[8,8]", *SPLITS, "--svg", str(o)],
    "show": lambda m, o: [*call("plan"), "--show", SPLITS[0], "f32[8,8]", "--svg", str(o)],
}


@pytest.mark.parametrize("before", [None, "as it was"])
@pytest.mark.parametrize("name", WRITING)
def test_a_file_that_cannot_be_written_whole_is_not_written(
    name: str, before: str | None, module: Path, tmp_path: Path
) -> None:
    """The limit on the size of files stands for a disk with 100 bytes left."""
    out = tmp_path / "out"
    if before is not None:
        out.write_text(before)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = run(WRITING[name](module, out), preexec_fn=limited, stdout=subprocess.DEVNULL)
    assert done.returncode == 1
    assert f"{out}: error: cannot write this file: File too large [SP121]" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == (["m.mlir"] if before is None else ["m.mlir", "out"])
    assert before is None or out.read_text() == before


@pytest.mark.turns(3)
@pytest.mark.parametrize("delay", [0.02, 0.3, 1.0, 1.6, 2.2, 2.8])
def test_ctrl_c_ends_a_run_at_once(delay: float, module: Path) -> None:
    """As a signal ends any program, in whichever thread XLA is; a run that was faster is done."""
    with subprocess.Popen(
        [*call("run", HEAR), str(module), "partition", "--check"],  # which names signals: a whole start of Python
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 20
    ended = {-signal.SIGINT, 130}
    if delay > 0.02:
        assert "Traceback" not in err
    else:  # it is Python itself that starts: it tells of the signal in its own way, and loses it now and then
        ended.add(1)
    assert process.returncode in ended or (process.returncode == 0 and "PASS" in out)


@pytest.mark.parametrize("came", [0, 1, 3])
def test_ctrl_c_while_a_file_is_written_waits_for_its_end(came: int, tmp_path: Path) -> None:
    """The file is whole, nothing lies beside it, and then the process ends as interrupted."""
    code = (
        f"{HEAR}import os\n"
        "from shardpass.cli import common\n"
        "def body(argv):\n"
        "    whole = os.fdopen\n"
        "    def interrupted(*rest):\n"
        f"        for _ in range({came}): os.kill(os.getpid(), signal.SIGINT)\n"
        "        return whole(*rest)\n"
        "    os.fdopen = interrupted\n"
        "    common.write_output(sys.argv[1], 'all of it')\n"
        "    return 7\n"
        "sys.exit(common.guarded(body))\n"
    )
    done = run([sys.executable, "-c", code, str(tmp_path / "out")])
    assert (done.returncode, done.stderr) == (-signal.SIGINT if came else 7, "")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out", "all of it")]


def test_ctrl_c_while_a_native_module_is_imported_is_an_interrupt_and_no_internal_error() -> None:
    """NumPy's C code turns an exception in its import into an ImportError of its own."""
    code = (
        f"{HEAR}import os\n"
        "from shardpass.cli import common\n"
        "def body(argv):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        raise ImportError('numpy failed to import') from None\n"
        "sys.exit(common.guarded(body))\n"
    )
    done = run([sys.executable, "-c", code])
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_ctrl_c_while_a_command_is_imported_is_silent() -> None:
    code = (
        f"{HEAR}\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'shardpass.cli.common': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from shardpass.cli.opt import main\n"
    )
    done = run([sys.executable, "-c", code])
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
