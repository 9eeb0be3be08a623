"""A function of a script with explicit axes: the edits with which it traces, or findings about reshards in it.

The script runs as ``shardpass.jax.script`` runs scripts. Where the error passes the call of the function in the
script, the function and the arguments of that call are known, and the search is made in this process. A mesh that the
script entered (``with jax.set_mesh(mesh)``) is left while the error passes, so the search begins before that.

Of a function without errors the arguments are at hand where JAX is about to compile it: the findings are made there.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import jax

from shardpass.advise.find.source import SourceFile, called, shown_path
from shardpass.advise.repair.door import findings
from shardpass.advise.repair.errors import frame_of, links_of, read
from shardpass.advise.repair.repair import repairs
from shardpass.advise.repair.trace import Retracer
from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_explicit import NO_CALL
from shardpass.ir import jax_private
from shardpass.ir.context import parse_module
from shardpass.ir.machines import set_module_machine
from shardpass.ir.whole_file import write_whole
from shardpass.jax.here import machine_here
from shardpass.jax.script import run_script
from shardpass.report.build import explain_module
from shardpass.report.report import Report
from shardpass.report.text import findings_text

FINDINGS = "findings.txt"  # the file of the findings' text


def run(
    folder: str,
    ends: str,
    function: str,
    target: str,
    machine: str,
    wanted: str,
    limit: str,
    partitioner: str,
    *arguments: str,
) -> None:
    """Run the script ``target`` until JAX compiles ``function``, as ``run_script``, or raise a sharding type error.

    ``machine`` and ``limit`` (of memory): "" for the default. ``wanted``: "findings" for those of a function that
    compiles. ``partitioner``: any but shardpass raises SP843.
    """
    jax.config.update("jax_traceback_filtering", "off")  # the calls say their arguments
    answers: dict[int, dict[str, Any]] = {}

    def failed(error: BaseException) -> dict[str, Any]:
        if id(error) not in answers:
            answers[id(error)] = _answer(error, function, machine, limit or None, partitioner)
        return answers[id(error)]

    leave = jax.set_mesh.__exit__

    def left(self: Any, kind: Any, error: BaseException | None, trace: Any) -> Any:
        if error is not None:
            failed(error)
        return leave(self, kind, error, trace)

    def look() -> None:
        if wanted and (text := _findings(function, machine)):
            write_whole(Path(folder, FINDINGS), text)

    jax.set_mesh.__exit__ = left
    run_script(folder, ends, function, target, arguments, failed, look)


def _findings(function: str, machine: str) -> str:
    """Return the findings about reshards of the call that JAX is about to compile, as text; "" if there are none."""
    call = jax_private.call_being_compiled()
    if call is None:
        return ""
    retracer = Retracer(*call)

    def explained(text: str) -> Report:
        module: Any = parse_module(text)
        if machine:
            set_module_machine(module, machine)
        return explain_module(module, function)

    report = explained(retracer.lower(retracer.trace({})))
    made = findings(report, retracer, explained)
    return "" if made is None else findings_text(report, made)


def _answer(error: BaseException, function: str, machine: str, limit: str | None, partitioner: str) -> dict[str, Any]:
    """Return the edits as text and JSON, or the diagnostic that there are none; empty for an error of another kind."""
    clash = read(error)
    if clash is None:
        return {}
    try:
        call = _call(error, function)
        if call is None:
            raise NO_CALL.error(clash.place, function=function, error=clash)
        edits = repairs(*call, error, machine or machine_here(), limit, partitioner)
    except ShardpassError as raised:
        first = raised.diagnostics[0]
        place = {"file": shown_path(first.place.file), "line": first.place.line}
        return {"diagnostic": {"code": first.code, "message": first.message, "remedy": first.remedy, **place}}
    return {"repairs": {"text": str(edits), "json": edits.json()}} if edits is not None else {}


def _call(error: BaseException, function: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """Return the jitted function named ``function`` on the way to ``error``, with the arguments of its call."""
    name = function.rpartition(".")[2]
    for trace, inner in pairwise(links_of(error.__traceback__)):
        target = _called(trace, name)
        arguments = _arguments(inner.tb_frame) if hasattr(target, "lower") else None
        if arguments is not None:
            positional, keywords = arguments
            of_class = bool(positional) and positional[0] is target  # whose objects are called
            return target, positional[of_class:], keywords
    return None


def _called(trace: TracebackType, name: str) -> Any:
    """Return the object that the call at ``trace`` calls under ``name``; None for any other expression."""
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
    """Return the arguments with which ``frame`` was called, if its function passes them on unchanged."""
    names, *others, values = inspect.getargvalues(frame)
    rest, keywords = (values.get(name or "") for name in others)
    if not isinstance(rest, tuple) or not isinstance(keywords, dict):
        return None  # it has no *args or no **kwargs
    return (*(values[one] for one in names[: frame.f_code.co_argcount]), *rest), dict(keywords)
