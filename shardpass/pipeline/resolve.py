"""From a pipeline's text to passes: named pipelines are spelled out, options typed, names checked.

``partition{effort=0 planner=rink}`` gives each option to every pass of the pipeline that has it.

The result is a list of steps in running order. Each is a pass of ours, ready to run, or a piece of text
for MLIR's own parser (one element, or an anchor with all that is nested in it).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir.passmanager import PassManager

from shardpass.diagnostics import Code, ShardpassError
from shardpass.diagnostics.table_driver import (
    MLIR_OPTION,
    NESTED_PASS,
    NO_PIPELINE,
    OPTION_TYPE,
    UNKNOWN_OPTION,
    UNKNOWN_PASS,
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
        for inner in element.passes():
            _check_nested(inner, element, source)
        return (Step(str(element)),)
    if element.name in NAMED:
        return _named(element, source)
    cls = registry.find(element.name)
    if cls is not None:
        return (Step(element.name, _instance(cls, _said(element, source), source)),)
    _check_mlirs(element, source)
    return (Step(str(element)),)


def _named(element: Element, source: _Source) -> tuple[Step, ...]:
    """A named pipeline: each of its options goes to every pass that has an option of that name."""
    said = _said(element, source)
    inner = [(part, registry.find(part.name)) for part in parse(NAMED[element.name])]
    known = {option.spelling: option for _, cls in inner if cls is not None for option in cls.options()}
    for one in said:
        if _spelling(one) not in known:
            takes = ", ".join(sorted(map(str, known.values()))) or "no options"
            raise source.error(UNKNOWN_OPTION, one.offset, name=element.name, option=one.key, takes=takes)
    steps = []
    for part, cls in inner:
        if cls is None:
            steps.append(Step(str(part)))
            continue
        own = {option.spelling for option in cls.options()}
        steps.append(Step(part.name, _instance(cls, [one for one in said if _spelling(one) in own], source)))
    return tuple(steps)


def _said(element: Element, source: _Source) -> tuple[OptionText, ...]:
    return split_options(element.options or "", source.text, element.options_offset)


def _spelling(said: OptionText) -> str:
    return said.key.replace("_", "-")


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


def _instance(cls: type[ModulePass], options: Sequence[OptionText], source: _Source) -> ModulePass:
    """The pass with ``options``."""
    known = {option.spelling: option for option in cls.options()}
    values: dict[str, OptionValue] = {}
    for said in options:
        option = known.get(_spelling(said))
        if option is None:
            takes = ", ".join(map(str, known.values())) or "no options"
            raise source.error(UNKNOWN_OPTION, said.offset, name=cls.name, option=said.key, takes=takes)
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
