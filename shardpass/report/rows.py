"""The facts of a report: a row for each collective of a program, and an account of its memory.

``Explanation`` is the input of every renderer (``text``, ``page``, JSON). It consists of plain values, so a renderer
needs neither MLIR nor a plan:

    rows        one for each collective of the partitioned program, in program order
    ops         the ops of the program before partitioning, with the sharding of each value; rows refer to them
    memory      live bytes on a device at each of these ops
    compute     seconds of computation on a device, by op
    changes     shardings of the search that are cheaper than those of propagation

Bytes are those that one device receives from others. ``Row.bytes_received`` counts one run of the program: a
collective in a loop is multiplied by the trip count. In a loop with an unknown trip count, a row counts once, and
``Row.bytes_at_most(trips)`` returns the bytes for a given count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from shardpass.by_device import Receivers, most_received
from shardpass.diagnostics import NOWHERE, Place

FORWARD, BACKWARD = "forward", "backward"

Dims = tuple[tuple[str, ...], ...]  # of an array: the axes that split each dimension, major to minor

_INDEX = re.compile(r"\[\d+\]")
_COMPILED = re.compile(r"p?jit\(.*\)")
_WRAPPED = re.compile(r"(?:transpose|jvp|vmap|checkpoint|remat)\((.*)\)")
_CONTROL = frozenset({"while", "body", "cond", "scan", "closed_call", "checkpoint", "rematted_computation"})
_CONTROL |= {"shard_map", "custom_jvp_call", "custom_vjp_call"}
_NUMBER = re.compile(r"\d+(?![A-Za-z\d])")  # conv2d keeps its 2


def folded_name(name: str) -> str:
    """Replace indices of lists in a name: ``params['layers'][*]['w1']``."""
    return _INDEX.sub("[*]", name)


def scopes(stack: str) -> tuple[str, ...]:
    """Return the name scopes of a name stack; scopes that differ only in a number become equal.

    Example: ``("M", "Dense_*")`` for "jit(step)/transpose(jvp(M))/Dense_0/dot_general". Compiled functions,
    transformations, control flow and the op itself are left out.
    """
    bare = map(_unwrapped, stack.split("/")[:-1])
    named = (part for part in bare if part and not _COMPILED.fullmatch(part) and part not in _CONTROL)
    return tuple(_NUMBER.sub("*", part) for part in named)


def _unwrapped(part: str) -> str:
    while match := _WRAPPED.fullmatch(part):
        part = match[1]
    return part


def short(place: Place) -> str:
    """Format a place as ``train.py:41``: without folders and column; "-" for nowhere."""
    return "-" if place == NOWHERE else f"{place.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{place.line}"


def where(place: Place, path: Iterable[Place | str]) -> str:
    """Return the ``Row.where`` of a row at this place and path."""
    return short(place) if place != NOWHERE else "/".join(map(str, path)) or "-"


@dataclass(frozen=True, slots=True)
class Row:
    """A collective of the program, with the line that needs it.

    Attributes:
        kind: "all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter", ...
        axes: the mesh axes of its groups: ("data", "model"); parts of axes as "data:(1)2". () if the groups do not
            follow mesh axes.
        group_size: the number of devices in a group.
        array: the name of the array: an argument's path, or the user's variable or expression; "" if unknown.
        type: the type of the whole array, "f32[64,128]"; "" if unknown.
        source, target: the shardings before and after, as ``P('data', None)``. For partial results the source is
            "partial over 'data'". "" if unknown.
        source_dims, target_dims: the axes that split each dimension before and after, as in ``ValueFact``; None if
            unknown. For partial results, the axes that split each summand.
        source_text, target_text: the shardings in a form that ``parse_sharding`` accepts; "" unless the row is a
            redistribution.
        direction: FORWARD; BACKWARD for a collective of a derivative.
        names: the name stack, "jit(step)/transpose(jvp())/dot_general".
        place: the user's line.
        path: further locations: library lines called from the user's line, outermost first; name scopes; and the
            callers of the user's line, nearest first. Without a line, the scopes or the name stack.
        operand, result: the types of the tiles, "tensor<4x8xf32>".
        bytes_each: the bytes that a device receives in one execution.
        times: the number of executions; a loop with an unknown trip count counts once.
        unknown_loops: the number of enclosing loops with unknown trip counts.
        counted: False in a branch of a conditional if another branch receives more.
        seconds: the modeled time of all executions; for permutes overlapped with products, the time that they add.
        reason: the cause, in one sentence.
        op: the number in ``Explanation.ops`` of the op that needs the collective; None if unknown.
        receivers: the ids of the receiving devices; None for every device.
        joined: whether this is another array of the collective in the row before, which XLA combined.
        sliced: whether each device uses only its own slice of an all_reduce of XLA:CPU. XLA for GPU and TPU compiles
            such a sum to a reduce_scatter with half the bytes, which their machines count.
    """

    kind: str
    axes: tuple[str, ...]
    group_size: int
    bytes_each: int
    operand: str = ""
    result: str = ""
    array: str = ""
    type: str = ""
    source: str = ""
    target: str = ""
    source_text: str = ""
    target_text: str = ""
    source_dims: Dims | None = None
    target_dims: Dims | None = None
    direction: str = FORWARD
    names: str = ""
    place: Place = NOWHERE
    path: tuple[Place | str, ...] = ()
    times: int = 1
    unknown_loops: int = 0
    counted: bool = True
    seconds: float = 0.0
    reason: str = ""
    op: int | None = None
    receivers: Receivers = None
    joined: bool = False
    sliced: bool = False

    @property
    def where(self) -> str:
        """The user's line, ``train.py:41`` without folders; without a line, the path, or "-"."""
        return where(self.place, self.path)

    @property
    def bytes_received(self) -> int:
        """Bytes that one of its receivers receives in one run of the program."""
        return self.bytes_each * self.times if self.counted else 0

    def bytes_at_most(self, trips: int) -> int:
        """Count bytes as ``bytes_received``, where each loop of unknown length runs ``trips`` times."""
        return self.bytes_received * int(trips**self.unknown_loops)

    def as_dict(self) -> dict[str, object]:
        """Return the row as plain values for JSON; ``place`` becomes file, line, column."""
        fields: dict[str, object] = {name: getattr(self, name) for name in self.__slots__ if name != "place"}
        fields["path"] = [str(step) for step in self.path]
        place = {"file": self.place.file, "line": self.place.line, "column": self.place.column}
        return {**fields, "bytes_received": self.bytes_received, **place}


