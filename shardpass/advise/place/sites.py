"""The sites of a program, places where an annotation is or could be: arguments, results, constraints, values at lines.

Arguments whose paths differ in indices of lists alone, of one type and one annotation, are one site, as users annotate
all layers alike. So are the values that one expression stands for, and the constraints of one call path: the calls of
the user's functions that lead to the constraint. Constraints that share the line of a helper are different sites, as
their callers differ.

Ops of the user's module are marked while a copy of it is imported (``marks``), so a site of the imported program is
known in the module that the partitioner gets.

Complexity: O(ops + arguments).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from jaxlib.mlir import ir

from shardpass.advise.place.marks import marked_ops, without_marks
from shardpass.advise.place.specs import Spec
from shardpass.diagnostics import NOWHERE, Place, collect
from shardpass.ir.annotations import custom_call_target, text
from shardpass.ir.context import parse_module
from shardpass.ir.frames import NO_FRAME, Frame, user_frames
from shardpass.ir.tensors import operation
from shardpass.pipeline.run import run_in_place
from shardpass.program.program import NO_ANNOTATION, Array, Op, OpKind, Program, ValueAnnotation
from shardpass.program.read import Handles, read_program
from shardpass.report.naming import GRADIENT, Names, Sources

ARGUMENT, RESULT, CONSTRAINT, VALUE, CUT, CHUNKS = "argument", "result", "constraint", "value", "cut", "chunks"
CAST, BORDER, MESH = "cast", "in_specs", "mesh"

_CONSTRAINTS = ("sdy.sharding_constraint", "sdy.reshard")
_INDEX = re.compile(r"(?<!^result)\[\d+\]")  # that of a result in the tuple of results stays
_EACH_INDEX = re.compile(r"(\[\d+\])")
_FLAT = re.compile(r"\[\d+\]$")


@dataclass(frozen=True)
class Site:
    """Values that share one annotation.

    Attributes:
        kind: ARGUMENT, RESULT, CONSTRAINT, VALUE, CUT: the slices that cut one value along one dimension, CHUNKS: the
            reshapes, and those of the gradients, that divide the first dimension by one number, CAST: an operand
            of casts, ``array``, BORDER: an array that the shard_map at ``frame`` takes, or MESH: the sizes of the
            axes, ``spec`` has which axis' size each axis has.
        names: the paths of arguments or results; of a constraint or a value, the array's name in the user's text.
        array: the type of each of the values.
        spec: the annotation; None without an annotation.
        frame: of a constraint or a value, the user's line.
        positions: of arguments or results, their places in main's signature.
        values: their numbers in the imported program.
        origins: of a constraint its ops; of a value the ops that make it, each with the place of its result.
        calls: of a constraint, the user's frames around ``frame``, from the inside.
        pieces: of a cut, where each slice starts and ends; ``cut``: the dimension; ``array``: the type of the whole. Of
            chunks, the pair (0, their number), and the dimension along which they can be cut instead. Of a border, the
            pair (its place among those of its line, their number). Of a mesh, pairs of the axes' sizes.
    """

    kind: str
    names: tuple[str, ...]
    array: Array
    spec: Spec | None
    frame: Frame = NO_FRAME
    positions: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    origins: tuple[tuple[int, int], ...] = ()
    calls: tuple[Frame, ...] = ()
    pieces: tuple[tuple[int, int], ...] = ()
    cut: int = 0

    @property
    def place(self) -> Place:
        return self.frame.place

    @property
    def bytes(self) -> int:
        """Bytes of all arrays of the site, as whole arrays."""
        return self.array.bytes * len(self.values)

    @property
    def pattern(self) -> str:
        """The site's name, with ``[*]`` for indices that differ between its values."""
        steps = zip(*(_EACH_INDEX.split(name) for name in self.names), strict=False)
        return "".join(some[0] if len(set(some)) == 1 else "[*]" for some in steps)


