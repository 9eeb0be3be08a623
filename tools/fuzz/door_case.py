"""A case of ``doors``: a command, the files that it is given, and what may come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tools.fuzz.mutations import changed_bytes, changed_text

Inputs = Mapping[str, Sequence[bytes]]
GIVEN, OUT = "given", "out"  # files of a case
BAD_USAGE = 2


@dataclass(frozen=True, slots=True)
class Case:
    """``words``: of the command line, where GIVEN is the file that the door is about. ``form``: of the file OUT."""

    door: str
    seed: int
    command: str  # the name behind shardpass-
    words: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    form: str = ""
    stdin: bytes = b""
    usage: bool = False  # whether the words themselves may be wrong
    writes: bool = False  # whether files beside OUT may be written

    def __str__(self) -> str:
        return f"{self.door}:{self.seed}: shardpass-{self.command} {' '.join(map(repr, self.words))}"


# what is done with a module: (command, words, form of OUT), and how often
_WAYS: Sequence[tuple[int, tuple[str, tuple[str, ...], str]]] = (
    (4, ("opt", (GIVEN, "-o", OUT), "stablehlo")),
    (6, ("opt", (GIVEN, "partition", "-o", OUT), "stablehlo")),
    (2, ("opt", (GIVEN, "propagate", "-o", OUT), "stablehlo")),
    (2, ("opt", (GIVEN, "import", "-o", OUT), "stablehlo")),
    (2, ("opt", (GIVEN, "--emit", "bytecode", "-o", OUT), "bytecode")),
    (2, ("opt", (GIVEN, "--emit", "vhlo", "-o", OUT), "vhlo")),
    (2, ("opt", (GIVEN, "partition", "--emit", "hlo", "-o", OUT), "hlo")),
    (1, ("opt", (GIVEN, "--allow-unregistered-dialect", "--mlir-print-op-generic", "-o", OUT), "unregistered")),
    (1, ("opt", (GIVEN, "--split-input-file", "--verify-diagnostics", "-o", OUT), "split")),
    (2, ("check", (GIVEN,), "")),
    (2, ("check", (GIVEN, "--strict", "--perf", "-o", OUT), "stablehlo")),
    (1, ("check", (GIVEN, "--format", "sarif"), "")),
    (2, ("check-replication", (GIVEN, "--print-varying"), "")),
    (2, ("explain", (GIVEN,), "")),
    (2, ("explain", (GIVEN, "--json"), "")),
    (1, ("explain", (GIVEN, "--html", OUT, "--group-by", "axis"), "html")),
    (1, ("suggest", (GIVEN,), "")),
)


def of_module(door: str, rng: Random, seed: int, data: bytes) -> Case:
    command, words, form = rng.choices([way for _, way in _WAYS], [often for often, _ in _WAYS])[0]
    if rng.random() < 0.1:
        at = words.index(GIVEN)
        return Case(door, seed, command, (*words[:at], "-", *words[at + 1 :]), {}, form, stdin=data)
    return Case(door, seed, command, words, {GIVEN: data}, form)


def edited(rng: Random, of: Sequence[bytes]) -> bytes:
    """A text of ``of``, edited; one in twelve is as it was, and one in twelve has bytes changed."""
    one, other = rng.choice(of), rng.choice(of)
    how = rng.randrange(12)
    if how < 2:
        return one if how else changed_bytes(rng, one, other)
    return changed_text(rng, one.decode(), other.decode()).encode("utf-8", "replace")
