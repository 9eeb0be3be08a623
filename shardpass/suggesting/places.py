"""The places that a user can annotate: arguments by their paths, results, and lines of the program.

JAX writes an argument's path into its location (``p['layers'][0]['w1']``) and a result's into an attribute. Arguments
whose paths differ in indices of lists alone, of one type, are one place: ``p['layers'][*]['w1']``, as users annotate
all layers alike. A line is a place where all that it computes for other lines has one type; what a derivative computes
stands at the same lines and is left out, as JAX constrains a cotangent as its value.

A search over a folded program (``fold``) decides the arguments that share a representative together, so the places that
share a representative are one ``Group``.

Complexity: O(arguments + ops).
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardpass.diagnostics import NOWHERE, Place
from shardpass.ir.annotations import text
from shardpass.ir.argument_names import argument_names
from shardpass.ir.context import UNNAMED
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import operation
from shardpass.planning.fold import Folded
from shardpass.planning.problem import Problem
from shardpass.program.program import Array, OpKind, Program
from shardpass.program.read import Handles

ARGUMENT, RESULT, LINE = "argument", "result", "line"

_INDEX = re.compile(r"\[\d+\]")
_ROOT = re.compile(r"^[^\[.]*")
_LONGEST = 60  # characters of an expression that is shown
_MOST_PATHS = 4  # paths that are listed where no pattern holds


@dataclass(frozen=True)
class Group:
    """Values that one annotation names.

    Attributes:
        kind: ARGUMENT, RESULT or LINE.
        values: of the whole program; of results, their positions.
        names: of each value, its path, with ``[*]`` for indices that do not matter; of a line, the expression.
        place: of a line.
        array: the type of each of the values.
    """

    kind: str
    values: tuple[int, ...]
    names: tuple[str, ...]
    array: Array
    place: Place = NOWHERE

    @property
    def paths(self) -> tuple[str, ...]:
        """The distinct names of the group's arrays."""
        return tuple(dict.fromkeys(self.names))

    @property
    def bytes(self) -> int:
        """Bytes of all arrays of the group, as whole arrays."""
        return self.array.bytes * len(self.values)


def arguments(
    program: Program, handles: Handles, folded: Folded, states: Mapping[int, int] | None = None
) -> list[Group]:
    """Groups the arguments without annotations.

    ``states``: the place of the result that updates an argument. Arguments whose results share a representative are in
    one group.
    """
    free = [v for v in program.body.arguments if (a := program.arrays[v]) is not None and a.rank]
    free = [v for v in free if v not in program.annotations]
    values = program.body.arguments
    names = argument_names([str(handles.values[v].location) for v in values])
    named = {v: names[place] or f"argument {place}" for place, v in enumerate(values)}
    keys = {v: ((_pattern(named[v]), program.array(v)), folded.of[v]) for v in free}
    first: dict[int, int] = {}
    for value, place in (states or {}).items():
        if value in keys:
            keys[value] = keys[value][0], folded.of[first.setdefault(folded.results[place], value)]
    return [
        Group(ARGUMENT, tuple(values), _names(values, named), program.array(values[0]))
        for values in _joined(free, keys)
    ]


def results(program: Program, handles: Handles, folded: Folded) -> list[Group]:
    """Groups the results without annotations; the groups' ``values`` are positions of results."""
    free = [
        place
        for place, (value, row) in enumerate(zip(program.body.returned, program.result_annotations, strict=True))
        if row.sharding is None and (a := program.arrays[value]) is not None and a.rank
    ]
    rows = handles.signature.results
    named = {place: _result_name(rows[place], place) for place in range(len(rows))}
    keys = {
        place: ((_pattern(named[place], 1), program.array(program.body.returned[place])), folded.results[place])
        for place in free
    }
    return [
        Group(RESULT, tuple(places), _names(places, named, 1), program.array(program.body.returned[places[0]]))
        for places in _joined(free, keys)
    ]


def lines(program: Program, handles: Handles) -> list[Group]:
    """Groups values by lines: each line that computes values of a single type for other lines is a group."""
    at: dict[int, Place] = {}
    forward: dict[int, bool] = {}
    for op in program.body.ops:
        location = str(operation(handles.ops[op.number]).location)
        place = place_of(handles.ops[op.number].location)
        at[op.number] = Place(place.file, place.line)
        forward[op.number] = "transpose(" not in location
    escaping: dict[Place, dict[int, None]] = {}
    makers = {value: op for op in program.body.ops for value in op.results}
    for op in program.body.ops:
        for value in op.operands:
            maker = makers.get(value)
            if maker is None or at[maker.number] == at[op.number] or not forward[maker.number]:
                continue
            if maker.kind is OpKind.SPLIT and maker.operands and forward[op.number]:
                escaping.setdefault(at[maker.number], {})[value] = None
    result = []
    for place, values in escaping.items():
        if place.file == UNNAMED:
            continue
        types = {program.arrays[value] for value in values}
        array = next(iter(types))
        if (
            place.line
            and len(types) == 1
            and array is not None
            and array.rank
            and not set(values) & set(program.annotations)
        ):
            result.append(Group(LINE, tuple(values), (_expression(place),) * len(values), array, place))
    return result


