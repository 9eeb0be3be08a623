"""Normalize the collectives of a report, so that programs of several compilers and versions can be compared.

Problem: one step has different collectives in the HLO of XLA:CPU, XLA:GPU and XLA:TPU, and of two versions of XLA,
where the devices exchange the same arrays. A test or a budget must accept such differences and notice real ones.

Rules, in this order:

1. Arrays are counted, not ops: XLA combines collectives, an all_reduce of three gradients counts 3. A loop multiplies.
2. An asynchronous pair is one collective (``hlo.collectives`` reads pairs so).
3. An all_reduce whose devices use only their own slices is a reduce_scatter with half the bytes. XLA for CPU writes the
   first form, XLA for GPU and TPU the second.
4. The part of a branch that receives less than another branch counts nothing.
5. Collectives of one line, kind, axes, array and direction are one ``Collective``. The index of a layer in the name of
   an array is ``*``.

Example: ``all_reduce(f32[64], f32[64])`` over 'data' of 4 devices in a loop of 8 trips, each device using its quarter,
is ``Collective("reduce_scatter", ("data",), count=16, bytes=8 * 2 * 64 * 4 * 3 // 4, ...)``.

Complexity: O(rows), and for the names of functions one parse of each source file.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from shardpass.by_device import Receivers, most_received
from shardpass.cost.collective import ALL_REDUCE, REDUCE_SCATTER
from shardpass.diagnostics import NOWHERE, Place
from shardpass.report.report import Report
from shardpass.report.rows import Row, folded_name, short

Key = tuple[str, tuple[str, ...]]  # kind, axes


@dataclass(frozen=True)
class Collective:
    """The equal collectives of one line.

    Attributes:
        kind: "all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter", ...
        axes: the mesh axes, in the order of the mesh; () if no mesh is known.
        count: the number of arrays that the collectives move in one run of the program.
        bytes: the bytes that one receiving device receives in one run of the program.
        array: the name of the array; "" if unknown.
        type: the type of the tile that one device sends.
        file, line: the user's line; "" and 0 if unknown.
        function: the function around that line, with the names of its classes: "Model.attention"; "" if unknown.
        text: the source line.
        direction: "forward", or "backward" for collectives of a derivative.
        reason: the cause in one sentence.
    """

    kind: str
    axes: tuple[str, ...]
    count: int
    bytes: int
    array: str = ""
    type: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    text: str = ""
    direction: str = "forward"
    reason: str = ""

    @property
    def key(self) -> Key:
        """The kind and the axes."""
        return self.kind, self.axes

    @property
    def place(self) -> Place:
        """The user's line."""
        return Place(self.file, self.line) if self.file else NOWHERE

    @property
    def where(self) -> str:
        """The user's line as ``train.py:41``; "-" for an unknown line."""
        return short(self.place)


@dataclass(frozen=True)
class Annotation:
    """An annotation of an array in the user's program.

    Attributes:
        what: "argument params['w']", "result[0]['w']", "constraint of h" or "cast of x".
        says: the type, and the spec: "f16[64,256] P(None, 'model')"; of a cast, both types.
        lines: the user's lines as "train.py:41", the innermost first; () of arguments and results.
    """

    what: str
    says: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.what}: {self.says}{' at ' if self.lines else ''}{', '.join(self.lines)}"

    @property
    def kind(self) -> str:
        """The first word: "argument", "result", "constraint" or "cast"."""
        return self.what.partition(" ")[0].partition("[")[0]