class Totals:
    """Sums over ``rows``, the rows of a report or of a part of a report."""

    __slots__ = ()

    rows: tuple[Row, ...]

    @property
    def bytes_received(self) -> int:
        """Bytes received in one run by the device that receives most; a loop of unknown trips counts once."""
        return most_received((row.bytes_received, row.receivers) for row in self.rows)

    @property
    def backward_bytes(self) -> int:
        """The part of ``bytes_received`` that derivatives receive."""
        return most_received((row.bytes_received, row.receivers) for row in self.rows if row.direction == BACKWARD)

    @property
    def seconds(self) -> float:
        """Modeled seconds of the collectives, in sequence, on the machine.

        A collective matmul counts for the seconds that it adds to the products alone.
        """
        return sum(row.seconds for row in self.rows)

    @property
    def runs(self) -> int:
        """The number of collectives that run; collectives in loops count once for each trip."""
        return sum(row.times for row in self.rows if row.counted and not row.joined)


@dataclass(frozen=True, slots=True)
class ValueFact:
    """A value: its name, its type ("f32[64,128]"), its sharding as text, and the axes that split each dimension."""

    name: str
    type: str
    sharding: str
    dims: Dims
    bytes: int  # of a device's tile


@dataclass(frozen=True, slots=True)
class OpFact:
    """An op of the program before partitioning. Main's arguments are an op named "argument" with number -1."""

    number: int
    name: str
    place: Place
    direction: str
    results: tuple[ValueFact, ...]
    depth: int = 0  # how many loops and branches it stands in


@dataclass(frozen=True, slots=True)
class WorkFact:
    """A device's work for an op, over all runs of the op: computation, and copies for resharding.

    ``op``: the number of the op in ``Explanation.ops``; -1 for main's results. ``seconds``: the modeled time.
    """

    op: int
    place: Place
    seconds: float


