"""``ProgramPlan``: everything that partitioning decides about a program, as one value (``steps`` has its parts).

What it costs is a sum over what it lists: every collective with its bytes, the axes it runs over and how often it runs
(``listed``), the time that these and the work of the ops take on a machine, and the bytes alive at each op (``alive``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from shardpass.by_device import most_received
from shardpass.cost.blocks import client_of
from shardpass.cost.chosen import chosen
from shardpass.cost.machine import IDEAL, Machine
from shardpass.cost.memory import Account
from shardpass.diagnostics.printable import joined
from shardpass.html_table import html_table
from shardpass.planning.plan.loop_account import held_in_turn, in_turn, sent_in_turn
from shardpass.planning.plan.text import lines
from shardpass.planning.price.alive import alive
from shardpass.planning.price.clock import WorkClock, clock_of
from shardpass.planning.price.listed import Sent, listed
from shardpass.planning.price.seconds import Timeline, op_prices
from shardpass.planning.price.steps import BlockPlan, MatmulLoop
from shardpass.program.program import Program
from shardpass.sharding import Sharding

MOST_SHOWN = 40  # collectives in a notebook


@dataclass(frozen=True)
class ProgramPlan:
    """The plan of a whole program.

    ``returned``: the shardings of main's results, None for tokens. ``loops``: the products that run overlapped with a
    collective (``loops``); None if that was not asked for. ``machine``: for which the program is planned.
    """

    program: Program
    body: BlockPlan
    returned: tuple[Sharding | None, ...]
    loops: tuple[MatmulLoop, ...] | None = None
    machine: Machine = IDEAL

    @cached_property
    def collectives(self) -> tuple[Sent, ...]:
        """Every collective that the plan sends, in program order."""
        return tuple(sent_in_turn(listed(self.body, self.machine), self.loops or ()))

    @property
    def bytes_received(self) -> int:
        """The bytes that the device that receives most receives in one run; a loop of unknown trips counts once."""
        return most_received((sent.bytes * sent.times, sent.receivers) for sent in self.collectives)

    @property
    def bytes_by_axes(self) -> dict[str, int]:
        """``bytes_received`` by the mesh axes of the collectives, by name: "x", "x,y", "x:(1)2"."""
        by_axes: dict[str, list[Sent]] = {}
        for sent in self.collectives:
            by_axes.setdefault(sent.axes, []).append(sent)
        return {axes: most_received((s.bytes * s.times, s.receivers) for s in some) for axes, some in by_axes.items()}

    @property
    def unknown_loops(self) -> int:
        """The number of collectives in loops whose number of trips is not known."""
        return sum(not sent.times_known for sent in self.collectives)

    def seconds(self, machine: str | Machine | None = None) -> float:
        """Return the seconds of all collectives, one after the other.

        ``machine``: by default that for which the program is planned. Collectives that overlap with products count what
        both take beyond the products alone.
        """
        on = self._on(machine)
        return sum(sent.seconds(on) * sent.times for sent in self.collectives)

    def compute_seconds(self, machine: str | Machine | None = None) -> float:
        """Return the seconds in which a device computes and copies by itself in one run; ``machine`` as in
        ``seconds``.
        """
        return sum(self.compute_by_op(machine).values())

    def step_seconds(self, machine: str | Machine | None = None) -> float:
        """Return the seconds of one run without overlap: ``seconds`` plus ``compute_seconds``."""
        return self.seconds(machine) + self.compute_seconds(machine)

    @cached_property
    def makespan(self) -> float:
        """The seconds of one run on ``machine``, with collectives overlapped as the machine does. Without overlap,
        ``step_seconds``.
        """
        return self._timeline.seconds if self.machine.in_flight else self.price

    @cached_property
    def price(self) -> float:
        """The seconds of one run on ``machine`` without overlap, by which plans are compared (``op_prices``)."""
        return sum(op_prices(self.program, self.body, clock_of(self.machine)).values())

    @cached_property
    def price_without_starts(self) -> float:
        """``price`` in seconds if starting a collective cost no time."""
        return sum(op_prices(self.program, self.body, clock_of(self.machine.starting_at_once)).values())

    @property
    def stored(self) -> int:
        """The peak of live bytes, including arrays that are prefetched."""
        return self.alive.peak + (self._timeline.ahead if self.machine.in_flight else 0)

    @cached_property
    def _timeline(self) -> Timeline:
        return Timeline(self.body, self.machine, self.compute_by_op())

    def compute_by_op(self, machine: str | Machine | None = None) -> dict[int, float]:
        """Return ``compute_seconds`` by op number, -1 for what main returns."""
        return self._work if machine is None else op_prices(self.program, self.body, WorkClock(chosen(machine)))

    @cached_property
    def _work(self) -> dict[int, float]:
        return op_prices(self.program, self.body, WorkClock(self.machine))

    def _on(self, machine: str | Machine | None) -> Machine:
        return self.machine if machine is None else chosen(machine)

    @cached_property
    def alive(self) -> Account:
        """The bytes of tiles that are alive at once on one device, op by op."""
        loops = self.loops or ()
        client = client_of(self.machine.name)
        return alive(in_turn(self.body, loops), self.program, held_in_turn(loops), client, self.machine)

    def with_loops(self, loops: tuple[MatmulLoop, ...]) -> ProgramPlan:
        """Return the same plan with ``loops`` overlapped."""
        return replace(self, loops=loops)

    def __repr__(self) -> str:
        first = next(lines(self.body, self.collectives, self.program))
        return f"<ProgramPlan {first}; {len(self.collectives)} collectives, on machine {self.machine.name}>"

    def _repr_html_(self) -> str:
        """Return the table that notebooks show: the collectives in descending order of bytes received."""
        first = next(lines(self.body, self.collectives, self.program))
        most_bytes = sorted(self.collectives, key=lambda sent: -sent.bytes * sent.times)
        rows = [
            ("" if sent.op is None else sent.op.called, sent.kind, sent.axes, sent.times, sent.bytes * sent.times)
            for sent in most_bytes[:MOST_SHOWN]
        ]
        more = f"and {len(most_bytes) - MOST_SHOWN:,} more" if len(most_bytes) > MOST_SHOWN else ""
        return html_table(first, ("op", "collective", "over", "times", "bytes received"), rows, more)

    def __str__(self) -> str:
        return joined(lines(self.body, self.collectives, self.program))
