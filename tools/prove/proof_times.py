"""How long a proof takes, in processor time: transformers of more and more layers, and on more and more devices.

    python -m tools.prove.proof_times                 24 and 96 layers; 2 layers on 8, 64, 512 and 4,096 devices
    python -m tools.prove.proof_times --layers 2 --devices 8
    python -m tools.prove.proof_times --profile                and the functions that take the longest

The programs are training steps (tools/bench/compile_programs.py), partitioned by shardpass; the proof alone is timed.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Sequence
from contextlib import nullcontext

import shardpass
from shardpass.diagnostics import collect
from shardpass.ir.context import parse_module
from shardpass.proving import Verdict, prove
from tools.bench.compile_programs import MeshSize, transformer

SMALL = MeshSize(4, 2)
MESHES = (SMALL, MeshSize(16, 4), MeshSize(64, 8), MeshSize(512, 8))


def timed(size: MeshSize, layers: int, profile: cProfile.Profile | None = None) -> tuple[Verdict, float, float]:
    """The verdict on a transformer, with the seconds of its partitioning and of its proof."""
    text = transformer(size, layers).lower(size)
    begun = time.process_time()
    with collect():
        local = shardpass.run_pipeline(text, "partition")
    whole, partitioned = parse_module(text), time.process_time()
    with nullcontext() if profile is None else profile:
        verdict = prove(whole, local, refute=False)
    return verdict, partitioned - begun, time.process_time() - partitioned


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="*", default=(24, 96), metavar="N", help="layers, on 4x2 devices")
    known = [size.data * size.model for size in MESHES]
    parser.add_argument("--devices", type=int, nargs="*", default=known, choices=known, help="devices, of two layers")
    parser.add_argument("--profile", action="store_true", help="list the functions that take the longest")
    args = parser.parse_args(argv)
    profile = cProfile.Profile() if args.profile else None
    sizes = [size for size in MESHES if size.data * size.model in args.devices]
    for size, layers in (*((SMALL, n) for n in args.layers), *((size, 2) for size in sizes)):
        verdict, partitioning, proof = timed(size, layers, profile)
        print(
            f"{layers:3} layers on {size.data * size.model:5} devices: {verdict.word} in {proof:6.2f} s "
            f"(partitioning: {partitioning:6.2f} s)",
            flush=True,
        )
        if not verdict.proved:
            print(verdict, flush=True)
    if profile is not None:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
