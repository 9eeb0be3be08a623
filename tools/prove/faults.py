"""Seeded faults: one change in a program of one device that was proved; none that changes results may be proved.

    python -m tools.prove.faults                    600 faults in the programs of test/lit/ops and of examples
    python -m tools.prove.faults --count 50 --seed 3
    python -m tools.prove.faults --only proved      run only what is proved, which is all that can be a mistake

The kinds of faults are drawn by turns, so that rare kinds are among them. Whether a fault changes results is seen by
running: StableHLO's reference interpreter runs the program with and without the fault on the same random inputs, in a
process of its own (``observing``). A program that is not proved is refuted where a counterexample is seen. What is
unknown should end at the op that was changed, or at one that reads its result; ops are told apart by their lines.

A proof of each element takes up to half a minute, and most faults need it to fail. So a program whose own proof takes
more than ``LONG`` seconds is left out, and no fault is made after ``--minutes`` of processor time: the count says how
many were.

Exit status 1 where a fault is proved and its results differ.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shardpass
from shardpass.diagnostics import Place, ShardpassError, collect
from shardpass.ir.context import parse_module
from shardpass.ir.locations import place_of
from shardpass.ir.walk import operation
from shardpass.ir.written import bytecode
from shardpass.proving import prove
from tools.processes import ROOT
from tools.prove.observing import Observer
from tools.prove.proof_faults import Fault, faults, ops_of

LONG = 1.0  # seconds of processor time
EVERY = 20  # faults for a line on stderr
HOLDERS = ("func.func", "builtin.module", "stablehlo.while", "stablehlo.if", "stablehlo.case")


@dataclass(frozen=True, slots=True)
class Outcome:
    """``verdict``: proved, refuted, unknown, or unknown elsewhere: at an op that does not read the changed one.

    ``differs``: whether results do; None where the program was not run, or does not run.
    """

    program: str
    fault: Fault
    verdict: str
    differs: bool | None


@dataclass(frozen=True, slots=True)
class Base:
    """A program that is proved, with its faults."""

    name: str
    whole: Any
    local: Any
    faults: Sequence[Fault]


def bases(paths: Sequence[Path]) -> Iterator[Base]:
    for path in paths:
        text = path.read_text()
        if "// -----" in text:  # several modules in one file
            continue
        try:
            with collect():
                # printed and read again: each op has a line of its own
                local = parse_module(str(shardpass.run_pipeline(text, "partition")))
                whole = parse_module(text)
                begun = time.process_time()
                proved = prove(whole, local, refute=False).proved
        except ShardpassError:  # tests of errors
            continue
        if proved and time.process_time() - begun < LONG:
            yield Base(str(path.relative_to(ROOT)), whole, local, list(faults(local)))


def programs() -> list[Path]:
    return sorted([*(ROOT / "test" / "lit" / "ops").glob("*/*.mlir"), *(ROOT / "examples").glob("*[a-z].mlir")])


def blamed(local: Any, fault: Fault) -> set[Place]:
    """The places at which ``fault`` may be named: of the op that is changed, and of those that read its results.

    Of an op in a reducer's body that is the op that reduces.
    """
    op = ops_of(local)[fault.index]
    while op.operation.parent is not None and op.operation.parent.name not in HOLDERS:
        op = operation(op.operation.parent)
    users = [operation(use.owner) for result in op.results for use in result.uses]
    return {place_of(one.location) for one in (op, *users)}


def examine(base: Base, fault: Fault, only_proved: bool, observer: Observer) -> Outcome | None:
    """None where the fault makes no valid module."""
    module = fault.made(base.local)
    if module is None:
        return None
    verdict = prove(base.whole, module, refute=False)
    if only_proved and not verdict.proved:
        return Outcome(base.name, fault, verdict.word, None)
    differs, refuted = observer.observed(*map(bytecode, (base.whole, base.local, module)))
    word = "refuted" if refuted and not verdict.proved else verdict.word
    if verdict.unknown is not None and not refuted and verdict.unknown.place not in blamed(base.local, fault):
        word = "unknown elsewhere"
    return Outcome(base.name, fault, word, differs)


def by_turns(pairs: Sequence[tuple[Base, Fault]]) -> Iterator[tuple[Base, Fault]]:
    """The first of each kind of fault, then the second of each, and so on."""
    kinds: dict[str, list[tuple[Base, Fault]]] = {}
    for pair in reversed(pairs):
        kinds.setdefault(pair[1].what, []).append(pair)
    while kinds:
        for kind in sorted(kinds):
            yield kinds[kind].pop()
            if not kinds[kind]:
                del kinds[kind]


def said(differing: Counter[str]) -> str:
    """The figures, of the verdicts on programs whose results differ."""
    caught, total = differing["refuted"] + differing["unknown"], differing.total()
    share = caught / max(total, 1)
    return (
        f"of {total} whose results differ {differing['proved']} are proved, and {caught} ({share:.1%}) are refuted, "
        "or unknown at the op or a reader of it"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=600, help="how many faults (default: 600)")
    parser.add_argument("--minutes", type=float, default=10, help="the most processor time (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="which faults are drawn")
    parser.add_argument("--only", choices=("proved",), help="run only the programs that are proved")
    parser.add_argument("--match", default="", help="only programs whose path holds this")
    args = parser.parse_args(argv)
    rng = random.Random(args.seed)
    pairs = [(base, fault) for base in bases([p for p in programs() if args.match in str(p)]) for fault in base.faults]
    rng.shuffle(pairs)
    observer = Observer()
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for base, fault in by_turns(pairs):
        if counts.total() >= args.count or time.process_time() > 60 * args.minutes:
            break
        outcome = examine(base, fault, args.only == "proved", observer)
        if outcome is None:
            continue
        seen = {True: "results differ", False: "results are equal", None: "not run"}[outcome.differs]
        counts[f"{outcome.verdict}, {seen}"] += 1
        kinds[fault.what] += 1
        if outcome.differs:
            differing[outcome.verdict] += 1
        if outcome.differs and outcome.verdict in ("proved", "unknown elsewhere"):
            print(f"{outcome.verdict}: {base.name}: {fault.what}: {fault.op} number {fault.index}", flush=True)
        if counts.total() % EVERY == 0:
            print(said(differing), file=sys.stderr, flush=True)
    observer.close()
    print(f"{counts.total()} faults in {len({base.name for base, _ in pairs})} programs")
    for row, count in (*counts.most_common(), *kinds.most_common()):
        print(f"{count:6} {row}")
    print(said(differing))
    return int(bool(differing["proved"]))


if __name__ == "__main__":
    raise SystemExit(main())
