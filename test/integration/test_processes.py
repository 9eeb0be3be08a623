"""Several processes of one program. The programs that they run stand in test/integration/distributed."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.runtime import processes
from tools.processes import environment, module_command

PROGRAMS = Path(__file__).parent / "distributed"


def run(name: str, processes: int = 2, devices: int = 2) -> subprocess.CompletedProcess[str]:
    options = ["--processes", str(processes), "--devices-per-process", str(devices)]
    command = module_command("tools.run_distributed", *options, "--", sys.executable, str(PROGRAMS / name))
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)


def test_two_processes_of_two_devices() -> None:
    done = run("agree.py")
    assert done.returncode == 0, done.stderr
    for index in range(2):
        lines = [line.removeprefix(f"[{index}] ") for line in done.stdout.splitlines() if line.startswith(f"[{index}]")]
        assert lines[-1] == "done"
        differing = [line for line in lines if line.startswith("raised SP560")]
        assert len(differing) == 2
        hashes = re.findall(r"process \d has ([0-9a-f]{16})", differing[0])
        assert len(set(hashes)) == 2


def test_a_process_that_is_killed_ends_the_other_with_an_error() -> None:
    begun = time.monotonic()
    done = run("lose_one.py", devices=1)
    assert done.returncode == 128 + 9
    assert done.stdout.count("stepped") == 2
    assert "error: process 1 of 2 was killed by SIGKILL" in done.stderr
    assert time.monotonic() - begun < 60


def test_alone_there_is_nobody_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(processes.COUNT, raising=False)
    assert processes.join() is False


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({processes.COUNT: "two"}, "SHARDPASS_PROCESSES is 'two', which is no number"),
        ({processes.COUNT: "2", processes.INDEX: "2", processes.ADDRESS: "a:1"}, "coordinator a:1, process 2 of 2"),
        ({processes.COUNT: "2", processes.INDEX: "1"}, "coordinator None, process 1 of 2"),
    ],
)
def test_what_the_environment_must_say(given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (processes.COUNT, processes.INDEX, processes.ADDRESS):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ShardpassError, match=said) as refused:
        processes.join()
    assert refused.value.code == "SP564"
