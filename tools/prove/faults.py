"""Seeded faults: one change in a program of one device that was proved; none that changes results may be proved.

    python -m tools.prove.faults                    600 faults in the programs of test/lit/ops and of examples
    python -m tools.prove.faults --count 50 --seed 3
    python -m tools.prove.faults --only proved      run only what is proved, which is all that can be a mistake

Whether a fault changes results is seen by running: StableHLO's reference interpreter runs both programs on the same
random inputs. Exit status 1 where a fault is proved and its results differ.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import shardpass
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.runtime.inputs import random_inputs
from shardpass.runtime.interpreter import interpret
from shardpass.runtime.partitioned_signature import read_signature
from tools.processes import ROOT
from tools.prove.proof_faults import Fault, faults

SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """``verdict``: proved, refuted or unknown; ``differs``: None where the program was not run, or does not run."""

    program: str
    fault: Fault
    verdict: str
    differs: bool | None

    @property
    def wrong(self) -> bool:
        return self.verdict == "proved" and self.differs is True


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
                local = shardpass.run_pipeline(text, "partition")
                whole = parse_module(text)
                proved = prove(whole, local, refute=False).proved
        except ShardpassError:  # tests of errors
            continue
        if proved:
            yield Base(str(path.relative_to(ROOT)), whole, local, list(faults(local)))


def programs() -> list[Path]:
    return sorted([*(ROOT / "test" / "lit" / "ops").glob("*/*.mlir"), *(ROOT / "examples").glob("*[a-z].mlir")])


def run(module: Any, seed: int) -> list[Any]:
    arrays = random_inputs(read_signature(module).arguments, seed)
    return interpret(module, *arrays, padding=7, timeout=SECONDS)


def apart(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    for one, other in zip(found, wanted, strict=True):
        if one.dtype.kind in "fc":
            if not np.allclose(one, other, rtol=1e-3, atol=1e-3, equal_nan=True):
                return True
        elif one.dtype.kind not in "iub":
            if not np.allclose(one.astype(np.float64), other.astype(np.float64), rtol=0.1, atol=0.1, equal_nan=True):
                return True
        elif (one != other).any():
            return True
    return False


def examine(base: Base, fault: Fault, only_proved: bool, expected: dict[str, list[Any]]) -> Outcome | None:
    """None where the fault makes no valid module."""
    module = fault.made(base.local)
    if module is None:
        return None
    verdict = prove(base.whole, module, refute=False)
    word = "proved" if verdict.proved else "refuted" if verdict.refuted else "unknown"
    differs: bool | None = None
    if verdict.proved or not only_proved:
        try:
            if base.name not in expected:
                expected[base.name] = run(base.local, 0)
            differs = apart(run(module, 0), expected[base.name])
        except (ShardpassError, ValueError):  # the fault stops the interpreter: devices wait for each other
            differs = None
    return Outcome(base.name, fault, word, differs)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=600, help="how many faults (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="which faults are drawn")
    parser.add_argument("--only", choices=("proved",), help="run only the programs that are proved")
    parser.add_argument("--match", default="", help="only programs whose path holds this")
    args = parser.parse_args(argv)
    rng = random.Random(args.seed)
    pairs = [(base, fault) for base in bases([p for p in programs() if args.match in str(p)]) for fault in base.faults]
    rng.shuffle(pairs)
    counts: Counter[str] = Counter()
    wrong: list[Outcome] = []
    expected: dict[str, list[Any]] = {}
    for base, fault in pairs:
        if sum(counts.values()) >= args.count:
            break
        outcome = examine(base, fault, args.only == "proved", expected)
        if outcome is None:
            continue
        seen = {True: "results differ", False: "results are equal", None: "not run"}[outcome.differs]
        counts[f"{outcome.verdict}, {seen}"] += 1
        if outcome.wrong:
            wrong.append(outcome)
            print(f"PROVED: {base.name}: {fault.what}: {fault.op} number {fault.index}", flush=True)
    print(f"{sum(counts.values())} faults in {len({base.name for base, _ in pairs})} programs")
    for row, count in counts.most_common():
        print(f"{count:6} {row}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
