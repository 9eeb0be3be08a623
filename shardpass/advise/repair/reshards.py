"""Reshards of a program with explicit axes that cost more than they must, each edit verified by tracing.

Problem: JAX follows types that the user writes, and a reshard that is not needed is sent all the same. For each call
that says a type (``written``), find whether the program traces without it, or with another spec, with the same types
of its results, and for less.

1. Repeated: each reshard of the call is to the type that its operand has, or the program's types are the same without
   the keyword or region. Such a call sends nothing, and goes.
2. Dropped: the program without the call is traced, lowered and priced as ``explain`` prices it. The one that saves most
   is a finding, and the others are tried again on top of it, until none saves.
3. Two at once: of calls that do not trace one without the other (both operands of a sum), for ``MOST_PAIRS`` pairs.
4. Another spec: as an axis more, less or elsewhere (``propose.specs.variants``).

Each edit is tried on top of the findings before it. At most ``MOST_TRACED`` traces bound the search, of large programs
fewer (``MOST_EQUATIONS`` traced in all, ``FEWEST_TRACED`` at least); state: the edits that are findings, and the
figures of the program with them. Complexity: O(calls^2) traces, a price for each that succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from shardpass.report.findings import DROP, REPLACE, Annotated, Figures, Finding
from shardpass.report.report import Report

MOST_TRACED, FEWEST_TRACED = 300, 24  # programs that are traced for one report
MOST_EQUATIONS = 60_000  # of all programs that are traced for one report
MOST_PAIRS = 60
MOST_FINDINGS = 24


Explained = Callable[[str], Report]  # the report of a module's text, by the partitioner of the one that is at hand
Replacements = tuple[tuple[SourceFile, Replacement], ...]


@dataclass(frozen=True)
class TypeEdit:
    """The change of a finding.

    Attributes:
        calls: each with its new spec; None: without the type.
        replacements, regions: of the files, and of regions that exist already.
    """

    calls: tuple[tuple[Written, Spec | None], ...]
    replacements: Replacements
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True)
class Tried:
    """A program that was traced with an edit."""

    edit: TypeEdit
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
        self.made = TypeEdit((), ())  # of all findings
        traced = retracer.trace({})
        self.jaxpr, self.report = traced.jaxpr, self._report(traced)
        self.now = figures(self.report)
        equations = sum(1 for _ in jax_private.equations(self.jaxpr))
        self.most = min(MOST_TRACED, max(FEWEST_TRACED, MOST_EQUATIONS // max(1, equations)))
        self.results = _types(self.jaxpr.out_avals)
        self.calls = [one for one in calls.of(self.jaxpr) if not one.fixed]
        self.files = calls
        self.axes = {name: size for name, size in explicit_axes_of(self.jaxpr).items() if size > 1}
        self.findings: list[Finding] = []
        self.error: Exception | None = None  # of the last program that did not trace

    def run(self) -> None:
        for one in list(self.calls):
            if one.repeats or one.form in (KEYWORD, REGION):
                edit = _edit((one, None))
                tried = None if edit is None else self.tried(edit, unless_types_change=True)
                if tried is not None and tried.figures.bytes <= self.now.bytes:
                    self._keep(tried, repeated=True)
        for proposed, enough in (
            (self._dropped, cheaper),
            (self._in_pairs, cheaper),
            (self._respecified, _much_cheaper),
        ):
            most = MOST_FINDINGS - len(self.findings)
            keep_best(proposed, partial(self._that_saves, enough), _rank, self._keep, most)

    # ---------------------------------------------------------------- what is tried

    def _dropped(self) -> Iterator[TypeEdit | None]:
        return (_edit((one, None)) for one in self.calls)

    def _in_pairs(self) -> Iterator[TypeEdit | None]:
        pairs = list(combinations(self.calls, 2))[:MOST_PAIRS]
        return (_edit((one, None), (other, None)) for one, other in pairs)

    def _respecified(self) -> Iterator[TypeEdit | None]:
        for one in self.calls:
            spec = None if one.spec is None or one.form == HELPER else spec_of_type(one.target)
            if spec is not None:
                yield from (_edit((one, other)) for other in variants(spec, one.target.shape, self.axes))

    def _that_saves(self, enough: Callable[[Figures, Figures], bool], edit: TypeEdit | None) -> Tried | None:
        """Return the program with ``edit``; None if that is not a saving by ``enough``."""
        tried = None if edit is None else self.tried(edit)
        return tried if tried is not None and enough(self.now, tried.figures) else None

    def tried(self, edit: TypeEdit, unless_types_change: bool = False) -> Tried | None:
        """Trace the program with ``edit``; return None if that fails or changes the types of the results."""
        every: dict[SourceFile, list[Replacement]] = {}
        for file, one in (*self.made.replacements, *edit.replacements):
            every.setdefault(file, []).append(one)
        if self.traced >= self.most or any(overlap(every[file]) for file, _ in edit.replacements):
            return None
        self.traced, self.error = self.traced + 1, None
        try:
            traced = self.retracer.trace(every, [*self.made.regions, *edit.regions])
        except Exception as error:  # the user's program does not trace with the edit, by whatever it raises
            self.error = error
            return None
        same = not unless_types_change or _computed(traced.jaxpr) == _computed(self.jaxpr)
        if _types(traced.jaxpr.out_avals) != self.results or not same:
            return None
        try:
            return Tried(edit, traced.jaxpr, self._report(traced))
        except ShardpassError:
            return None

    def _report(self, traced: Any) -> Report:
        return self.explained(self.retracer.lower(traced))

    # ---------------------------------------------------------------- what is a finding

    def _keep(self, tried: Tried, repeated: bool = False) -> None:
        calls = tried.edit.calls
        action = DROP if all(spec is None for _, spec in calls) else REPLACE
        text = _sentence(calls, self.now, tried.figures, repeated)
        annotations, code = tuple(_annotated(*one) for one in calls), tuple(_code(*one) for one in calls)
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
        made, new = self.made, tried.edit
        diffs = []
        for file in dict.fromkeys(file for file, _ in new.replacements):
            here, before = ([one for known, one in some.replacements if known is file] for some in (new, made))
            diffs.append(file.diff(here, before))
        changed = changed_lines(self.report.rows, tried.report.rows) if lines else ()
        figured = self.now, tried.figures
        place = annotations[0].place
        self.findings.append(Finding(action, text, annotations, code, *figured, "".join(diffs), place, changed))
        self.made = TypeEdit((), (*made.replacements, *new.replacements), (*made.regions, *new.regions))
        self.now, self.report, self.jaxpr = tried.figures, tried.report, tried.jaxpr
        gone = [call for call, _ in new.calls]
        self.calls = [one for one in self.calls if one not in gone]


def _edit(*calls: tuple[Written, Spec | None]) -> TypeEdit | None:
    """Return the edit that gives ``calls`` other types; None if the text does not show how."""
    replacements: list[tuple[SourceFile, Replacement]] = []
    regions = []
    for call, spec in calls:
        made = call.without() if spec is None else call.with_spec(spec_text(spec))
        if made is None:
            return None
        replacements += [(call.file, one) for one in made]
        if (outside := call.outside) is not None:
            regions.append(Region(call.file.path, outside, spec))
    return TypeEdit(calls, tuple(replacements), tuple(regions))


def _types(avals: Any) -> list[str]:
    """Return types with their meshes and specs, as text."""
    known = [(one.str_short(), getattr(one, "sharding", None)) for one in avals]
    return [f"{text} {None if on is None else (on.mesh.axis_types, on.spec)}" for text, on in known]


def _computed(jaxpr: Any) -> list[tuple[str, list[str]]]:
    """List the computations of all equations except reshards, with their types."""
    every = (one for one in jax_private.equations(jaxpr) if one.primitive.name != "reshard")
    return [(one.primitive.name, _types(value.aval for value in one.outvars)) for one in every]


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
    """Return whether another spec saves enough bytes and time to justify an edit."""
    much = now.bytes < was.bytes * (1 - LEAST) and now.seconds < was.seconds * (1 - LEAST)
    return much and cheaper(was, now)


def _rank(tried: Tried) -> tuple[float, int, int]:
    made = tried.figures
    return made.seconds, made.bytes, made.memory


def _annotated(call: Written, spec: Spec | None) -> Annotated:
    now = spec_of_type(call.target)
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


def _sentence(calls: tuple[tuple[Written, Spec | None], ...], before: Figures, after: Figures, repeated: bool) -> str:
    """Describe the mistake and its cost, without a place."""
    call, spec = calls[0]
    named = " and ".join(_WORDS[one.form].format(name=one.name) for one, _ in calls)
    if repeated:
        return f"{named} repeats the type that is there already"
    costs = f"{'cost' if len(calls) > 1 else 'costs'} {cost_of(before, after)}"
    more = "" if spec is None else f" more than {spec_text(spec)}"
    return f"{named} to {_annotated(call, spec).now} {costs}{more}"
