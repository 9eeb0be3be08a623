"""Reshards of a program with explicit axes that cost more than they must, each edit verified by tracing.

Problem: JAX follows types that the user writes, and a reshard that is not needed is sent all the same. For each call
that says a type (``written``), find whether the program traces without it, or with another spec, with the same types
of its results, and for less.

1. Repeated: each reshard of the call is to the type that its operand has, or the program's types are the same without
   the keyword or region. Such a call sends nothing, and goes.
2. Dropped: the program without the call is traced, lowered and priced as ``explain`` prices it. The one that saves most
   is a finding, and the others are tried again on top of it, until none saves.
3. Two at once: of calls that do not trace one without the other (both operands of a sum), for ``MOST_PAIRS`` pairs.
4. Another spec: as an axis more, less or elsewhere (``edits.candidates.variants``).

Each edit is tried on top of the findings before it. At most ``MOST_TRACED`` traces bound the search, of large programs
fewer (``MOST_EQUATIONS`` traced in all, ``FEWEST_TRACED`` at least); state: the edits that are findings, and the
figures of the program with them. Complexity: O(calls^2) traces, a price for each that succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

from shardpass.advise.find.propose.specs import variants
from shardpass.advise.find.sentences import cost_of
from shardpass.advise.find.source import Replacement, SourceFile, overlap
from shardpass.advise.find.verify import LEAST, MORE_MEMORY, changed_lines, figures
from shardpass.advise.place.keep import keep_best
from shardpass.advise.place.specs import Spec, spec_text
from shardpass.advise.repair.specs import spec_of_type
from shardpass.advise.repair.trace import Region, Retracer
from shardpass.advise.repair.written import HELPER, KEYWORD, REGION, RESHARD, Calls, Written
from shardpass.diagnostics import ShardpassError
from shardpass.ir import jax_private
from shardpass.report.findings import DROP, REPLACE, Annotated, Figures, Finding, Findings
from shardpass.report.report import Report

MOST_TRACED, FEWEST_TRACED = 300, 24  # programs that are traced for one report
MOST_EQUATIONS = 60_000  # of all programs that are traced for one report
MOST_PAIRS = 60
MOST_FINDINGS = 24


Explained = Callable[[str], Report]  # the report of a module's text, by the partitioner of the one that is at hand
Edit = tuple[tuple[Written, Spec | None], ...]  # None: without the type


@dataclass(frozen=True)
class Tried:
    """A program that was traced with an edit."""

    edit: Edit
    replacements: tuple[tuple[SourceFile, Replacement], ...]
    regions: tuple[Region, ...]
    jaxpr: Any
    report: Report

    @property
    def figures(self) -> Figures:
        return figures(self.report)


class Reshards:
    """Searches one program for reshards to change.

    State: the findings, and the program with their edits.
    """

    def __init__(self, retracer: Retracer, calls: Calls, explained: Explained) -> None:
        self.retracer, self.explained = retracer, explained
        self.traced = 0
        self.replacements: list[tuple[SourceFile, Replacement]] = []
        self.regions: list[Region] = []
        traced = retracer.trace({})
        self.jaxpr, self.report = traced.jaxpr, self._report(traced)
        self.now = figures(self.report)
        equations = sum(1 for _ in jax_private.equations(self.jaxpr))
        self.most = min(MOST_TRACED, max(FEWEST_TRACED, MOST_EQUATIONS // max(1, equations)))
        self.results = results_of(self.jaxpr)
        self.calls = [one for one in calls.of(self.jaxpr) if not one.fixed]
        self.files = calls
        self.axes = {name: size for name, size in explicit_axes_of(self.jaxpr).items() if size > 1}
        self.findings: list[Finding] = []
        self.error: Exception | None = None  # of the last program that did not trace

    def run(self) -> Findings:
        for one in list(self.calls):
            if one.repeats or one.form in (KEYWORD, REGION):
                self._repeated(one)
        for proposed, enough in (
            (self._dropped, cheaper),
            (self._in_pairs, cheaper),
            (self._respecified, _much_cheaper),
        ):
            most = MOST_FINDINGS - len(self.findings)
            keep_best(proposed, partial(self._that_saves, enough), _rank, self._keep, most)
        return Findings(tuple(self.findings), compiled=self.traced)

    # ---------------------------------------------------------------- what is tried

    def _repeated(self, call: Written) -> None:
        tried = self._tried(((call, None),), unless_types_change=True)
        if tried is not None and tried.figures.bytes <= self.now.bytes:
            self._keep(tried, repeated=True)

    def _dropped(self) -> Iterator[Edit]:
        return (((one, None),) for one in self.calls)

    def _in_pairs(self) -> Iterator[Edit]:
        pairs = list(combinations(self.calls, 2))[:MOST_PAIRS]
        return (((one, None), (other, None)) for one, other in pairs)

    def _respecified(self) -> Iterator[Edit]:
        for one in self.calls:
            target = one.target
            if target is None or one.spec is None or one.form == HELPER:
                continue
            spec = spec_of_type(target)
            if spec is not None:
                yield from (((one, other),) for other in variants(spec, target.shape, self.axes))

    def _that_saves(self, enough: Callable[[Figures, Figures], bool], edit: Edit) -> Tried | None:
        """Return the program with ``edit``; None if that is not a saving by ``enough``."""
        tried = self._tried(edit)
        return tried if tried is not None and enough(self.now, tried.figures) else None

    def _tried(self, edit: Edit, unless_types_change: bool = False) -> Tried | None:
        """Trace the program with ``edit``; return None if that fails or changes the types of the results."""
        made = self._made(edit)
        return None if made is None else self._traced(edit, *made, unless_types_change)

    def tried_with(self, replacements: tuple[tuple[SourceFile, Replacement], ...]) -> Tried | None:
        """Trace the program with ``replacements`` of the text; return None as ``_tried``."""
        return None if self._overlap(replacements) else self._traced((), replacements, (), False)

    def _traced(
        self,
        edit: Edit,
        replacements: tuple[tuple[SourceFile, Replacement], ...],
        regions: tuple[Region, ...],
        unless_types_change: bool,
    ) -> Tried | None:
        if self.traced >= self.most:
            return None
        self.traced, self.error = self.traced + 1, None
        every: dict[SourceFile, list[Replacement]] = {}
        for file, one in (*self.replacements, *replacements):
            every.setdefault(file, []).append(one)
        try:
            traced = self.retracer.trace(every, [*self.regions, *regions])
        except Exception as error:  # the user's program does not trace with the edit, by whatever it raises
            self.error = error
            return None
        if results_of(traced.jaxpr) != self.results:
            return None
        if unless_types_change and types_of(traced.jaxpr) != types_of(self.jaxpr):
            return None
        try:
            report = self._report(traced)
        except ShardpassError:
            return None
        return Tried(edit, replacements, regions, traced.jaxpr, report)

    def _report(self, traced: Any) -> Report:
        return self.explained(self.retracer.lower(traced))

    def _made(self, edit: Edit) -> tuple[tuple[tuple[SourceFile, Replacement], ...], tuple[Region, ...]] | None:
        edits: list[tuple[SourceFile, Replacement]] = []
        regions = []
        for call, spec in edit:
            replacements = call.without() if spec is None else call.with_spec(spec_text(spec))
            if replacements is None:
                return None
            edits += [(call.file, one) for one in replacements]
            outside = call.outside
            if outside is not None:
                regions.append(Region(call.file.path, outside, spec))
        return None if self._overlap(edits) else (tuple(edits), tuple(regions))

    def _overlap(self, edits: Sequence[tuple[SourceFile, Replacement]]) -> bool:
        every = [*self.replacements, *edits]
        return any(overlap([one for known, one in every if known is file]) for file, _ in edits)

    # ---------------------------------------------------------------- what is a finding

    def _keep(self, tried: Tried, repeated: bool = False) -> None:
        action = DROP if all(spec is None for _, spec in tried.edit) else REPLACE
        text = _sentence(tried.edit, self.now, tried.figures, repeated)
        annotations, code = tuple(_annotated(*one) for one in tried.edit), tuple(_code(*one) for one in tried.edit)
        self.keep(tried, action, text, annotations, code, lines=not repeated)

    def keep(
        self,
        tried: Tried,
        action: str,
        text: str,
        annotations: tuple[Annotated, ...],
        code: tuple[str, ...],
        lines: bool = True,
    ) -> None:
        """Add a finding about ``tried``, and make it the program on which further edits are tried."""
        diff = self._diff(tried.replacements)
        changed = changed_lines(self.report.rows, tried.report.rows) if lines else ()
        figured = self.now, tried.figures
        self.findings.append(Finding(action, text, annotations, code, *figured, diff, annotations[0].place, changed))
        self.replacements += tried.replacements
        self.regions += tried.regions
        self.now, self.report, self.jaxpr = tried.figures, tried.report, tried.jaxpr
        gone = {id(call) for call, _ in tried.edit}
        self.calls = [one for one in self.calls if id(one) not in gone]

    def _diff(self, edits: Sequence[tuple[SourceFile, Replacement]]) -> str:
        """Return the unified diff of ``edits`` on top of those of the findings."""
        diffs = []
        for file in dict.fromkeys(file for file, _ in edits):
            here = [one for known, one in edits if known is file]
            diffs.append(file.diff(here, [one for known, one in self.replacements if known is file]))
        return "".join(diffs)


def results_of(jaxpr: Any) -> tuple[str, ...]:
    """Return the types of a program's results, as text."""
    return tuple(_type_text(one) for one in jaxpr.out_avals)