@dataclass(frozen=True)
class Reading:
    """An imported program, with the source of its ops.

    Attributes:
        origin: by the op's number, that in the user's module.
        calls: by the op's number in the user's module, the user's frames from the inside.
        constraints: the numbers there of what the user wrote as constraints. Import makes others, of the shardings at
            the borders of a shard_map.
    """

    module: Any
    program: Program
    handles: Handles
    origin: Mapping[int, int]
    calls: Mapping[int, tuple[Frame, ...]]
    constraints: frozenset[int]
    names: Names


def read(data: Any, file: str, sources: Sources, *, trusted: bool = True) -> Reading:
    """Import ``data`` and read its annotations; ``trusted``: as for ``parse_module``.

    Raises ShardpassError as the import does, and SP214 where no mesh is known.
    """
    return reading_of(parse_module(data, file, trusted=trusted), sources)


def pattern(name: str) -> str:
    """Return a path with ``[*]`` for its indices."""
    return _INDEX.sub("[*]", name)


def reading_of(module: Any, sources: Sources, check: Callable[[Any], None] | None = None) -> Reading:
    """Import ``module`` in place and read its annotations. ``check``: raises for an imported module that is refused.

    Raises as ``read``.
    """
    calls, constraints = {}, set()
    with module.context:
        for number, op in marked_ops(module):
            calls[number] = user_frames(op.location)
            if op.name in _CONSTRAINTS or custom_call_target(op) == "Sharding":
                constraints.add(number)
    with collect():
        run_in_place(module, "shardpass-import")
    if check is not None:
        check(module)
    with module.context:
        program, handles = read_program(module, "propagate")
        origin, locations = without_marks(handles.ops)
        arguments = [str(argument.location) for argument in handles.arguments[None]]
    names = Names(program, locations, arguments, sources)
    return Reading(module, program, handles, origin, calls, frozenset(constraints), names)


