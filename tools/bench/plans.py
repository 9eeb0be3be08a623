#!/usr/bin/env python
"""What plans cost, over all programs at hand, and how that changed: for work on the search, on prices, on rules.

    python -m tools.bench.plans --json before.json            the price of each plan, and the time that deciding took
    python -m tools.bench.plans --against before.json         the same now, beside it: what became dearer comes first
    python -m tools.bench.plans models.mlp --against before.json
    python -m tools.bench.plans models --built --machine h100 --machine v5p     schedules beside those of effort 0

The programs are those of test/integration/models (as the hook into JAX decides them: ``settle-results``), of
tools/bench/underspecified_programs in both forms, and of examples/. A plan's price is in seconds and counts work
(``planning.cost``), shown in microseconds; ``tried`` are the plans that the search compared; seconds are of the
process, not of the wall.
With ``--built`` the program is partitioned at effort 0 and at effort 1, and the seconds of both schedules are compared
(``shardpass.explain``).
Exits with 1 where the sum of all prices grew, or one price by more than 1%; with ``--built``, where a schedule is
longer than that of effort 0.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from shardpass.cost.machine import IDEAL
from tools.bench.peers import set_devices
from tools.bench.real_programs import real_programs
from tools.bench.report import geometric_mean, show_table
from tools.bench.underspecified_programs import FORMS, PROGRAMS
from tools.processes import ROOT

GREW = 1.01  # a price that grew by more is named
SAME = 1 + 1e-9  # a ratio of equal times
BUILT_HEADS = (
    "machine and program",
    "effort 0, us",
    "effort 1, us",
    "ratio",
    "MB",
    "MB",
    "alive, KiB",
    "alive, KiB",
    "s",
)
HEADS = ("program", "price us", "before", "ratio", "bytes", "before", "tried", "before", "s", "before")


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one program. ``tried``: plans that the search compared."""

    price: float
    bytes: int
    tried: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Built:
    """A program as it is partitioned at effort 0 and 1: its schedule, bytes received and bytes alive, by effort."""

    step: tuple[float, float]
    bytes: tuple[int, int]
    alive: tuple[int, int]
    seconds: float

    @property
    def ratio(self) -> float:
        """The schedule of effort 1 over that of effort 0."""
        return self.step[1] / self.step[0] if self.step[0] else 1.0


