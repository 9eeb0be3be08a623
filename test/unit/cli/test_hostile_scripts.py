"""Scripts that do not end by themselves, or end otherwise than by an exception: an answer or an error, and no process
left. One process for each answer; what a script may do beside each other is in one script.
"""

import os
import re
from pathlib import Path

import pytest

from shardpass.cli.script import program_of
from shardpass.diagnostics import ShardpassError

HEAD = """
import atexit, multiprocessing, os, shutil, signal, subprocess, sys, threading, time
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

@jax.jit
def step(x):
    return jnp.sum(x)

def call():
    mesh = jax.make_mesh((2, 2), ("data", "model"))
    return step(jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("data"))))
"""
LIVES_ON = """
if __name__ == "__main__":
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1):
        signal.signal(one, signal.SIG_IGN)
    atexit.register(time.sleep, 1e6)
    threading.Thread(target=time.sleep, args=(1e6,)).start()
    for kind in ("fork", "spawn"):
        multiprocessing.get_context(kind).Pool(1).apply_async(time.sleep, (1e6,))
    if os.fork() == 0:  # a daemon
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(1)
        sys.exit(0)
    subprocess.Popen(["sleep", "1000000"], start_new_session=True)
    unnamed = [sys.executable, "-c", "import time; time.sleep(1e6)", os.getcwd()]
    subprocess.Popen(unnamed, start_new_session=True, env={})
    for _ in range(2000):
        print("x" * 1000)
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_traceback_filtering", "off")
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    while True:
        try:
            call()
        except BaseException:
            pass
"""
FAILS = {
    "sys.exit": ("sys.exit(3)", r"train.py:14: .*the script left with 3 .*SP141.*behind the function"),
    "os._exit": ("os._exit(0)", r"train.py: .*ended with status 0, and no exception \[SP141\]"),
    "a signal": ("os.kill(os.getpid(), 9)", r"train.py: .*was ended by SIGKILL \[SP141\]"),
    "input": ("input()", r"train.py:14: .*EOFError.*SP141.*reads its standard input"),
    "a module that is missing": (
        "import nowhere_at_all",
        r"train.py:14: .*ModuleNotFound.*SP141.*install nowhere_at_all",
    ),
    "an exception in a helper": ("import helper\nhelper.outer()", r"helper.py:5: .*KeyError: 'deep' \[SP141\]"),
    "a helper that does not parse": ("import broken", r"broken.py:2: .*SyntaxError.*SP141.*correct this line"),
    "an exception beside a hanging end": (
        "atexit.register(time.sleep, 1e6)\nthreading.Thread(target=time.sleep, args=(1e6,)).start()\n"
        "raise ValueError('no')",
        r"train.py:16: .*ValueError: no \[SP141\].*the script itself fails",
    ),
    "an exception in a thread": (
        "def work():\n    raise ValueError('no')\nthreading.Thread(target=work).start()",
        r"train.py:15: .*ValueError: no \[SP141\]",
    ),
    "recursion": ("def f():\n    f()\nf()", r"train.py:15: .*RecursionError.*\[SP141\]"),
    "no jit": (
        "jax.config.update('jax_disable_jit', True)\ncall()",
        r"train.py: .*no function step; it compiled .*SP142",
    ),
}