def types_of(jaxpr: Any) -> tuple[str, ...]:
    """Return what each equation but a reshard computes, with its types, as text."""
    return tuple(
        f"{one.primitive.name} {[_type_text(value.aval) for value in one.outvars]}"
        for one in jax_private.equations(jaxpr)
        if one.primitive.name != "reshard"
    )


def _type_text(aval: Any) -> str:
    sharding = getattr(aval, "sharding", None)
    return f"{aval.str_short()} {None if sharding is None else (sharding.mesh.axis_types, sharding.spec)}"


def explicit_axes_of(jaxpr: Any) -> dict[str, int]:
    """Return the axes that are explicit in any type of the program, with their sizes."""
    axes: dict[str, int] = {}
    for equation in jax_private.equations(jaxpr):
        for value in (*equation.invars, *equation.outvars):
            mesh = getattr(getattr(value.aval, "sharding", None), "mesh", None)
            if mesh is not None:
                axes |= {name: mesh.shape[name] for name in mesh.explicit_axes}
    return axes


def cheaper(was: Figures, now: Figures) -> bool:
    """Return whether a program without a type saves bytes, however few, and needs no more time, work or memory."""
    if now.compute_seconds > was.compute_seconds * (1 + LEAST) or now.memory > was.memory * (1 + MORE_MEMORY):
        return False
    return now.bytes < was.bytes and now.seconds <= was.seconds


