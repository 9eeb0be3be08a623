"""How much is proved: the real programs and the examples, partitioned and proved.

    python -m tools.prove.proofs                  all programs of test/integration/models, and examples/*.mlir
    python -m tools.prove.proofs mlp resnet       those whose names begin so
    python -m tools.prove.proofs --partitioner xla    XLA's programs of them, after SPMD partitioning

Prints a line for each program, with the processor time of the proof, and the ops at which the others end.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import shardpass
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.context import parse_module
from shardpass.proving import Verdict, prove
from shardpass.proving.xla import partitioned_by_xla
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


def proof(text: str, partitioner: str = "shardpass") -> tuple[Verdict, float]:
    """The verdict on the program of ``partitioner``, and the processor time of the proof, in seconds."""
    whole = parse_module(text)
    with collect():
        local = partitioned_by_xla(whole) if partitioner == "xla" else shardpass.run_pipeline(text, "partition")
    start = time.process_time()
    verdict = prove(whole, local, refute=False)
    return verdict, time.process_time() - start


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only programs whose names begin so")
    parser.add_argument("--partitioner", choices=("shardpass", "xla"), default="shardpass", help="whose programs")
    args = parser.parse_args(argv)
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 12)
    table(texts(args.names), args.partitioner)
    return 0


def table(programs: Iterable[tuple[str, str]], partitioner: str = "shardpass") -> None:
    """Prints a line for each of ``programs``, then how many are proved and where the others end."""
    counts: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for name, text in programs:
        try:
            verdict, seconds = proof(text, partitioner)
        except ShardpassError as error:
            counts["not partitioned"] += 1
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


if __name__ == "__main__":
    raise SystemExit(main())
