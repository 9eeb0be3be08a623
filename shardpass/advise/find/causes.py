"""Find costs that no other annotation would avoid, each at its line.

Each is read off the traced program, for the collectives that the compiled program has:

1. Gradients that are summed over devices in each trip of a loop, and only added up from trip to trip: one sum after the
   loop is enough.
2. An op that works along a dimension which devices share: a lookup of rows, a reshape that joins the dimension with
   one in front of it, a sort.
3. An argument that a shard_map takes in another sharding than it has.
4. An array that is sent after it was cast to a wider type or repeated, as the heads of keys and values are.
5. A large array that stays whole over an axis which splits others of its kind, states or batches, with a dimension that
   the axis does not divide.

Example: ``x[permutation]`` of a batch over 'data'. Any device may need any row, so XLA gathers the whole batch.

Cost: a walk over the program, and one back from each array that is sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from shardpass.advise.find.propose.program import Context
from shardpass.advise.find.propose.specs import axes_of, whole
from shardpass.advise.place.sites import pattern
from shardpass.advise.place.specs import spec_text
from shardpass.cost import collective as kinds
from shardpass.diagnostics import NOWHERE, Place
from shardpass.program.program import Block, Op, OpKind
from shardpass.report.rows import BACKWARD, Row
from shardpass.report.text import show_bytes

LEAST = 0.15  # of what is received, that a cause costs
LARGE = 0.1  # of the memory, that an array whose size does not divide takes
STEPS = 12  # ops that are gone back through
HALF = 0.5

_MOVED = frozenset({kinds.ALL_GATHER, kinds.ALL_TO_ALL, kinds.PERMUTE})
_SUMS = (kinds.ALL_REDUCE, kinds.REDUCE_SCATTER)
_CHEAP = frozenset(
    f"stablehlo.{name}"
    for name in ("convert", "reshape", "transpose", "broadcast_in_dim", "multiply", "add", "subtract", "divide",
                 "optimization_barrier")
)  # fmt: skip
_FORMS = _CHEAP | {f"stablehlo.{name}" for name in ("compare", "select", "clamp", "concatenate")}
_PASSED = frozenset({"stablehlo.custom_call", "stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose"})
_MIXING = frozenset(f"stablehlo.{name}" for name in ("dot_general", "convolution", *_MOVED, *_SUMS))
_LINEAR = frozenset(f"stablehlo.{name}" for name in ("convert", "reshape", "transpose", "multiply", "divide"))
_WHOLE = "work there along a dimension that is whole on each device, or split another one"
_ALONG = {
    "gather": "rows are looked up",
    "reshape": "the reshape joins or divides dimensions",
    "sort": "the sort is",
    "cumsum": "the sum of prefixes is",
    "rev": "the order is reversed",
    "concatenate": "parts are put together",
    "split": "the array is cut",
    "slice": "the array is cut",
    "dynamic_slice": "the array is cut",
    "conv_general_dilated": "windows move",
}  # by the op's name in a name stack: what it does along a dimension


@dataclass(frozen=True)
class Cause:
    """A cost and its remedy, as clauses. ``bytes``: received because of it. ``memory``: used because of it."""

    sentence: str
    advice: str
    place: Place = NOWHERE
    bytes: int = 0
    memory: int = 0


def causes(context: Context, rows: Sequence[Row], memory: int) -> list[Cause]:
    """Return the causes that cost much of what ``rows`` receive, or of the ``memory``; what costs most first."""
    total = sum(row.bytes_received for row in rows)
    flow = _Flow(context)
    kinds_of = (_summed, _along, _at_borders, _in_regions, _enlarged)
    sent = [one for causes_of in kinds_of for one in causes_of(flow, rows)]
    large = [one for one in sent if one.bytes >= max(1, LEAST * total)]
    uneven = [one for one in _uneven(context) if one.memory >= LARGE * memory]
    return sorted(large, key=lambda one: -one.bytes) + sorted(uneven, key=lambda one: -one.memory)


class _Flow:
    """Finds the ops that compute each value of the program, inside manual regions as well."""

    def __init__(self, context: Context) -> None:
        self.context, self.program, self.names = context, context.sites.program, context.sites.names
        self.makers: dict[int, Op] = {}
        self.users: dict[int, list[Op]] = defaultdict(list)
        self.carried: dict[int, int] = {}  # by the argument of a loop's body, what the loop starts from
        self.ops: list[Op] = []
        self.at: dict[tuple[str, int, str], list[Op]] = defaultdict(list)  # by line and name, without derivatives
        self._read(self.program.body)

    def _read(self, block: Block) -> None:
        for op in block.ops:
            self.ops.append(op)
            self.makers.update(dict.fromkeys(op.results, op))
            for operand in dict.fromkeys(op.operands):
                self.users[operand].append(op)
            if op.number >= 0 and not self.names.is_backward(op):
                place = self.names.frame(op).place
                name = "sharding_constraint" if op.kind is OpKind.CONSTRAINT else op.name.removeprefix("stablehlo.")
                self.at[place.file, place.line, name].append(op)
            for inner in (*op.blocks, *op.inside):
                if op.is_loop:
                    self.carried.update(zip(inner.arguments, op.operands, strict=False))
                self._read(inner)

    def bytes(self, value: int) -> int:
        array = self.program.arrays[value]
        return 0 if array is None else array.bytes

    def least(self, value: int, steps: int = STEPS) -> int:
        """Return the fewest bytes from which cheap ops can compute ``value``, looking back ``steps`` ops at most."""
        op = self.makers.get(value)
        if op is None and value in self.carried and steps:
            return min(self.bytes(value), self.least(self.carried[value], steps - 1))
        if op is None or not steps or not (op.name in _CHEAP or op.kind is OpKind.CONSTRAINT) or not op.operands:
            return self.bytes(value)
        return min(self.bytes(value), sum(self.least(operand, steps - 1) for operand in op.operands))

    def is_table(self, op: Op) -> bool:
        """Return whether ``op`` looks up rows of a state, or rows of an argument by another, as an embedding does."""
        table, *rows = (self.source(operand) for operand in op.operands[:2])
        inputs, array = self.program.body.arguments, self.program.arrays[table]
        return table in inputs and (array in self.context.state_types or (bool(rows) and rows[0] in inputs))

    def source(self, value: int) -> int:
        """Return the value of which ``value`` is another form, by the first operand of each op."""
        for _ in range(STEPS):
            op = self.makers.get(value)
            if op is None or not op.operands or not (op.name in _FORMS or op.kind is OpKind.CONSTRAINT):
                break
            value = op.operands[0]
        return value


def _summed(flow: _Flow, rows: Sequence[Row]) -> Iterator[Cause]:
    """Yield a cause for each loop that sums an accumulated value over devices in every iteration."""
    for loop in (op for op in flow.ops if op.is_loop and (op.trips or 2) > 1):
        trips, (*_, body) = loop.trips or 2, (*loop.blocks, *loop.inside)
        lines, sizes = set[tuple[str, int]](), set[int]()
        is_own = False  # whether the program itself asks for the sums, in a shard_map
        for carried, value in zip(body.arguments, body.returned, strict=False):
            origin = _added(flow, carried, value)
            if origin is None:
                continue
            is_own |= origin.name == "stablehlo.all_reduce"
            array = flow.program.arrays[value]
            sizes.add(prod(array.shape) if array is not None else 0)
            inner = chain(*(block.every_op() for block in origin.blocks)) if origin.is_loop else (origin,)
            lines |= {_line(flow.names.frame(op).place) for op in inner if op.number >= 0}
        sums = [
            row
            for row in rows
            if row.kind in _SUMS and row.times >= trips and row.times % trips == 0
            if ("shard_map" in row.names if is_own else row.direction == BACKWARD and _line(row.place) in lines)
            if any(size % count == 0 for count in _counts(row.result) for size in sizes)
        ]
        if sums:
            cost = sum(row.bytes_received for row in sums)
            cost -= cost // trips
            first = max(sums, key=lambda row: row.bytes_received)
            where = _named(flow.names.frame(loop).place) if loop.number >= 0 else ""
            yield Cause(
                f"what the loop{where} adds up is summed over {_axes(first)} in each of its {trips} trips, which costs "
                f"{show_bytes(cost)} received",
                "add up in the loop what each device computes, and sum over devices once, after the loop",
                first.place,
                cost,
            )


def _added(flow: _Flow, carried: int, value: int) -> Op | None:
    """Return the op that makes what a loop adds to ``carried`` for ``value``; None where the loop does otherwise."""
    add = _behind(flow, value, frozenset({"stablehlo.convert"}))
    if add is None or add.name != "stablehlo.add" or carried not in add.operands:
        return None
    others = [operand for operand in add.operands if operand != carried]
    return _behind(flow, others[0], _LINEAR) if others else None


def _behind(flow: _Flow, value: int, passed: frozenset[str]) -> Op | None:
    """Return the op that makes ``value``, gone back through ``passed`` ops by their largest operand."""
    op = flow.makers.get(value)
    for _ in range(STEPS):
        if op is None or not (op.name in passed or op.kind is OpKind.CONSTRAINT):
            break
        made = [operand for operand in op.operands if _is_variable(flow, operand)]
        op = flow.makers.get(made[0]) if made else None
    return op


def _is_variable(flow: _Flow, value: int) -> bool:
    """Return whether ``value`` is neither a constant nor a scalar that is repeated."""
    op = flow.makers.get(value)
    if op is not None and op.name == "stablehlo.broadcast_in_dim":
        array = flow.program.arrays[op.operands[0]]
        return array is not None and array.rank > 0
    return op is None or op.name != "stablehlo.constant"


def _along(flow: _Flow, rows: Sequence[Row]) -> Iterator[Cause]:
    """Yield a cause for each line whose op works along a dimension that is split over devices."""
    groups: dict[tuple[Place, str], list[Row]] = defaultdict(list)
    for row in rows:
        name = row.names.rpartition("/")[2]
        if name == "conv_general_dilated" and row.kind != kinds.PERMUTE:
            continue  # of filters, or of channels
        is_table = name == "gather" and any(map(flow.is_table, flow.at[*_line(row.place), name]))
        if name in _ALONG and row.place != NOWHERE and not is_table:
            groups[row.place, name].append(row)
    for (place, name), some in groups.items():
        first, cost = max(some, key=lambda row: row.bytes_received), sum(row.bytes_received for row in some)
        of = f" of `{first.array}`" if first.array else ""
        yield Cause(
            f"{_ALONG[name]} along a dimension{of} that {_axes(first)} splits, which costs {show_bytes(cost)} received",
            _WHOLE,
            place,
            cost,
        )


def _at_borders(flow: _Flow, rows: Sequence[Row]) -> Iterator[Cause]:
    """Yield a cause for each line at which a shard_map takes arrays in another sharding than they have."""
    sites = flow.context.sites
    origin, written = sites.reading.origin, sites.reading.constraints
    cost: dict[Place, int] = defaultdict(int)
    for row in rows:
        if row.kind in _MOVED and row.names.endswith("/shard_map"):
            cost[row.place] += row.bytes_received
    for place, sent in cost.items():
        entries: dict[str, list[str]] = defaultdict(list)
        for op in flow.at[*_line(place), "sharding_constraint"]:
            value = op.operands[0]
            array = flow.program.arrays[value]
            if array is None or origin.get(op.number) in written:
                continue
            there = flow.program.annotations[op.results[0]].sharding
            was, now = (whole(one, array.rank, flow.program) for one in (flow.context.now.get(value), there))
            if was is not None and now is not None and was != now:
                name = pattern(flow.names.of(value))
                entries[f"as {spec_text(now)}, placed as {spec_text(was)}"].append(f"`{name}`")
        words = [f"{', '.join(dict.fromkeys(names))} {how}" for how, names in entries.items()]
        if words:
            yield Cause(
                f"in_specs of the shard_map take {'; '.join(words)}, which costs {show_bytes(sent)} received",
                "give in_specs the spec that the array has, and let the body work on its part",
                place,
                sent,
            )


def _in_regions(flow: _Flow, rows: Sequence[Row]) -> Iterator[Cause]:
    """Yield a cause for each line of a shard_map with a collective of whose result less is needed."""
    cost: dict[tuple[Place, str], list[Row]] = defaultdict(list)
    for row in (one for one in rows if "shard_map" in one.names and one.kind in (kinds.ALL_REDUCE, kinds.ALL_GATHER)):
        made = [op.results[0] for op in _of_region(flow, row)]
        is_used = _is_cut if row.kind == kinds.ALL_REDUCE else _is_reduced
        if made and all(is_used(flow, value, row.axes) for value in made):
            cost[row.place, row.kind].append(row)
    for (place, kind), some in cost.items():
        sent, axes = sum(row.bytes_received for row in some), _axes(some[0])
        if kind == kinds.ALL_REDUCE:
            yield Cause(
                f"psum gives each device of {axes} the whole sum, of which the device uses a part, which costs "
                f"{show_bytes(sent // 2)} received",
                f"use psum_scatter, and let out_specs split that dimension over {axes}",
                place,
                sent // 2,
            )
        else:
            yield Cause(
                f"an array is gathered over {axes} and then only reduced, which costs {show_bytes(sent)} received",
                "reduce the part of each device, and combine the results with psum or pmax",
                place,
                sent,
            )


def _of_region(flow: _Flow, row: Row) -> list[Op]:
    """Return the collectives of a shard_map that ``row`` may be: those of its line, or of its size where they are in a
    loop, whose ops have no line here.
    """
    here = [op for op in flow.at[*_line(row.place), row.kind] if op.kind is OpKind.UNTOUCHED]
    name, sizes = f"stablehlo.{row.kind}", set(_counts(row.result))
    return here or [
        op
        for op in flow.ops
        if op.number < 0 and op.name == name and prod(flow.program.array(op.results[0]).shape) in sizes
    ]


def _is_cut(flow: _Flow, value: int, axes: Sequence[str], steps: int = STEPS) -> bool:
    """Return whether each device uses, of ``value``, the part that ``axes`` split off."""
    users = flow.users[value]
    returned = [place for place, one in enumerate(flow.program.body.returned) if one == value]
    ends = [flow.program.result_annotations[place].sharding for place in returned]
    for op in users:
        array, sharding = flow.program.arrays[op.results[0]] if op.results else None, None
        if op.name.endswith("slice"):
            continue
        if op.kind is OpKind.UNTOUCHED and op.name not in _PASSED:
            return False
        if op.kind is not OpKind.UNTOUCHED and array is not None:
            annotation = flow.program.annotations.get(op.results[0])
            sharding = annotation.sharding if annotation else flow.context.now.get(op.results[0])
        spec = None if array is None else whole(sharding, array.rank, flow.program)
        is_split = not axes_of(spec).isdisjoint(axes)
        if not is_split and not (steps and op.name in _PASSED and _is_cut(flow, op.results[0], axes, steps - 1)):
            return False
    rank = 0 if flow.program.arrays[value] is None else flow.program.array(value).rank
    split = (not axes_of(whole(one, rank, flow.program)).isdisjoint(axes) for one in ends)
    return bool(users or ends) and all(split)


def _is_reduced(flow: _Flow, value: int, axes: Sequence[str], steps: int = STEPS) -> bool:
    """Return whether all that a shard_map does with ``value`` ends in reductions to less than a device had."""
    users, least = flow.users[value], prod(flow.context.axes.get(axis, 1) for axis in axes)
    for op in users:
        if op.kind is not OpKind.UNTOUCHED or not steps or not op.results:
            return False
        was, now = flow.bytes(value), flow.bytes(op.results[0])
        is_scalar = flow.program.array(op.results[0]).rank == 0
        if op.name == "stablehlo.reduce" or (op.name == "stablehlo.dot_general" and is_scalar):
            if now * least > was:
                return False
            continue
        is_other = op.name in _MIXING or now < was or op.blocks or op.inside
        if is_other or not _is_reduced(flow, op.results[0], axes, steps - 1):
            return False
    return bool(users)


def _enlarged(flow: _Flow, rows: Sequence[Row]) -> Iterator[Cause]:
    """Yield a cause for each array that is sent after it was cast or repeated."""
    groups: dict[tuple[Place, int, int], list[Row]] = defaultdict(list)
    own = [op for op in flow.ops if op.kind is OpKind.UNTOUCHED and op.name.removeprefix("stablehlo.") in _MOVED]
    for row in rows:
        if row.kind not in _MOVED:
            continue
        if "shard_map" in row.names:
            sent = [op.operands[:1] for op in own if op.name.removeprefix("stablehlo.") == row.kind]
        else:
            sent = [op.operands for op in flow.at[*_line(row.place), row.names.rpartition("/")[2]]]
        for operands in sent:  # of an op; one of them is sent
            made = [(flow.least(one), flow.bytes(one)) for one in operands if _may_be(flow, one, row)]
            least, whole = max(made, key=lambda one: one[0] / max(1, one[1]), default=(0, 0))
            if 0 < least <= HALF * whole:
                groups[row.place, least, whole].append(row)
                break
    for (place, least, whole), some in groups.items():
        first, cost = max(some, key=lambda row: row.bytes_received), sum(row.bytes_received for row in some)
        name = f"`{first.array}`" if first.array else "an array"
        yield Cause(
            f"{name} is sent after it was cast or repeated, {show_bytes(whole)} made of {show_bytes(least)}, "
            f"which costs {show_bytes(cost * (whole - least) // whole)} received",
            "send what it is made of, and cast or repeat it after that",
            place,
            cost * (whole - least) // whole,
        )


def _may_be(flow: _Flow, value: int, row: Row) -> bool:
    """Return whether ``row`` may send ``value``, by the number of its elements."""
    array = flow.program.arrays[value]
    count = 0 if array is None else prod(array.shape)
    return count > 1 and any(count % size == 0 and size > 1 for size in _counts(row.result))


def _uneven(context: Context) -> Iterator[Cause]:
    """Yield a cause for each argument that is not split over an axis because the axis does not divide one of its
    sizes.
    """
    for site in context.sites.arguments:
        for name, shards in context.axes.items():
            sizes = [(dim, size) for dim, size in enumerate(site.array.shape) if size > shards and size % shards]
            is_state = site.array in context.state_types
            alike = (one for one in context.sites.arguments if (one.array in context.state_types) == is_state)
            if not sizes or name in axes_of(site.spec) or not any(name in axes_of(one.spec) for one in alike):
                continue
            dim, size = sizes[0]
            memory = site.bytes // prod(context.axes[one] for one in axes_of(site.spec))
            memory -= memory // shards
            up = -(-size // shards) * shards
            yield Cause(
                f"`{site.pattern}` is whole over {name}: its dimension {dim} is {size}, no multiple of {shards}, which "
                f"costs {show_bytes(memory)} of memory",
                f"make dimension {dim} {up} by padding, or split another dimension over {name}",
                memory=memory,
            )


def _line(place: Place) -> tuple[str, int]:
    return place.file, place.line


def _named(place: Place) -> str:
    return "" if place == NOWHERE else f" at line {place.line}"


def _axes(row: Row) -> str:
    return " and ".join(row.axes) or "devices"


def _counts(types: str) -> Iterable[int]:
    """Return the numbers of elements of the tensor types of a row: "tensor<4x8xf32>, ..."."""
    for one in types.split(", "):
        sizes = one.removeprefix("tensor<").rstrip(">").split("x")[:-1]
        if all(size.isdigit() for size in sizes):
            yield prod(map(int, sizes))
