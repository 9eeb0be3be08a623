"""A function of a script that raises an error of types: the edits with which the function traces.

The script runs as ``shardpass.jax.script`` runs scripts. Where the error passes the call of the function in the
script, the function and the arguments of that call are known, and the search is made in this process. A mesh that the
script entered (``with jax.set_mesh(mesh)``) is left while the error passes, so the search begins before that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import jax

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_explicit import NO_CALL
from shardpass.edits.source import SourceFile, called, shown_path
from shardpass.explicit.errors import frame_of, read
from shardpass.explicit.repair import repairs
from shardpass.jax.here import machine_here
from shardpass.jax.script import run_script


def run(folder: str, function: str, file: str, machine: str, *arguments: str) -> None:
    """Runs the script ``file`` until JAX compiles ``function``, as ``run_script``, or raises an error of types."""
    jax.config.update("jax_traceback_filtering", "off")  # the calls say their arguments
    answers: dict[int, dict[str, Any]] = {}

    def failed(error: BaseException) -> dict[str, Any]:
        if id(error) not in answers:
            answers[id(error)] = _answer(error, function, machine)
        return answers[id(error)]

    leave = jax.set_mesh.__exit__

    def left(self: Any, kind: Any, error: BaseException | None, trace: Any) -> Any:
        if error is not None:
            failed(error)
        return leave(self, kind, error, trace)

    jax.set_mesh.__exit__ = left
    run_script(folder, function, file, arguments, failed)


def _answer(error: BaseException, function: str, machine: str) -> dict[str, Any]:
    """The edits as text and JSON, or the diagnostic that there are none; nothing of an error of another kind."""
    clash = read(error)
    if clash is None:
        return {}
    try:
        call = _call(error, function)
        if call is None:
            raise NO_CALL.error(clash.place, function=function, error=clash)
        found = repairs(*call, error, machine or machine_here())
    except ShardpassError as told:
        first = told.diagnostics[0]
        place = {"file": shown_path(first.place.file), "line": first.place.line}
        return {"diagnostic": {"code": first.code, "message": first.message, "remedy": first.remedy, **place}}
    return {"repairs": {"text": str(found), "json": found.json()}} if found is not None else {}


def _call(error: BaseException, function: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """The jitted function of that name on the way to ``error``, with the arguments of the call."""
    name = function.rpartition(".")[2]
    traces = list(_every(error.__traceback__))
    for trace, inner in pairwise(traces):
        target = _called(trace, name)
        if hasattr(target, "lower"):
            arguments = _arguments(inner.tb_frame)
            if arguments is not None:
                positional, keywords = arguments
                if positional and positional[0] is target:  # of a class whose objects are called
                    positional = positional[1:]
                return target, positional, keywords
    return None


def _called(trace: TracebackType, name: str) -> Any:
    """What the call at ``trace`` calls, by a name that ends so; None for any other expression."""
    path = trace.tb_frame.f_code.co_filename
    try:
        node = SourceFile(path, Path(path).read_text()).expression_at(frame_of(trace))
    except (OSError, SyntaxError, ValueError):
        return None
    if not isinstance(node, ast.Call) or called(node).rpartition(".")[2] != name:
        return None
    code = compile(ast.Expression(node.func), path, "eval")  # a name with its attributes
    try:
        return eval(code, trace.tb_frame.f_globals, trace.tb_frame.f_locals)
    except Exception:  # of the object's own
        return None


def _arguments(frame: FrameType) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Those with which ``frame`` was called, of a function that hands them on as they are."""
    code, values = frame.f_code, frame.f_locals
    names, count = code.co_varnames, code.co_argcount
    if not code.co_flags & 0x04 or not code.co_flags & 0x08:  # *args, **kwargs
        return None
    rest, keywords = (
        values.get(names[count + code.co_kwonlyargcount]),
        values.get(names[count + code.co_kwonlyargcount + 1]),
    )
    if not isinstance(rest, tuple) or not isinstance(keywords, dict):
        return None
    return (*(values[one] for one in names[:count]), *rest), dict(keywords)


def _every(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
