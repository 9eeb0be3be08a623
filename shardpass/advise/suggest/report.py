"""A suggestion as a value, as JAX's text, and as JSON.

Example of the text::

    in_shardings:
      params['layers'][*]['up'] = P('data', None)   # saves 2.1 MiB of memory, 40.1 us
    in the program:
      h = with_sharding_constraint(h, P('data', None))  # train.py:41, saves 12.0 us
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from shardpass.advise.place.sites import ARGUMENT, RESULT
from shardpass.advise.place.write import Change
from shardpass.diagnostics.printable import joined
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.redistribute.terms.limit import show_bytes
from shardpass.report.findings import Figures
from shardpass.report.text import PARTITIONED, show_seconds
from shardpass.runtime.peers import OURS

MOST_PATHS = 4  # that are listed where no pattern fits them
LINE = "line"  # of an annotation in the program
HEADS = {ARGUMENT: "in_shardings:", RESULT: "out_shardings:", LINE: "in the program:"}


@dataclass(frozen=True)
class Advice:
    """An annotation to add, with the time and the memory that it saves.

    Attributes:
        kind: "argument", "result" or "line".
        paths: of arguments (``params['layers'][*]['w1']``) or results; of a line, the variable or expression.
        spec: the PartitionSpec, as text: ``P('data', None)``.
        file, line: of a line.
        saves_seconds, saves_memory: by how much the program's seconds and bytes of memory rise if this annotation alone
            is left out; negative where it trades one for the other.
        note: the reason for an annotation that saves nothing itself; None for all others.
        instead: the user's own annotations that this one replaces, as text.
    """

    kind: str
    paths: tuple[str, ...]
    spec: str
    file: str
    line: int
    saves_seconds: float
    saves_memory: int
    annotation: Change = field(repr=False)
    note: str | None = None
    instead: tuple[str, ...] = ()

    def __str__(self) -> str:
        saved = f"saves {show_saving(self.saves_seconds, self.saves_memory)}"
        if self.kind != LINE:
            note, more = saved if self.note is None else self.note, len(self.paths) - MOST_PATHS
            paths = ", ".join(self.paths[:MOST_PATHS]) + (f" and {more} more" if more > 0 else "")
            return f"{paths} = {self.spec}" + (f"  # {note}" if note else "")
        name, place = self.paths[0], f"{PurePosixPath(self.file).name}:{self.line}"
        return f"with_sharding_constraint({name}, {self.spec})  # {place}, {saved}"


@dataclass(frozen=True)
class Suggestion:
    """Suggested annotations, most important first, and the program's costs before and with them.

    Attributes:
        mesh: its axes, as text.
        memory_limit: the limit of bytes alive, None for no limit.
        advice: the annotations.
        arguments: (path, spec) of every argument with the advice, annotated or not.
        before, plan: the plans without and with the annotations.
        figures_before, figures: what these plans cost.
        propagate: the pass that decides all other shardings, with its options.
        decision: how near the result is to the best of the model that was solved (``planning.search.Bound``).
        partitioner: whose program the figures after describe. For any but shardpass, ``advice`` has every argument and
            result that the user did not annotate, so that this partitioner decides about none of them.
    """

    mesh: str
    memory_limit: int | None
    advice: tuple[Advice, ...]
    arguments: tuple[tuple[str, str], ...]
    before: ProgramPlan = field(repr=False)
    plan: ProgramPlan = field(repr=False)
    figures_before: Figures
    figures: Figures
    propagate: str
    decision: Mapping[str, object] = field(default_factory=dict)
    partitioner: str = OURS

    def __str__(self) -> str:
        return joined(_lines(self))

    def json(self) -> str:
        """Return every number and annotation as JSON."""
        advice = []
        for one in self.advice:
            fields: dict[str, object] = {"kind": one.kind, "paths": list(one.paths), "spec": one.spec}
            if one.kind == LINE:
                fields |= {"file": one.file, "line": one.line}
            if one.instead:
                fields["instead"] = list(one.instead)
            advice.append({**fields, "saves_seconds": one.saves_seconds, "saves_memory": one.saves_memory})
        data = {
            "mesh": self.mesh,
            "partitioner": self.partitioner,
            "memory_limit": self.memory_limit,
            "annotations": advice,
            "arguments": dict(self.arguments),
            "decision": dict(self.decision),
            "before": _told(self.figures_before),
            "after": _told(self.figures),
            "propagate": self.propagate,
        }
        return json.dumps(data, indent=2)


def _told(figures: Figures) -> dict[str, object]:
    return {**figures.as_dict(), "compute_seconds": figures.compute_seconds}


def _lines(suggestion: Suggestion) -> Iterator[str]:
    limit = "" if suggestion.memory_limit is None else f", at most {show_bytes(suggestion.memory_limit)} on a device"
    yield f"on {suggestion.mesh}{limit}{PARTITIONED.get(suggestion.partitioner, '')}:"
    if not suggestion.advice:
        yield "nothing to annotate: no annotation makes the program cheaper"
    for kind, head in HEADS.items():
        of_kind = [one for one in suggestion.advice if one.kind == kind]
        if of_kind:
            yield head
            yield from (f"  {one}" for one in of_kind)
    annotated = {path for one in suggestion.advice for path in one.paths}
    rest = [(path, spec) for path, spec in suggestion.arguments if path not in annotated and spec != "P()"]
    if rest and suggestion.partitioner == OURS:
        yield "which the passes then carry to:"
        yield from (f"  {path} = {spec}" for path, spec in rest)
    yield ""
    yield f"{'':10}{'received':>12}{'memory':>12}{'time':>12}"
    for name, cost in (("before", suggestion.figures_before), ("after", suggestion.figures)):
        yield (f"{name:10}{show_bytes(cost.bytes):>12}{show_bytes(cost.memory):>12}{show_seconds(cost.seconds):>12}")


def show_saving(seconds: float, memory: int) -> str:
    """Format a saving: "1.2 MiB of memory, 3.4 ms"; where one of them grows, "3.4 ms for 1.2 MiB of memory"."""
    parts = []
    if memory > 0:
        parts.append(f"{show_bytes(memory)} of memory")
    if seconds > 0:
        parts.append(show_seconds(seconds))
    saved = ", ".join(parts)
    if memory < 0:
        return f"{saved} for {show_bytes(-memory)} of memory"
    return f"{saved} for {show_seconds(-seconds)}" if seconds < 0 else saved