def _much_cheaper(was: Figures, now: Figures) -> bool:
    """Return whether another spec saves so many bytes and so much time that it is worth an edit."""
    much = now.bytes < was.bytes * (1 - LEAST) and now.seconds < was.seconds * (1 - LEAST)
    return much and cheaper(was, now)


def _rank(tried: Tried) -> tuple[float, int, int]:
    made = tried.figures
    return made.seconds, made.bytes, made.memory


def _annotated(call: Written, spec: Spec | None) -> Annotated:
    target = call.target
    now = None if target is None else spec_of_type(target)
    text = spec_text(now) if now is not None else "" if call.spec is None else call.file.text(call.spec)
    return Annotated(call.form, call.name, text, "" if spec is None else spec_text(spec), call.place)


def _code(call: Written, spec: Spec | None) -> str:
    shown = f"{call.form} of {call.name}"
    return f"drop the {shown}" if spec is None else f"{shown}: {spec_text(spec)}"


_WORDS = {
    RESHARD: "the reshard of `{name}`",
    HELPER: "the reshard of `{name}`",
    KEYWORD: "out_sharding of `{name}`",
    REGION: "the region of auto_axes around `{name}`",
}


def _sentence(edit: Edit, before: Figures, after: Figures, repeated: bool) -> str:
    """Describe the mistake and its cost, without a place."""
    call, spec = edit[0]
    named = " and ".join(_WORDS[one.form].format(name=one.name) for one, _ in edit)
    if repeated:
        return f"{named} repeats the type that is there already"
    now = _annotated(call, spec).now
    costs = "cost" if len(edit) > 1 else "costs"
    if spec is None:
        return f"{named} to {now} {costs} {cost_of(before, after)}"
    return f"{named} to {now} costs {cost_of(before, after)} more than {spec_text(spec)}"
