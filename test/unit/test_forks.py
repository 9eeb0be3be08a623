"""Processes that the fork server starts, beside those that Python starts as usual."""

import fcntl
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import EntryPoints, distributions, entry_points
from pathlib import Path

import pytest
from support import fork_server, forks
from support.lit_format import FILECHECK, REAL, Check

from tools.processes import environment, module_command

SHOWS = "import os, sys; print(sys.argv[1:], sys.path[0], os.getcwd(), os.environ.get('GREETING'), __name__)"
PROGRAMS = {
    "status": "import sys; sys.exit(7)",
    "words": "import sys; sys.exit('bad weather')",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "crash": "import os; os.abort()",
    "streams": "import sys; print(sys.stdin.read()[::-1]); print('error', file=sys.stderr)",
    "arguments": SHOWS,
    "at exit": "import atexit; atexit.register(print, 'bye'); print('hello')",
    "interrupted": "import os; os.kill(os.getpid(), 2)",
}


def is_forked(command, **options):
    return fork_server.server.command(command, options) is not None


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fork_ends_and_prints_as_a_process_does(name, tmp_path, monkeypatch):
    command = [sys.executable, "-c", PROGRAMS[name], "one", "two words"]
    options = {"input": b"abc", "capture_output": True, "cwd": tmp_path, "env": environment(GREETING="hello")}
    forked = subprocess.run(command, **options)
    monkeypatch.setattr(fork_server.server, "enabled", False)
    usual = subprocess.run(command, **options)
    assert (forked.returncode, forked.stdout) == (usual.returncode, usual.stdout)
    assert forked.stderr.splitlines()[-1:] == usual.stderr.splitlines()[-1:]


def test_modules_run_by_name():
    done = subprocess.run(module_command("shardpass", "opt", "-"), input=b"module {}", capture_output=True)
    assert (done.returncode, done.stdout.split()) == (0, [b"module", b"{", b"}"])


def test_a_script_finds_its_folder_and_its_variables(tmp_path):
    (tmp_path / "beside.py").write_text("NAME = 'beside'")
    (tmp_path / "script.py").write_text("import jax, tempfile, beside; print(beside.NAME, jax.config.jax_platforms)")
    command, env = [sys.executable, "script.py"], environment(JAX_PLATFORMS="cpu")
    assert is_forked(command, cwd=tmp_path, env=env)
    assert subprocess.run(command, cwd=tmp_path, env=env, capture_output=True).stdout == b"beside cpu\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_signals_reach_the_program(number):
    code = "print('ready', flush=True); import time; time.sleep(100)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.read() == b""  # its end: nobody has the pipe open
        assert process.wait() == -number


def test_a_fork_has_the_devices_that_it_asks_for():
    command = [sys.executable, "-c", "import jax; print(jax.device_count())"]
    for env, count in (({"JAX_NUM_CPU_DEVICES": "3"}, b"3\n"), ({}, b"1\n")):
        options = {"env": environment(JAX_PLATFORMS="cpu", XLA_FLAGS="", **env)}
        assert is_forked(command, **options)
        assert subprocess.run(command, capture_output=True, **options).stdout == count


def test_what_a_fork_starts_is_a_fork_too():
    code = "import os, sys; print(os.environ['DEPTH'], os.path.basename(sys.orig_argv[-1]), flush=True)"
    inner = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], env={{**os.environ, 'DEPTH': '2'}})"
    )
    outer = f"{code}; {inner}"
    done = subprocess.run([sys.executable, "-c", outer], capture_output=True, env=environment(DEPTH="1"))
    assert done.stdout == b"1 socket\n2 socket\n"


def test_the_server_has_loaded_jax():
    """A fork took a third of a second to load it."""
    program = "import os; print(os.getppid(), flush=True)"
    server = int(subprocess.run([sys.executable, "-c", program], capture_output=True).stdout)
    assert "jaxlib" in Path(f"/proc/{server}/maps").read_text()


@pytest.mark.fresh_process
def test_bindings_are_loaded_with_the_module_of_their_dialect():
    """Loaded before it, they lack the names of its attributes."""
    program = """
import os
from support.forks import Reports
reports = Reports()
os.write(reports.writer, b"jaxlib.mlir._mlir_libs._sdy jaxlib.mlir.dialects.sdy ")
reports.follow()
from jaxlib.mlir.dialects import sdy
print(sdy.ManualAxesAttr.__name__)
"""
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(PYTHONPATH=path), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["ManualAxesAttr"]


