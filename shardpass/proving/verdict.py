"""What a proof says."""

from __future__ import annotations

from dataclasses import dataclass

from shardpass.diagnostics import Place

ASSUMED = (
    "sums, products, maxima and minima may be taken in another order, and rounded otherwise",
    "the arguments' padding holds anything",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The op of the program of one device at which the proof ends, and why; ``result``: the number of main's."""

    op: str
    place: Place
    why: str
    result: int

    def __str__(self) -> str:
        return f"{self.place}: {self.op}: {self.why} (result {self.result} of main)"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``proved``, or a finding in ``refuted`` or ``unknown``."""

    proved: bool
    refuted: Finding | None = None
    unknown: Finding | None = None
    assumed: tuple[str, ...] = ASSUMED

    def __bool__(self) -> bool:
        return self.proved

    def json(self) -> dict[str, object]:
        """The verdict for ``--format json``."""
        finding = self.refuted or self.unknown
        word = "proved" if self.proved else "refuted" if self.refuted else "unknown"
        found: dict[str, object] = {"verdict": word, "assumed": list(self.assumed)}
        if finding is not None:
            found |= {"op": finding.op, "place": str(finding.place), "why": finding.why, "result": finding.result}
        return found

    def __str__(self) -> str:
        if self.proved:
            return "proved: the program of one device computes the whole program"
        return f"refuted: {self.refuted}" if self.refuted else f"unknown: {self.unknown}"