def states(program: Program, handles: Handles) -> Iterator[tuple[int, int]]:
    """Yields the arguments that a step updates, each with the place of its result: ``params`` and the new ``params``.

    These are donated arguments, and those whose type and keys are a result's: ``p['w']`` and ``result[1]['w']``, in
    their order. Pairs of which the user annotated either are left out.
    """
    values, body = program.body.arguments, program.body
    donated = {result: values[place] for place, result in program.donated}
    names = argument_names([str(handles.values[value].location) for value in values])
    left = {value: _keys(name) for value, name in zip(values, names, strict=True) if value not in donated.values()}
    for place, (returned, annotation) in enumerate(zip(body.returned, program.result_annotations, strict=True)):
        array, keys = program.arrays[returned], _keys(_result_name(handles.signature.results[place], place))
        value = donated.get(place)
        if value is None:
            alike = (v for v, own in left.items() if own and keys.endswith(own) and program.arrays[v] == array)
            value = next(alike, None)
        if value is None:
            continue
        left.pop(value, None)
        if value not in program.annotations and annotation.sharding is None and program.arrays[value] == array:
            yield value, place


def _keys(name: str) -> str:
    """Returns a path without its root: ``['w']`` for ``p['w']``."""
    return _ROOT.sub("", name, count=1)


# ---------------------------------------------------------------- names


def _result_name(row: Mapping[str, object], place: int) -> str:
    info = row.get("jax.result_info")
    return (text(info) if info is not None else "") or f"result {place}"


def _joined(free: Sequence[int], keys: Mapping[int, tuple[object, int]]) -> list[list[int]]:
    """Partitions ``free`` so that values that share a pattern or a representative are in one group."""
    root: dict[object, object] = {}

    def find(key: object) -> object:
        while root.setdefault(key, key) != key:
            key = root[key]
        return key

    for pattern, representative in keys.values():
        root[find(("of", representative))] = find(pattern)
    groups: dict[object, list[int]] = {}
    for value in free:
        groups.setdefault(find(keys[value][0]), []).append(value)
    return list(groups.values())


def _pattern(name: str, kept: int = 0) -> str:
    """Replaces the indices in a path by ``[*]``, except the first ``kept``, which select from a returned tuple."""
    first = [match[0] for match in itertools.islice(_INDEX.finditer(name), kept)]
    pattern = _INDEX.sub("[*]", name)
    for index in first:
        pattern = pattern.replace("[*]", index, 1)
    return pattern


def _names(values: Sequence[int], named: Mapping[int, str], kept: int = 0) -> tuple[str, ...]:
    """Returns the pattern of each value (``kept``: see ``_pattern``), or its path if the pattern also fits
    other values.
    """
    chosen = set(values)
    every: dict[str, list[int]] = {}
    for value, name in named.items():
        every.setdefault(_pattern(name, kept), []).append(value)
    out = []
    for value in values:
        pattern = _pattern(named[value], kept)
        whole = len(every[pattern]) > 1 and chosen.issuperset(every[pattern])
        out.append(pattern if whole else named[value])
    return tuple(out)


def listed(paths: Sequence[str]) -> str:
    """Lists the first few paths, and the number of the others."""
    more = len(paths) - _MOST_PATHS
    return ", ".join(paths[:_MOST_PATHS]) + (f" and {more} more" if more > 0 else "")


def _expression(place: Place) -> str:
    """Names the value that a line computes: the variable that the line sets, or else its expression."""
    text = linecache.getline(place.file, place.line).strip()
    for statement in _parsed(text):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            return statement.targets[0].id
        value = getattr(statement, "value", None)
        if isinstance(value, ast.expr) and len(shown := ast.unparse(value)) <= _LONGEST:
            return shown
    return "..."


def _parsed(text: str) -> Iterator[ast.stmt]:
    try:
        yield from ast.parse(text).body
    except (SyntaxError, ValueError):  # a part of a statement, or no Python
        return


def slots(problem: Problem, group: Group) -> list[int]:
    """Returns the values of the engine that ``group`` names."""
    folded, searched = problem.task.folded, problem.propagated
    if group.kind == RESULT:
        indices = [searched.results[folded.results[place]] for place in group.values]
    else:
        indices = [searched.index.get(folded.of[value]) for value in group.values]
    return list(dict.fromkeys(index for index in indices if index is not None))