class Sites:
    """Lists the sites of one program, each kind in program order."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.program, self.names = reading.program, reading.names
        body, program = self.program.body, self.program
        annotations = [program.annotations.get(value, NO_ANNOTATION) for value in body.arguments]
        names = map(self.names.of, body.arguments)
        self.arguments = tuple(self._joined(ARGUMENT, names, body.arguments, annotations))
        self.results = tuple(self._joined(RESULT, self.result_names, body.returned, program.result_annotations))
        self.constraints = tuple(self._constraints())

    def used_alike(self, alike: Sequence[int], results: Sequence[int]) -> Sites:
        """Return the sites with flat lists of leaves split by use: ``alike`` by value, ``results`` by place.

        Libraries that flatten a tree before ``jax.jit`` leave indices alone in the paths of its leaves, such as
        ``dynamic['rest'][17]``. Leaves of one type are then one site only where the program uses them alike.
        """
        other = copy(self)
        other.arguments = tuple(part for site in self.arguments for part in _parts(site, alike, results))
        other.results = tuple(part for site in self.results for part in _parts(site, alike, results))
        return other

    def with_changes(self, changes: Sequence[Any]) -> Sites:
        """Return the sites with the specs of ``changes`` (``write.Change``) for arguments and results."""
        specs = {(one.site.kind, position): one.spec for one in changes for position in one.site.positions}

        def changed(site: Site) -> Site:
            key = site.kind, site.positions[0]
            return replace(site, spec=specs[key]) if key in specs else site

        other = copy(self)
        other.arguments = tuple(map(changed, self.arguments))
        other.results = tuple(map(changed, self.results))
        constrained = {change.site for change in changes if change.site.kind == CONSTRAINT}
        other.constraints = tuple(site for site in self.constraints if site not in constrained)
        return other

    def spec(self, annotation: ValueAnnotation, rank: int) -> Spec | None:
        """Convert an annotation to whole axes; None where there is none, or where it splits over parts of axes."""
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

    def _joined(
        self, kind: str, names: Iterable[str], values: Sequence[int], annotations: Iterable[ValueAnnotation]
    ) -> Iterator[Site]:
        """Yield the sites of main's arguments or results."""
        members: dict[tuple[str, Array, Spec | None], list[tuple[str, int, int]]] = {}
        for place, (name, value, annotation) in enumerate(zip(names, values, annotations, strict=True)):
            array = self.program.arrays[value]
            if array is not None and array.rank:
                key = pattern(name), array, self.spec(annotation, array.rank)
                members.setdefault(key, []).append((name, place, value))
        for (_, array, spec), some in members.items():
            paths, places, numbers = zip(*some, strict=True)
            yield Site(kind, paths, array, spec, positions=places, values=numbers)

    # ---------------------------------------------------------------- the body

    def _constraints(self) -> Iterator[Site]:
        ops_of: dict[tuple[tuple[Frame, ...], Array, Spec], list[Op]] = {}
        origin = self.reading.origin
        for op in self.program.body.every_op():
            is_users = op.kind is OpKind.CONSTRAINT and origin.get(op.number) in self.reading.constraints
            if not is_users or self.names.frame(op).place == NOWHERE:
                continue
            array = self.program.arrays[op.results[0]]
            annotation = self.program.annotations.get(op.results[0], NO_ANNOTATION)
            spec = None if array is None or annotation.open_dims else self.spec(annotation, array.rank)
            if array is not None and spec is not None:
                ops_of.setdefault((self.reading.calls[origin[op.number]], array, spec), []).append(op)
        for (calls, array, spec), ops in ops_of.items():
            first = next((op for op in ops if not self.names.is_backward(op)), ops[0])
            name, frame = self.names.of(first.operands[0]) or str(array), self.names.frame(first)
            yield replace(self._at(CONSTRAINT, name, array, frame, ops), spec=spec, calls=calls[1:])

    def _at(self, kind: str, name: str, array: Array, frame: Frame, ops: Sequence[Op]) -> Site:
        """Return the site of what ``ops`` make at ``frame``."""
        values, origins = [op.results[0] for op in ops], [(self.reading.origin[op.number], 0) for op in ops]
        return Site(kind, (name,), array, None, frame, values=tuple(values), origins=tuple(dict.fromkeys(origins)))

    def borders(self) -> Iterator[Site]:
        """Yield a site for each array that a shard_map takes, without gradients: ``spec`` is that of ``in_specs``."""
        lines: dict[Frame, list[Op]] = {}
        for op in self.program.body.every_op():
            is_users = self.reading.origin.get(op.number) in self.reading.constraints
            if op.kind is OpKind.CONSTRAINT and not is_users and not self.names.is_backward(op):
                lines.setdefault(self.names.frame(op), []).append(op)
        for frame, ops in lines.items():
            for place, op in enumerate(ops):
                array, name = self.program.arrays[op.operands[0]], self.names.of(op.operands[0])
                annotation = self.program.annotations.get(op.results[0], NO_ANNOTATION)
                spec = None if array is None or not array.rank else self.spec(annotation, array.rank)
                if array is not None and spec is not None and frame.place != NOWHERE:
                    site = Site(BORDER, (name or str(array),), array, spec, frame, values=op.operands[:1])
                    yield replace(site, origins=((op.number, 0),), pieces=((place, len(ops)),))

    def cuts(self, lines: Sequence[Place]) -> Iterator[Site]:
        """Yield a site for each value that slices at ``lines`` cut along one dimension, without gradients."""
        wanted = {(line.file, line.line) for line in lines}
        slices: dict[tuple[int, int, Frame], list[tuple[Op, tuple[int, int]]]] = {}
        for op in self.program.body.every_op():
            frame = self.names.frame(op)
            at = frame.place.file, frame.place.line
            if op.name != "stablehlo.slice" or op.number not in self.reading.origin or at not in wanted:
                continue
            piece = None if self.names.is_backward(op) else piece_of(self.reading.handles.ops[op.number])
            if piece is not None:
                slices.setdefault((op.operands[0], piece[0], frame), []).append((op, piece[1]))
        for (value, dim, frame), some in slices.items():
            array = self.program.array(value)
            ops, pieces = zip(*some, strict=True)
            site = self._at(CUT, self.names.of(value) or str(array), array, frame, ops)
            yield replace(site, pieces=pieces, cut=dim)

    def chunks(self, sizes: Collection[int]) -> Iterator[Site]:
        """Yield sites of the reshapes that divide a first dimension of one of ``sizes`` into chunks, the largest first.

        What a derivative computes there is part of the site. Chunks of several rows each are cut along the second
        dimension where their number divides it, so that each has all rows.
        """
        alike: dict[tuple[int, int], list[tuple[Op, Array, bool]]] = {}
        for op in self.program.body.every_op():
            if op.name != "stablehlo.reshape" or op.number not in self.reading.origin:
                continue
            backward = self.names.is_backward(op)
            whole, parts = (self.program.array(value) for value in (op.operands[0], op.results[0]))
            if backward:
                whole, parts = parts, whole
            if whole.rank < 1 or parts.rank < 2 or whole.shape[0] not in sizes:
                continue
            rows, count = whole.shape[0], parts.shape[0]
            if 1 < count < rows and rows % count == 0:
                along = whole.rank > 1 and parts.shape[1] != rows // count and whole.shape[1] % count == 0
                alike.setdefault((rows, count), []).append((op, whole, along))
        for (_, count), some in sorted(alike.items(), key=lambda one: -max(array.bytes for _, array, _ in one[1])):
            forward = [(op, array) for op, array, _ in some if not self.names.is_backward(op)]
            if forward:
                first, array = max(forward, key=lambda one: one[1].bytes)
                yield Site(
                    CHUNKS,
                    (self.names.of(first.operands[0]) or str(array),),
                    array,
                    None,
                    self.names.frame(first),
                    values=tuple(op.results[0] for op, _, _ in some),
                    origins=tuple(dict.fromkeys((self.reading.origin[op.number], 0) for op, _, _ in some)),
                    pieces=((0, count),),
                    cut=int(all(along for _, _, along in some)),
                )

    def values(self, lines: Sequence[Place], *, several: bool = False) -> Iterator[Site]:
        """Yield a site for each expression at ``lines`` whose value other expressions use; gradients are included.

        ``several``: expressions of several arrays have a site for each type; else none, as no single spec is right.
        """
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
                if arrays[name, frame] > 1 and not several:
                    continue
                if not any(op.results[0] in self.program.annotations for op in ops):
                    yield self._at(VALUE, name, array, frame, [*ops, *gradients.get((name, array), ())])


def piece_of(op: Any) -> tuple[int, tuple[int, int]] | None:
    """Return the dimension that a slice cuts, and its start and end there; None for any other slice."""
    op = operation(op)
    starts, ends, steps = (list(op.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    sizes = ir.RankedTensorType(op.operands[0].type).shape
    dims = [dim for dim, size in enumerate(sizes) if (starts[dim], ends[dim]) != (0, size)]
    if len(dims) != 1 or any(step != 1 for step in steps):
        return None
    return dims[0], (starts[dims[0]], ends[dims[0]])


def _parts(site: Site, alike: Sequence[int], results: Sequence[int]) -> Iterator[Site]:
    """Split a site of leaves of a flat list by what their values fold to."""
    if len(site.names) < 2 or not all(_FLAT.search(name) for name in site.names):
        yield site
        return
    groups: dict[int, list[int]] = {}
    for place, (position, value) in enumerate(zip(site.positions, site.values, strict=True)):
        groups.setdefault(results[position] if site.kind == RESULT else alike[value], []).append(place)
    for places in groups.values():
        names = tuple(site.names[place] for place in places)
        positions, values = (tuple(some[place] for place in places) for some in (site.positions, site.values))
        yield replace(site, names=names, positions=positions, values=values)
