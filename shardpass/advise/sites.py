"""The sites of a program, places where an annotation is or could be: arguments, results, constraints, values at lines.

Arguments whose paths differ in indices of lists alone, of one type and one annotation, are one site, as users annotate
all layers alike; so are the constraints of one line, and the values that one expression stands for.

Ops of the user's module keep a number (``ORIGIN``) while a copy of it is imported, so that a site of the imported
program is known in the module that another partitioner is given.

Complexity: O(ops + arguments).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Place, collect
from shardpass.ir.annotations import CONSTRAINT as SHARDING_TARGET
from shardpass.ir.annotations import custom_call_target, text
from shardpass.ir.context import parse_module
from shardpass.ir.frames import NO_FRAME, Frame, user_frame
from shardpass.ir.tensors import operation, shape_of
from shardpass.ir.walk import every_op
from shardpass.pipeline.run import run_in_place
from shardpass.program.program import NO_ANNOTATION, Array, Op, OpKind, Program, ValueAnnotation
from shardpass.program.read import Handles, read_program
from shardpass.report.naming import GRADIENT, Names, Sources

ARGUMENT, RESULT, CONSTRAINT, VALUE = "argument", "result", "constraint", "value"
ORIGIN = "shardpass.origin"

_INDEX = re.compile(r"(?<!^result)\[\d+\]")  # that of a result in the tuple of results stays
_CONSTRAINTS = frozenset({"sdy.sharding_constraint"})

Spec = tuple[tuple[str, ...], ...]  # the axes that split each dimension


@dataclass(frozen=True)
class Site:
    """Values that share one annotation.

    Attributes:
        kind: ARGUMENT, RESULT, CONSTRAINT or VALUE.
        names: the paths of arguments or results; of a constraint or a value, the array's name in the user's text.
        array: the type of each of the values.
        spec: the annotation; None without an annotation.
        frame: of a constraint or a value, the user's line.
        positions: of arguments or results, their places in main's signature.
        values: their numbers in the imported program.
        origins: of a constraint its ops; of a value the ops that make it, each with the place of its result.
    """

    kind: str
    names: tuple[str, ...]
    array: Array
    spec: Spec | None
    frame: Frame = NO_FRAME
    positions: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    origins: tuple[tuple[int, int], ...] = ()

    @property
    def place(self) -> Place:
        return self.frame.place

    @property
    def pattern(self) -> str:
        """The site's name, with ``[*]`` for indices that differ between its values."""
        return self.names[0] if len(self.names) == 1 else _INDEX.sub("[*]", self.names[0])


@dataclass(frozen=True)
class Reading:
    """An imported program, and where its ops come from.

    Attributes:
        origin: by the op's number, that in the user's module.
        constraints: the ops of the user's module that are constraints, by their line and shape.
    """

    module: Any
    program: Program
    handles: Handles
    origin: Mapping[int, int]
    constraints: Mapping[tuple[Place, tuple[int, ...]], Sequence[int]]
    names: Names


def read(data: Any, file: str, sources: Sources, *, trusted: bool = True) -> Reading:
    """Imports ``data`` and reads its annotations; ``trusted``: as for ``parse_module``.

    Raises ShardpassError as the import does, and SP214 where no mesh is known.
    """
    module = parse_module(data, file, trusted=trusted)
    constraints: dict[tuple[Place, tuple[int, ...]], list[int]] = {}
    with module.context:
        for number, op in enumerate(every_op(module.operation)):
            op.attributes[ORIGIN] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
            if op.name in _CONSTRAINTS or custom_call_target(op) == SHARDING_TARGET:
                place = user_frame(op.location).place
                constraints.setdefault((place, shape_of(op.results[0])), []).append(number)
    with collect():
        run_in_place(module, "shardpass-import")
    with module.context:
        known = {}
        for op in every_op(module.operation):
            if ORIGIN in op.attributes:
                number = int(op.attributes[ORIGIN].value)
                del op.attributes[ORIGIN]  # an op's hash is one of its attributes too
                known[op] = number
        program, handles = read_program(module, "propagate")
        ops = [operation(op) for op in handles.ops]
        origin = {number: known[op] for number, op in enumerate(ops) if op in known}
        locations = [str(op.location) for op in ops]
        arguments = [str(argument.location) for argument in handles.arguments[None]]
    return Reading(module, program, handles, origin, constraints, Names(program, locations, arguments, sources))


