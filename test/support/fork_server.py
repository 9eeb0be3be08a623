"""Start the Python processes of a test session as forks of one that has jax and shardpass loaded.

``install`` changes what ``subprocess.Popen`` does for ``python -m``, ``python -c`` and ``python FILE.py``, in tests, in
what they test, and in forks: the process that starts is fork_client.py, which this server gives a fork. The workers of
a session are forks too, and share its server. These start as usual:

- code that looks at ``sys.modules``, at signals or at the memory of its process
- a process with settings of its own, such as limits, or with another Python environment
- all of a test that is marked ``fresh_process``, and all where SHARDPASS_TEST_PROCESSES=real

``commands`` is for shells: a folder with ``python`` and the commands of shardpass, which the server gives forks too.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import marshal
import os
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

from support.forks import Reports, flags_of

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).with_name("fork_client.py")
REAL = "SHARDPASS_TEST_PROCESSES"
OPTIONS = {"stdin", "stdout", "stderr", "env", "cwd", "text", "universal_newlines", "encoding", "errors", "bufsize"}
OPTIONS |= {"close_fds", "pass_fds", "start_new_session"}
ABOUT_ITSELF = ("sys.modules", "signal", "resource", "/proc/self", "meta_path", "rlimit")
READ_AT_START = ("JAX_", "PYTHON", "LD_", "LC_", "LANG", "OMP_")  # variables that the server has read already
COLLECTIVES = "JAX_CPU_COLLECTIVES_IMPLEMENTATION"
SET_IN_FORKS = ("PYTHONPATH", "PYTHONUNBUFFERED", "JAX_PLATFORMS", "JAX_NUM_CPU_DEVICES", COLLECTIVES)
READ_LATER = ("JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS")


@dataclass
class ForkServer:
    """The server of this process: started when it is first asked for, or, in a fork, the one that made it."""

    folder: str = ""
    process: subprocess.Popen[bytes] | None = None
    enabled: bool = True
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, given: Any, options: Mapping[str, Any]) -> list[str] | None:
        """Returns the command that has the server run ``given``, or None where that is to start as usual."""
        if not self.enabled or not isinstance(given, list | tuple) or not set(options) <= OPTIONS:
            return None
        words = [os.fspath(word) for word in given]
        flags = flags_of(words[1:])
        program = words[1 + len(flags) :]
        if program[:1] == ["-mpytest"]:
            program[:1] = ["-m", "pytest"]
        if words[0] != sys.executable or not program or not (program[0] in ("-m", "-c") or program[0].endswith(".py")):
            return None
        if program[0] == "-c" and any(word in program[1] for word in ABOUT_ITSELF):
            return None
        environment = dict(os.environ if options.get("env") is None else options["env"])
        folder = Path(options.get("cwd") or ".").resolve()
        if "-P" not in flags and folder != ROOT and (folder / "shardpass").exists():
            return None
        if environment.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
            found = (entry for entry in _searched(environment) if os.path.exists(f"{entry}/shardpass"))
            if next(found, "") != str(ROOT):
                return None
        if not self._is_alike(environment):
            return None
        self.start()
        return [*self._client(*options.get("pass_fds", ())), *flags, *program]

    def commands(self) -> str:
        """Returns the folder of ``python`` and of the commands of shardpass, for the PATH of a shell."""
        usual = Path(sys.executable).parent
        if not self.enabled or os.environ.get(REAL) == "real":
            return str(usual)
        self.start()
        folder = Path(self.folder, "bin")
        if not folder.exists():
            folder.mkdir()
            forked = f'exec {shlex.join(self._client())} "$@"'
            lines = {"python": f'case "$1" in -m|*.py) {forked} ;; esac\nexec {sys.executable} "$@"'}
            for script in entry_points(group="console_scripts"):
                if script.name.startswith("shardpass"):
                    lines[script.name] = forked.replace('"$@"', f'{usual / script.name} "$@"')
            for name, line in lines.items():
                (folder / name).write_text(f"#!/bin/sh\n{line}\n")
                (folder / name).chmod(0o755)
        return str(folder)

    def _client(self, *numbers: int) -> list[str]:
        return [sys.executable, "-I", "-S", str(CLIENT), f"{self.folder}/socket", " ".join(map(str, numbers))]

    def _is_alike(self, environment: Mapping[str, str]) -> bool:
        own = self.environment or os.environ
        names = {name for name in {*own, *environment} if name.startswith(READ_AT_START)}
        names -= {*SET_IN_FORKS, *READ_LATER}
        return all(own.get(name) == environment.get(name) for name in names)

    def start(self) -> None:
        """Starts the server where there is none; its forks, and theirs, share it."""
        if self.folder:
            return
        self.environment = dict(os.environ)
        self.folder = tempfile.mkdtemp(prefix="forks-")
        own = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}  # JAX sets it here
        self.process = _Popen(
            [sys.executable, "-P", "-c", "from support.fork_server import serve; serve()", f"{self.folder}/socket"],
            env=own | {"PYTHONPATH": os.pathsep.join([str(ROOT / "test"), *_searched(os.environ), str(ROOT)])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()  # it listens

    def close(self) -> None:
        """Ends the server."""
        if self.process is not None:
            self.process.communicate()
            self.process, self.folder = None, ""


server = ForkServer()
_Popen = subprocess.Popen
_start_as_usual: Callable[..., None] = subprocess.Popen.__init__


def install() -> None:
    """Has this process start Python processes by the server."""
    if os.environ.get(REAL) == "real" or not hasattr(os, "pidfd_open"):
        return

    @functools.wraps(_start_as_usual)
    def start(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        command = None if rest else server.command(args, options)
        _start_as_usual(self, args if command is None else command, *rest, **options)
        self.args = args

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]


# --- in the server


def serve() -> None:
    """Runs the server at the socket that argv[1] names, until stdin ends."""
    server.environment, server.folder = dict(os.environ), os.path.dirname(sys.argv[1])
    import jax  # noqa: F401  # each fork sets its devices

    import shardpass  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    base = [entry for entry in sys.path if entry == str(ROOT) or entry not in _searched(os.environ)]
    reports = Reports()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(64)
    print(flush=True)
    events = selectors.DefaultSelector()
    events.register(0, selectors.EVENT_READ, "end")
    events.register(listener, selectors.EVENT_READ, "start")
    while True:
        for key, _ in events.select():
            if key.data == "end":
                shutil.rmtree(server.folder, ignore_errors=True)
                return
            with contextlib.suppress(OSError, ValueError):  # of a client that is gone: others are served
                if key.data == "start":
                    client, _ = listener.accept()
                    reports.follow()
                    pid, session = _started(client, reports, base)
                    events.register(client, selectors.EVENT_READ, ("signal", pid, session))
                    events.register(os.pidfd_open(pid), selectors.EVENT_READ, ("ended", pid, client))
                elif key.fd in events.get_map():  # a client that ended earlier in this round is closed
                    _follow(events, key)


def _follow(events: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """Passes a signal on to a program, or the program's status to its client."""
    match key.data:
        case ("signal", pid, session):
            try:
                sent = key.fileobj.recv(1)  # type: ignore[union-attr]
            except OSError:
                sent = b""
            if not sent:
                events.unregister(key.fileobj)
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if session and not sent else os.kill)(pid, sent[0] if sent else signal.SIGKILL)
        case ("ended", pid, client):
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            events.unregister(key.fd)
            os.close(key.fd)
            with contextlib.suppress(OSError):
                client.sendall(status.to_bytes(4, "big", signed=True))
            with contextlib.suppress(KeyError):
                events.unregister(client)
            client.close()


