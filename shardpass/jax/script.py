"""Run a user's script in this process until JAX compiles a function, and write the program of the function.

A training script creates its arrays, its mesh and its jitted step itself, so nothing else knows the arguments of the
step. Therefore the script runs as in ``python FILE``, and the process ends when JAX is about to compile the
function: after the script's setup, before the function runs. ``shardpass.cli.script`` starts the process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import inspect
import io
import json
import os
import re
import runpy
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from types import CellType
from typing import Any, NoReturn

import jax
from jax.experimental import mesh_utils

from shardpass.ir import jax_private
from shardpass.ir.process_tree import ALIVE
from shardpass.ir.whole_file import write_whole
from shardpass.jax import hook
from shardpass.jax.leaf_names import set_leaf_names
from shardpass.jax.script_failure import explained

# the files of the answer
MODULE, ENDED, WHERE = "module.mlirbc", "ended.json", "where.txt"

Failed = Callable[[BaseException], dict[str, Any]]


def run(folder: str, ends: str, function: str, target: str, *arguments: str) -> None:
    """Call ``run_script`` as the entry point of a process of its own."""
    run_script(folder, ends, function, target, arguments)


def run_script(
    folder: str,
    ends: str,
    function: str,
    target: str,
    arguments: Sequence[str],
    failed: Failed = lambda _: {},
    look: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Run the script ``target`` until JAX compiles ``function``, write the answer, and end the process.

    ``target``: a file, or "-m" and a module. Files in ``folder``: ``MODULE``, the module in bytecode with locations,
    as JAX passes it to XLA. Without a module, ``ENDED``: the names of the compiled functions, whether the script
    ended, and the results of ``explained`` and ``failed`` for the exception that ended it. ``WHERE``: the current
    lines of all threads at the time ``ends``, in seconds since the epoch. ``look``: a function called within the
    call that compiles ``function``.
    """
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    where = Path(folder, WHERE).open("w")  # noqa: SIM115  # to the end of the process
    faulthandler.dump_traceback_later(max(float(ends) - time.time(), 0.1), file=where)
    compiled: list[str] = []
    answer: dict[str, Any] = {"ended": True, "compiled": compiled}
    own = os.getpid()

    def explain(error: BaseException) -> None:
        """Record the first exception that ended the script or a thread of the script."""
        if not (isinstance(error, SystemExit) and error.code in (None, 0)) and "reason" not in answer:
            answer.update(explained(error, function, target) | failed(error))

    def end() -> NoReturn:
        if os.getpid() == own:  # not a process that the script forked
            _write_whole(Path(folder, ENDED), json.dumps(answer).encode())
        _leave()

    def refused(error: Exception) -> None:
        """End the script if a mesh has too few devices: the script may catch the error, and more devices solve it."""
        more = explained(error, function, target)
        if "devices" in more:
            answer.update(more)
            end()

    _watch(function, compiled, Path(folder), look)
    _watch_meshes(refused)
    _watch_threads(explain)
    try:
        _run_as_main(target, arguments)
    except (Exception, SystemExit) as error:
        explain(error)
        if os.environ.get("SHARDPASS_TRACEBACK"):
            traceback.print_exc()
    if "reason" not in answer:
        _join_threads()
    end()


def _run_as_main(target: str, arguments: Sequence[str]) -> None:
    """Run a file or a module like ``python`` does, with ``words`` as its arguments."""
    module = target.removeprefix("-m ")
    sys.argv[:] = [target, *arguments]
    if module != target:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
        runpy.run_path(target, run_name="__main__")


def _lowered(computation: Any) -> Any:
    """Lower the program that JAX is about to compile again for the platform in the environment, with the library's
    leaf names as argument names.

    ``jitted.lower(...).compile()`` no longer knows the function: its module, lowered for the CPU, is returned.
    """
    platform = os.environ.get("SHARDPASS_LOWERS_FOR", "cpu")
    call = jax_private.call_being_compiled()
    if call is None:
        return computation
    jitted, arguments, keywords = call
    if platform != "cpu":
        computation = jitted.trace(*arguments, **keywords).lower(lowering_platforms=(platform,)).compiler_ir()
    set_leaf_names(computation, jitted, arguments, keywords)
    return computation


