"""From a pipeline's text to passes: named pipelines are spelled out, options typed, names checked.

The result is a list of steps in running order. Each is a pass of ours, ready to run, or a piece of text
for MLIR's own parser (one element, or an anchor with all that is nested in it).
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
_MLIRS = (
    "canonicalize",
    "control-flow-sink",
    "cse",
    "inline",
    "loop-invariant-code-motion",
    "print-ir",
    "sccp",
    "strip-debuginfo",
    "symbol-dce",
    "symbol-privatize",
    "topological-sort",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pipeline: a pass of ours, or ``text`` for MLIR."""

    text: str
    own: ModulePass | None = None

    def __str__(self) -> str:
        return str(self.own or self.text)

    def pass_names(self) -> frozenset[str]:
        """The passes in it: one, or those of an anchor."""
        if self.own is not None:
            return frozenset((self.own.name,))
        return frozenset(inner.name for element in parse(self.text) for inner in element.passes())


@dataclass(frozen=True, slots=True)
class _Source:
    """The pipeline's text, for errors that point into it, and a context in which to ask MLIR."""

    text: str
    context: Any

    def error(self, code: Code, offset: int, **values: Any) -> ShardpassError:
        place, excerpt = place_in(self.text, offset)
        return code.error(place, excerpt=excerpt, **values)


def resolve(text: str, context: Any) -> tuple[Step, ...]:
    """The steps of the pipeline ``text``: a named pipeline, MLIR's textual form, or a bare list of passes.

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
    """The passes of a named pipeline. Each option goes to the one pass that has it, or to all that share it."""
    given = split_options(element.options or "", source.text, element.options_offset)
    steps = resolve(NAMED[element.name], source.context)
    if not given:
        return steps
    takers = [(step.own, {o.spelling: o for o in step.own.options()}) for step in steps if step.own is not None]
    for said in given:
        passes = [own.name for own, options in takers if _spelling(said) in options]
        if not passes:
            takes = ", ".join(sorted({str(option) for _, options in takers for option in options.values()}))
            error = {"kind": "pipeline", "name": element.name, "option": said.key, "takes": takes}
            raise source.error(UNKNOWN_OPTION, said.offset, **error)
        if len(passes) > 1 and not all(_spelling(said) in own.shared for own, _ in takers if own.name in passes):
            several = " or ".join(passes)
            raise source.error(WHOSE_OPTION, said.offset, name=element.name, option=said.key, passes=several)
    made = {
        id(own): _with_options(type(own), [said for said in given if _spelling(said) in options], source)
        for own, options in takers
    }
    return tuple(Step(step.text, made.get(id(step.own))) for step in steps)


def _spelling(said: OptionText) -> str:
    return said.key.replace("_", "-")


def _check_filled(anchor: Element, source: _Source) -> None:
    """MLIR takes no anchor without a pass, such as ``func.func()``."""
    if not anchor.children:
        expected = f"a pass inside {anchor.name}(...)"
        raise source.error(PIPELINE_SYNTAX, anchor.offset, expected=expected, found="nothing")
    for inner in anchor.children:
        if inner.children is not None:
            _check_filled(inner, source)


def _check_nested(inner: Element, anchor: Element, source: _Source) -> None:
    """Everything nested in an anchor must be MLIR's: ours run on the whole module."""
    if inner.name in NAMED or registry.find(inner.name) is not None:
        raise source.error(NESTED_PASS, inner.offset, name=inner.name, anchor=anchor.name)
    _check_mlirs(inner, source)


def _check_mlirs(element: Element, source: _Source) -> None:
    """Asks MLIR whether it knows the pass and takes its options."""
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
    """Names of passes and pipelines that look like ``name``, best first, three at most."""
    known = [*registry.names(), *NAMED, *_MLIRS]
    near = [k for k in known if k == f"shardpass-{name}"]
    near += [k for k in difflib.get_close_matches(name, known, 3, 0.6) if k not in near]
    return tuple(near[:3])


def _instance(cls: type[ModulePass], element: Element, source: _Source) -> ModulePass:
    """The pass with the options that ``element`` gives."""
    return _with_options(cls, split_options(element.options or "", source.text, element.options_offset), source)


def _with_options(cls: type[ModulePass], given: Iterable[OptionText], source: _Source) -> ModulePass:
    known = {option.spelling: option for option in cls.options()}
    values: dict[str, OptionValue] = {}
    for said in given:
        option = known.get(_spelling(said))
        if option is None:
            takes = ", ".join(map(str, known.values())) or "no options"
            raise source.error(UNKNOWN_OPTION, said.offset, kind="pass", name=cls.name, option=said.key, takes=takes)
        try:
            values[option.name] = _read(said, option)
        except ValueError:
            raise source.error(
                OPTION_TYPE,
                said.offset,
                name=cls.name,
                option=option.spelling,
                type=option.type.__name__,
                value="nothing" if said.value is None else repr(said.value),
                default=show_value(option.default),
            ) from None
    make: Any = cls  # its fields are its own
    instance: ModulePass = make(**values)
    return instance


def _read(said: OptionText, option: Option) -> OptionValue:
    """A bare key switches a boolean on; any other option needs a value."""
    if said.value is not None:
        return option.read(said.value)
    if option.type is bool:
        return True
    raise ValueError(said.key)
