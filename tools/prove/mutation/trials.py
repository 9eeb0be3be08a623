"""Runs tests in a copy of the tree, each run in a process of its own.

The process is forked from this one, which has the slow imports (jax, pytest) but nothing of the package: they are done
once. A process that takes too long is killed with all that it started.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.prove.mutation.traced_lines import Outcome, Recorder

SLOW_IMPORTS = ("pytest", "jax", "jaxlib.mlir.ir", "jaxlib.mlir.dialects.stablehlo")
MOST_SHOWN = 2000  # characters of what a process printed before it died
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--color=no")


def copy_tree(root: Path, to: Path) -> Path:
    """Copies what git follows or would follow; without git everything but hidden folders. Returns ``to``."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=False
    )
    if listed.returncode:
        shutil.copytree(root, to, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        return to
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file():  # not one that is deleted, nor a link to a folder
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, to / name)
    return to


@dataclass
class Trial:
    """A run of tests under way, in the tree ``tree``."""

    process: int
    answer: Path
    log: Path  # what it prints
    until: float

    def result(self) -> Outcome | None:
        """What it showed; None while it runs. One that is killed, or dies, has failed."""
        if os.waitpid(self.process, os.WNOHANG)[0]:
            if self.answer.exists():
                outcome: Outcome = pickle.loads(self.answer.read_bytes())  # from the process that we forked
                return outcome
            return Outcome("(all)", f"the process died: {self.log.read_text(errors='replace')[-MOST_SHOWN:]}")
        if time.monotonic() < self.until:
            return None
        self.end()
        return Outcome("(all)", "the tests did not end in time")

    def end(self) -> None:
        """Kills it, with all that it started."""
        for kill in (os.killpg, os.kill):  # it may lead no group yet
            with suppress(ProcessLookupError):
                kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def import_slow_parts() -> None:
    for name in SLOW_IMPORTS:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)


def begin(tree: Path, package: str, tests: Sequence[str], seconds: float, trace: Path | None = None) -> Trial:
    """Starts ``tests`` in ``tree``, until one fails. With ``trace``, notes the lines that run below that folder."""
    answer = tree.parent / f"{tree.name}.answer"
    log = answer.with_suffix(".log")
    answer.unlink(missing_ok=True)
    process = os.fork()
    if not process:
        _in_child(lambda: _run(tree, package, tests, answer, trace), log)
    return Trial(process, answer, log, time.monotonic() + seconds)


def _in_child(work: Callable[[], None], log: Path) -> None:
    """Does ``work`` and ends the process, whatever happens: nothing of the parent may go on in it."""
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(out, stream)
        work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _run(tree: Path, package: str, tests: Sequence[str], answer: Path, trace: Path | None) -> None:
    import pytest

    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)  # of processes that tests start; here pytest's pythonpath says it
    os.environ.setdefault("SHARDPASS_TEST_WHOLE", "1")  # no fault is missed by the day's draw
    sys.dont_write_bytecode = trace is None  # a change within a second has the same stamp as what it replaces
    assert package not in sys.modules, "the package of the tree is imported after the fork"
    recorder = Recorder(trace)
    seed = ["--hypothesis-seed=0"] if importlib.util.find_spec("hypothesis") else []
    options = [option for option in OPTIONS if option != "-x"] if trace else list(OPTIONS)
    if os.environ["SHARDPASS_TEST_WHOLE"] != "1":
        options += ["-m", "not slow"]
    status = pytest.main([*options, *seed, *tests], plugins=[recorder])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not recorder.outcome.failed:
        recorder.outcome.failed, recorder.outcome.reason = "(all)", f"pytest ends with {status!r}"
    answer.write_bytes(pickle.dumps(recorder.outcome))
