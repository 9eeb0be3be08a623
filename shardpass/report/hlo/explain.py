"""Make an ``Explanation`` of optimized HLO: the program that runs, from any partitioner.

Everything is read from the text. Kind, groups, bytes and trips are those of ``hlo``; the line, the name
stack and the array come from the metadata that JAX wrote and XLA kept; memory is what XLA counted, where the program
was compiled here. What the text does not say is left out: sharded types are not known, and without a mesh neither are
the names of axes.

XLA:CPU leaves all_reduce and slice where its siblings for GPU and TPU compile a reduce_scatter of half the bytes. A
program for CPU devices that is timed for another machine stands for what these would send: such a sum counts as
reduce_scatter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from shardpass.cost.chosen import chosen
from shardpass.cost.collective import ALL_REDUCE, ALL_TO_ALL, PERMUTE, REDUCE_SCATTER
from shardpass.cost.groups import seconds
from shardpass.cost.machine import Machine
from shardpass.diagnostics import Place
from shardpass.diagnostics.table_driver import CANNOT_READ
from shardpass.hlo.alive import alive_at_peak
from shardpass.hlo.asynchronous import CPU, backend_of
from shardpass.hlo.collectives import HloCollective, HloCollectives
from shardpass.hlo.estimates import estimated_cycles
from shardpass.hlo.read import HloProgram, read_program
from shardpass.hlo.slices import Slices
from shardpass.hlo.work import OpWork, work_of
from shardpass.ir.collectives import Ints, axes_of_groups
from shardpass.ir.context import UNNAMED
from shardpass.report.explanation import Explanation
from shardpass.report.hlo.measured import measured
from shardpass.report.hlo.schedule import OwnWork, schedule_hlo
from shardpass.report.hlo.values import Part, Values
from shardpass.report.hlo.words import Words
from shardpass.report.naming import Sources, path_of, seen_frame
from shardpass.report.rows import BACKWARD, FORWARD, Holding, MemoryFacts, Row, WorkFact
from shardpass.sharding import Mesh
from shardpass.sharding.quoting import listed, shown
from shardpass.targets.target import clock_of

MOST_HELD = 10  # arrays that are listed
_RAGGED = "ragged_all_to_all"
_MESH = re.compile(r"\bmesh\[('[^\]]*)\]|#sdy\.mesh<\[([^\]]*)\]>")
_AXIS = re.compile(r"""['"]([^'"]+)['"]=(\d+)""")
_UNNAMED_AXIS = re.compile(r"axis_\d+")


def explain_hlo(
    text: str,
    file: str,
    *,
    partitioner: str = "xla",
    mesh: Mesh | None = None,
    machine: Machine | str | None = None,
    memory: MemoryFacts | None = None,
    folders: Sequence[Path] | None = None,
    compiler: str = "",
    lists: bool = False,
) -> Explanation:
    """Explain a partitioned program in HLO's text.

    ``mesh``: whose axes name the groups; by default the one that the text names, if any. ``machine``: whose time is
    modelled. ``memory``: what XLA counted. ``folders``: as ``explain_module`` takes them. ``compiler``: what compiled
    the program, and for which devices. ``lists``: whether the arrays at the peak of ``memory`` are listed.

    Raises ShardpassError: SP120 for replica groups that are none, SP901 to SP903 for a machine that is none.
    """
    program = read_program(text)
    try:
        collectives = HloCollectives(program)
    except ValueError as error:
        hint = "give the text as XLA printed it"
        raise CANNOT_READ.error(Place(file), reason=f"in HLO's replica groups: {error}", hint=hint) from None
    machine = chosen(machine)
    devices = collectives.devices
    if mesh is None or mesh.size != devices:
        mesh = mesh_in(text, devices)
    sources = Sources(folders)
    backend = backend_of(text)
    maker = _Rows(program, mesh, devices, machine, sources, partitioner, backend == CPU and machine.name != CPU)
    made = [(row, one) for one in collectives.rows if one.times for row in maker.of(one)]
    rows = tuple(row for row, _ in made)
    every = work_of(program)
    work = _work(program, every, machine)
    clock = clock_of(machine.name)
    estimates = _estimates(every, clock)
    timed = {key: replace(one, seconds=estimates.get(key, one.seconds)) for key, one in work.items()}
    estimated = sum(estimates[key] * work[key].times for key in estimates) if estimates else None
    name = program.name.removeprefix("jit_") if file == UNNAMED else file
    return Explanation(
        name,
        devices,
        () if mesh is None else tuple(mesh.axes),
        rows,
        machine.name,
        compute=tuple(WorkFact(-1, one.place, one.seconds * one.times) for one in work.values()),
        flops=round(sum(one.times * one.work.flops for one in every)),
        measure=lambda folder: measured(program, made, folder),
        estimated_seconds=estimated,
        find_schedule=lambda: schedule_hlo(program, rows, [one.op for _, one in made], timed, backend),
        memory=memory if memory is None or not lists else replace(memory, holdings=_holdings(program)),
        sources=sources,
        partitioner=partitioner,
        memory_limit=machine.memory_limit,
        compiler=compiler,
    )


def mesh_in(text: str, devices: int) -> Mesh | None:
    """Return the mesh of ``devices`` named by replica groups or Shardy's attributes; None if there is none.

    XLA names the axes of a device list ``axis_0``, ``axis_1``: these names do not come from the user.
    """
    for groups, shardy in dict.fromkeys(_MESH.findall(text)):
        axes = [(name, int(size)) for name, size in _AXIS.findall(groups or shardy)]
        named = not any(_UNNAMED_AXIS.fullmatch(name) for name, _ in axes)
        size = int(np.prod([size for _, size in axes], dtype=object)) if axes else 0
        if size == devices and named and len(dict(axes)) == len(axes):
            return Mesh(axes)
    return None


def _work(program: HloProgram, every: Sequence[OpWork], machine: Machine) -> dict[int, OwnWork]:
    """Map the ``id`` of an op to the op's own work: computation, and copies through memory."""
    places: dict[tuple[str, str], Place] = {}
    result: dict[int, OwnWork] = {}
    for one in every:
        key = program.frames.location(one.op.attributes), shown(one.op.stack)
        if key not in places:
            places[key] = seen_frame(*key).place
        earlier = result[id(one.op)].times if id(one.op) in result else 0
        result[id(one.op)] = OwnWork(machine.seconds(one.work), earlier + one.times, places[key])
    return result


