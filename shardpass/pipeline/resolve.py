"""Resolves a pipeline's text to passes: expands named pipelines, types options, checks names.

The result is a list of steps in running order. Each is a pass of shardpass, ready to run, or a piece of text
for MLIR's own parser (one element, or an anchor with its nested elements).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir.passmanager import PassManager

from shardpass.diagnostics import Code, ShardpassError
from shardpass.diagnostics.table_driver import (
    MLIR_OPTION,
    NESTED_PASS,
    NO_PIPELINE,
    OPTION_TYPE,
    PIPELINE_SYNTAX,
    UNKNOWN_OPTION,
    UNKNOWN_PASS,
    WHOSE_OPTION,
)
from shardpass.pipeline import registry
from shardpass.pipeline.base import ModulePass, Option, OptionValue, show_value
from shardpass.pipeline.named import NAMED
from shardpass.pipeline.text import Element, OptionText, parse, place_in, split_options

MODULE = "builtin.module"

# MLIR's registry cannot be listed from Python: these are the ones worth suggesting for a slip of the pen
_MLIRS = """
    canonicalize control-flow-sink cse inline loop-invariant-code-motion print-ir sccp strip-debuginfo
    symbol-dce symbol-privatize topological-sort
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pipeline: a shardpass pass, or ``text`` that MLIR's pass manager runs."""

    text: str
    own: ModulePass | None = None

    def __str__(self) -> str:
        return str(self.own or self.text)

    def pass_names(self) -> frozenset[str]:
        """List the names of the passes of the step."""
        if self.own is not None:
            return frozenset((self.own.name,))
        return frozenset(inner.name for element in parse(self.text) for inner in element.passes())


@dataclass(frozen=True, slots=True)
class _Source:
    """The pipeline's text, for the positions in errors, and a context in which to ask MLIR."""

    text: str
    context: Any

    def error(self, code: Code, offset: int, **values: Any) -> ShardpassError:
        place, excerpt = place_in(self.text, offset)
        return code.error(place, excerpt=excerpt, **values)


def resolve(text: str, context: Any) -> tuple[Step, ...]:
    """Resolve the pipeline ``text``: a named pipeline, MLIR's textual form, or a bare list of passes.

    ``context`` is any ``ir.Context``. Raises ShardpassError: SP103 syntax, SP104 and SP105 passes that
    cannot be loaded or are unknown, SP106 to SP108 options, SP109 nesting, SP110 nothing to run.
    """
    source = _Source(text, context)
    elements: list[Element] = []
    for element in parse(text):
        anchored = element.name == MODULE and element.children is not None
        elements += element.children or () if anchored else (element,)
    if not elements:
        raise NO_PIPELINE.error(names=", ".join(NAMED))
    return tuple(step for element in elements for step in _steps(element, source))


def _steps(element: Element, source: _Source) -> tuple[Step, ...]:
    if element.children is not None:
        _check_filled(element, source)
        for inner in element.passes():
            _check_nested(inner, element, source)
        return (Step(str(element)),)
    if element.name in NAMED:
        return _named(element, source)
    cls = registry.find(element.name)
    if cls is not None:
        return (Step(element.name, _instance(cls, element, source)),)
    _check_mlirs(element, source)
    return (Step(str(element)),)


def _named(element: Element, source: _Source) -> tuple[Step, ...]:
    """Expand a named pipeline. Each option is passed to the one pass that has it, or to all that share it."""
    given = split_options(element.options or "", source.text, element.options_offset)
    steps = resolve(NAMED[element.name], source.context)
    if not given:
        return steps
    takers = [(step.own, {o.spelling: o for o in step.own.options()}) for step in steps if step.own is not None]
    for written in given:
        passes = [own.name for own, options in takers if _spelling(written) in options]
        if not passes:
            takes = ", ".join(sorted({str(option) for _, options in takers for option in options.values()}))
            error = {"kind": "pipeline", "name": element.name, "option": written.key, "takes": takes}
            raise source.error(UNKNOWN_OPTION, written.offset, **error)
        if len(passes) > 1 and not all(_spelling(written) in own.shared for own, _ in takers if own.name in passes):
            several = " or ".join(passes)
            raise source.error(WHOSE_OPTION, written.offset, name=element.name, option=written.key, passes=several)
    made = {
        id(own): _with_options(type(own), [written for written in given if _spelling(written) in options], source)
        for own, options in takers
    }
    return tuple(Step(step.text, made.get(id(step.own))) for step in steps)


def _spelling(option: OptionText) -> str:
    return option.key.replace("_", "-")


def _check_filled(anchor: Element, source: _Source) -> None:
    """Raise an error for an anchor without a pass, such as ``func.func()``, which MLIR does not accept."""
    if not anchor.children:
        expected = f"a pass inside {anchor.name}(...)"
        raise source.error(PIPELINE_SYNTAX, anchor.offset, expected=expected, found="nothing")
    for inner in anchor.children:
        if inner.children is not None:
            _check_filled(inner, source)


def _check_nested(inner: Element, anchor: Element, source: _Source) -> None:
    """Raise an error for shardpass passes inside an anchor, as they run on the whole module."""
    if inner.name in NAMED or registry.find(inner.name) is not None:
        raise source.error(NESTED_PASS, inner.offset, name=inner.name, anchor=anchor.name)
    _check_mlirs(inner, source)


def _check_mlirs(element: Element, source: _Source) -> None:
    """Raise an error for a pass that MLIR does not know, or whose options it does not accept."""
    try:
        PassManager("any", source.context).add(str(element))
    except ValueError as error:
        complaint = str(error)
    else:
        return
    if "does not refer to a registered pass" not in complaint:
        reason = " ".join(complaint.split())
        raise source.error(MLIR_OPTION, element.options_offset, name=element.name, reason=reason)
    near = near_names(element.name)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise source.error(UNKNOWN_PASS, element.offset, name=element.name, hint=hint, pipelines=", ".join(NAMED))


def near_names(name: str) -> tuple[str, ...]:
    """Return at most three names of passes and pipelines similar to ``name``, best first."""
    known = [*registry.names(), *NAMED, *_MLIRS.split()]
    near = [k for k in known if k == f"shardpass-{name}"]
    near += [k for k in difflib.get_close_matches(name, known, 3, 0.6) if k not in near]
    return tuple(near[:3])


def _instance(cls: type[ModulePass], element: Element, source: _Source) -> ModulePass:
    """Create the pass with the options of ``element``."""
    return _with_options(cls, split_options(element.options or "", source.text, element.options_offset), source)


def _with_options(cls: type[ModulePass], given: Iterable[OptionText], source: _Source) -> ModulePass:
    known = {option.spelling: option for option in cls.options()}
    values: dict[str, OptionValue] = {}
    for row in given:
        option = known.get(_spelling(row))
        if option is None:
            takes = ", ".join(map(str, known.values())) or "no options"
            raise source.error(UNKNOWN_OPTION, row.offset, kind="pass", name=cls.name, option=row.key, takes=takes)
        try:
            values[option.name] = _read(row, option)
        except ValueError:
            raise source.error(
                OPTION_TYPE,
                row.offset,
                name=cls.name,
                option=option.spelling,
                type=option.type.__name__,
                value="nothing" if row.value is None else repr(row.value),
                default=show_value(option.default),
            ) from None
    make: Any = cls  # its fields are its own
    instance: ModulePass = make(**values)
    return instance


def _read(written: OptionText, option: Option) -> OptionValue:
    """Parse an option's value. A key without a value sets a boolean option to true."""
    if written.value is not None:
        return option.read(written.value)
    if option.type is bool:
        return True
    raise ValueError(written.key)