def test_a_fork_gets_open_files_and_leads_a_session(tmp_path):
    code = "import os, sys; print(os.read(int(sys.argv[1]), 9).decode(), os.getsid(0) == os.getpid(), flush=True)"
    for number in (5, 9, 50, 200):  # of which the server uses some
        reading, writing = os.pipe()
        os.write(writing, b"beside it")
        given = fcntl.fcntl(reading, fcntl.F_DUPFD, number)
        options = {"pass_fds": (given,), "start_new_session": True}
        command = [sys.executable, "-c", code, str(given)]
        assert is_forked(command, **options)
        assert subprocess.run(command, stdout=subprocess.PIPE, **options).stdout == b"beside it True\n"
        for one in (reading, writing, given):
            os.close(one)


def test_the_session_of_a_fork_ends_with_the_process_that_stands_for_it():
    """Its group is that of the fork, whose own fork has a pipe open until it is ended."""
    code = "import os, time; os.fork(); os.write(1, b'ready\\n'); time.sleep(100)"
    options = {"stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", code], **options) as process:
        assert [process.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
        os.killpg(process.pid, signal.SIGKILL)
        assert process.stdout.read() == b""


def test_what_python_loads_as_it_starts(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.excepthook = lambda *error: print('caught', error[1])")
    path = os.pathsep.join([str(tmp_path), str(fork_server.ROOT)])
    command, env = [sys.executable, "-c", "raise ValueError('no')"], environment() | {"PYTHONPATH": path}
    assert is_forked(command, env=env)
    done = subprocess.run(command, env=env, capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"caught no\n")


@pytest.mark.parametrize(("flags", "variables"), [([], {"PYTHONUNBUFFERED": "1"}), (["-u"], {}), (["-u", "-B"], {})])
def test_an_unbuffered_fork_writes_at_once(flags, variables):
    env = {name: value for name, value in environment().items() if name != "PYTHONUNBUFFERED"} | variables
    command = [sys.executable, *flags, "-c", "import os; print('said'); os._exit(0)"]
    assert is_forked(command, env=env)
    assert subprocess.run(command, env=env, capture_output=True).stdout == b"said\n"


@pytest.mark.fresh_process
def test_a_marked_test_has_processes_of_its_own():
    assert not is_forked([sys.executable, "-c", "pass"])


def test_what_depends_on_its_own_process_starts_as_usual(tmp_path):
    if os.environ.get(fork_server.REAL) == "real":
        pytest.skip("all processes start as usual in this session")
    (tmp_path / "shardpass").mkdir()
    plain = [sys.executable, "-c", "pass"]
    assert is_forked(plain)
    assert not is_forked([sys.executable, "-c", "import sys; print(len(sys.modules))"])
    assert not is_forked(plain, preexec_fn=print)
    assert not is_forked(plain, cwd=tmp_path)
    assert not is_forked(plain, env=environment(JAX_ENABLE_X64="1"))
    assert not is_forked(plain, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert not is_forked(["ls"])


def test_each_command_has_a_file_of_lit_that_starts_it_as_usual():
    files = (fork_server.ROOT / "test/lit").rglob("*.*")
    texts = [text for path in files if REAL.search(text := path.read_text(errors="replace"))]
    commands = {script.name for script in entry_points(group="console_scripts") if script.name.startswith("shardpass-")}
    assert len(commands) >= 8
    assert {name for name in commands if not any(re.search(rf"RUN: .*{name} ", text) for text in texts)} == set()


def test_packages_are_found_where_they_are_added(tmp_path, monkeypatch):
    """A fork has what was read before it, but for folders that changed."""
    usual = EntryPoints(point for found in distributions() for point in found.entry_points)
    assert {*forks.entry_points(group="console_scripts")} == {*usual.select(group="console_scripts")}
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("one", "two"):
        assert not forks.entry_points(group="greetings", name=name)
        (tmp_path / f"{name}-1.dist-info").mkdir()
        (tmp_path / f"{name}-1.dist-info/METADATA").write_text(f"Name: {name}")
        (tmp_path / f"{name}-1.dist-info/entry_points.txt").write_text(f"[greetings]\n{name} = x:y\n")
    assert forks.entry_points(group="greetings").names == {"one", "two"}


@pytest.mark.parametrize("text", ["good day", "bad", ""])
def test_filecheck_in_this_process_is_as_one_of_its_own(text, tmp_path):
    (tmp_path / "checks").write_text("CHECK: good [[DAY:.*]]")
    (tmp_path / "given").write_text(text)
    own = subprocess.run(
        [sys.executable, *FILECHECK, "checks"], input=text, cwd=tmp_path, capture_output=True, text=True
    )
    with open(tmp_path / "given") as given:
        check = Check(["filecheck", "checks"], given, str(tmp_path))
    assert check.communicate() == (own.stdout, own.stderr)
    assert check.wait() == own.returncode == (text != "good day")
