"""``Report``: the facts about a program, in a form that every renderer takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from shardpass.by_device import most_received
from shardpass.diagnostics import Place
from shardpass.ir.doors import Given
from shardpass.report.findings import Findings, Gap
from shardpass.report.groups import AXIS, KIND, LINE, Group, group
from shardpass.report.naming import Sources
from shardpass.report.profile import Measured
from shardpass.report.rows import (
    ChangeFact,
    ConstraintFact,
    DecidedFact,
    HintFact,
    LoopFact,
    MemoryFacts,
    OpFact,
    Row,
    Totals,
    WorkFact,
)
from shardpass.report.schedule import Schedule

SCHEMA_VERSION = 2  # of docs/report.schema.json: another where a field goes or changes its meaning
COMPUTE, COMMUNICATION = "compute", "communication"


def _none() -> None:
    """Return None, the default of ``find_`` fields whose facts are unknown."""


@dataclass(frozen=True)
class Report(Totals):
    """The collectives of one program.

    Attributes:
        file: the name of the program.
        devices: the number of devices.
        mesh: the axes of the mesh with their sizes; () if the program has no mesh.
        rows: the collectives, in program order.
        profile: the name of the machine whose time is modeled.
        compute: the work of a device; None for a module that was already partitioned, which has no plan.
        flops: operations of products and convolutions of a device in one run; None if unknown.
        memory: an estimate of the memory of a device for the compiled module.
        changes: the shardings that the search changed.
        decision: the price of the shardings and its lower bound, in the model that was solved
            (``planning.search.Bound``); None if none was solved.
        sources: reads the user's files, for renderers that quote them.
        plan: the ``ProgramPlan``; None for a module that was already partitioned.
        given: the program before partitioning, for comparisons with other partitioners.
        built: the partitioned module, or the program of another partitioner.
        find_ops, find_findings, find_gap, find_decided, find_constraints, find_schedule: compute ``ops``,
            ``findings``, ``gap``, ``decided``, ``constraints`` and ``schedule``.
        measured: the seconds of the rows in a profile; None without a profile.
        measure: reads the profile in a folder; None unless the report is of HLO.
        trips: the trip count to assume for loops with an unknown count; None for no assumption.
        loops: collective matmuls, whose permutes are overlapped with products.
        partitioner: the partitioner of the program: "shardpass", "xla" or "shardy".
        compiler: the compiler of the program and its target: "XLA:TPU for v5e:4x4 (libtpu 0.0.42.1)"; "" if unknown.
        stand_in: the compiler of the program with the reason, if it is not the machine's own compiler; else "".
        estimated_seconds: the work of a device by the compiler's own estimate, for ops that have one; None without
            estimates.
        command: the command line that made the report; "" if there was none.
        hints: annotations that reduce cost; None if the report was made without hints.
        memory_limit: the memory of a device in bytes, from the machine or the user's option; None for no limit.
    """

    file: str
    devices: int
    mesh: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]
    profile: str = "default"
    compute: tuple[WorkFact, ...] | None = None
    flops: int | None = None
    memory: MemoryFacts | None = None
    changes: tuple[ChangeFact, ...] = ()
    decision: Mapping[str, object] | None = None
    sources: Sources = field(default_factory=Sources, repr=False, compare=False)
    plan: Any = field(default=None, repr=False, compare=False)
    given: Given = field(default="", repr=False, compare=False)
    built: Any = field(default=None, repr=False, compare=False)
    find_ops: Callable[[], tuple[OpFact, ...]] = field(default=tuple, repr=False, compare=False)
    find_constraints: Callable[[], tuple[ConstraintFact, ...]] = field(default=tuple, repr=False, compare=False)
    measure: Callable[[str], Measured] | None = field(default=None, repr=False, compare=False)
    measured: Measured | None = None
    find_schedule: Callable[[], Schedule | None] = field(default=_none, repr=False, compare=False)
    trips: int | None = None
    memory_limit: int | None = None
    hints: tuple[HintFact, ...] | None = None
    loops: tuple[LoopFact, ...] = ()
    partitioner: str = "shardpass"
    compiler: str = ""
    stand_in: str = ""
    estimated_seconds: float | None = None
    command: str = ""
    find_findings: Callable[[], Findings | None] = field(default=_none, repr=False, compare=False)
    find_gap: Callable[[], Gap | None] = field(default=_none, repr=False, compare=False)
    find_decided: Callable[[], tuple[DecidedFact, ...]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def ops(self) -> tuple[OpFact, ...]:
        """The ops of the program before partitioning; () for an already partitioned module."""
        return self.find_ops()

    @cached_property
    def findings(self) -> Findings | None:
        """Edits that reduce cost, each compiled by the partitioner. The first use searches for them and takes as long
        as several compilations. None for a program partitioned by shardpass or before the report.
        """
        return self.find_findings()

    @cached_property
    def gap(self) -> Gap | None:
        """The figures of the program, of shardpass's own program, and of the pinned program. The first use computes
        them.

        None as for ``findings``.
        """
        return self.find_gap()

    @cached_property
    def decided(self) -> tuple[DecidedFact, ...]:
        """The shardings of the search that save most, each with an annotation; computed at the first use."""
        return self.find_decided()

    @cached_property
    def constraints(self) -> tuple[ConstraintFact, ...]:
        """The constraints that cost more than they must, in program order, each tried by planning without it."""
        return self.find_constraints()

    @cached_property
    def schedule(self) -> Schedule | None:
        """Modelled times of collectives and work with overlap; None if the time of a row is unknown."""
        schedule = self.find_schedule()
        return schedule if schedule is not None and len(schedule.exposed) == len(self.rows) else None

    @property
    def total_bytes_received(self) -> int:
        """Bytes that the busiest device receives in one run."""
        return self.bytes_received

    @property
    def compute_seconds(self) -> float | None:
        """Seconds of a device's computation and copies in one run; None if unknown."""
        return None if self.compute is None else sum(one.seconds for one in self.compute)

    @property
    def step_seconds(self) -> float | None:
        """Seconds of a run: in the compiler's order if known, else the sum of ``seconds`` and ``compute_seconds``."""
        if self.compute_seconds is None:
            return None
        return self.seconds + self.compute_seconds if self._ordered is None else self._ordered.seconds

    @property
    def bound_by(self) -> str | None:
        """COMPUTE or COMMUNICATION, whichever takes longer; None if the computation time is unknown."""
        if self.compute_seconds is None:
            return None
        work = self.compute_seconds if self._ordered is None else self._ordered.one_by_one - self.seconds
        return COMMUNICATION if self.seconds > work else COMPUTE

    @property
    def _ordered(self) -> Schedule | None:
        """The schedule that the compiler of the program wrote."""
        return self.schedule if self.schedule is not None and self.schedule.compiler else None

    def compute_by_line(self) -> tuple[tuple[Place, float], ...]:
        """Return the seconds that a device computes for each of the user's lines, the most first."""
        result: dict[Place, float] = {}
        for one in self.compute or ():
            result[one.place] = result.get(one.place, 0.0) + one.seconds
        return tuple(sorted(result.items(), key=lambda one: -one[1]))

    @property
    def unknown_loops(self) -> int:
        """Collectives in loops with an unknown number of trips."""
        return sum(row.unknown_loops > 0 for row in self.rows)

    def bytes_at_most(self, trips: int) -> int:
        """Sum bytes as ``total_bytes_received``, where each loop of unknown length runs ``trips`` times."""
        return most_received((row.bytes_at_most(trips), row.receivers) for row in self.rows)

    @property
    def by_kind(self) -> Mapping[str, tuple[int, int]]:
        """kind -> (how many run, bytes received by a device), most bytes first."""
        return {one.key: (one.runs, one.bytes_received) for one in self.grouped(KIND)}

    def grouped(self, by: str = LINE, sort: str = "bytes") -> tuple[Group, ...]:
        """Group the rows by "line", "axis", "kind" or "array"; sorted by "bytes", "time", or their place in the
        "program".
        """
        return group(self.rows, by, sort)

    def by_line(self) -> tuple[Group, ...]:
        """Group the rows by the user's lines, most bytes first."""
        return self.grouped(LINE)

    def by_axis(self) -> tuple[Group, ...]:
        """Group the rows by mesh axes, most bytes first."""
        return self.grouped(AXIS)

    @property
    def does_not_fit(self) -> bool:
        """Whether a device needs more than ``memory_limit``."""
        return self.memory is not None and self.memory_limit is not None and self.memory.total > self.memory_limit

    # ---------------------------------------------------------------- for programs

    def json(self) -> str:
        """Write every number of the report as JSON. Bytes are those received by one device; places count from 1, 0 is
        unknown.
        """
        return json.dumps(self.as_dict(), indent=2)

    def as_dict(self) -> dict[str, object]:
        """Return the report as plain values, which ``json`` writes."""
        numbers = {id(row): number for number, row in enumerate(self.rows)}
        result: dict[str, object] = {
            "schema_version": SCHEMA_VERSION,
            "file": self.file,
            "devices": self.devices,
            "mesh": dict(self.mesh),
            "profile": self.profile,
            "partitioner": self.partitioner,
            **({"compiler": self.compiler or self.stand_in} if self.compiler or self.stand_in else {}),
            "total_bytes_received": self.total_bytes_received,
            "seconds": self.seconds,
            "compute_seconds": self.compute_seconds,
            "step_seconds": self.step_seconds,
            **({} if self.estimated_seconds is None else {"estimated_compute_seconds": self.estimated_seconds}),
            "bound_by": self.bound_by,
            "collectives_in_loops_of_unknown_length": self.unknown_loops,
            "collectives": self._collectives(),
            "lines": [_line(one, self.total_bytes_received, numbers) for one in self.by_line()],
            "settled": [{"told": one.message, "place": str(one.place), "saved": one.saved} for one in self.changes],
        }
        if self.decided:
            result["decided"] = [{**asdict(one), "place": str(one.place)} for one in self.decided]
        if self.constraints:
            result["constraints"] = [{**asdict(one), "place": str(one.place)} for one in self.constraints]
        if self.decision is not None:
            result["decision"] = dict(self.decision)
        if self.compute is not None:
            lines = self.compute_by_line()
            result["compute"] = [{"place": str(place), "seconds": seconds} for place, seconds in lines if seconds]
        if self.loops:
            result["products_in_turn"] = [_loop(loop) for loop in self.loops]
        if self.trips is not None:
            result["total_bytes_received_at_most"] = self.bytes_at_most(self.trips)
        if self.findings is not None:
            result["findings"] = self.findings.as_dict()
        if self.gap is not None:
            result["gap"] = self.gap.as_list()
        if self.hints is not None:
            result["hints"] = [{**asdict(hint), "place": str(hint.place), "code": hint.code} for hint in self.hints]
        if self.measured is not None:
            known = self.measured
            result["measured"] = {"file": known.file, "seconds": known.total, "joined": known.joined}
        if self.schedule is not None:
            result["schedule"] = self.schedule.as_dict()
        if self.memory is not None:
            result["memory"] = {**_memory(self.memory), "limit": self.memory_limit, "fits": not self.does_not_fit}
        return result

    def _collectives(self) -> list[dict[str, object]]:
        rows = [row.as_dict() for row in self.rows]
        for name, values in (
            ("exposed_seconds", () if self.schedule is None else self.schedule.exposed),
            ("measured_seconds", () if self.measured is None else self.measured.seconds),
        ):
            for row, value in zip(rows, values, strict=False):
                row[name] = value
        return rows


def _line(one: Group, total: int, numbers: Mapping[int, int]) -> dict[str, object]:
    """Return a line of the user's program, or a part of a line, as plain values; ``collectives`` are indices into the
    list of all collectives.
    """
    return {
        "place": one.key,
        "bytes_received": one.bytes_received,
        "seconds": one.seconds,
        "runs": one.runs,
        "collectives": [numbers[id(row)] for row in one.rows],
        "parts": [_line(part, total, numbers) for part in one.parts(total)],
    }


def _loop(loop: LoopFact) -> dict[str, object]:
    """Return a collective matmul as plain values, under the keys of the schema."""
    fields = {**asdict(loop), "place": str(loop.place)}
    return {"held" if name == "resident_bytes" else name: value for name, value in fields.items()}


def _memory(memory: MemoryFacts) -> dict[str, object]:
    fields = asdict(memory)
    fields["peak_place"] = str(memory.peak_place)
    fields["holdings"] = [{**asdict(one), "place": str(one.place)} for one in memory.holdings]
    return {**fields, "total": memory.total}
