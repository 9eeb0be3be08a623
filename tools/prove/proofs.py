"""How much is proved: the real programs and the examples, partitioned by shardpass and proved.

    python -m tools.prove.proofs                  all programs of test/integration/models, and examples/*.mlir
    python -m tools.prove.proofs mlp resnet       those whose names begin so

Prints a line for each program, with the processor time of the proof, and the ops at which the others end.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import shardpass
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.context import parse_module
from shardpass.proving import Verdict, prove
from tools.bench.real_programs import real_programs
from tools.processes import ROOT


def texts(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, StableHLO) of each program."""
    for path in sorted((ROOT / "examples").glob("*[a-z].mlir")):
        if not names or path.stem.startswith(tuple(names)):
            yield path.stem, path.read_text()
    for name, program in real_programs().items():
        if program.available and (not names or name.startswith(tuple(names))):
            yield name, program.lower().text


def proof(text: str) -> tuple[Verdict, float]:
    """The verdict on shardpass's program, and the processor time that it took, in seconds."""
    with collect():
        local = shardpass.run_pipeline(text, "partition")
    whole = parse_module(text)
    start = time.process_time()
    verdict = prove(whole, local, refute=False)
    return verdict, time.process_time() - start


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only programs whose names begin so")
    args = parser.parse_args(argv)
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 12)
    counts: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for name, text in texts(args.names):
        try:
            verdict, seconds = proof(text)
        except ShardpassError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        finding = verdict.refuted or verdict.unknown
        word = "proved" if finding is None else "refuted" if verdict.refuted else "unknown"
        counts[word] += 1
        if finding is not None:
            ends[finding.op] += 1
        print(f"{name:32} {seconds:6.2f} s  {verdict}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.most_common()))
    for op, count in ends.most_common():
        print(f"{count:6} end at {op}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
