"""The table of tools/bench/underspecified.py, and what it says of the criteria.

1. The free form beside the peers' free forms: bytes and memory at most FREE_BOUND times those of the better peer that
   was right, on every program and in geometric mean.
2. The free form beside the best of all eight (four ways, two forms) that were right: bytes at most
   BEST_MEAN in geometric mean, and BEST_BOUND on every program.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bench.peers import ALL_WAYS as WAYS
from tools.bench.report import (
    RIGHT,
    cell,
    geometric_mean,
    markdown_table,
    ratio,
    ratio_cell,
    show_table,
    states,
    value,
    worst_first,
)
from tools.bench.underspecified_programs import FORMS

FREE_BOUND, FREE_MEAN = 1.02, 0.75
BEST_MEAN, BEST_BOUND = 1.05, 1.25
MEASURES = ("bytes", "memory")


@dataclass(frozen=True, slots=True)
class Row:
    """One program; ``forms`` holds the answers of tools/bench/peers.py by form and way."""

    name: str
    mesh: tuple[int, ...]
    forms: dict[str, dict[str, dict[str, Any]]]

    def of(self, form: str, way: str, what: str) -> float | None:
        """What was measured; None where it was not right."""
        answer = self.forms[form][way]
        return value(answer, what) if answer["status"] == RIGHT else None

    def peer(self, what: str) -> float | None:
        """The free form of the better peer that was right."""
        return _least(self.of("free", way, what) for way in WAYS[1:])

    def best(self, what: str) -> float | None:
        """The best of all."""
        return _least(self.of(form, way, what) for form in FORMS for way in WAYS)

    def to_peer(self, what: str) -> float | None:
        """Our free form over the better peer's; None where ours is not right, too."""
        ours = self.of("free", WAYS[0], what)
        return None if ours is None else ratio(ours, self.peer(what))

    def to_best(self, what: str) -> float | None:
        ours = self.of("free", WAYS[0], what)
        return None if ours is None else ratio(ours, self.best(what))


def _least(found: Any) -> float | None:
    return min((one for one in found if one is not None), default=None)


def read_rows(path: str) -> list[Row]:
    """What --json wrote. Raises OSError, ValueError or KeyError where it did not."""
    return [Row(r["name"], tuple(r["mesh"]), r["forms"]) for r in json.loads(Path(path).read_text())]


HEADS = (
    "program",
    "mesh",
    *(f"{form} {way}" for form in FORMS for way in WAYS),
    "to peer",
    "to best",
    *(f"KiB {way}" for way in WAYS),
    "to peer",
)


def kib(size: float | None) -> str:
    return "-" if size is None else f"{size / 1024:.1f}"


def cells(row: Row) -> list[str]:
    return [
        row.name,
        "x".join(map(str, row.mesh)),
        *(cell(row.forms[form][way]) for form in FORMS for way in WAYS),
        ratio_cell(row.to_peer("bytes")),
        ratio_cell(row.to_best("bytes")),
        *(kib(row.of("free", way, "memory")) for way in WAYS),
        ratio_cell(row.to_peer("memory")),
    ]


def summary(rows: Sequence[Row]) -> list[str]:
    """Each criterion with what was found, the programs that break it, and who was not right."""
    lines = []
    for what in MEASURES:
        ratios = [(row.name, row.to_peer(what)) for row in rows]
        wanted = f" (wanted: at most {FREE_MEAN})" if what == "bytes" else ""
        lines.append(
            f"{what} of the free form over the better peer's: {_mean(ratios)}{wanted}; "
            f"above {FREE_BOUND}: {worst_first(ratios, FREE_BOUND)}"
        )
    ratios = [(row.name, row.to_best("bytes")) for row in rows]
    lines.append(
        f"bytes of the free form over the best of all: {_mean(ratios)} (wanted: at most {BEST_MEAN}); "
        f"above {BEST_BOUND}: {worst_first(ratios, BEST_BOUND)}"
    )
    for way in WAYS[1:]:
        peers = [(row.name, _over(row.of("free", way, "bytes"), row.best("bytes"))) for row in rows]
        lines.append(f"{way}'s free form over the best of all: {_mean(peers)}")
    for form in FORMS:
        lines += [f"{form} form, " + states(way, [(row.name, row.forms[form][way]) for row in rows]) for way in WAYS]
    return lines


def _over(ours: float | None, other: float | None) -> float | None:
    return None if ours is None else ratio(ours, other)


def _mean(ratios: Sequence[tuple[str, float | None]]) -> str:
    found = [one for _, one in ratios if one is not None]
    return f"geometric mean {geometric_mean(found):.3f} over {len(found)} programs"


def markdown(rows: Sequence[Row]) -> str:
    return markdown_table(HEADS, [cells(row) for row in rows], summary(rows))


def show(rows: Sequence[Row]) -> None:
    reasons = [
        f"{row.name}: {form}: {way}: {answer['reason']}"
        for row in rows
        for form, ways in row.forms.items()
        for way, answer in ways.items()
        if answer.get("reason")
    ]
    title = "bytes received per device / collectives, by form and way; KiB of temp + output of the free form"
    show_table(title, HEADS, [cells(row) for row in rows], [*summary(rows), *reasons])
