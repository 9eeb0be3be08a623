"""The report as text for a terminal: at most 80 columns and one screen, unless the caller asks for more.

First the totals: bytes, time, memory. Then groups, by line by default, most expensive first, with their rows and
reasons; repeated rows are merged. The last line summarizes the groups that are not shown.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shardpass.cost.collective import PERMUTE
from shardpass.diagnostics import NOWHERE, Place
from shardpass.diagnostics.printable import joined
from shardpass.report.findings import (
    DECIDED,
    INTERRUPTED,
    LATE,
    NAME,
    NOW,
    PINNED,
    PINNED_SO_FAR,
    Finding,
    Findings,
    headline,
)
from shardpass.report.groups import LINE, Folded, Group, fold
from shardpass.report.report import Report
from shardpass.report.rows import BACKWARD, DecidedFact, MemoryFacts, short

WIDTH = 80
SCREEN = 40  # lines that a report takes unless all is asked for
MOST_HOLDINGS = 6  # at the peak of memory that are shown where it does not fit
MOST_DECISIONS = 2
BRIEF = 6  # lines that are kept for groups in brief
MOST_ROWS = 2  # of a group that are shown where not all are
PARTITIONED = {"xla": ", partitioned by XLA", "shardy": ", partitioned by Shardy"}
COMPILERS = {"xla": "XLA", "shardy": "Shardy's passes and XLA"}
MOST_CODE = 4  # lines of an edit without a diff
MOST_MEASURED = 8  # lines with measured times
MOST_CHANGED = 3  # lines whose bytes an edit changes
MOST_PARTS = 4  # of a line that has parts
NO_EDIT = "no edit was found that saves"
_STOPPED = {
    LATE: "the search ended because its time was over; --seconds gives it more",
    INTERRUPTED: "the search was interrupted",
}
_WAYS = {PINNED: "pinned, compiled"}
_PIN = "shardpass.jax.pin(step)"
_HOW = {DECIDED: 'shardpass.jax.use(constraints="free")', PINNED: _PIN, PINNED_SO_FAR: f"{_PIN} may find less"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def text(report: Report, width: int = WIDTH, *, by: str = LINE, sort: str = "bytes", top: int | None = None) -> str:
    """Format the report in ``width`` columns. ``top``: the number of groups shown; 0: all; None: as many as fit on a
    screen.
    """
    table = table_lines(report, width, by=by, sort=sort, top=top)
    return joined([*table, *findings_rest(report, width), *gap_lines(report, width)])


def table_lines(
    report: Report, width: int = WIDTH, *, by: str = LINE, sort: str = "bytes", top: int | None = None
) -> list[str]:
    """Format the part of the report that is available before the search for edits, as ``text`` does."""
    lines = list(_head(report, width))
    if report.rows:
        lines += _Table(report, width, by, sort, top).lines(SCREEN - len(lines) - _below(report))
        lines += ["", *_totals(report), *_loops(report, width), *_measured(report, width)]
    lines += [*_constraints(report, width), *_decided(report, width), *_decision(report, width), *_hints(report, width)]
    return lines


def _below(report: Report) -> int:
    """Return an upper bound on the number of lines below the table of groups."""
    changes = 2 + 3 * min(MOST_DECISIONS, len(report.decided or report.changes)) if report.changes else 0
    hints = 2 + 3 * len(report.hints) if report.hints is not None else 0
    loops = 2 + 2 * len(report.loops) if report.loops else 0
    decision = 0 if report.decision is None else 5 if "trade" in report.decision else 3
    constraints = 2 + 2 * len(report.constraints) if report.constraints else 0
    measured = 3 + min(MOST_MEASURED, len(report.by_line())) if report.measured is not None else 0
    return 1 + decision + measured + len(report.by_kind) + loops + changes + hints + constraints


# ---------------------------------------------------------------- the whole


def _head(report: Report, width: int) -> Iterator[str]:
    """Yield the header: the program, its bytes, time and memory."""
    over = "".join(f" {name}={size}" for name, size in report.mesh if size > 1)
    by = PARTITIONED.get(report.partitioner, "")
    yield from wrapped(f"{report.file}: {counted(report.devices, 'device')}{',' if over else ''}{over}{by}", width)
    if report.compiler:
        yield from wrapped(f"compiled by {report.compiler}", width)
    if not report.rows:
        yield "no collectives"
    else:
        received = show_bytes(report.total_bytes_received)
        if report.trips is not None and report.unknown_loops:
            received += f" to {show_bytes(report.bytes_at_most(report.trips))}"
        yield f"each device receives {received} in {counted(report.runs, 'collective')}, {_time(report)}"
    if report.unknown_loops:
        most = "" if report.trips is None else f"; with {report.trips} the greater number"
        yield from wrapped(
            f"{counted(report.unknown_loops, 'collective')} in loops whose trips are not known count once{most}", width
        )
    yield from wrapped(step_text(report), width)
    yield from wrapped(overlap_text(report), width)
    memory = report.memory
    if memory is not None:
        where = "" if memory.peak_place == NOWHERE else f", most at {short(memory.peak_place)}"
        parts = ", ".join(
            f"{name} {show_bytes(size)}"
            for name, size in (
                ("arguments", memory.arguments),
                ("results", memory.results),
                ("temporaries", memory.temporaries),
            )
        )
        limit = "" if report.memory_limit is None else f" of {show_bytes(report.memory_limit)}"
        yield from wrapped(f"memory of a device: {show_bytes(memory.total)}{limit} ({parts}{where})", width)
        if report.does_not_fit:
            yield from _too_much(report, memory, width)
    if report.stand_in:
        yield from wrapped(f"compiled by {report.stand_in}", width)


def _too_much(report: Report, memory: MemoryFacts, width: int) -> Iterator[str]:
    """Format how much memory does not fit, and the largest arrays."""
    limit = report.memory_limit or 0
    over = memory.total - limit
    listed = "; at the peak" if memory.holdings else ""
    yield f"  does not fit {show_bytes(limit)}: {show_bytes(over)} too much{listed}"
    for one in memory.holdings[:MOST_HOLDINGS]:
        times = f"{one.count} x " if one.count > 1 else ""
        where = "" if one.place == NOWHERE else f" of {short(one.place)}"
        yield from wrapped(
            f"{show_bytes(one.bytes):>10}  {times}{one.name or '-'} {one.type}{where}", width, "", " " * 14
        )


def _time(report: Report) -> str:
    return f"{show_seconds(report.seconds)} on machine {report.profile}"


def step_text(report: Report) -> str:
    """Describe a device's computation: its time, the most expensive line, and whether compute or communication limits
    the step; "" if unknown.
    """
    compute, step = report.compute_seconds, report.step_seconds
    if compute is None or step is None:
        return ""
    most = next(((place, share) for place, share in report.compute_by_line() if place != NOWHERE and share), None)
    where = "" if most is None else f" ({100 * most[1] / compute:.0f}% at {short(most[0])})"
    guess = report.estimated_seconds
    beside = "" if guess is None else f", {show_seconds(guess)} by the compiler's own estimate"
    words = f"computes for {show_seconds(compute)}{where}{beside}"
    return f"{words}; {report.bound_by} bounds a step of {show_seconds(step)}"


def overlap_text(report: Report) -> str:
    """Describe the time of a step in which collectives run beside work that does not need them; "" where that is not
    known.
    """
    plan = report.schedule
    if plan is None or not report.seconds or not plan.seconds:
        return ""
    bare = sum(plan.exposed)
    how = f"in {plan.compiler}'s own order" if plan.compiler else f"overlapped it takes {show_seconds(plan.seconds)}"
    ahead = f" with {show_bytes(plan.ahead)} fetched ahead" if plan.ahead else ""
    words = f"{how}{ahead}: {show_seconds(bare)} of the collectives are exposed"
    place, most = max(exposed_by_line(report).items(), key=lambda one: one[1], default=(NOWHERE, 0.0))
    return f"{words}, {100 * most / bare:.0f}% of that at {short(place)}" if most and place != NOWHERE else words


def _measured(report: Report, width: int) -> Iterator[str]:
    """List the measured and modelled times of collectives, by line."""
    known = report.measured
    if known is None or not report.rows:
        return
    sums: dict[Place, list[float]] = {}
    for row, seconds in zip(report.rows, known.seconds, strict=True):
        one = sums.setdefault(_line(row.place), [0.0, 0.0])
        one[0] += seconds or 0.0
        one[1] += row.seconds
    yield ""
    words = f"measured: {show_seconds(known.total)} in a run, a mean over devices, of {known.joined} of "
    yield from wrapped(f"{words}{counted(len(report.rows), 'row')}; modelled {show_seconds(report.seconds)}", width)
    lines = sorted(sums.items(), key=lambda item: -item[1][0])
    for place, (took, modelled) in lines[:MOST_MEASURED]:
        yield f"{show_seconds(took):>10} {show_seconds(modelled):>10} modelled  {short(place)}"
    if len(lines) > MOST_MEASURED:
        yield f"     and {counted(len(lines) - MOST_MEASURED, 'line')} more"


def exposed_by_line(report: Report) -> dict[Place, float]:
    """Return the seconds in which collectives run without any computation, by line."""
    out: dict[Place, float] = {}
    for row, share in zip(report.rows, () if report.schedule is None else report.schedule.exposed, strict=False):
        line = _line(row.place)
        out[line] = out.get(line, 0.0) + share
    return out


def _line(place: Place) -> Place:
    """Format a place without its column."""
    return replace(place, column=0)


def findings_rest(report: Report, width: int = WIDTH, shown: int = 0) -> Iterator[str]:
    """Format the findings after the first ``shown``, each with its diff and figures."""
    findings = report.findings
    if findings is None or findings.why_not:
        return
    if not shown:
        yield ""
        yield from _listed(report.partitioner, findings, width) if findings else [NO_EDIT]
    else:
        for number, finding in enumerate(findings[shown:], shown + 1):
            yield from finding_lines(finding, number, width)
    if findings.stopped:
        yield from wrapped(_STOPPED[findings.stopped], width)


def gap_lines(report: Report, width: int = WIDTH) -> Iterator[str]:
    """Format the figures of the program compiled in other ways: the remaining savings, and how to get them."""
    gap = report.gap
    if gap is None:
        return
    yield ""
    yield "the program, and what is left to save:"
    names = {NOW: f"{COMPILERS.get(report.partitioner, report.partitioner)} now", **_WAYS}
    longest = max(len(names.get(name, name)) for name, _ in gap.rows)
    for name, one in gap.rows:
        how = f"  {_HOW[name]}" if name in _HOW else ""
        row = f"{show_bytes(one.bytes):>10}  {show_bytes(one.memory):>10}  {show_seconds(one.seconds):>8}{how}"
        yield from wrapped(f"  {names.get(name, name):{longest}}{row}", width, "", "      ")


def findings_text(report: Report, findings: Findings, width: int = 80) -> str:
    """Format the findings of a report alone."""
    return "\n".join(_listed(report.partitioner, findings, width))


def _listed(partitioner: str, findings: Findings, width: int) -> Iterator[str]:
    yield findings_title(partitioner, several=len(findings) > 1)
    for number, finding in enumerate(findings, 1):
        yield from finding_lines(finding, number, width)


def findings_title(partitioner: str, *, several: bool) -> str:
    """Return the line on top of findings."""
    compiler = COMPILERS.get(partitioner)
    with_others = ", each with those above it" if several else ""
    return f"findings, {'planned by shardpass' if compiler is None else f'compiled by {compiler}'}{with_others}:"


def finding_lines(one: Finding, number: int, width: int) -> Iterator[str]:
    """Format one finding: its sentence, its diff, and its figures."""
    yield from wrapped(headline(one), width, f"{number}. ", "   ")
    if one.diff:
        yield from (f"   {row}".rstrip() for row in one.diff.splitlines())
    else:
        for code in one.code[:MOST_CODE]:
            yield from wrapped(code, width, "   ", "     ")
        if len(one.code) > MOST_CODE:
            yield f"   and {len(one.code) - MOST_CODE} more by the same rule"
    if one.action != NAME:
        yield from wrapped(figures_text(one), width, "   ", "   ")
    lines = [f"{short(line.place)} {show_bytes(line.before)} -> {show_bytes(line.after)}" for line in one.lines]
    if lines:
        more = f" and {counted(len(lines) - MOST_CHANGED, 'line')} more" if len(lines) > MOST_CHANGED else ""
        yield from wrapped(f"by line: {', '.join(lines[:MOST_CHANGED])}{more}", width, "   ", "   ")


def figures_text(one: Finding) -> str:
    """Format the figures that a finding changes, before and after."""
    before, after = one.before, one.after
    figures = (
        ("received", show_bytes(before.bytes), show_bytes(after.bytes)),
        ("memory", show_bytes(before.memory), show_bytes(after.memory)),
        ("products", show_flops(before.flops), show_flops(after.flops)),
        ("step", show_seconds(before.seconds), show_seconds(after.seconds)),
    )
    words = ", ".join(f"{name} {was} -> {now}" for name, was, now in figures if was != now)
    return words or f"received {show_bytes(before.bytes)} before and after"


def _totals(report: Report) -> Iterator[str]:
    """Sum the collectives and bytes of each kind."""
    for kind, (count, size) in report.by_kind.items():
        yield f"{count} x {kind}: {show_bytes(size)}"


def _loops(report: Report, width: int) -> Iterator[str]:
    """List the products that overlap with a collective, the largest array first."""
    if report.loops:
        yield ""
        yield from wrapped("products in turn with a collective, whose time passes behind them:", width)
    for loop in sorted(report.loops, key=lambda one: -one.whole):
        where = "" if loop.place == NOWHERE else f"{short(loop.place)}: "
        words = (
            f"{where}{counted(loop.products, 'product')} with {loop.kind}: holds {show_bytes(loop.resident_bytes)} for "
            f"{show_bytes(loop.whole)}, {show_seconds(loop.in_turn)} for {show_seconds(loop.apart)} ({loop.profile})"
        )
        yield from wrapped(words, width, "  ", "    ")


def _constraints(report: Report, width: int) -> Iterator[str]:
    if report.constraints:
        yield ""
        yield "constraints that cost more than they must:"
    for one in report.constraints:
        where = "" if one.place == NOWHERE else f"{short(one.place)}: "
        moved = f"{show_bytes(one.bytes)} to bring {one.type} to {one.spec} and on"
        yield from wrapped(f"{where}{moved}; saves {show_bytes(one.saved)} if it did not hold", width, "  ", "    ")


def _decided(report: Report, width: int) -> Iterator[str]:
    """Yield the most valuable shardings of the search with their annotations; without annotations, the changes of the
    search.
    """
    if not report.decided:
        yield from _search_changes(report, width)
        return
    yield ""
    yield "decided, beyond what propagation finds:"
    for one in report.decided:
        where = "" if one.place == NOWHERE else f"{short(one.place)}: "
        yield from wrapped(
            f"{where}{one.words} saves {decided_saving(one)}; to have it in XLA: {one.code}", width, "  ", "    "
        )


def decided_saving(one: DecidedFact) -> str:
    """Format the bytes that a decision saves; if only work is saved, the time."""
    if one.saves > 0:
        return f"{show_bytes(one.saves)} of {show_bytes(one.before)}"
    return f"{show_seconds(one.seconds_before - one.seconds_after)} of {show_seconds(one.seconds_before)}"


def _search_changes(report: Report, width: int) -> Iterator[str]:
    """List the changes of the search, the greatest savings first."""
    paying = [one for one in report.changes if one.saved > 0]
    moves = sorted(paying, key=lambda one: -one.saved)[:MOST_DECISIONS]
    if moves:
        yield ""
        yield "the search decided, beyond what propagation finds:"
    for one in moves:
        where = "" if one.place == NOWHERE else f"{short(one.place)}: "
        words = f"{where}{one.message}: saves {show_seconds(one.saved)}"
        yield from wrapped(words, width, "  ", "    ")


def _decision(report: Report, width: int) -> Iterator[str]:
    """Describe how close the decision is to the best sharding, and its time beyond propagation alone."""
    if report.decision is not None and report.rows:
        yield ""
        yield from wrapped(f"the shardings are {report.decision['text']}", width, "", "  ")
        trade = report.decision.get("trade")
        if isinstance(trade, Mapping):
            yield from wrapped(trade["text"], width, "", "  ")


def _hints(report: Report, width: int) -> Iterator[str]:
    if report.hints is None:
        return
    yield ""
    yield "what would save, planned again with it:" if report.hints else "no single annotation was found that saves"
    for hint in report.hints:
        where = "" if hint.place == NOWHERE else f"{short(hint.place)}: "
        words = f"{where}{hint.name} is {hint.now}, not {hint.spec}; {hint.code} saves {show_bytes(hint.saves)}"
        yield from wrapped(f"{words} of {show_bytes(hint.before)}", width, "  ", "    ")


# ---------------------------------------------------------------- groups


@dataclass(frozen=True)
class _Table:
    """The table of groups. ``top``: 0 shows all groups; None shows as many as fit, with their most expensive rows."""

    report: Report
    width: int
    by: str
    sort: str
    top: int | None

    def lines(self, room: int) -> Iterator[str]:
        """Yield the lines of the groups with as many rows as ``room`` allows; each remaining group takes one line."""
        total, top = self._total, self.top
        groups = self.report.grouped(self.by, self.sort)
        shown = groups[:top] if top else groups
        whole = 0
        for one in shown:
            lines = self._group(one, room)
            if top is None and whole and len(lines) > room - min(BRIEF, len(shown) - whole):
                break
            whole += 1
            room -= len(lines)
            yield from lines
        brief = 0 if top else max(0, room - 3) if top is None else 0
        rest = shown[whole:]
        if brief and rest:
            yield ""
            yield from map(self._heading, rest[:brief])
        left = (*rest[brief:], *groups[len(shown) :])
        if left:
            size = Group("", tuple(row for group in left for row in group.rows)).bytes_received
            yield ""
            words = f"and {counted(len(left), self.by)} more: {show_bytes(size)}, {_share(size, total)}"
            yield f"{words} (--top 0 shows all)"

    @property
    def _total(self) -> int:
        return max(1, self.report.total_bytes_received)

    def _group(self, one: Group, room: int) -> list[str]:
        """Format a group; if it has parts and ``room`` is too small for all rows, with the most expensive rows."""
        most = None if self.top == 0 else MOST_ROWS
        whole = ["", *self._inside(one, most, most)]
        return whole if most is None or len(whole) <= room else ["", *self._inside(one, most, 0)]

    def _inside(self, one: Group, most: int | None, others: int | None) -> Iterator[str]:
        """Yield the lines of a group with ``most`` of its rows, or of its parts: ``most`` rows of the first, ``others``
        of the rest.
        """
        yield self._heading(one)
        parts, indent = one.parts(self._total, self.sort), "  " * one.level
        if parts:
            count = len(parts) if most is None else MOST_PARTS
            for place, part in enumerate(parts[:count]):
                yield from self._inside(part, others if place else most, others)
            yield from self._left(parts[count:], len(parts[count:]), indent)
            return
        rows = fold(one.rows, apart=False)
        count = len(rows) if most is None else most if not one.level else min(most, 1)
        for row in rows[:count]:
            yield from self._row(row, indent, alone=len(rows) == 1)
        if count:
            yield from self._left(rows[count:], len(rows[count:]), indent)

    def _left(self, some: Sequence[Group | Folded], count: int, indent: str) -> Iterator[str]:
        if some:
            size = Group("", tuple(row for one in some for row in one.rows)).bytes_received
            yield f"{indent}     and {count} more here: {show_bytes(size)}"

    def _heading(self, one: Group) -> str:
        size = one.bytes_received
        figures = f"{_share(size, self._total):>4} {show_bytes(size):>10} {show_seconds(one.seconds):>8}"
        key = one.key or "-"
        if self.by == LINE and one.place != NOWHERE:
            source = self.report.sources.line(one.place)
            key = short(one.place) + (f"  {source}" if source else "")
        return shortened(f"{figures}  {'  ' * one.level}{key}", self.width)

    def _row(self, one: Folded, indent: str, alone: bool) -> Iterator[str]:
        row = one.row
        axes = f" over {','.join(row.axes)}" if row.axes else ""
        if not row.axes and self.report.partitioner in PARTITIONED and row.kind != PERMUTE:
            axes = f" in groups of {row.group_size}"
        size = "" if alone else f" {show_bytes(one.bytes_received)}"
        back = ", backward" if row.direction == BACKWARD else ""
        other = "" if row.counted else ", in a branch that receives less"
        unknown = " in a loop of unknown length" if row.unknown_loops else ""
        line = "" if self.by == LINE or row.where == "-" else f" at {row.where}"
        head = f"{one.runs} x {row.kind}{axes}{size}{unknown}{back}{other}{line}"
        what = " ".join(filter(None, (one.array, row.type)))
        ways = f"{row.source or '-'} -> {row.target or '-'}" if row.source or row.target else ""
        parts = ", ".join(filter(None, (what, ways)))
        rest = f"{indent}       "
        yield from wrapped(f"{head}: {parts}" if parts else head, self.width, f"{indent}   ", rest)
        if row.reason:
            yield from wrapped(row.reason, self.width, rest, rest)


# ---------------------------------------------------------------- words


def wrapped(words: str, width: int, first: str = "", rest: str = "  ") -> list[str]:
    """Break ``words`` into lines of at most ``width`` columns; only a word longer than a line is itself broken."""
    return textwrap.wrap(words, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def shortened(words: str, width: int) -> str:
    """Cut ``words`` to ``width`` columns."""
    return words if len(words) <= width else words[: width - 3] + "..."


def counted(number: int, what: str) -> str:
    """Format a number with its noun: ``1 device``, ``2 devices``."""
    return f"{number:,} {what if number == 1 else 'axes' if what == 'axis' else what + 's'}"


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:.0f}%"


def show_bytes(count: int) -> str:
    """Format ``count`` bytes with a unit, in about three digits: '48.0 KiB'."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def show_apart(before: int, after: int) -> tuple[str, str]:
    """Format two sizes; in bytes where a unit hides that they differ: '5,119 B' and '5,120 B', both 5.0 KiB."""
    texts = show_bytes(before), show_bytes(after)
    return (f"{before:,} B", f"{after:,} B") if before != after and texts[0] == texts[1] else texts


def show_flops(count: float) -> str:
    """Format in about three figures: ``6.66 GFLOP``."""
    for unit, size in (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("kFLOP", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} FLOP"


def show_seconds(seconds: float) -> str:
    """Format in about three figures: 12.3 us, 4.56 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