def _watch(function: str, compiled: list[str], folder: Path, look: Callable[[], None]) -> None:
    """Note the name of each program that JAX compiles; write the program ``function`` and end the process."""
    wanted = re.sub(r"\W", "_", function.rpartition(".")[2])
    hook.put_in_place()  # a script that enters use() then finds its hook in place, below this one
    original = jax_private.compile_hook()

    def compile(backend: Any, computation: Any, *rest: Any, **more: Any) -> Any:
        name = computation.operation.attributes["sym_name"].value.removeprefix("jit_").removeprefix("pmap_")
        if name == wanted or _is_meant(function, name):
            file = io.BytesIO()
            try:
                _lowered(computation).operation.write_bytecode(file)
                look()
            finally:
                _write_whole(folder / MODULE, file.getvalue())
                _leave()
        if name not in compiled:
            compiled.append(name)
            _write_whole(folder / ENDED, json.dumps({"compiled": compiled}).encode())
        return original(backend, computation, *rest, **more)

    jax_private.set_compile_hook(compile)
    jax.config.update("jax_enable_compilation_cache", False)  # nothing of this run is kept


def _is_meant(function: str, name: str) -> bool:
    """Return whether the program ``name`` that is compiled is that of a variable ``function`` of the script, as where
    ``step = jax.jit(f)``, or of a function that a library made around one of that name.
    """
    value = vars(sys.modules["__main__"]).get(function)
    call = jax_private.call_being_compiled()
    if value is not None and hasattr(value, "lower"):
        named = re.sub(r"\W", "_", getattr(value, "__name__", "")).rstrip("_")
        return name == named and (call is None or inspect.unwrap(call[0]) is inspect.unwrap(value))
    cells = () if call is None else getattr(inspect.unwrap(call[0]), "__closure__", None) or ()
    inner = [cell.cell_contents for cell in cells if cell != CellType()]
    return any(getattr(one, "__name__", "") == function.rpartition(".")[2] for one in inner)


def _watch_meshes(refused: Callable[[Exception], None]) -> None:
    """Call ``refused`` with the errors of JAX's functions that make meshes."""

    def watched(make: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(make)
        def call(*arguments: Any, **more: Any) -> Any:
            try:
                return make(*arguments, **more)
            except ValueError as error:
                refused(error)
                raise

        return call

    jax.make_mesh = watched(jax.make_mesh)
    mesh_utils.create_device_mesh = watched(mesh_utils.create_device_mesh)


def _watch_threads(explain: Callable[[BaseException], None]) -> None:
    """Call ``explain`` with the exceptions that end threads of the script."""
    shown = threading.excepthook

    def failed(ending: threading.ExceptHookArgs) -> None:
        if ending.exc_value is not None:
            explain(ending.exc_value)
        shown(ending)

    threading.excepthook = failed


def _write_whole(file: Path, data: bytes) -> None:
    """Flush the script's output, and then write a file atomically."""
    with contextlib.suppress(ValueError, OSError):  # streams that the script closed, or nobody reads
        sys.stdout.flush()
        sys.stderr.flush()
    write_whole(file, data)


def _leave() -> NoReturn:
    """End the process immediately, without joining threads or running handlers of the script."""
    with contextlib.suppress(ValueError, OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _join_threads() -> None:
    """Join the threads that Python joins at the end of a script, as a thread may compile the function."""
    current = threading.current_thread()
    for thread in threading.enumerate():
        if thread is not current and not thread.daemon:
            thread.join()


def _end_with_parent() -> None:
    """End this process's session when the parent process ends and thereby closes its end of the pipe."""
    if ALIVE not in os.environ:
        return

    def watch(descriptor: int) -> None:
        with contextlib.suppress(OSError):
            while os.read(descriptor, 1):
                pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, args=(int(os.environ.pop(ALIVE)),), daemon=True).start()