def _holdings(program: HloProgram) -> tuple[Holding, ...]:
    """List the largest arguments, or the largest temporaries if these need the most memory."""
    entry = program.computations.get(program.entry)
    arrays = [(op, shape) for op in (entry.parameters.values() if entry else ()) for shape in op.shapes]
    arrays += [(one.op, one.shape) for one in alive_at_peak(program)]
    result = []
    for op, shape in sorted(arrays, key=lambda one: -one[1].bytes)[:MOST_HELD]:
        stack = shown(op.stack)
        place = seen_frame(program.frames.location(op.attributes), stack).place
        result.append(Holding(stack.rpartition("/")[2] or op.opcode, str(shape), shape.bytes, place))
    return tuple(result)


def _estimates(every: Sequence[OpWork], clock: float) -> dict[int, float]:
    """Map the ``id`` of an op to the compiler's estimate of its seconds in one run."""
    if not clock:
        return {}
    cycles = ((id(one.op), estimated_cycles(one.op)) for one in every)
    return {key: count / clock for key, count in cycles if count is not None}


class _Rows:
    """Makes the report rows of the collectives of one HLO program."""

    def __init__(
        self,
        program: HloProgram,
        mesh: Mesh | None,
        devices: int,
        machine: Machine,
        sources: Sources,
        partitioner: str,
        scatters: bool,
    ) -> None:
        self.scatters = scatters
        self.program, self.mesh, self.machine = program, mesh, machine
        self.everybody = frozenset(range(devices))
        self.borders = tuple(mesh.strides.values()) if mesh is not None and mesh.is_iota else ()
        self.values = Values(program, sources)
        self.words = Words(program, self.values, partitioner)
        self.slices = Slices(program)

    def of(self, one: HloCollective) -> Iterator[Row]:
        """Yield the rows of a collective: one for each line whose arrays move, and for each group size."""
        kept = self.slices.sliced_results(one) if one.kind == ALL_REDUCE else frozenset()
        parts, groups = self.values.parts(one, kept), _array(one)
        axes = "" if self.mesh is None else axes_of_groups(self.mesh, groups, one.kind != PERMUTE)
        for number, part in enumerate(parts):
            stack = shown(part.named.stack)
            location = self.program.frames.location(part.named.attributes)
            for share, receivers in _shares(one, parts, number):
                scatters = self.scatters and part.sliced
                kind, sent = (REDUCE_SCATTER, share // 2) if scatters else (one.kind, share)
                yield Row(
                    kind,
                    tuple(listed(axes)),
                    max(map(len, one.groups)),
                    sent,
                    ", ".join(shape.mlir for shape in part.given),
                    ", ".join(shape.mlir for shape in part.results),
                    array=self.values.array(one.computation, part),
                    direction=BACKWARD if "transpose(" in stack else FORWARD,
                    names=stack,
                    place=seen_frame(location, stack).place,
                    path=path_of(location, stack),
                    times=one.times,
                    unknown_loops=one.unknown_loops,
                    counted=one.counted,
                    seconds=self._seconds(one, kind, share, groups),
                    reason=self.words.reason(one, part),
                    receivers=None if frozenset(receivers) == self.everybody else tuple(sorted(receivers)),
                    joined=number > 0,
                    sliced=part.sliced,
                )

    def _seconds(self, one: HloCollective, sent_as: str, share: int, groups: Ints) -> float:
        """Return the seconds of a part of a collective, in proportion to the part's bytes."""
        whole = max(one.received, default=0)
        if not one.counted or not whole:
            return 0.0
        kind = ALL_TO_ALL if sent_as == _RAGGED else sent_as
        size = whole // 2 if sent_as != one.kind else whole
        return one.times * seconds(self.machine, kind, size, groups, self.borders) * share / whole


def _shares(one: HloCollective, parts: Sequence[Part], number: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the bytes of the part ``number`` with the devices that receive them; the first part has the rest from
    rounding.
    """
    if len(parts) == 1:
        yield from one.received.items()
        return
    sizes = [sum(shape.bytes for shape in part.results) for part in parts]
    total = max(1, sum(sizes))
    for share, receivers in one.received.items():
        rounded = [share * size // total for size in sizes]
        rounded[0] += share - sum(rounded)
        yield rounded[number], receivers


def _array(one: HloCollective) -> Ints:
    """Return the largest groups of a collective, one per row."""
    size = max(map(len, one.groups))
    return np.array([group for group in one.groups if len(group) == size], dtype=np.int64)
