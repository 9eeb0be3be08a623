"""run_distributed: output, statuses, and that no process is left, whatever ends first. The commands need no JAX."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.processes import environment, module_command
from tools.run_distributed import place_of

# tells its process id and that of a child of its own, then waits; SIGTERM does nothing to either
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("pids", os.getpid(), child.pid, flush=True)
if os.environ["SHARDPASS_PROCESS"] == os.environ.get("DIES"):
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
"""


IMPATIENT = "import sys; from tools import run_distributed as it; it.GRACE = it.PATIENCE = 0.5; sys.exit(it.main())"


def launch(*command: str, processes: int = 2, **env: str) -> subprocess.Popen[str]:
    options = ["--processes", str(processes), "--devices-per-process", "3"]
    return subprocess.Popen(
        [sys.executable, "-P", "-c", IMPATIENT, *options, "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**env),
    )


def script(text: str) -> tuple[str, ...]:
    return sys.executable, "-c", text


def told_pids(lines: list[str]) -> list[int]:
    return [int(pid) for line in lines if "pids" in line for pid in re.findall(r"\d+", line.partition("pids")[2])]


def assert_gone(pids: list[int]) -> None:
    """A process that has ended may stay for its parent to look at (state Z)."""
    until = time.monotonic() + 10
    while left := [pid for pid in pids if _runs(pid)]:
        assert time.monotonic() < until, f"{left} still run"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_each_line_begins_with_its_process() -> None:
    text = 'import os, sys; print("a\\nb"); print("error", file=sys.stderr); '
    text += 'sys.stdout.write(os.environ["SHARDPASS_PROCESS"])'
    out, err = (done := launch(*script(text))).communicate(timeout=60)
    assert sorted(out.splitlines()) == ["[0] 0", "[0] a", "[0] b", "[1] 1", "[1] a", "[1] b"]
    assert sorted(err.splitlines()) == ["[0] error", "[1] error"]
    assert done.returncode == 0


TWO_THREADS_AT_ONCE = """
said = "[Gloo] Rank 1 is connected to 1 peer ranks. Expected number of connected peer ranks is : "
print(said + "1", flush=True)
print(flush=True)
print(said + said + "11", flush=True)
print(flush=True)
print(said + said + "1", flush=True)
print("1", flush=True)
print("mine", flush=True)
print(flush=True)
print("7", flush=True)
"""


def test_what_gloo_says_is_left_out_also_where_its_threads_interleave() -> None:
    """Lines of the program's own stay, empty ones and numbers too."""
    output, _ = launch(sys.executable, "-c", TWO_THREADS_AT_ONCE, processes=1).communicate(timeout=30)
    assert output.splitlines() == ["[0] ", "[0] mine", "[0] ", "[0] 7"]


def test_the_status_is_that_of_the_first_that_fails() -> None:
    text = 'import os, sys, time; time.sleep(30 * int(os.environ["SHARDPASS_PROCESS"])); sys.exit(7)'
    begun = time.monotonic()
    _, err = (done := launch(*script(text))).communicate(timeout=60)
    assert done.returncode == 7
    assert "error: process 0 of 2 ended with status 7 after" in err
    assert time.monotonic() - begun < 25


def test_a_killed_process_stops_the_others() -> None:
    out, err = (done := launch(*script(STUBBORN), DIES="1")).communicate(timeout=60)
    assert done.returncode == 128 + signal.SIGKILL
    assert "error: process 1 of 2 was killed by SIGKILL after" in err
    assert "[SP565]" in err
    pids = told_pids(out.splitlines())
    assert len(pids) == 4
    assert_gone(pids)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_launcher_is_ended(number: signal.Signals) -> None:
    running = launch(*script(STUBBORN))
    assert running.stdout is not None
    pids = told_pids([running.stdout.readline() for _ in range(2)])
    assert len(pids) == 4
    os.kill(running.pid, number)
    running.communicate(timeout=60)
    assert running.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert_gone(pids)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--processes", "0", "--", "true"], "0 is not a positive number"),
        (["--processes", "2"], "give the command to run, after --"),
        (["--", "no-such-command-anywhere"], "there is no command no-such-command-anywhere"),
    ],
)
def test_bad_usage(arguments: list[str], said: str) -> None:
    command = module_command("tools.run_distributed", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert done.returncode == 2
    assert said in done.stderr


def test_devices_of_a_process() -> None:
    assert place_of(1, 2, 4, "cpu")["JAX_NUM_CPU_DEVICES"] == "4"
    assert place_of(1, 2, 4, "gpu")["JAX_LOCAL_DEVICE_IDS"] == "4,5,6,7"
