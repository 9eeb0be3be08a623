"""Programs as experts annotate them, at real sizes: the default search beside propagation alone and published plans.

    python -m tools.bench.expert_forms                             every form on ideal, h100 and v5p
    python -m tools.bench.expert_forms llama ulysses --machine h100      those whose name begins so, on one machine
    python -m tools.bench.expert_forms --json forms.json --effort 2

Nothing runs: forms (tools/bench/expert_programs) are lowered by JAX over abstract meshes and planned. Of each form and
machine: MB that a device receives, collectives, modelled ms of these, and of a step, overlapped with work, of the
partitioned program at effort 0 (propagation alone) and at the default effort; the ratio of the steps, which is at most
1 where the search is never worse than what it begins with; and bytes over the formula of the published plan, at both
efforts.
``waits`` marks forms whose plan adds partial sums before it completes them. Of hsdp, bytes and collectives are those of
the slow axis alone.

Exits with 1 where a row's ratio is above 1, or a form was not planned.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.bench.expert_programs import FORMS, Form, lowered
from tools.bench.report import geometric_mean, markdown_table, ratio_cell, show_table, write_between

MACHINES = ("ideal", "h100", "v5p")
MARKS = ("<!-- table: tools/bench/expert_forms.py -->", "<!-- end of the table -->")
PLAN = ("n", "ms", "step")
HEADS = ("form", "machine", "waits", "formula", "n", "effort 0", *PLAN, "{}", *PLAN, "ratio", "0/f", "{}/f")
SAME = 1 + 1e-9  # a ratio of equal times


@dataclass(frozen=True, slots=True)
class Planned:
    """One form at one effort: bytes and collectives of the axis that the formula is of, seconds of the program.

    ``seconds``: of its collectives; ``step``: of a step, in which these run beside work where the machine overlaps.
    """

    bytes: int
    collectives: int
    seconds: float
    step: float


@dataclass(frozen=True, slots=True)
class Row:
    """One form on one machine; ``failure``: why there are no figures."""

    name: str
    machine: str
    waits: bool
    formula: float | None
    formula_collectives: int | None
    before: Planned | None = None
    after: Planned | None = None
    failure: str = ""

    @property
    def ratio(self) -> float | None:
        """Seconds of a step after the search over those before."""
        if self.before is None or self.after is None:
            return None
        return self.after.step / self.before.step if self.before.step else 1.0

    @property
    def never_worse(self) -> bool:
        return self.ratio is not None and self.ratio <= SAME

    def over_formula(self, planned: Planned | None) -> float | None:
        """Bytes over those of the published plan."""
        return None if planned is None or not self.formula else planned.bytes / self.formula


# ---------------------------------------------------------------- planning


def planned(text: str, machine: str, effort: int, axis: str = "") -> Planned:
    """What shardpass makes of a program: the one place that asks it."""
    import shardpass

    report = shardpass.explain(text, machine=machine, effort=effort)
    rows = [row for row in report.rows if row.counted and (not axis or axis in row.axes)]
    received = sum(row.bytes_received for row in rows) if axis else report.total_bytes_received
    assert report.schedule is not None  # a form is no module that was partitioned before
    return Planned(received, sum(row.times for row in rows), report.seconds, report.schedule.seconds)


def measure(name: str, form: Form, machine: str, effort: int) -> Row:
    """A row; of a form that cannot be planned, one that says why."""
    formula = form.formula()
    size, count = (None, None) if formula is None else (formula.bytes, formula.collectives)
    axis = "" if formula is None else formula.axis
    try:
        before, after = (planned(lowered(form), machine, at, axis) for at in (0, effort))
    except Exception as error:  # one form must not end the others
        lines = str(error).splitlines() or [""]
        return Row(name, machine, form.waits, size, count, failure=f"{type(error).__name__}: {lines[0]}"[:200])
    return Row(name, machine, form.waits, size, count, before, after)


# ---------------------------------------------------------------- report


def cells(row: Row) -> list[str]:
    """A line of the table."""
    line = [row.name, row.machine, "yes" if row.waits else ""]
    line += ["-" if row.formula is None else f"{row.formula / 1e6:.2f}"]
    line += ["-" if row.formula_collectives is None else str(row.formula_collectives)]
    for one in (row.before, row.after):
        line += ["-"] * 4 if one is None else [*_received(one), _ms(one.seconds), _ms(one.step)]
    over = (ratio_cell(row.over_formula(one)) for one in (row.before, row.after))
    ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
    return [*line, "fails" if row.failure else ratio, *over]


def _received(one: Planned) -> tuple[str, str]:
    return f"{one.bytes / 1e6:.2f}", str(one.collectives)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.4g}"


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """How many rows are never worse, by machine; which are, and by how much; what was not planned."""
    yield f"{sum(row.never_worse for row in rows)} of {len(rows)} rows take at most the time of effort 0"
    for machine in dict.fromkeys(row.machine for row in rows):
        here = [row for row in rows if row.machine == machine]
        ratios = [ratio for row in here if (ratio := row.ratio) is not None]
        over = [over for row in here if (over := row.over_formula(row.after)) is not None]
        worse = sorted((row for row in here if row.ratio is not None and not row.never_worse), key=_by_ratio)
        named = ", ".join(f"{row.name} {row.ratio:.4f}{' (waits)' if row.waits else ''}" for row in worse)
        yield (
            f"{machine}: time over effort 0 {geometric_mean(ratios):.3f}, bytes over the formula "
            f"{geometric_mean(over):.3f} in geometric mean; above 1: {named or 'none'}"
        )
    for row in rows:
        if row.failure:
            yield f"{row.name} on {row.machine}: {row.failure}"


def _by_ratio(row: Row) -> float:
    return -(row.ratio or 0.0)


def heads(effort: int) -> list[str]:
    return [head.format(f"effort {effort}" if head == "{}" else effort) for head in HEADS]


# ---------------------------------------------------------------- command


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--machine", action="append", metavar="NAME", help=f"default: {', '.join(MACHINES)}")
    parser.add_argument("--effort", type=int, choices=(1, 2), default=1, help="of the search; default: 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the table into this page, between its marks")
    parser.add_argument("--list", action="store_true", help="list the forms with their sources and end")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 where a row's ratio is above 1, or a form was not planned."""
    from rich.progress import track

    parser = options()
    arguments = parser.parse_args(argv)
    wanted = tuple(arguments.forms)
    chosen = {name: form for name, form in FORMS.items() if not wanted or name.startswith(wanted)}
    if not chosen:
        parser.error(f"no form is named {' or '.join(wanted)}; --list names them")
    if arguments.list:
        for name, form in chosen.items():
            print(f"{name:24} {'x'.join(str(size) for _, size in form.axes):8} {form.source}")
        return 0
    asked = [(name, machine) for name in chosen for machine in arguments.machine or MACHINES]
    rows: list[Row] = []
    try:
        for name, machine in track(asked, "forms", disable=not sys.stderr.isatty()):
            rows.append(measure(name, chosen[name], machine, arguments.effort))
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} of {len(asked)} rows", file=sys.stderr)
    table = [cells(row) for row in rows]
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if rows and arguments.markdown:
        write_between(arguments.markdown, MARKS, markdown_table(heads(arguments.effort), table, list(summary(rows))))
    if rows:
        show_table("MB that a device receives, collectives, ms", heads(arguments.effort), table, list(summary(rows)))
    return 0 if rows and all(row.never_worse for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
