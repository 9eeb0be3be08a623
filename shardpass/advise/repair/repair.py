"""``suggest`` for a function that raises a sharding type error: the edits with which it traces, cheapest first.

Example of the text::

    train.py:9: ShardingTypeError: Contracting dimensions are sharded and it is ambiguous ...
        x @ w
          x: float32[8@data,16@model]
          w: float32[16@model,32]

    1. out_sharding=P('data') of `x @ w`: 1.5 KiB received, 3.0 KiB of memory, 1.2 us
    --- a/train.py
    ...
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax

from shardpass.advise.find.source import shown_path, unified
from shardpass.advise.place.specs import Spec, spec_text
from shardpass.advise.repair.errors import read
from shardpass.advise.repair.search import Argument, Program, Search, Site
from shardpass.advise.repair.specs import spec_of, type_text
from shardpass.advise.repair.trace import running_text
from shardpass.cost.chosen import chosen
from shardpass.diagnostics import Place
from shardpass.diagnostics.printable import joined
from shardpass.diagnostics.table_explicit import NO_EDIT, NOT_COMPILED
from shardpass.diagnostics.table_suggest import LIMIT_TOO_LOW
from shardpass.jax.lowering import lowered
from shardpass.redistribute.terms.limit import read_limit
from shardpass.report.text import show_bytes, show_seconds
from shardpass.runtime.peers import OURS

SHOWN = 3


@dataclass(frozen=True)
class Alternative:
    """Edits with which the program traces.

    Attributes:
        edits: each as a phrase.
        diff: the edits as a unified diff of the user's files; "" where only arguments change.
        arguments: (path, spec before, spec after) of arguments whose sharding the caller has to change.
        bytes: that a device receives in one run; memory: the most alive at once; seconds: modelled, of one run.
    """

    edits: tuple[str, ...]
    diff: str
    arguments: tuple[tuple[str, str, str], ...]
    bytes: int
    memory: int
    seconds: float

    def __str__(self) -> str:
        changed = [f"argument `{path}` as {after} in place of {before}" for path, before, after in self.arguments]
        return "; ".join((*self.edits, *changed))


@dataclass(frozen=True)
class Repairs:
    """The edits that make a function trace.

    Attributes:
        place, error: of the first error, in JAX's words.
        expression, operands: the expression that raised the error, and the types of its operands.
        alternatives: the best edits, cheapest first.
        traces: how often the program was traced.
        programs: how many of these traces reached the end; the alternatives are the cheapest of them.
    """

    place: Place
    error: str
    expression: str
    operands: tuple[tuple[str, str], ...]
    alternatives: tuple[Alternative, ...]
    traces: int
    programs: int

    def __str__(self) -> str:
        rows = [f"{shown_path(self.place.file)}:{self.place.line}: {self.error}"]
        rows += [f"    {line}" for line in self.expression.splitlines()[:1]]
        rows += [f"      {text}: {kind}" for text, kind in self.operands]
        for number, one in enumerate(self.alternatives, 1):
            sizes = f"{show_bytes(one.bytes)} received, {show_bytes(one.memory)} of memory"
            rows += ["", f"{number}. {one}: {sizes}, {show_seconds(one.seconds)}"]
            rows += one.diff.splitlines()
        rows += ["", f"the cheapest of {self.programs} programs with edits that trace, in {self.traces} traces"]
        return joined(iter(rows))

    def json(self) -> str:
        """Return all figures and diffs as JSON text."""
        data = asdict(self)
        data |= {"file": self.place.file, "line": self.place.line, "operands": dict(self.operands)}
        del data["place"]
        for one in data["alternatives"]:
            one["arguments"] = [dict(zip(("path", "before", "after"), row, strict=True)) for row in one["arguments"]]
        return json.dumps(data, indent=2)


def repairs(
    function: Any,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    error: BaseException,
    machine: str,
    memory_limit: int | str | None = None,
    partitioner: str = OURS,
) -> Repairs | None:
    """Return the edits with which ``function`` traces after it raised ``error``; None if the error is not about types.

    ``memory_limit``: as in ``suggest``. Raises ShardpassError: SP840 if no edit helps, SP804 if all need more memory,
    and SP843 for another partitioner.
    """
    clash = read(error)
    if clash is None or not callable(function):
        return None
    place = Place(shown_path(clash.place.file), clash.place.line)
    if partitioner != OURS:
        raise NOT_COMPILED.error(place, error=clash, partitioner=partitioner)
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    leaves, tree = jax.tree_util.tree_flatten_with_path((arguments, dict(keywords)))
    values = [leaf for _, leaf in leaves]

    def lower(changed: Mapping[int, Spec]) -> str:
        new = [_as(value, changed[number]) if number in changed else value for number, value in enumerate(values)]
        positional, named = jax.tree_util.tree_unflatten(tree, new)
        text: str = lowered(jitted, positional, named).as_text(debug_info=True)
        return text

    try:
        names = tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = ()
    described = tuple(_argument(names, path, leaf) for path, leaf in leaves)
    spec_only = not jax.sharding.get_abstract_mesh().empty
    search = Search(lower, described, machine, spec_only)
    search.run(clash)
    site = search.site or Site("the line", ())
    if not search.programs:
        types = ", ".join(f"{text}: {kind}" for text, kind in site.operands) or "not known"
        raise NO_EDIT.error(place, error=clash, expression=" ".join(site.text.split()), types=types, tried=search.tried)
    programs = _within(search.programs, memory_limit, machine, place)
    alternatives = tuple(_alternative(one, described) for one in _best(programs))
    return Repairs(clash.place, str(clash), site.text, site.operands, alternatives, search.traces, len(programs))


def _within(programs: list[Program], memory_limit: int | str | None, machine: str, place: Place) -> list[Program]:
    """Return the programs within the limit. If the limit is the machine's own and none keeps it, return all."""
    limit = chosen(machine).memory_limit if memory_limit is None else read_limit(memory_limit)
    fitting = [one for one in programs if not isinstance(limit, int) or one.figures.memory <= limit]
    if fitting or memory_limit is None or not isinstance(limit, int):
        return fitting or programs
    least = min(one.figures.memory for one in programs)
    raise LIMIT_TOO_LOW.error(place, limit=show_bytes(limit), least=show_bytes(least), bytes=least)


