"""``FILE.py:FUNCTION`` in the place of a module: the program that JAX would compile for a function of a script."""

from __future__ import annotations

import os
import re
import shlex
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_SCRIPT = re.compile(r"(?P<file>[^:]*\.py):(?P<function>[^\W\d][\w.]*)(?P<arguments>\s.*)?", re.DOTALL)


def is_script(path: str) -> bool:
    """Whether ``path`` names a function of a script, and is not a file itself."""
    return _SCRIPT.fullmatch(path) is not None and not os.path.exists(path)


def file_of(path: str) -> str:
    """Returns the file of the script that ``path`` names."""
    parts = _SCRIPT.fullmatch(path)
    assert parts is not None, path
    return parts["file"]


def script_folder(path: str | None) -> tuple[str, ...]:
    """Returns the folder of the script that ``path`` names, whose lines may be quoted; nothing where it names none."""
    return (os.path.dirname(os.path.abspath(file_of(path))),) if path and is_script(path) else ()


def program_of(path: str) -> tuple[bytes, str]:
    """Returns MLIR bytecode and the name for diagnostics of the program of ``path``: ``FILE.py:FUNCTION ARGUMENTS``.

    The script runs in a process of its own, with ``ARGUMENTS`` and the environment of this one; what it prints goes to
    stderr. Raises ShardpassError: SP141 where the script fails, SP142 where it ends without compiling FUNCTION.
    """
    module, answer = _run(path, "shardpass.jax.script")
    return module or _no_program(path, answer), _name(path)


def program_or_repairs(
    path: str, machine: str | None, findings: bool, memory_limit: str | None, partitioner: str
) -> tuple[bytes, str] | dict[str, str]:
    """Returns the program of a function, as ``program_of``. Of a function that raises an error of types, returns the
    edits that repair it, as "text" and "json".

    With ``findings``, also those about the types of a program with explicit axes, as "text", where there are any.
    Raises ShardpassError: as ``program_of``, and SP804, SP840, SP841 and SP843 where there are no
    edits.
    """
    wanted = "findings" if findings else ""
    module, answer = _run(path, "shardpass.explicit.script", machine or "", wanted, memory_limit or "", partitioner)
    if module:
        return {"text": answer["findings"]} if answer.get("findings") else (module, _name(path))
    repairs = answer.get("repairs") or _no_program(path, answer)
    assert isinstance(repairs, dict)
    return repairs


def _name(path: str) -> str:
    parts = _SCRIPT.fullmatch(path)
    assert parts is not None, path
    return f"{parts['file']}:{parts['function']}"


def _run(path: str, child: str, *words: str) -> tuple[bytes, dict[str, Any]]:
    """Runs the script. Returns the module (b"" without one), and what else its process answers."""
    import json
    import subprocess
    import sys
    from pathlib import Path

    from shardpass.diagnostics import Place
    from shardpass.diagnostics.table_driver import SCRIPT_FAILED
    from shardpass.ir.child import command, making_files

    parts = _SCRIPT.fullmatch(path)
    assert parts is not None, path
    file, function = parts["file"], parts["function"]
    try:
        arguments = shlex.split(parts["arguments"] or "")
    except ValueError as error:
        raise SCRIPT_FAILED.error(Place(file), function=function, reason=f"its arguments: {error}") from None
    with making_files():
        folder = tempfile.TemporaryDirectory(prefix="shardpass-")
    with folder as place:
        done = subprocess.run(
            command(child, "run", (place, function, file, *words, *arguments)), stdout=sys.stderr, check=False
        )
        module, ended, findings = (Path(place, name) for name in ("module.mlirbc", "ended.json", "findings.txt"))
        if module.exists():
            return module.read_bytes(), {"findings": findings.read_text()} if findings.exists() else {}
        answer = json.loads(ended.read_text()) if ended.exists() else {}
    return b"", answer or {"reason": f"its process ended with {done.returncode}"}


def _no_program(path: str, answer: dict[str, Any]) -> NoReturn:
    from shardpass.diagnostics import Diagnostic, Place, Severity, ShardpassError
    from shardpass.diagnostics.table_driver import NOT_COMPILED, SCRIPT_FAILED

    parts = _SCRIPT.fullmatch(path)
    assert parts is not None, path
    file, function = parts["file"], parts["function"]
    if "diagnostic" in answer:
        error = answer["diagnostic"]
        place = Place(error["file"], error["line"])
        raise ShardpassError(Diagnostic(Severity.ERROR, error["code"], error["message"], place, error["remedy"]))
    if "reason" in answer:
        raise SCRIPT_FAILED.error(Place(file, answer.get("line", 0)), function=function, reason=answer["reason"])
    raise NOT_COMPILED.error(Place(file), function=function, compiled=", ".join(answer["compiled"]) or "nothing")
