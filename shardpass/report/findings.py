"""``Finding``: an edit of annotations that reduces cost, with the compiled program's figures before and after.

The figures are those of the partitioner that the report is about: each edit was compiled by it. ``Findings`` is what
all renderers take. Of several findings each was compiled with those before it: they may be applied from the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from shardpass.diagnostics import NOWHERE, Place
from shardpass.report.rows import short

DROP, REPLACE, ADD, NAME = "drop", "replace", "add", "name"
NOW, EDITED, DECIDED, PINNED = "now", "with these edits", "shardpass's program", "pinned"
LATE, INTERRUPTED = "late", "interrupted"
ANNOTATION, UNEVEN, LOOKUP, CAUSE = "annotation", "uneven size", "lookup", "cause"


@dataclass(frozen=True, slots=True)
class Figures:
    """The cost of one run on a device, for a compiled program or a plan.

    Attributes:
        bytes: received, loops multiplied.
        memory: arguments, results and temporaries, by the compiler's statistics; of a plan the most bytes alive.
        flops: of products and convolutions, loops multiplied; 0 of a plan.
        seconds: modelled, of a step, as ``Report.step_seconds``.
        compute_seconds: of the work alone; 0 where it is not known.
        temporaries: the part of ``memory`` that is neither arguments nor results; 0 where it is not known.
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

    ``kind``: "argument", "result", "constraint" or "value". ``positions``: of arguments and results, their places in
    the signature of the program.
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
        action: DROP, REPLACE or ADD; NAME of a cause without an edit, with the figures of the program as it is.
        sentence: the mistake, in a sentence with its figures.
        annotations: what the edit changes; of one kind and, where there are several, by one rule.
        code: the edit in JAX's text, a line each.
        diff: the edit as a unified diff of the user's file; "" where the source is not at hand.
        place: the user's line, of a constraint or a value.
        before, after: figures without the edit, with the edits before it applied; and with it.
        lines: the lines whose bytes the edit changes, those that save most first.
        kind: UNEVEN where the annotation meets a size that the devices do not divide, LOOKUP where rows of the array
            are looked up, CAUSE of a cause without an edit, else ANNOTATION.
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

    ``rows``: NOW, as it is compiled; EDITED, with all findings; DECIDED, shardpass's own program; PINNED, that of the
    partitioner with shardpass's decisions as constraints. A way that took too long has no row.
    """

    rows: tuple[tuple[str, Figures], ...]

    def as_list(self) -> list[dict[str, object]]:
        """Return the rows as plain values for JSON."""
        return [{"program": name, **figures.as_dict()} for name, figures in self.rows]


@dataclass(frozen=True, slots=True)
class Findings(Sequence[Finding]):
    """The findings of a report, as a sequence, the greatest savings first.

    Attributes:
        ranked: those that save most first.
        compiled: how many edits were compiled.
        why_not: the reason for which there was nothing to look at; "" where there was.
        stopped: why the search ended before its end: LATE or INTERRUPTED; "" where it did not.
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
