"""What shardpass plans for the programs of tools/bench/underspecified.py, in this process and without compiling.

For each program and form, at each effort: the bytes that the plan receives, its price, the peak of bytes alive, and the
seconds that importing, propagating and planning took; beside the bytes that the peers were measured to receive. A plan
is an upper bound of what is emitted: the passes behind it move and join collectives.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tools.bench.peers import ALL_WAYS as WAYS
from tools.bench.report import geometric_mean, ratio, ratio_cell, show_table, worst_first
from tools.bench.underspecified_programs import Program
from tools.bench.underspecified_report import FREE_BOUND, Row


@dataclass(frozen=True, slots=True)
class Planned:
    """One form of one program at one effort; ``failure`` says why there is no plan."""

    bytes: int = 0
    price: float = 0.0
    alive: int = 0
    seconds: float = 0.0
    failure: str = ""


def planned(text: str, effort: int) -> Planned:
    """The plan of a lowered program."""
    import shardpass
    from shardpass.diagnostics import collect
    from shardpass.partition.splices import spliced_table
    from shardpass.planning.plan.cost import price
    from shardpass.planning.plan.planner import plan_program

    start = time.perf_counter()
    try:
        with collect():
            module = shardpass.run_pipeline(text, f"shardpass-import,shardpass-propagate{{effort={effort}}}")
            with module.context:
                table = spliced_table(module)
                plan = plan_program(table.program, table.all_shardings())
    except Exception as error:  # the search is being worked on: one program must not end the others
        return Planned(failure=f"{type(error).__name__}: {error}"[:200])
    seconds = time.perf_counter() - start
    return Planned(plan.bytes_received, price(plan), plan.alive.peak, seconds)


def show_plans(programs: Sequence[Program], efforts: Sequence[int], forms: Sequence[str], rows: Sequence[Row]) -> None:
    """Plans every program and shows the table. ``rows``: what was measured, of any of the programs."""
    measured = {row.name: row for row in rows}
    table: list[list[str]] = []
    found: dict[tuple[str, str, int], Planned] = {}
    failures = []
    for program in programs:
        row = measured.get(program.name)
        for form in forms:
            text = program.in_form(form).lower().text
            plans = [planned(text, effort) for effort in efforts]
            found.update({(program.name, form, effort): plan for effort, plan in zip(efforts, plans, strict=True)})
            failures += [f"{program.name}: {form}: {plan.failure}" for plan in plans if plan.failure]
            table.append([program.name, form, *_cells(plans, row, form)])
    heads = ["program", "form"]
    for effort in efforts:
        heads += [f"bytes {effort}", f"us {effort}", f"alive {effort}", f"s {effort}"]
    heads += [*WAYS, "best", *(f"{effort} to peer" for effort in efforts), *(f"{e} to best" for e in efforts)]
    title = "planned bytes, us of price, KiB alive, s to plan, by effort; bytes measured; ratios of planned to measured"
    show_table(title, heads, table, [*_summary(found, efforts, measured), *failures])


def _cells(plans: Sequence[Planned], row: Row | None, form: str) -> list[str]:
    cells = []
    for plan in plans:
        if plan.failure:
            cells += ["fails", "-", "-", "-"]
        else:
            cells += [str(plan.bytes), f"{plan.price * 1e6:.2f}", f"{plan.alive / 1024:.0f}", f"{plan.seconds:.2f}"]
    sizes = [row.of(form, way, "bytes") if row else None for way in WAYS]
    cells += ["-" if size is None else f"{size:.0f}" for size in sizes]
    best = row.best("bytes") if row else None
    cells.append("-" if best is None else f"{best:.0f}")
    peer = min((size for size in sizes[1:] if size is not None), default=None)
    cells += [_ratio(plan, peer) for plan in plans]
    return cells + [_ratio(plan, best) for plan in plans]


def _ratio(plan: Planned, other: float | None) -> str:
    return "-" if plan.failure else ratio_cell(ratio(plan.bytes, other))


def _summary(found: dict[tuple[str, str, int], Planned], efforts: Sequence[int], measured: dict[str, Row]) -> list[str]:
    lines = []
    for effort in efforts:
        plans = {name: plan for (name, form, of), plan in found.items() if form == "free" and of == effort}
        seconds = sum(plan.seconds for plan in plans.values())
        for told, other in (("the better peer's", Row.peer), ("the best of all", Row.best)):
            ratios = [
                (name, ratio(plan.bytes, other(measured[name], "bytes")))
                for name, plan in plans.items()
                if name in measured and not plan.failure
            ]
            known = [one for _, one in ratios if one is not None]
            lines.append(
                f"effort {effort}: free form planned over {told} bytes: geometric mean {geometric_mean(known):.3f} "
                f"over {len(known)} programs; above {FREE_BOUND}: {worst_first(ratios, FREE_BOUND)}"
            )
        lines.append(f"effort {effort}: {seconds:.1f} s for the free forms")
    return lines