@dataclass(frozen=True, slots=True)
class Holding:
    """A value alive at the memory peak: its name, its bytes on a device, and the line that computes the value."""

    name: str
    type: str
    bytes: int
    place: Place = NOWHERE
    count: int = 1  # of equal ones, together ``bytes``


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The memory of one device: bytes by use, and the buffers alive at the peak.

    Attributes:
        arguments, results: bytes of the arguments and results of main.
        temporaries: the peak of all other live bytes.
        at: (number of an op, live bytes while it runs), in program order.
        peak_op: the op at the peak; None if there is none.
        peak_place: the line of that op.
        holdings: the values alive at the peak, most bytes first.
        donated: bytes of results that reuse buffers of arguments.
    """

    arguments: int
    results: int
    temporaries: int
    at: tuple[tuple[int, int], ...] = ()
    peak_op: int | None = None
    peak_place: Place = NOWHERE
    holdings: tuple[Holding, ...] = ()
    donated: int = 0

    @property
    def total(self) -> int:
        return self.arguments + self.results - self.donated + self.temporaries


@dataclass(frozen=True, slots=True)
class LoopFact:
    """A collective matmul: products overlapped with a collective that passes tiles of an operand or of the result.

    Attributes:
        kind: the collective that the loop replaces, over ``axes``.
        op: the name of the first product, "dot_general"; ``number``: its number in ``Explanation.ops``; ``place``: its
            source line.
        products: the number of products.
        steps: the number of collective_permutes in one run of the loop; each sends ``bytes_each`` to a device.
        resident_bytes: the bytes that a device keeps instead of the ``whole`` bytes of the array that the loop never
            materializes.
        in_turn: modeled seconds of the loop.
        apart: modeled seconds of the collective followed by the products.
        beside: modeled seconds that the loop takes beyond the products alone.
        profile: the machine model by which the loop was chosen.
    """

    kind: str
    place: Place
    products: int
    resident_bytes: int
    whole: int
    in_turn: float
    apart: float
    profile: str
    axes: tuple[str, ...] = ()
    op: str = ""
    number: int | None = None
    steps: int = 0
    bytes_each: int = 0
    beside: float = 0.0


@dataclass(frozen=True, slots=True)
class ChangeFact:
    """A sharding changed by the search: a description, the line, and the modelled seconds before and after."""

    message: str
    place: Place
    before: float
    after: float

    @property
    def saved(self) -> float:
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class DecidedFact:
    """A sharding chosen by the search, and ``code``, an annotation with which propagation alone chooses it.

    ``words``: a description of the sharding. ``before``, ``after``: the bytes received under propagation without and
    with the annotation, in addition to the annotations of earlier facts. ``seconds_before``, ``seconds_after``: the
    modeled seconds of collectives and work.
    """

    words: str
    code: str
    place: Place
    before: int
    after: int
    seconds_before: float
    seconds_after: float

    @property
    def saves(self) -> int:
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class ConstraintFact:
    """A constraint whose removal would reduce traffic.

    ``bytes``: the bytes received to reshard the array to the constraint and back. ``saved``: the bytes saved without
    the constraint, for the device that receives most.
    """

    place: Place
    spec: str
    type: str
    bytes: int
    saved: int


@dataclass(frozen=True, slots=True)
class HintFact:
    """An annotation that would reduce cost, with the planned figures.

    Attributes:
        kind: "line" for a constraint in the program; "argument" for an in_sharding.
        name: the variable or expression, or the arguments' paths.
        spec: the annotation, ``P('data', None)``.
        now: the split without the annotation.
        place: the line of a constraint.
        before, after: the bytes that a device receives in one run.
        memory: the increase of the memory peak; negative for a decrease.
    """

    kind: str
    name: str
    spec: str
    now: str
    place: Place
    before: int
    after: int
    memory: int

    @property
    def saves(self) -> int:
        return self.before - self.after

    @property
    def code(self) -> str:
        """Return the annotation to write."""
        if self.kind == "argument":
            return f"in_shardings: {self.name} = {self.spec}"
        return f"with_sharding_constraint({self.name}, {self.spec})"