def texts(wanted: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """(name, options of shardpass-propagate, lowered program) of each program whose name begins as ``wanted``."""
    for name, program in real_programs().items():
        if _asked(f"models.{name}", wanted) and program.available:
            yield f"models.{name}", "{settle-results=true}", program.lower().text
    for name, underspecified in PROGRAMS.items():
        for form in FORMS:
            if _asked(f"underspecified.{name}.{form}", wanted):
                yield f"underspecified.{name}.{form}", "", underspecified.in_form(form).lower().text
    for path in sorted((ROOT / "examples").glob("*.mlir")):
        if _asked(f"examples.{path.stem}", wanted):
            yield f"examples.{path.stem}", "", path.read_text()


def _asked(name: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or name.startswith(wanted)


def built(text: str, machine: str) -> Built | None:
    """Partition a lowered program at both efforts; None where a time is not known."""
    import shardpass
    from shardpass.diagnostics import collect

    begun = time.process_time()
    with collect():
        reports = [shardpass.explain(text, machine=machine, effort=effort) for effort in (0, 1)]
    steps, received, alive = [], [], []
    for report in reports:
        if report.schedule is None or report.memory is None:
            return None  # a time is not known
        steps.append(report.schedule.seconds)
        received.append(report.total_bytes_received)
        alive.append(report.memory.total)
    sides = (steps[0], steps[1]), (received[0], received[1]), (alive[0], alive[1])
    return Built(*sides, time.process_time() - begun)


def built_summary(rows: Mapping[str, Built]) -> Iterator[str]:
    """What is said of all programs, by machine."""
    for machine in dict.fromkeys(name.split(": ")[0] for name in rows):
        here = {name: row for name, row in rows.items() if name.startswith(f"{machine}: ")}
        worse = [f"{name} {row.ratio:.4f}" for name, row in here.items() if row.ratio > SAME]
        received, alive = (
            [max(side[1], 1) / max(side[0], 1) for side in each]
            for each in zip(*[(row.bytes, row.alive) for row in here.values()], strict=True)
        )
        greatest = max(here, key=lambda name: here[name].alive[1] / max(here[name].alive[0], 1))
        yield (
            f"{machine}: over effort 0 in geometric mean of {len(here)} programs: schedule "
            f"{geometric_mean([row.ratio for row in here.values()]):.3f}, bytes {geometric_mean(received):.3f}, alive "
            f"{geometric_mean(alive):.3f} (most {max(alive):.2f}, {greatest}); shorter "
            f"{sum(row.ratio < 1 / SAME for row in here.values())}; longer: {', '.join(worse) or 'none'}"
        )


def planned(text: str, options: str, machine: str = IDEAL.name) -> Plan:
    """The plan of a lowered program."""
    import shardpass
    from shardpass.cost.chosen import chosen
    from shardpass.diagnostics import collect
    from shardpass.partition.splices import spliced_table
    from shardpass.passes.propagate import barriers, write
    from shardpass.planning.decide.search import decide
    from shardpass.planning.plan.cost import price
    from shardpass.planning.plan.planner import plan_program
    from shardpass.program.table import Table, keep, table_of

    with collect():
        module = shardpass.run_pipeline(text, "shardpass-import")
        with module.context:
            table = table_of(module, "propagate")
            begun = time.process_time()
            found = barriers(table.program, table.handles)
            decision = decide(table.program, found, 1, chosen(machine), settle_results=bool(options))
            seconds = time.process_time() - begun
            write(table.program, table.handles, decision.shardings)
            keep(Table(table.program, table.handles, decision.shardings))
            spliced = spliced_table(module)
            plan = plan_program(spliced.program, spliced.all_shardings(), machine=chosen(machine))
    return Plan(price(plan), plan.bytes_received, decision.tried, seconds)


def ratio(now: Plan, before: Plan) -> float:
    """Of prices; 1 where both are nothing, and infinite where only the one before is."""
    if now.price == before.price:
        return 1.0
    return now.price / before.price if before.price else math.inf


def compared(now: Mapping[str, Plan], before: Mapping[str, Plan]) -> tuple[list[list[str]], list[str]]:
    """The rows whose price changed, dearest first, and what is to be said of all."""
    both = [name for name in now if name in before]
    by_ratio = sorted(both, key=lambda name: -ratio(now[name], before[name]))
    rows = [cells(name, now[name], before[name]) for name in by_ratio if abs(ratio(now[name], before[name]) - 1) > 1e-6]
    lines = []
    for told, of, unit in (
        ("price in us", "price", 1e6),
        ("bytes", "bytes", 1),
        ("tried", "tried", 1),
        ("seconds", "seconds", 1),
    ):
        one, other = (unit * sum(getattr(plans[name], of) for name in both) for plans in (now, before))
        lines.append(f"{told} of {len(both)} programs: {one:.6g}, before {other:.6g} ({one / max(other, 1e-9):.4f})")
    grew = [name for name in both if ratio(now[name], before[name]) > GREW]
    lines.append(f"dearer by more than {GREW - 1:.0%}: {', '.join(grew) or 'none'}")
    return rows, lines


def cells(name: str, now: Plan, before: Plan) -> list[str]:
    """A line of the table."""
    return [
        *(name, f"{now.price * 1e6:.3f}", f"{before.price * 1e6:.3f}", f"{ratio(now, before):.4f}"),
        *(str(now.bytes), str(before.bytes), str(now.tried), str(before.tried)),
        *(f"{now.seconds:.3f}", f"{before.seconds:.3f}"),
    ]


def worse(now: Mapping[str, Plan], before: Mapping[str, Plan]) -> bool:
    """Whether all plans together cost more than before, or one of them over 1% more."""
    both = [name for name in now if name in before]
    total = sum(now[name].price for name in both) > sum(before[name].price for name in both)
    return total or any(ratio(now[name], before[name]) > GREW for name in both)


def show_built(wanted: tuple[str, ...], machines: Sequence[str], json_file: Path | None) -> int:
    """Compare schedules, and return 1 where one is longer than that of effort 0."""
    set_devices()
    rows: dict[str, Built] = {}
    try:
        for name, _, text in texts(wanted):
            for machine in machines:
                if (row := built(text, machine)) is not None:
                    rows[f"{machine}: {name}"] = row
                if json_file:
                    json_file.write_text(json.dumps({name: asdict(row) for name, row in rows.items()}, indent=1))
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} programs", file=sys.stderr)
    table = []
    for name, row in sorted(rows.items(), key=lambda item: -item[1].ratio):
        steps, received = (f"{one * 1e6:.3f}" for one in row.step), (f"{one / 1e6:.3f}" for one in row.bytes)
        alive = (f"{one / 1024:.0f}" for one in row.alive)
        table.append([name, *steps, f"{row.ratio:.4f}", *received, *alive, f"{row.seconds:.1f}"])
    show_table("schedules at effort 0 and 1", BUILT_HEADS, table, list(built_summary(rows)))
    return int(not rows or any(row.ratio > SAME for row in rows.values()))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names, such as models.mlp; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    parser.add_argument("--against", type=Path, metavar="FILE", help="what --json wrote before")
    parser.add_argument("--machine", action="append", metavar="NAME", help=f"for which is decided ({IDEAL.name})")
    parser.add_argument("--built", action="store_true", help="compare the schedules of effort 0 and 1")
    arguments = parser.parse_args(argv)
    machines = arguments.machine or [IDEAL.name]
    if arguments.built:
        return show_built(tuple(arguments.programs), machines, arguments.json)
    before = json.loads(arguments.against.read_text()) if arguments.against else {}
    set_devices()
    now: dict[str, Plan] = {}
    try:
        for name, options, text in texts(tuple(arguments.programs)):
            for machine in machines:
                now[name if machine == IDEAL.name else f"{machine}: {name}"] = planned(text, options, machine)
                if arguments.json:
                    arguments.json.write_text(json.dumps({name: asdict(plan) for name, plan in now.items()}, indent=1))
    except KeyboardInterrupt:
        print(f"interrupted after {len(now)} programs", file=sys.stderr)
    if not now:
        parser.error(f"no program is named {' or '.join(arguments.programs)}")
    earlier = {name: Plan(**row) for name, row in before.items()}
    if earlier:
        rows, lines = compared(now, earlier)
        show_table("plans whose price changed, dearest first", HEADS, rows, lines)
    else:
        rows = [cells(name, plan, plan) for name, plan in now.items()]
        show_table("prices of plans", HEADS, rows, [f"{len(now)} programs"])
    return int(bool(earlier) and worse(now, earlier))


if __name__ == "__main__":
    raise SystemExit(main())
