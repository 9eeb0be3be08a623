"""The result of a proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shardpass.diagnostics import NOWHERE, Code, Diagnostic, Place, note
from shardpass.diagnostics.table_proving import NOT_PROVED, REFUTED
from shardpass.proving.relations.laws import LawUse

if TYPE_CHECKING:
    from shardpass.proving.refuting import Difference, Waits

ASSUMED = (
    "sums, products, maxima and minima may be taken in another order, and rounded otherwise",
    "the arguments' padding holds anything",
)
OBJECT = "shardpass.object"  # on a module that is not the program of one device as given: what it is
GIVEN = "the program of one device"
PARTITIONED = "XLA's program after SPMD partitioning"
COMPILED = "XLA's program after all its passes"
# what runs is made from these objects by passes that no proof covers
NOT_COVERED = {
    GIVEN: "the passes of the compiler that the program of one device is given to",
    PARTITIONED: "XLA's passes after SPMD partitioning, which may change what the program computes",
    COMPILED: "the code that XLA makes of the program",
}
DRAWS = "the numbers that device 0 draws with stablehlo.rng stand for those of the whole program"
OPEN = "NaN, and numbers that the type cannot hold, are converted to integers alike in both programs"
SHOWN = 16  # elements of an argument that text shows


@dataclass(frozen=True, slots=True)
class Finding:
    """The op of the program of one device at which the proof ends, and why; ``result``: the number of main's.

    ``result`` is None where the results are proved, and what the devices do besides is not.

    ``whole_op``, ``whole_place``: the op of the whole program that it stands for; ``operands``: what was known of each.
    """

    op: str
    place: Place
    why: str
    result: int | None
    whole_op: str = ""
    whole_place: Place = NOWHERE
    operands: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.place}: {self.op}: {self.why} ({self.about})"

    @property
    def about(self) -> str:
        """The part of the program that is not proved."""
        return "progress, effects or promises" if self.result is None else f"result {self.result} of main"

    @property
    def more(self) -> tuple[str, ...]:
        """A line for the op of the whole program, and one for each operand."""
        known_of = (f"operand {number} holds {text}" for number, text in enumerate(self.operands))
        other = (f"in the whole program: {self.whole_place}: {self.whole_op}",) if self.whole_op else ()
        return (*other, *known_of)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a proof: ``proved``, or a finding in ``refuted`` or ``unknown``. ``difference`` or ``waits``:
    the evidence of a refutation.

    ``object``: the program that the verdict is about. What runs is made from it. ``laws``: those beyond the order of
    sums that the proof took, which floats keep only in part. ``runs``: of an unknown verdict, with how many inputs the
    programs were run and agreed, or why they were not run.
    """

    proved: bool
    refuted: Finding | None = None
    unknown: Finding | None = None
    assumed: tuple[str, ...] = ASSUMED
    difference: Difference | None = None
    waits: Waits | None = None
    object: str = GIVEN
    laws: tuple[LawUse, ...] = ()
    runs: str = ""

    def __bool__(self) -> bool:
        return self.proved

    @property
    def word(self) -> str:
        return "proved" if self.proved else "refuted" if self.refuted else "unknown"

    @property
    def more(self) -> tuple[str, ...]:
        """The lines below the first: the line of the other program, the facts known there, the inputs that refute."""
        finding = self.refuted or self.unknown
        seen = self.difference or self.waits
        inputs = () if seen is None else seen.inputs
        shown = (f"argument {number} = {_shown(array)}" for number, array in enumerate(inputs))
        return (*(() if finding is None else finding.more), *([self.runs] if self.runs else []), *shown)

    def diagnostic(self, without: Code = NOT_PROVED) -> Diagnostic | None:
        """Return the verdict as a finding, without the row ``without``; None where the program is proved."""
        finding = self.refuted or self.unknown
        if finding is None:
            return None
        first = 1 if finding.whole_op else 0
        notes = (
            *(note(line, finding.whole_place) for line in finding.more[:first]),
            *(note(line, finding.place) for line in self.more[first:]),
        )
        row = REFUTED if self.refuted else without
        return row.at(finding.place, notes=notes, op=finding.op, why=finding.why, about=finding.about)

    def json(self) -> dict[str, Any]:
        """Return the verdict for ``--format json``."""
        finding, difference = self.refuted or self.unknown, self.difference
        answer: dict[str, Any] = {
            "verdict": self.word,
            "object": self.object,
            "not_covered": NOT_COVERED[self.object],
            "assumed": list(self.assumed),
            "laws": [law.json() for law in self.laws],
            "runs": self.runs,
        }
        if finding is not None:
            answer |= {
                "op": finding.op,
                "place": str(finding.place),
                "why": finding.why,
                "result": finding.result,
                "whole_op": finding.whole_op,
                "whole_place": str(finding.whole_place),
                "operands": list(finding.operands),
            }
        if self.waits is not None:
            inputs = [_plain(array) for array in self.waits.inputs]
            answer["waits"] = {"why": self.waits.why, "seed": self.waits.seed, "inputs": inputs}
        if difference is not None:
            answer["difference"] = {
                "result": difference.result,
                "at": list(difference.at),
                "whole": _plain(difference.wanted),
                "local": _plain(difference.local),
                "seed": difference.seed,
                "inputs": [_plain(array) for array in difference.inputs],
            }
        return answer

    def __str__(self) -> str:
        if self.proved:
            beyond = () if self.object == GIVEN else (f"not proved: {NOT_COVERED[self.object]}",)
            laws = (f"by the law {law}" for law in self.laws)
            return "\n    ".join((f"proved: {self.object} computes the whole program", *beyond, *laws))
        return "\n    ".join((f"{self.word}: {self.refuted or self.unknown}", *self.more))


def _shown(array: Any) -> str:
    flat = np.asarray(array).ravel()[:SHOWN]
    rest = f", ... ({array.size} elements, of shape {list(array.shape)})" if array.size > SHOWN else ""
    return f"{np.array2string(flat, separator=', ', max_line_width=10**6)}{rest}"


def _plain(array: Any) -> Any:
    """Convert numbers and lists to JSON; values without a JSON number (complex, NaN, infinities) become text."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":  # bfloat16 and the like are exact as float64; complex has none
        array = array.astype(str) if array.dtype.kind == "c" else array.astype(np.float64)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        array = array.astype(str)
    return array.tolist()