class Sites:
    """Lists the sites of one program, each kind in program order."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.program, self.names = reading.program, reading.names
        self.arguments = tuple(self._arguments())
        self.results = tuple(self._results())
        self.constraints = tuple(self._constraints())

    def spec(self, annotation: ValueAnnotation, rank: int) -> Spec | None:
        """Converts an annotation to whole axes; None where there is none, or where it splits over parts of axes."""
        if annotation.sharding is None:
            return None
        dims = self.program.mesh.dims(annotation.sharding, rank)
        return None if dims is None else self.program.mesh.whole_axes(dims)

    # ---------------------------------------------------------------- the signature

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the results as JAX writes them: ``result[0]['w']``."""
        rows = self.reading.handles.signature.results
        infos = [row.get("jax.result_info") for row in rows]
        return tuple(text(info) if info is not None else f"result {place}" for place, info in enumerate(infos))

    def _arguments(self) -> Iterator[Site]:
        values = self.program.body.arguments
        rows = []
        for place, value in enumerate(values):
            array = self.program.arrays[value]
            if array is not None and array.rank:
                annotation = self.program.annotations.get(value, NO_ANNOTATION)
                rows.append((self.names.of(value), array, self.spec(annotation, array.rank), place, value))
        yield from _joined(ARGUMENT, rows)

    def _results(self) -> Iterator[Site]:
        rows = []
        names = self.result_names
        for place, value in enumerate(self.program.body.returned):
            array = self.program.arrays[value]
            if array is not None and array.rank:
                annotation = self.program.result_annotations[place]
                rows.append((names[place], array, self.spec(annotation, array.rank), place, value))
        yield from _joined(RESULT, rows)

    # ---------------------------------------------------------------- the body

    def _constraints(self) -> Iterator[Site]:
        ops_of: dict[tuple[Place, Array, Spec], list[Op]] = {}
        for op in self.program.body.every_op():
            if op.kind is not OpKind.CONSTRAINT:
                continue
            array = self.program.arrays[op.results[0]]
            annotation = self.program.annotations.get(op.results[0], NO_ANNOTATION)
            spec = None if array is None or annotation.open_dims else self.spec(annotation, array.rank)
            place = self.names.frame(op).place
            if array is not None and spec is not None and place != NOWHERE:
                ops_of.setdefault((place, array, spec), []).append(op)
        for (_, array, spec), ops in ops_of.items():
            first = next((op for op in ops if not self.names.is_backward(op)), ops[0])
            frame = self.names.frame(first)
            yield Site(
                CONSTRAINT,
                (self.names.of(first.operands[0]) or str(array),),
                array,
                spec,
                frame,
                values=tuple(op.results[0] for op in ops),
                origins=tuple((number, 0) for number in self.reading.constraints.get((frame.place, array.shape), ())),
            )

    def values(self, lines: Sequence[Place]) -> Iterator[Site]:
        """Yields a site for each expression at ``lines`` whose value other expressions use; gradients are included."""
        wanted = {(line.file, line.line) for line in lines}
        users: dict[int, set[Frame]] = {}
        gradients: dict[tuple[str, Array], list[Op]] = {}
        at: dict[tuple[str, int], list[Op]] = {}
        for op in self.program.body.every_op():
            backward, frame = self.names.is_backward(op), self.names.frame(op)
            if not backward:
                for value in op.operands:
                    users.setdefault(value, set()).add(frame)
            if op.kind is not OpKind.SPLIT or not op.operands or op.mesh.manual or op.number not in self.reading.origin:
                continue
            key = frame.place.file, frame.place.line
            if backward:
                array = self.program.arrays[op.results[0]]
                name = self.names.of(op.results[0])
                if array is not None and name.startswith(GRADIENT):
                    gradients.setdefault((name.removeprefix(GRADIENT), array), []).append(op)
            elif key in wanted:
                at.setdefault(key, []).append(op)
        for line in lines:
            ops_of: dict[tuple[str, Array, Frame], list[Op]] = {}
            for op in at.get((line.file, line.line), ()):
                value = op.results[0]
                array, name, frame = self.program.arrays[value], self.names.of(value), self.names.frame(op)
                outside = users.get(value, set()) - {frame}
                if array is not None and array.rank and name and "..." not in name and outside:
                    ops_of.setdefault((name, array, frame), []).append(op)
            arrays = Counter((name, frame) for name, _, frame in ops_of)
            for (name, array, frame), ops in ops_of.items():
                if arrays[name, frame] > 1:
                    continue  # an expression of several arrays, for which no single spec is right
                every = [*ops, *gradients.get((name, array), ())]
                if any(op.results[0] in self.program.annotations for op in ops):
                    continue
                yield Site(
                    VALUE,
                    (name,),
                    array,
                    None,
                    frame,
                    values=tuple(op.results[0] for op in every),
                    origins=tuple(dict.fromkeys((self.reading.origin[op.number], 0) for op in every)),
                )


def _joined(kind: str, rows: Sequence[tuple[str, Array, Spec | None, int, int]]) -> Iterator[Site]:
    members: dict[object, list[tuple[str, int, int]]] = {}
    for name, array, spec, place, value in rows:
        members.setdefault((_INDEX.sub("[*]", name), array, spec), []).append((name, place, value))
    for (_, array, spec), some in members.items():  # type: ignore[misc]
        names, places, values = zip(*some, strict=True)
        yield Site(kind, names, array, spec, positions=places, values=values)
