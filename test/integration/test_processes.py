"""Several processes of one program. The programs that they run stand in test/integration/distributed."""

from __future__ import annotations

import json
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


def launch(*command: str, devices: int) -> subprocess.CompletedProcess[str]:
    options = ["--processes", "2", "--devices-per-process", str(devices)]
    return subprocess.run(
        module_command("tools.run_distributed", *options, "--", *command),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
    )


def shardpass_run(*arguments: str, devices: int) -> subprocess.CompletedProcess[str]:
    code = "import sys; from shardpass.cli.run import main; sys.exit(main())"
    return launch(sys.executable, "-c", code, *arguments, devices=devices)


EXAMPLE = str(Path(__file__).parents[2] / "examples" / "mlp_train_step.mlir")


def test_the_command_runs_on_all_of_them_and_reports_once() -> None:
    done = shardpass_run(EXAMPLE, "partition", "--check", "--json", devices=4)
    assert done.returncode == 0, done.stderr
    assert {line[:3] for line in done.stdout.splitlines()} == {"[0]"}
    told = json.loads("\n".join(line.removeprefix("[0] ") for line in done.stdout.splitlines()))
    assert told["passed"]
    assert told["devices"] == 8


def test_an_error_that_all_find_is_said_by_each_and_nothing_else() -> None:
    done = shardpass_run(EXAMPLE, "partition", devices=1)
    assert done.returncode == 1
    for index in range(2):
        assert f"[{index}] error: the program is for 8 devices, and there are 2 (cpu) [SP510]" in done.stderr
    assert "Terminating process" not in done.stderr


def test_two_processes_of_two_devices() -> None:
    done = launch(sys.executable, str(PROGRAMS / "agree.py"), devices=2)
    assert done.returncode == 0, done.stderr
    for index in range(2):
        lines = [line.removeprefix(f"[{index}] ") for line in done.stdout.splitlines() if line.startswith(f"[{index}]")]
        assert lines[-1] == "done"
        differing = [line for line in lines if line.startswith("raised SP560")]
        assert len(differing) == 3
        assert "process 1 has none (SP105)" in differing[2]
        hashes = re.findall(r"process \d has ([0-9a-f]{16})", differing[0])
        assert len(set(hashes)) == 2
    assert "[0] raised SP561 error: the other processes did not compile `main` within 2 s" in done.stdout


@pytest.mark.parametrize(
    ("way", "status", "said"),
    [("kill", 128 + 9, "was killed by SIGKILL"), ("raise", 1, "ended with status 1")],
)
def test_a_process_that_is_lost_ends_the_other_with_an_error(way: str, status: int, said: str) -> None:
    begun = time.monotonic()
    done = launch(sys.executable, str(PROGRAMS / "lose_one.py"), way, devices=1)
    assert time.monotonic() - begun < 60
    assert done.returncode == status
    assert done.stdout.count("stepped") == 2
    assert f"error: process 1 of 2 {said}" in done.stderr
    assert ("[1] ValueError: the disk is full" in done.stderr) == (way == "raise")


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


def test_arrays_go_between_devices_of_two_processes() -> None:
    """Each process compares the shards that it holds with NumPy's slices."""
    done = launch(*module_command("tools.prove.between", "--worker", "--problems", "3", "--seed", "500"), devices=4)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 problems arrive equal, in 2 processes" in done.stdout