def _best(programs: list[Program]) -> list[Program]:
    """Return the cheapest programs, and at most one that needs other arguments, if it is cheaper."""
    plain = [one for one in programs if not one.state.arguments]
    other = [one for one in programs if one.state.arguments]
    cheaper = [one for one in other if plain and one.price < plain[0].price][:1]
    return [*plain[: SHOWN - len(cheaper)], *cheaper] if plain else other[:1]


def _alternative(one: Program, arguments: Sequence[Argument]) -> Alternative:
    state, figures = one.state, one.figures
    diffs = [unified(path, running_text(path), text) for path, text in state.texts.items()]
    pairs = ((arguments[number], spec) for number, spec in state.arguments.items())
    changed = tuple((given.path, spec_text(given.spec), spec_text(spec)) for given, spec in pairs)
    return Alternative(state.edits, "".join(diffs), changed, figures.bytes, figures.memory, figures.seconds)


# ---------------------------------------------------------------- arguments


def _argument(names: tuple[str, ...], path: Any, leaf: Any) -> Argument:
    place, *rest = path[1:]
    number = getattr(place, "idx", None)
    root = str(getattr(place, "key", "")) if number is None else names[number] if number < len(names) else f"[{number}]"
    text = root + jax.tree_util.keystr(tuple(rest))
    sharding = getattr(leaf, "sharding", None)
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return Argument(text, "", ())
    return Argument(text, type_text(leaf), spec_of(leaf))


def _as(leaf: Any, spec: Spec) -> jax.ShapeDtypeStruct:
    """Return the type of ``leaf`` with another spec."""
    sharding = jax.sharding.NamedSharding(leaf.sharding.mesh, jax.sharding.PartitionSpec(*spec))
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
