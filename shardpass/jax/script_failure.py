"""Describe the error that ended a user's script: the line, the reason, the remedy, and missing devices."""

from __future__ import annotations

import linecache
import math
import os
import re
import sys
import traceback
from typing import Any

import jax

from shardpass.ir.frames import is_library

MOST_DEVICES = 4096  # each virtual device takes threads of XLA's
_SET_BY = ("JAX_NUM_CPU_DEVICES", "xla_force_host_platform_device_count")

# what errors say of a number of devices: the shape of a mesh, of an array of devices, or the number
_SHAPE = re.compile(
    r"Number of devices \d+ must .*product of mesh_shape \(([\d, ]+)\)|cannot reshape array of size \d+ into shape "
    r"\(([\d, ]+)\)"
)
_NUMBER = re.compile(r"\b(\d+) (?:\w+ )?devices\b")
# what a line of the script says
_COMPARED = re.compile(r"device_count\(\)\s*[=!<>]=?\s*(\d+)|devices\(\)\)\s*[=!<>]=?\s*(\d+)")
_ABOUT_DEVICES = re.compile(r"\bmake_mesh|device_mesh|devices\(\)|device_count\(\)")
_INDEXED = re.compile(r"devices\(\)\[(\d+)\]")


def explained(error: BaseException, function: str, target: str) -> dict[str, Any]:
    """Return "file" and "line" of the user's innermost frame, "reason" and "remedy" of the error, and "devices" if
    the script needs more devices than it has and virtual ones can be added.
    """
    file, line = _place(error)
    reason = _reason(error)
    answer = {"file": file, "line": line} if file else {}
    asked = _devices_asked(reason, linecache.getline(file, line))
    if asked and not _set():
        return {**answer, "reason": reason, "remedy": f"set JAX_NUM_CPU_DEVICES={asked}", "devices": asked}
    return {**answer, "reason": reason, "remedy": _remedy(error, asked, function, target)}


def _place(error: BaseException) -> tuple[str, int]:
    """Return the innermost line of the user's files that ``error`` passed; ("", 0) if none."""
    if isinstance(error, SyntaxError) and error.filename:
        return _shown(error.filename), error.lineno or 0
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not is_library(frame.filename) and not frame.filename.startswith("<"):
            return _shown(frame.filename), frame.lineno or 0
    return "", 0


def _shown(file: str) -> str:
    """Return ``file`` relative to the working directory, if ``file`` is below it."""
    try:
        relative = os.path.relpath(file)
    except OSError:  # the script removed its working directory
        return file
    return file if relative.startswith(os.pardir) else relative


def _reason(error: BaseException) -> str:
    """Return the type and text of ``error``, without the notes that JAX adds."""
    if isinstance(error, SystemExit):
        return f"the script left with {error.code}"
    shown = traceback.TracebackException(type(error), error, None)
    shown.__notes__ = []
    return list(shown.format_exception_only())[-1].strip()


def _devices_asked(reason: str, line: str) -> int:
    """Return the number of devices that an error, or its line, needs; 0 if there are enough devices."""
    backends = jax.devices()
    if backends[0].platform != "cpu":
        return 0
    asked = [math.prod(map(int, re.findall(r"\d+", "".join(filter(None, one))))) for one in _SHAPE.findall(reason)]
    asked += [int(number) for number in _NUMBER.findall(reason)]
    if "AssertionError" in reason or not asked:
        asked += [int("".join(one)) for one in _COMPARED.findall(line)]
        asked += [int(one) + 1 for one in _INDEXED.findall(line)]
    return max((one for one in asked if len(backends) < one <= MOST_DEVICES), default=0)


def _is_about_devices(error: BaseException) -> bool:
    """Return whether ``error`` was raised by a function that creates meshes, or by a line of the script about
    devices.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return any(
        _ABOUT_DEVICES.search(frame.name if is_library(frame.filename) else frame.line or "") for frame in frames[1:]
    )


def _set() -> bool:
    """Return whether the user sets the number of devices."""
    return _SET_BY[0] in os.environ or _SET_BY[1] in os.environ.get("XLA_FLAGS", "")


def _remedy(error: BaseException, asked: int, function: str, target: str) -> str:
    if asked:
        variable = _SET_BY[0] if _SET_BY[0] in os.environ else "XLA_FLAGS"
        return (
            f"set JAX_NUM_CPU_DEVICES={asked}, or leave {variable} out: the script then gets the virtual devices that "
            "it asks for"
        )
    if len(jax.devices()) == 1 and not _set() and _is_about_devices(error):
        return (
            "the script has one CPU device here: set JAX_NUM_CPU_DEVICES=8, or name devices to compile for, as in "
            "--target h100:8; a machine alone says no number"
        )
    if type(error).__name__ == "ShardingTypeError":
        return f"`shardpass suggest {target}:{function}` prints edits with which JAX traces it"
    if isinstance(error, SystemExit):
        return f"arguments of the script stand behind the function, in quotes: '{target}:{function} --batch 8'"
    if isinstance(error, ModuleNotFoundError):
        return f"install {error.name} for {sys.executable}, which runs the script, or start in the folder that has it"
    if isinstance(error, EOFError):
        return "the script reads its standard input: pipe in what it asks for, or give it an argument"
    if isinstance(error, SyntaxError):
        return "correct this line"
    if isinstance(error, OSError):
        return "the script runs in the working directory of this command: start it where the script finds its files"
    return f"the script itself fails: `python {target}` shows the same; SHARDPASS_TRACEBACK=1 prints the calls"