def left(folder: str) -> list[str]:
    """Returns the processes that were started in ``folder``, by a variable of their environments or by an argument."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", name, "cmdline").read_text()
            if f"STARTED_IN={folder}".encode() in Path("/proc", name, "environ").read_bytes() or folder in words:
                found.append(words)
        except OSError:
            continue
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which scripts start without a number of devices, and of which no process is left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STARTED_IN", str(tmp_path))
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    Path("helper.py").write_text("def outer():\n    inner()\n\ndef inner():\n    raise KeyError('deep')\n")
    Path("broken.py").write_text("x = 1\ndef (\n")
    yield tmp_path
    assert not left(str(tmp_path))


def devices_of(module: bytes) -> int:
    from shardpass.ir.context import parse_module

    found = re.search(r"mhlo.num_partitions = (\d+)", str(parse_module(module, "")))
    assert found is not None
    return int(found[1])


@pytest.mark.fresh_process  # its processes are looked at by their numbers
def test_what_lives_on_is_ended_with_the_answer(folder, capfd):
    """The number of devices is what the mesh asks for, although the script catches the error that says it."""
    Path("train.py").write_text(HEAD + LIVES_ON)
    module, name = program_of("train.py:step", 240)
    assert (name, devices_of(module)) == ("train.py:step", 4)
    assert "asks for 4 devices" in capfd.readouterr().err


@pytest.mark.fresh_process  # its processes are looked at by their numbers
def test_a_step_in_a_thread_after_the_end_of_the_script(folder):
    """A module that ``python -m`` runs, with relative imports, arguments and a thread for which Python waits."""
    Path("pkg").mkdir()
    Path("pkg/__init__.py").write_text("")
    Path("pkg/lib.py").write_text(HEAD)
    Path("pkg/train.py").write_text(
        "import sys, threading\nfrom .lib import call\n"
        "assert sys.argv[1:] == ['--rows', '8'], sys.argv\n"
        "threading.Timer(0.5, call).start()\n"
    )
    module, name = program_of("python -m pkg.train:step --rows 8", 240)
    assert (name, devices_of(module)) == ("pkg.train:step", 4)


@pytest.mark.turns(3)
@pytest.mark.parametrize("kind", FAILS)
def test_the_error_names_the_line_and_fits(folder, kind, monkeypatch):
    text, wanted = FAILS[kind]
    Path("train.py").write_text(f"{HEAD}\n{text}\n")
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "4")
    null = os.open(os.devnull, os.O_RDONLY)
    before = os.dup(0)
    os.dup2(null, 0)
    try:
        with pytest.raises(ShardpassError) as raised:
            program_of("train.py:step", 240)
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(null)
    assert re.match(wanted, str(raised.value), re.DOTALL), raised.value


def test_a_mesh_of_the_half_of_one_device_asks_for_a_number(folder):
    Path("train.py").write_text(f"{HEAD}\njax.make_mesh((len(jax.devices()) // 2, 2), ('a', 'b'))\n")
    with pytest.raises(ShardpassError, match=r"train.py:14: .*SP141.*\n.*one CPU device here.*--target h100:8"):
        program_of("train.py:step", 240)


@pytest.mark.fresh_process  # its processes are looked at by their numbers
def test_an_endless_loop_is_ended_and_named(folder, capfd, monkeypatch):
    monkeypatch.setattr("shardpass.cli.script._FIRST_NEWS", 0.1)
    Path("train.py").write_text(f"{HEAD}\nopen('begun', 'w').close()\nwhile True:\n    time.sleep(0.1)\n")
    seconds = 4.0
    while True:  # a busy machine may take long to start
        with pytest.raises(ShardpassError) as raised:
            program_of("train.py:step", seconds)
        if Path("begun").exists() or seconds > 200:
            break
        seconds *= 2
    assert re.match(rf"train.py:1[56]: .*ran for {seconds:g} s.*SP144.*--timeout", str(raised.value), re.DOTALL)
    assert re.search(r"running train.py, \d+ s \.\.\.", capfd.readouterr().err)


@pytest.mark.parametrize(
    "text", ["assert jax.device_count() == {}", "jax.devices()[{} - 1]", "raise SystemExit('give me {} devices')"]
)
def test_numbers_of_devices_in_errors(text):
    from shardpass.jax.script_failure import _devices_asked

    line = text.format(64).replace("64 - 1", "63")
    reason = (
        "the script left with give me 64 devices"
        if "Exit" in line
        else "AssertionError"
        if "assert" in line
        else "IndexError"
    )
    assert _devices_asked(reason, line) == 64
    assert _devices_asked(reason.replace("64", "1"), line.replace("64", "1").replace("63", "0")) == 0


@pytest.mark.parametrize(
    "reason",
    [
        "ValueError: Number of devices 1 must be >= the product of mesh_shape (4, 16)",
        "ValueError: Number of devices 8 must equal the product of mesh_shape (64,)",
        "ValueError: cannot reshape array of size 1 into shape (2,32)",
        "ValueError: compiling computation that requires 64 logical devices, but only 1 XLA devices are available",
    ],
)
def test_numbers_of_devices_in_the_words_of_jax(reason):
    from shardpass.jax.script_failure import _devices_asked

    assert _devices_asked(reason, "") == 64