@dataclass(frozen=True)
class Collectives:
    """The collectives of one program, with totals for one run on one device.

    Attributes:
        name: the name of the program.
        devices: the number of devices.
        mesh: the axes of the mesh with their sizes.
        partitioner: "xla", "shardy" or "shardpass".
        rows: the collectives, in program order.
        bytes_received: the bytes received by the device that receives most.
        memory: the memory of a device in bytes, as the compiler reports it; None if unknown.
        annotations: the annotations of the program's arrays; () if its module is not available.
    """

    name: str
    devices: int
    mesh: tuple[tuple[str, int], ...]
    partitioner: str
    rows: tuple[Collective, ...]
    bytes_received: int
    memory: int | None = None
    annotations: tuple[Annotation, ...] = ()

    @property
    def by_key(self) -> Mapping[Key, tuple[int, int]]:
        """Map each (kind, axes) to (count, bytes), most bytes first."""
        sums: dict[Key, tuple[int, int]] = {}
        for row in self.rows:
            count, size = sums.get(row.key, (0, 0))
            sums[row.key] = (count + row.count, size + row.bytes)
        return dict(sorted(sums.items(), key=lambda one: (-one[1][1], one[0])))

    def count(self, kind: str, *axes: str) -> int:
        """Count the arrays that collectives of ``kind`` move over ``axes``; without axes, over any."""
        return sum(row.count for row in self.rows if row.kind == kind and (not axes or set(axes) == set(row.axes)))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``from_dict`` reads them."""
        return asdict(self)

    def json(self) -> str:
        """Return ``as_dict`` as JSON text."""
        return json.dumps(self.as_dict(), indent=1)

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> Collectives:
        """Read the result of ``as_dict``, also after conversion to JSON and back."""
        rows = tuple(Collective(**{**row, "axes": tuple(row["axes"])}) for row in given["rows"])
        mesh = tuple((str(name), int(size)) for name, size in given["mesh"])
        annotations = tuple(Annotation(**{**one, "lines": tuple(one["lines"])}) for one in given["annotations"])
        return Collectives(**{**given, "rows": rows, "mesh": mesh, "annotations": annotations})


def collectives_of(report: Report) -> Collectives:
    """Return the normalized collectives of a report."""
    rows: dict[object, list[Row]] = {}
    for row in report.rows:
        if row.counted:
            array = folded_name(row.array)
            rows.setdefault((_kind(row), row.axes, array, row.place, row.direction), []).append(row)
    memory = None if report.memory is None else report.memory.total
    received = most_received((_bytes(row), row.receivers) for row in report.rows)
    made = tuple(_collective(report, some) for some in rows.values())
    return Collectives(report.file, report.devices, tuple(report.mesh), report.partitioner, made, received, memory)


def collectives_of_json(given: Mapping[str, Any]) -> Collectives:
    """Return the normalized collectives of a report that ``shardpass explain --json`` wrote.

    Raises:
        KeyError, TypeError: for JSON of another form.
    """
    rows = [_row_of_json(one) for one in given["collectives"]]
    memory = given.get("memory")
    total = None if memory is None else int(memory["total"])
    mesh = tuple((str(name), int(size)) for name, size in given["mesh"].items())
    report = Report(str(given["file"]), int(given["devices"]), mesh, tuple(rows), partitioner=str(given["partitioner"]))
    made = collectives_of(report)
    return Collectives(made.name, made.devices, made.mesh, made.partitioner, made.rows, made.bytes_received, total)


def _row_of_json(given: Mapping[str, Any]) -> Row:
    receivers: Receivers = None if given["receivers"] is None else tuple(given["receivers"])
    plain = {name: given[name] for name in ("kind", "group_size", "bytes_each", "operand", "result", "array")}
    more = {name: given[name] for name in ("direction", "names", "times", "counted", "reason", "sliced", "axes")}
    axes = more["axes"] if isinstance(more["axes"], str) else tuple(more["axes"])
    place = Place(given["file"], given["line"], given["column"])
    return Row(**{**plain, **more, "axes": axes}, receivers=receivers, place=place)


def _collective(report: Report, some: list[Row]) -> Collective:
    row = some[0]
    place = row.place
    return Collective(
        _kind(row),
        row.axes,
        sum(one.times * max(1, one.operand.count("tensor<")) for one in some),
        most_received((_bytes(one), one.receivers) for one in some),
        folded_name(row.array),
        row.operand,
        place.file,
        place.line,
        function_at(report.sources.text(place.file), place.line) if place.line else "",
        report.sources.line(place),
        row.direction,
        row.reason,
    )


def _kind(row: Row) -> str:
    return REDUCE_SCATTER if row.sliced and row.kind == ALL_REDUCE else row.kind


def _bytes(row: Row) -> int:
    return row.bytes_received // 2 if row.sliced and row.kind == ALL_REDUCE else row.bytes_received


def function_at(source: str, line: int) -> str:
    """Return the qualified name of the function around a line: "Model.attention"; "" outside of all functions.

    Lambdas and comprehensions belong to the function around them. Text that is no Python has no functions.
    """
    around = ""
    for first, last, name in _functions(source):
        if first <= line <= last:
            around = name  # inner functions follow outer ones
    return around


@lru_cache(maxsize=256)
def _functions(source: str) -> tuple[tuple[int, int, str], ...]:
    """Return (first line, last line, qualified name) of each function, sorted."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    functions: list[tuple[int, int, str]] = []
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, around = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            around = f"{around}.{node.name}".removeprefix(".")
            if not isinstance(node, ast.ClassDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                functions.append((first, node.end_lineno or node.lineno, around))
        stack += [(child, around) for child in ast.iter_child_nodes(node)]
    return tuple(sorted(functions))