def _started(client: socket.socket, reports: Reports, base: list[str]) -> tuple[int, bool]:
    """Forks the program that ``client`` asks for. Returns the number of its process, and whether it leads a session."""
    length, streams, _, _ = socket.recv_fds(client, 8, 64)
    request = b""
    while len(request) < int.from_bytes(length, "big"):
        piece = client.recv(1 << 20)
        if not piece:
            break
        request += piece
    complete = len(length) == 8 and len(streams) >= 3 and len(request) == int.from_bytes(length, "big")
    program = marshal.loads(request) if complete else ((), "", {}, (), False)
    alike = complete and server._is_alike(program[2])
    client.sendall(b"forked" if alike else b"usual ")
    pid = os.fork() if alike else -1
    if pid:
        for stream in streams:
            os.close(stream)
        if not alike:
            client.close()
            raise ConnectionResetError("the client ended before its request was read, or starts as usual")
        return pid, program[4]
    try:
        _become(program, streams, reports, base)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _become(request: Any, streams: list[int], reports: Reports, base: list[str]) -> None:
    """Becomes, in a fork, the program of a request."""
    import jax

    arguments, folder, environment, numbers, session = request
    if session:
        os.setsid()
    beyond = max(*numbers, *streams) + 1
    *held, reports.writer = (fcntl.fcntl(one, fcntl.F_DUPFD, beyond) for one in (*streams, reports.writer))
    for number, stream in zip(numbers, held, strict=True):
        os.dup2(stream, number)
    os.chdir(folder)
    made = {name: value for name, value in os.environ.items() if name not in server.environment}  # as JAX is imported
    os.environ.clear()
    os.environ.update(made | environment)
    if "pytest" in arguments[:3]:
        os.environ["PYTEST_ADDOPTS"] = "-W 'ignore:Module already imported'"  # ours are, and their asserts stay plain
    jax.config.update("jax_platforms", environment.get("JAX_PLATFORMS"))
    jax.config.update("jax_num_cpu_devices", int(environment.get("JAX_NUM_CPU_DEVICES", "-1")))
    if COLLECTIVES in environment:
        jax.config.update(COLLECTIVES.lower(), environment[COLLECTIVES])
    install()
    tempfile.tempdir = None  # which TMPDIR names
    flags = flags_of(arguments)
    program = arguments[len(flags) :]
    own = {"-c": "", "-m": folder}.get(program[0], os.path.dirname(os.path.abspath(program[0])))
    first = [] if "-P" in flags else [own]
    sys.path[:] = [*first, *_searched(environment), *base]
    at_start = PathFinder.find_spec("sitecustomize", _searched(environment))
    if at_start is not None and at_start.loader is not None:
        at_start.loader.exec_module(module_from_spec(at_start))
    reports.run_and_leave(arguments, numbers)


def _searched(environment: Mapping[str, str]) -> list[str]:
    return [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
