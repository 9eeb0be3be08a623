"""``collectives`` and ``assert_collectives``: from a function to its collectives, each program compiled once.

A program is identified by a digest of its lowered module, the partitioner, the target and the versions of jax,
jaxlib and shardpass. The collectives of a known program come from ``store.STORE``. The lowered module contains
source lines, so an edit that moves a line makes a new program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from shardpass.advise.suggest.explain import explain
from shardpass.advise.suggest.take import UNSPECIFIED, jitted, partitioner_of, take
from shardpass.ir.context import UNNAMED
from shardpass.ir.frames import is_library
from shardpass.report.collectives import Collectives, collectives_of
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Findings
from shardpass.report.hlo.programs import is_compiled
from shardpass.testing.annotations import annotations_of
from shardpass.testing.expectation import CollectivesError, read_expectation, violations
from shardpass.testing.store import STORE

Key = str | tuple[str, str | tuple[str, ...]]

MOST_EDITS = 2
_ALIAS = re.compile(r"^(#loc\d*) = (.*)$\n?", re.MULTILINE)
_NUMBER = re.compile(r"#loc\d*")
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":\d+')


def collectives(
    f: Any,
    *args: Any,
    partitioner: str = "xla",
    target: str | None = None,
    mesh: Any = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    **kwargs: Any,
) -> Collectives:
    """Return the collectives of the partitioned program of ``f(*args, **kwargs)``. Nothing runs.

    Counts, bytes and kinds are normalized: programs of different backends and versions of XLA compare equal if their
    devices exchange the same arrays. See ``shardpass.report.collectives``.

    Args:
        f: a function; the result of ``jax.jit``, ``lower`` or ``compile``; a module, or a path, as in
            ``shardpass.explain``.
        args, kwargs: the arguments of ``f``: arrays or ``jax.ShapeDtypeStruct``.
        partitioner: "xla", which is what ``jax.jit`` runs; "shardpass"; or "shardy".
        target: the accelerator whose compiler compiles the program: "v5e:4x4" or "h100:8". By default XLA compiles for
            CPUs.
        mesh, in_shardings, out_shardings: as in ``shardpass.explain``, for a function that is not jitted.

    Raises:
        ShardpassError: as ``shardpass.explain``.
    """
    program, options = _program(f, partitioner, target, mesh, in_shardings, out_shardings)
    if is_compiled(program):
        return collectives_of(explain(program, **options))
    given = take(program, args, kwargs)
    key = _digest(given.data, given.file, options)
    known = STORE.get(key)
    if known is None:
        explanation = explain(given.data if given.file == UNNAMED else given.file, **options)
        known = replace(collectives_of(explanation), annotations=annotations_of(given.data, given.file))
        STORE.put(key, known)
    return known


def assert_collectives(
    f: Any,
    *args: Any,
    expect: Mapping[Key, int] | None = None,
    never: Iterable[Key] = (),
    at_most: int | str | None = None,
    memory_at_most: int | str | None = None,
    only_at: Iterable[str] | None = None,
    findings: bool = False,
    partitioner: str = "xla",
    target: str | None = None,
    mesh: Any = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    **kwargs: Any,
) -> Collectives:
    """Assert which collectives the partitioned program of ``f(*args, **kwargs)`` has, and return them.

    Args:
        expect: the number of arrays that collectives of a kind move over some axes: {("reduce_scatter", ("data",)): 1},
            or {"all_to_all": 2} for any axes. A loop with 8 iterations counts 8 times. Other collectives are allowed.
        never: collectives that must not occur: [("all_gather", ("model",))], also over these axes together with others.
        at_most: the bytes that one device may receive in one run: 1048576, or "64MiB".
        memory_at_most: the memory that one device may need, as the compiler reports it.
        only_at: the places where collectives are allowed: ["model.py:attention", "train.py:41", "optimizer.py"].
        findings: on failure, look for edits that reduce cost, which compiles the program several times.
        f, args, kwargs, partitioner, target, mesh, in_shardings, out_shardings: as in ``collectives``.

    Raises:
        CollectivesError: an AssertionError whose text is a table: expected, got, and the collectives with line, bytes,
            array and cause.
        ShardpassError: as ``collectives``; SP140 for an expectation of another form.
    """
    __tracebackhide__ = True  # pytest shows the test and the table
    expectation = read_expectation(expect, never, at_most, memory_at_most, only_at)
    more = {"mesh": mesh, "in_shardings": in_shardings, "out_shardings": out_shardings}
    program = collectives(f, *args, partitioner=partitioner, target=target, **more, **kwargs)
    broken = violations(program, expectation)
    if broken:
        note = _edits(f, args, kwargs, {"partitioner": partitioner, "target": target, **more}) if findings else ""
        raise CollectivesError(program, broken, note)
    return program


def _program(
    f: Any, partitioner: Any, target: str | None, mesh: Any, in_shardings: Any, out_shardings: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the result of ``take``, and the options of ``explain``."""
    options: dict[str, Any] = {"partitioner": partitioner_of("collectives", partitioner), "mesh": mesh}
    if target is not None:
        options["target"] = target
    return jitted(f, mesh, in_shardings=in_shardings, out_shardings=out_shardings), options


def _digest(data: str | bytes, file: str, options: Mapping[str, Any]) -> str:
    """Return the key of a program in the store."""
    versions = [version(name) for name in ("jax", "jaxlib", "shardpass")]
    asked = {name: str(value) for name, value in sorted(options.items())}
    machine = os.environ.get("SHARDPASS_MACHINE", "")
    program = _without_callers(data) if isinstance(data, str) else data
    return sha256(repr((versions, asked, file, machine, program)).encode()).hexdigest()


def _without_callers(text: str) -> str:
    """Return MLIR text whose locations contain only names and the user's innermost line.

    JAX writes the frames of all callers into locations, those of the test runner too, which differ between sessions.
    """
    aliases = dict(_ALIAS.findall(text))
    known: dict[str, str] = {}

    def innermost(alias: str) -> str:
        if alias not in known:
            known[alias] = ""  # an alias that refers to itself has no line
            given = aliases.get(alias, "")
            file = _FILE.search(given)
            if file:
                known[alias] = "" if is_library(file[1]) else given
            else:
                inner, *callers = _NUMBER.findall(given) or [""]
                names = "" if callers else _NUMBER.sub("", given)
                known[alias] = names + (innermost(inner) or next(filter(None, map(innermost, callers)), ""))
        return known[alias]

    return _NUMBER.sub(lambda match: innermost(match[0]), _ALIAS.sub("", text))


def _edits(f: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return the edits that save most, as text."""
    more = {name: value for name, value in asked.items() if value is not UNSPECIFIED and value is not None}
    explanation: Explanation = explain(f, *args, **more, **kwargs)
    edits: Findings | None = explanation.findings
    shown = [f"{one.sentence}\n{one.diff or '; '.join(one.code)}" for one in list(edits or ())[:MOST_EDITS]]
    return "\n".join(shown) or "no edit was found that saves"
