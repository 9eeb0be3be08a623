"""``Finding``: an edit of annotations that reduces cost, with the compiled program's figures before and after.

Each edit was compiled by the partitioner of the report, together with the findings before it, so findings may be
applied in order. Renderers take ``Findings``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from shardpass.diagnostics import NOWHERE, Place
from shardpass.report.rows import short

DROP, REPLACE, ADD, NAME = "drop", "replace", "add", "name"
NOW, EDITED, DECIDED, PINNED = "now", "with these edits", "shardpass's program", "pinned"
PINNED_SO_FAR = "pinned, so far"
LATE, INTERRUPTED = "late", "interrupted"
ANNOTATION, UNEVEN, LOOKUP, CAUSE = "annotation", "uneven size", "lookup", "cause"


@dataclass(frozen=True, slots=True)
class Figures:
    """The cost of one run on a device, for a compiled program or a plan.

    Attributes:
        bytes: the received bytes, with loops multiplied.
        memory: arguments, results and temporaries, by the compiler's statistics; for a plan, the peak of live bytes.
        flops: operations of products and convolutions, with loops multiplied; 0 for a plan.
        seconds: the modeled seconds of a step, as in ``Report.step_seconds``.
        compute_seconds: the part of ``seconds`` without communication; 0 if unknown.
        temporaries: the part of ``memory`` that is neither arguments nor results; 0 if unknown.
    """

    bytes: int
    memory: int
    flops: int
    seconds: float
    compute_seconds: float = 0.0
    temporaries: int = 0

    def as_dict(self) -> dict[str, object]:
        """Return the figures that all programs have, as plain values for JSON."""
        return {"bytes": self.bytes, "memory": self.memory, "flops": self.flops, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line of the user's program at which a device receives fewer, or more, bytes with an edit."""

    place: Place
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Annotated:
    """An edit's change of one annotation: ``spec`` replaces ``now`` on the array ``name``; "" means no annotation.

    ``kind``: "argument", "result", "constraint" or "value". ``positions``: for arguments and results, their
    positions in the signature of the program.
    """

    kind: str
    name: str
    now: str
    spec: str
    place: Place = NOWHERE
    positions: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "place": str(self.place), "positions": list(self.positions)}


@dataclass(frozen=True, slots=True)
class Finding:
    """An edit of annotations that reduces cost, with the figures before and after.

    Attributes:
        action: DROP, REPLACE or ADD; NAME for a cause without an edit, whose figures are those of the current
            program.
        sentence: the mistake and its cost, in one sentence.
        annotations: the annotations that the edit changes. They have one kind; several follow one rule.
        code: the edit as JAX code, one string for each line.
        diff: the edit as a unified diff of the user's file; "" if the source is not available.
        place: the user's line of a constraint or a value.
        before: the figures without the edit, with all earlier edits applied.
        after: the figures with the edit.
        lines: the lines whose bytes the edit changes, greatest savings first.
        kind: UNEVEN if the devices do not divide a size of the array, LOOKUP if rows of the array are looked up,
            CAUSE for a cause without an edit, else ANNOTATION.
    """

    action: str
    sentence: str
    annotations: tuple[Annotated, ...]
    code: tuple[str, ...]
    before: Figures
    after: Figures
    diff: str = ""
    place: Place = NOWHERE
    lines: tuple[LineChange, ...] = ()
    kind: str = ANNOTATION

    def as_dict(self) -> dict[str, object]:
        """Return the finding as plain values for JSON."""
        return {
            "action": self.action,
            "kind": self.kind,
            "sentence": self.sentence,
            "place": str(self.place),
            "annotations": [one.as_dict() for one in self.annotations],
            "code": list(self.code),
            "diff": self.diff,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "lines": [{"place": str(one.place), "before": one.before, "after": one.after} for one in self.lines],
        }


@dataclass(frozen=True, slots=True)
class Gap:
    """The figures of one program compiled in several ways, by the name of the way.

    ``rows``: NOW, the current program; EDITED, with all findings; DECIDED, shardpass's own program; PINNED, the
    partitioner's program with shardpass's decisions as constraints, PINNED_SO_FAR if time ended before ``pin`` had. A
    way that took too long has no row.
    """

    rows: tuple[tuple[str, Figures], ...]

    def as_list(self) -> list[dict[str, object]]:
        """Return the rows as plain values for JSON."""
        return [{"program": name, **figures.as_dict()} for name, figures in self.rows]


@dataclass(frozen=True, slots=True)
class Findings(Sequence[Finding]):
    """The findings of a report, as a sequence, greatest savings first.

    Attributes:
        ranked: the findings, greatest savings first.
        compiled: the number of compiled edits.
        why_not: the reason why no edits were tried; "" if some were.
        stopped: the reason why the search ended early: LATE or INTERRUPTED; "" if it did not.
    """

    ranked: tuple[Finding, ...] = ()
    compiled: int = 0
    why_not: str = ""
    stopped: str = ""

    def __len__(self) -> int:
        return len(self.ranked)

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        return self.ranked[place]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.ranked)

    def as_dict(self) -> dict[str, object]:
        """Return the findings as plain values for JSON."""
        return {"found": [one.as_dict() for one in self.ranked], "why_not": self.why_not, "stopped": self.stopped}


def headline(one: Finding) -> str:
    """Return the finding's sentence, preceded by its line if known."""
    return one.sentence if one.place == NOWHERE else f"{short(one.place)}: {one.sentence}"
