"""List the collectives of an HLO program, with their groups, bytes and number of runs.

Cases:

1. An asynchronous pair counts at its start, as ``all-gather-start``, or as ``async-start`` of a computation.
2. A collective in a fusion or a called computation runs as often as what calls it; one op that several call is one
   collective, whose times add up.
3. A loop's body runs as often as ``trip_counts`` says; else once, and the collective is marked.
4. Of a conditional's branches the one that receives most counts. The loop of a windowed einsum sends in a conditional,
   whose other branch, ``last_iteration_noop``, is that of the last trip.
5. Groups of one device, and permutes from each device to itself, move nothing and are left out.
6. XLA for TPU writes a reduce-scatter as a fusion of all-reduce and slice which calls ``all-reduce-scatter.3``: this
   counts as the reduce-scatter that runs.
7. XLA for GPU may write a permute as ``send`` and ``recv`` with pairs in ``frontend_attributes``: the latter counts.
8. XLA for TPU repeats a collective in each fusion that runs beside it (``hlo.asynchronous``): the first counts.
9. Groups name replicas, partitions, or both (``use_global_device_ids``), as XLA's semantics of channels have it; a
   device is replica * partitions + partition.

Bytes are those of ``cost.collective``; shapes in HLO are a device's, and only results are read.

Cost: O(ops), and O(collectives * devices).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardpass.cost.collective import BY_GLOBAL_IDS, FACTS, REDUCE_SCATTER, bytes_received, hlo_name
from shardpass.hlo.asynchronous import continued
from shardpass.hlo.groups import Groups, check_count, devices_of_line, groups_of_line
from shardpass.hlo.read import HloOp, HloProgram
from shardpass.hlo.trip_counts import trip_count

KINDS = frozenset(map(hlo_name, FACTS))
_SCATTERS = "all-reduce-scatter"  # the name of a computation
_LAST = "last_iteration_noop"
_RUN = frozenset({"fusion", "call", "async-start", "custom-call"})
_BY_GROUP = frozenset(map(hlo_name, BY_GLOBAL_IDS))  # whose ids may be those of devices

Sums = NDArray[np.object_]  # by device; Python's integers, which have no bound


@dataclass(frozen=True, slots=True)
class HloCollective:
    """A collective of an HLO program.

    Attributes:
        computation: the name of the computation that contains it.
        kind: in StableHLO's words.
        groups: the devices that exchange data; for a permute the pairs of different devices.
        times: how often it runs; a loop whose trips are not known counts once.
        unknown_loops: the number of such loops around it.
        counted: False in a branch of a conditional of which another branch receives more.
    """

    op: HloOp
    computation: str
    kind: str
    groups: Groups
    times: int = 1
    unknown_loops: int = 0
    counted: bool = True

    @property
    def received(self) -> Mapping[int, tuple[int, ...]]:
        """Map each number of bytes to the devices that receive that many bytes in one run of the collective."""
        size = sum(shape.bytes for shape in self.op.results)
        result: dict[int, list[int]] = {}
        for group in self.groups:
            receivers = group if FACTS[self.kind].passes else group[1:]
            whole = size * len(group) if self.op.opcode.startswith("reduce-scatter") else size
            result.setdefault(bytes_received(self.kind, whole, len(group)), []).extend(receivers)
        return {share: tuple(devices) for share, devices in result.items()}

    def by_device(self, devices: int) -> Sums:
        """Return the bytes that each device receives in one run of the collective, object [devices]."""
        sums = np.zeros(devices, object)
        for share, receivers in self.received.items():
            sums[[device for device in receivers if device < devices]] += share
        return sums


class _Around(NamedTuple):
    """The loops and conditionals around a computation, apart from the number of its runs."""

    unknown: int
    counted: bool


class _Call(NamedTuple):
    """A computation that an op calls.

    ``trips``: the number of runs, None if unknown. ``branch``: of a conditional. ``but_last``: not run in the last trip
    of the surrounding loop.
    """

    name: str
    trips: int | None
    branch: bool = False
    but_last: bool = False


class HloCollectives:
    """The collectives of ``program``. ``devices``: by default the number in the header or in the groups.

    Raises ValueError for text that is no group, and for too many devices.
    """

    def __init__(self, program: HloProgram, devices: int | None = None) -> None:
        self.program = program
        self.devices = devices or program.replicas * program.partitions
        if self.devices == 1:
            ops = (op for computation in program.computations.values() for op in computation.ops.values())
            named = (devices_of_line(op.attributes) for op in ops if op.opcode.removesuffix("-start") in KINDS)
            self.devices = max(named, default=1)
        check_count(self.devices)
        self._own: dict[str, list[HloCollective]] = {}
        self._calls: dict[str, list[tuple[HloOp, tuple[_Call, ...]]]] = {}
        repeated = continued(program)
        for name, computation in program.computations.items():
            ops = (op for op in computation.ops.values() if id(op) not in repeated)
            collectives = [(op, self._collective(op, name)) for op in ops]
            self._own[name] = [one for _, one in collectives if one is not None]
            calls = ((op, tuple(self._called(op, name))) for op, one in collectives if one is None)
            self._calls[name] = [(op, names) for op, names in calls if names]
        self._order = list(self._callees_first())
        self._sums: dict[str, Sums] = {}

    @cached_property
    def rows(self) -> tuple[HloCollective, ...]:
        """Each collective as it runs, those of a computation together, in the order in which they first run."""
        around: dict[str, dict[_Around, int]] = {self.program.entry: {_Around(0, True): 1}}
        trips = {call.name: call.trips for calls in self._calls.values() for _, some in calls for call in some}
        for name in reversed(self._order):
            for _, calls in self._calls.get(name, ()):
                dearest = self._dearest(calls)
                for place, call in enumerate(calls):
                    inner = around.setdefault(call.name, {})
                    for where, runs in around.get(name, {}).items():
                        loops = runs // (trips.get(name) or 1)
                        times = runs - loops if call.but_last else runs
                        counted = where.counted and (not call.branch or place == dearest)
                        key = _Around(where.unknown + (call.trips is None), counted)
                        inner[key] = inner.get(key, 0) + times * (1 if call.trips is None else call.trips)
        return tuple(
            replace(one, times=times, unknown_loops=where.unknown, counted=where.counted)
            for one in self._in_order()
            for where, times in around.get(one.computation, {}).items()
        )

    # ---------------------------------------------------------------- one op

    def _collective(self, op: HloOp, computation: str) -> HloCollective | None:
        kind = op.opcode.removesuffix("-start")
        if kind == "recv" and "source_target_pairs=" in op.attributes:
            kind = "collective-permute"
        if kind not in KINDS:
            return None
        groups = tuple(group for group in self._groups(op, kind) if len(group) > 1)
        scatters = kind == "all-reduce" and computation.startswith(_SCATTERS)
        name = REDUCE_SCATTER if scatters else kind.replace("-", "_")
        return HloCollective(op, computation, name, groups) if groups else None

    def _groups(self, op: HloOp, kind: str) -> Groups:
        """Read the groups as lists of devices."""
        program = self.program
        partitions = program.partitions
        channel, by_device = "channel_id=" in op.attributes, "use_global_device_ids=true" in op.attributes
        several = program.replicas > 1
        crosses = channel and not by_device and kind in _BY_GROUP  # ids are replicas, each with all its partitions
        if crosses and not several and partitions > 1:
            named = groups_of_line(kind.replace("-", "_"), op.attributes, 1)
            if all(group == (0,) for group in named):
                return (tuple(range(partitions)),)
        if not several or by_device:
            return groups_of_line(kind.replace("-", "_"), op.attributes, self.devices)
        count = partitions if channel and not crosses else program.replicas
        named = groups_of_line(kind.replace("-", "_"), op.attributes, count)
        if crosses:
            return tuple(tuple(r * partitions + p for r in group for p in range(partitions)) for group in named)
        if channel:
            return tuple(tuple(r * partitions + p for p in group) for r in range(program.replicas) for group in named)
        return tuple(tuple(r * partitions + p for r in group) for p in range(partitions) for group in named)

    def _called(self, op: HloOp, computation: str) -> Iterator[_Call]:
        if op.opcode == "while":
            trips = trip_count(self.program, computation, op)
            yield from (_Call(name, trips) for _, name in op.called)
        elif op.opcode == "conditional":
            last = any(name.startswith(_LAST) for _, name in op.called)
            yield from (_Call(name, 1, branch=True, but_last=last) for _, name in op.called)
        elif op.opcode in _RUN:
            yield from (_Call(name, 1) for _, name in op.called)

    # ---------------------------------------------------------------- the graph of calls

    def _callees_first(self) -> Iterator[str]:
        """Yield the computations that run, callees before callers; recursive calls are ignored."""
        seen = {self.program.entry}
        stack = [(self.program.entry, self._names(self.program.entry))]
        while stack:
            name, below = stack[-1]
            inner = next((one for one in below if one not in seen), None)
            if inner is None:
                stack.pop()
                yield name
            else:
                seen.add(inner)
                stack.append((inner, self._names(inner)))

    def _names(self, name: str) -> Iterator[str]:
        return (call.name for _, calls in self._calls.get(name, ()) for call in calls)

    def _in_order(self) -> Iterator[HloCollective]:
        """Yield all collectives that run, in the order of the ops around them."""
        seen = {self.program.entry}
        stack = [iter(self._events(self.program.entry))]
        while stack:
            event = next(stack[-1], None)
            if event is None:
                stack.pop()
            elif isinstance(event, HloCollective):
                yield event
            elif event not in seen:
                seen.add(event)
                stack.append(iter(self._events(event)))

    def _events(self, name: str) -> list[HloCollective | str]:
        """Return the collectives of a computation and the names of the computations it calls, in order."""
        computation = self.program.computations.get(name)
        if computation is None:
            return []
        places = {op: place for place, op in enumerate(computation.ops)}
        result: list[tuple[int, HloCollective | str]] = [(places[one.op.name], one) for one in self._own[name]]
        result += [(places[op.name], call.name) for op, calls in self._calls[name] for call in calls]
        return [event for _, event in sorted(result, key=lambda pair: pair[0])]

    # ---------------------------------------------------------------- what a branch receives

    def _dearest(self, calls: tuple[_Call, ...]) -> int:
        if not any(call.branch for call in calls):
            return 0
        return max(range(len(calls)), key=lambda place: max(self._sum(calls[place].name), default=0))

    def _sum(self, wanted: str) -> Sums:
        """Return the bytes that each device receives in one run of the computation ``wanted``."""
        for name in self._order if wanted not in self._sums else ():
            if name in self._sums:
                continue
            total = np.zeros(self.devices, object)
            for one in self._own.get(name, ()):
                total += one.by_device(self.devices)
            for _, calls in self._calls.get(name, ()):
                parts = [self._sums.get(call.name, np.zeros(self.devices, object)) for call in calls]
                if any(call.branch for call in calls):
                    total += max(parts, key=lambda sums: max(sums, default=0))
                else:
                    for call, part in zip(calls, parts, strict=True):
                        total += part * (1 if call.trips is None else call.trips)
            self._sums[name] = total
        return self._sums.get(wanted, np.zeros(self.devices, object))
