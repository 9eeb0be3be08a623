"""Do check, run --check and prove agree on the programs of the repository?

    python -m tools.prove.agreement                  all programs of test/integration/models, and examples/*.mlir
    python -m tools.prove.agreement mlp resnet       those whose names begin so

Each program is checked, partitioned, run on virtual CPU devices beside one device, and proved. They agree where

    check        run --check   prove
    no error     passes        proved, or unknown: a proof may say less, and names the op at which it ends
    SP237        either        not proved: devices may differ, and nothing says that they do
    an error     an error      an error

Prints a line for each program, then how many agree, how many of these are unknown to a proof, and who disagrees.
Exit status 1 where some disagree.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import shardpass
from shardpass.cli.check_module import check_module
from shardpass.diagnostics import Severity, ShardpassError, collect
from shardpass.diagnostics.table_passes import NOT_REPLICATED
from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.runtime.run_report import try_out
from tools.prove.proofs import texts

OK, MAY_DIFFER, ERROR = "no error", NOT_REPLICATED.id, "error"
PASSES, FAILS = "passes", "fails"
PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"
AGREE = {(OK, PASSES, PROVED), (OK, PASSES, UNKNOWN), (ERROR, ERROR, ERROR)} | {
    (MAY_DIFFER, run, proof) for run in (PASSES, FAILS) for proof in (REFUTED, UNKNOWN)
}


@dataclass(frozen=True)
class Answers:
    """What the three commands say of a program, and why where they do not agree on all."""

    check: str
    run: str
    proof: str
    why: str = ""

    @property
    def agree(self) -> bool:
        return (self.check, self.run, self.proof) in AGREE


def answers(text: str) -> Answers:
    """Asks the three commands about the program ``text``."""
    findings = check_module(text, "program", perf=False).findings
    errors = [one for one in findings if one.severity is Severity.ERROR]
    doubtful = any(one.code == NOT_REPLICATED.id for one in findings)
    check = ERROR if errors else MAY_DIFFER if doubtful else OK
    try:
        with collect():
            whole, local = parse_module(text), shardpass.run_pipeline(text, "partition")
            trial = try_out(local, original=whole)
            assert trial.check is not None
            passed = not trial.check.failed and not trial.check.special.mismatches
            verdict = prove(whole, shardpass.run_pipeline(text, "partition"))
    except ShardpassError as error:
        return Answers(check, ERROR, ERROR, str(error).splitlines()[0])
    proof = REFUTED if verdict.refuted else UNKNOWN if verdict.unknown else PROVED
    why = [f"result {one.index} differs by {one}" for one in trial.check.failed]
    why += [remark.message for remark in trial.check.remarks] if not passed else []
    why += [] if proof == PROVED else str(verdict).splitlines()[:1]
    return Answers(check, PASSES if passed else FAILS, proof, "; ".join(why))


def table(programs: Iterable[tuple[str, str]]) -> list[str]:
    """Prints a line for each of ``programs`` and the counts; returns the names of those that disagree."""
    counts: Counter[str] = Counter()
    apart: list[str] = []
    for name, text in programs:
        got = answers(text)
        counts["agree" if got.agree else "disagree"] += 1
        counts["of these unknown to a proof"] += got.agree and got.proof == UNKNOWN
        if not got.agree:
            apart.append(name)
        print(f"{name:32} {got.check:9} {got.run:7} {got.proof:8} {got.why}".rstrip(), flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    for name in apart:
        print(f"disagree: {name}")
    return apart


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only programs whose names begin so")
    args = parser.parse_args(argv)
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 12)
    return 1 if table(texts(args.names)) else 0


if __name__ == "__main__":
    sys.exit(main())
