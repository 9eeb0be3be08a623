"""The program of a function in a user's script: the script runs, in this process, until JAX compiles the function.

A training script makes its arrays, its mesh and its jitted step itself, so nobody else knows the arguments of the step.
The script is therefore run as ``python FILE`` runs it, and left by an exception at the moment when JAX is about to
compile the function: its setup has run, the function has not. ``shardpass.cli.script`` starts the process.
"""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from shardpass.ir import jax_private
from shardpass.jax import hook

MODULE, ENDED = "module.mlirbc", "ended.json"  # the files of the answer


class _Compiled(BaseException):
    """Leaves the user's script; ``except Exception`` in the script does not stop it."""


Failed = Callable[[BaseException], dict[str, Any]]


def run(folder: str, function: str, file: str, *arguments: str) -> None:
    """Calls ``run_script`` as the entry point of a process of its own."""
    run_script(folder, function, file, arguments)


def run_script(
    folder: str,
    function: str,
    file: str,
    arguments: Sequence[str],
    failed: Failed = lambda _: {},
    look: Callable[[], None] = lambda: None,
) -> None:
    """Runs the script ``file`` until JAX compiles ``function``, and writes the answer into ``folder``.

    ``MODULE``: the module in bytecode with its locations, as JAX hands it to XLA. ``ENDED``, where there is no module:
    the names of the functions that were compiled, and the place and the text of the exception that ended the script,
    with what ``failed`` says of that. ``look``: called within the call that compiles ``function``, before the script is
    left.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    compiled: list[str] = []
    _watch(function, compiled, Path(folder, MODULE), look)
    sys.argv[:] = [file, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    answer: dict[str, Any] = {"compiled": compiled}
    try:
        runpy.run_path(file, run_name="__main__")
    except _Compiled:
        return
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            answer |= {"line": 0, "reason": f"the script left with {leaving.code}"}
    except Exception as error:
        answer |= {"line": _line_in(file, error), "reason": _reason(error, file, function)}
        answer |= failed(error)
        if os.environ.get("SHARDPASS_TRACEBACK"):
            traceback.print_exc()
    Path(folder, ENDED).write_text(json.dumps(answer))


def _watch(function: str, compiled: list[str], module: Path, look: Callable[[], None]) -> None:
    """Notes the name of each program that JAX compiles; the program ``function`` is written to ``module`` instead."""
    wanted = re.sub(r"\W", "_", function.rpartition(".")[2])
    hook.put_in_place()  # a script that enters use() then finds its hook in place, below this one
    original = jax_private.compile_hook()

    def compile(backend: Any, computation: Any, *rest: Any, **more: Any) -> Any:
        name = computation.operation.attributes["sym_name"].value.removeprefix("jit_").removeprefix("pmap_")
        if name == wanted:
            if not module.exists():
                file = io.BytesIO()
                computation.operation.write_bytecode(file)
                module.write_bytes(file.getvalue())
                look()
            raise _Compiled
        if name not in compiled:
            compiled.append(name)
        return original(backend, computation, *rest, **more)

    jax_private.set_compile_hook(compile)
    jax.config.update("jax_enable_compilation_cache", False)  # nothing of this run is kept


def _reason(error: BaseException, file: str, function: str) -> str:
    """Returns the type and text of ``error`` without JAX's notes, and for an error of types what to do about it."""
    shown = traceback.TracebackException(type(error), error, None)
    shown.__notes__ = []
    reason = list(shown.format_exception_only())[-1].strip()
    if type(error).__name__ == "ShardingTypeError":
        reason += f"; `shardpass suggest {file}:{function}` prints edits with which JAX traces it"
    return reason


def _line_in(file: str, error: BaseException) -> int:
    """Returns the innermost line of ``file`` that ``error`` passed, 0 if none."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 0
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return (lines[-1] if lines else 0) or 0
