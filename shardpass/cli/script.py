"""``FILE.py:FUNCTION`` as input instead of a module: the program that JAX compiles for a function of a script.

``python -m PACKAGE.MODULE:FUNCTION`` names a function of a module that is run as a script.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, NoReturn

    from shardpass.advise.find.source import Edits
    from shardpass.diagnostics import Place
    from shardpass.targets.target import Target

TIMEOUT = 600.0  # seconds
_FIRST_NEWS = 20.0  # seconds until a line says that the script still runs; then after twice as long
_DUMP_BEFORE = 0.5  # seconds between the child's note of where it is and the end of its time
_MOST_RUNS = 3  # a script may ask for devices twice, as for a small mesh and a large one
_SCRIPT = re.compile(
    r"(?:(?P<file>[^:]*\.py)|python -m (?P<module>[^\W\d][\w.]*)):(?P<function>[^\W\d][\w.]*)(?P<arguments>\s.*)?",
    re.DOTALL,
)
_FRAME = re.compile(r'  File "(.*)", line (\d+) in ')


def is_script(path: str) -> bool:
    """Return whether ``path`` names a function of a script, and is not a file itself."""
    return _SCRIPT.fullmatch(path) is not None and not os.path.exists(path)


def file_of(path: str) -> str:
    """Return the file of the script named by ``path``. Raises ShardpassError (SP120) for a module without a file."""
    parts = _parts(path)
    if parts["file"] is not None:
        return parts["file"]
    from shardpass.cli.script_names import file_of_module
    from shardpass.diagnostics import Place
    from shardpass.diagnostics.table_driver import CANNOT_READ

    file = file_of_module(parts["module"], [os.getcwd(), *sys.path])
    if file is None:
        hint = "start in the folder from which `python -m` finds it"
        raise CANNOT_READ.error(Place(parts["module"]), reason="there is no such Python module", hint=hint)
    return file


def script_folder(path: str | None) -> tuple[str, ...]:
    """Return the folder of the script that ``path`` names; () if ``path`` does not name a script.

    Reports may quote source lines from that folder.
    """
    return (os.path.dirname(os.path.abspath(file_of(path))),) if path and is_script(path) else ()


def program_of(path: str, timeout: float = TIMEOUT, target: Target | None = None) -> tuple[bytes, str]:
    """Return the program of ``path``, ``FILE.py:FUNCTION ARGUMENTS``, as MLIR bytecode, and its name for
    diagnostics.

    The script runs in a separate process with ``ARGUMENTS`` and the current environment; its output goes to stderr.
    The process and its children are ended when the program is known, or after ``timeout`` seconds. With a
    ``target``, the script has as many CPU devices as the target, and the program is lowered for the target's
    platform.

    Raises ShardpassError: SP141 if the script fails, SP142 if it ends without compiling FUNCTION, SP144 after the
    timeout, SP145 if nothing in the script can be FUNCTION.
    """
    module, answer = _run(path, "shardpass.jax.script", timeout, target=target)
    return module or _no_program(path, answer), _name(path)


def program_with(path: str, timeout: float | None, target: Target | None, edits: Edits) -> bytes | None:
    """Return the program of ``path`` with ``edits`` of the script's files; None if the edited script fails or does not
    compile the function.
    """
    import tempfile

    from shardpass.advise.find.rerun import texts_of

    text = texts_of({file.path: file.traced(replacements) for file, replacements in edits.items()})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(text)
        file.flush()
        return _run(path, "shardpass.advise.find.rerun", timeout or TIMEOUT, file.name, target=target)[0] or None


def program_or_repairs(
    path: str,
    timeout: float,
    machine: str | None,
    findings: bool,
    memory_limit: str | None,
    partitioner: str,
    compiled_for: Target | None = None,
) -> tuple[bytes, str] | dict[str, str]:
    """Return the program of a function, like ``program_of``. For a function that raises a sharding type error, return
    the edits that fix the error, as "text" and "json".

    With ``findings``, also those about the types of a program with explicit axes, as "text", where there are any.
    Raises ShardpassError: as ``program_of``, and SP804, SP840, SP841 and SP843 where there are no
    edits.
    """
    wanted = "findings" if findings else ""
    words = machine or "", wanted, memory_limit or "", partitioner
    module, answer = _run(path, "shardpass.advise.repair.script", timeout, *words, target=compiled_for)
    if module:
        return {"text": answer["findings"]} if answer.get("findings") else (module, _name(path))
    repairs = answer.get("repairs") or _no_program(path, answer)
    assert isinstance(repairs, dict)
    return repairs


def _parts(path: str) -> re.Match[str]:
    parts = _SCRIPT.fullmatch(path)
    assert parts is not None, path
    return parts


def _name(path: str) -> str:
    parts = _parts(path)
    return f"{parts['file'] or parts['module']}:{parts['function']}"


def _run(
    path: str, child: str, timeout: float, *words: str, target: Target | None = None
) -> tuple[bytes, dict[str, Any]]:
    """Run the script. Returns the module (b"" without one) and the rest of the process's answer.

    A script that asks for more devices than there are is run again with as many virtual ones.
    """
    import json
    import tempfile
    import time
    from pathlib import Path

    from shardpass.cli.script_names import check_name
    from shardpass.diagnostics import Place
    from shardpass.diagnostics.table_driver import SCRIPT_FAILED
    from shardpass.ir.child import making_files

    parts, file = _parts(path), file_of(path)
    try:
        arguments = shlex.split(parts["arguments"] or "")
    except ValueError as error:
        remedy = "close the quotes in the arguments behind the function"
        reason = f"its arguments: {error}"
        raise SCRIPT_FAILED.error(Place(file), function=parts["function"], reason=reason, remedy=remedy) from None
    check_name(file, parts["function"])
    ends, devices = time.monotonic() + timeout, 0 if target is None else target.devices
    answer: dict[str, Any] = {}
    script = parts["file"] or f"-m {parts['module']}"
    for _ in range(_MOST_RUNS):
        with making_files():
            folder = tempfile.TemporaryDirectory(prefix="shardpass-")
        with folder as name:
            place = Path(name)
            left = max(ends - time.monotonic(), 1.0)
            handed = name, str(time.time() + left - _DUMP_BEFORE), parts["function"], script
            status = _watched(child, (*handed, *words, *arguments), place, _environment(devices, target), left, file)
            module, ended, findings = (place / one for one in ("module.mlirbc", "ended.json", "findings.txt"))
            if module.exists():
                return module.read_bytes(), {"findings": findings.read_text()} if findings.exists() else {}
            answer = json.loads(ended.read_text()) if ended.exists() else {}
            if status is None:
                return b"", {**answer, "timeout": timeout, "place": _where(place / "where.txt", file)}
        if not answer.get("ended"):
            return b"", {**answer, "reason": _of_status(status), "remedy": "run the script alone"}
        if answer.get("devices", 0) <= devices:
            break
        devices = answer["devices"]
        print(f"{file} asks for {devices} devices: running it again with virtual ones", file=sys.stderr, flush=True)
    return b"", answer


def _environment(devices: int, target: Target | None) -> dict[str, str]:
    """Return the environment variables for the number of virtual devices and the platform of a script."""
    more = {"JAX_NUM_CPU_DEVICES": str(devices)} if devices else {}
    return more if target is None else {**more, "JAX_PLATFORMS": "cpu", "SHARDPASS_LOWERS_FOR": target.platform}


def _watched(
    child: str, words: tuple[str, ...], place: Path, more: dict[str, str], seconds: float, file: str
) -> int | None:
    """Run the child until it ends, writes the module, or times out, then end all processes that it started.

    Returns its status: None if the time was over.
    """
    import time

    from shardpass.ir.child import command
    from shardpass.ir.process_tree import ProcessTree

    begun = time.monotonic()
    news = _FIRST_NEWS
    with ProcessTree(command(child, "run", words), more) as tree:
        while not (place / "module.mlirbc").exists():
            status = tree.status(0.05)
            if status is not None:
                return status
            passed = time.monotonic() - begun
            if passed >= seconds:
                return None
            if passed >= news:
                print(f"running {file}, {passed:.0f} s ...", file=sys.stderr, flush=True)
                news *= 2
    return 0


def _of_status(status: int) -> str:
    import signal

    if status < 0:
        return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status}, and no exception"


def _where(dump: Path, file: str) -> Place:
    """Return the user's innermost line in the stacks written by the child, of the main thread if possible."""
    from shardpass.diagnostics import Place
    from shardpass.ir.frames import is_library

    stacks = dump.read_text(errors="replace").split("\n\n") if dump.exists() else []
    for stack in reversed(stacks):  # the main thread's is the last
        for name, line in _FRAME.findall(stack):
            if os.path.exists(name) and not is_library(name):
                return Place(file if os.path.samefile(name, file) else name, int(line))
    return Place(file)


def _no_program(path: str, answer: dict[str, Any]) -> NoReturn:
    from shardpass.diagnostics import Diagnostic, Place, Severity, ShardpassError
    from shardpass.diagnostics.table_driver import NOT_COMPILED, SCRIPT_FAILED, SCRIPT_TIMEOUT

    function, file = _parts(path)["function"], file_of(path)
    compiled = ", ".join(answer.get("compiled", ())) or "nothing"
    if "diagnostic" in answer:
        error = answer["diagnostic"]
        place = Place(error["file"], error["line"])
        raise ShardpassError(Diagnostic(Severity.ERROR, error["code"], error["message"], place, error["remedy"]))
    if "timeout" in answer:
        raise SCRIPT_TIMEOUT.error(
            answer["place"], function=function, seconds=f"{answer['timeout']:g}", compiled=compiled
        )
    if "reason" in answer:
        place = Place(answer.get("file", file), answer.get("line", 0))
        raise SCRIPT_FAILED.error(place, function=function, reason=answer["reason"], remedy=answer["remedy"])
    raise NOT_COMPILED.error(Place(file), function=function, compiled=compiled)
