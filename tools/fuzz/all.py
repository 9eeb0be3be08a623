"""Run all fuzzers in turns, each with fresh seeds, until the time is over.

    python -m tools.fuzz.all --minutes 60               seeds from the clock; the first line names them
    python -m tools.fuzz.all --minutes 60 --seed 1234   the same seeds again
    python -m tools.fuzz.all --minutes 5 --only doors sharding

A turn is one command of ``TURNS`` with a number of cases that takes about a minute. The output of a turn that fails is
printed with its command. Exit status 1 if any turn failed. Ctrl-C prints the summary so far.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from tools.processes import environment, module_command

SEED = "SEED"  # stands for the seed of a turn
STEP = 10_000  # between the seeds of two turns, which is more than the cases of a turn
SHARDING = ("xla", "--count", "2000") if version("jaxlib").startswith("0.10.") else ("crash", "--seconds", "30")
TURNS: Mapping[str, Sequence[str]] = {
    "doors": ("tools.fuzz.doors", "--cases", "300", "--seed", SEED),
    "partition": ("tools.fuzz.partition", "--programs", "40", "--seed", SEED),
    **{
        f"redistribute-{name}": ("tools.fuzz.redistribute", name, "--problems", str(count), "--seed", SEED)
        for name, count in {"simulator": 400, "xla": 60, "reference": 60, "shardy": 60}.items()
    },
    "sharding": ("tools.fuzz.sharding", *SHARDING, "--seed", SEED),
}


def rotate(turns: Mapping[str, Sequence[str]], seconds: float, seed: int, failed: list[str]) -> int:
    """Run ``turns`` until ``seconds`` are over; return their number. The commands that fail go to ``failed``."""
    end = time.monotonic() + seconds
    for number, (name, words) in enumerate(itertools.cycle(turns.items())):
        if time.monotonic() >= end:
            return number
        command = [str(seed + number * STEP) if word == SEED else word for word in words]
        start = time.monotonic()
        done = subprocess.run(module_command(*command), capture_output=True, text=True, env=environment())
        told = (done.stdout.strip().splitlines() or [""])[-1]
        print(f"{name:24}{time.monotonic() - start:6.0f} s  {told}", flush=True)
        if done.returncode:
            failed.append(f"python -m {' '.join(command)}")
            print(f"{done.stdout}{done.stderr}\nstatus {done.returncode}: {failed[-1]}", flush=True)
    raise AssertionError("a cycle has no end")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, help="the first seed (default: from the clock)")
    parser.add_argument("--only", nargs="+", choices=list(TURNS), metavar="FUZZER", help="these: " + ", ".join(TURNS))
    args = parser.parse_args(argv)
    seed = int(time.time()) % 10**8 * 10 if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)
    failed: list[str] = []
    try:
        count = rotate({name: TURNS[name] for name in args.only or TURNS}, args.minutes * 60, seed, failed)
        print(f"{count} turns, {len(failed)} failed")
    except KeyboardInterrupt:
        print("stopped")
    print(*failed, sep="\n", end="\n" if failed else "")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
