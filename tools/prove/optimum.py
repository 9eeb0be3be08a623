#!/usr/bin/env python
"""The search for the cheapest shardings, held to the exact optimum on small random programs.

    python -m tools.prove.optimum --programs 300 --seed 0          seeds 0 to 299
    python -m tools.prove.optimum --effort 2 --json found.json     another effort; what was found is kept
    python -m tools.prove.optimum --known found.json               only the search runs again: a few seconds
    python -m tools.prove.optimum --show 17                        one program, both assignments and both plans
    python -m tools.prove.optimum --machine h100           prices of another machine than ideal
    python -m tools.prove.optimum --programs 20 --sub-axes         axes may be taken apart too: slower

Each program (tools/prove/cheapest/random_programs.py) has up to 12 ops on a mesh of 2 axes. Its optimum is over all
assignments of shardings to values that keep what the user fixed, and the price is that of the plan which the planner
makes of an assignment (tools/prove/cheapest/witness.py). A line for each program: the search's price over the best
known, and, where that is not proved to be the optimum, the part of it that a bound proves. The decision's own bound is
held to the best known price, too.

Ctrl-C says what was found so far.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from shardpass.cost.chosen import chosen
from shardpass.cost.machine import IDEAL
from tools.prove.cheapest.examine import Examiner, Outcome
from tools.prove.cheapest.random_programs import random_program
from tools.prove.cheapest.told import summary, told
from tools.prove.cheapest.witness import SECONDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300, help="how many (300)")
    parser.add_argument("--seed", type=int, default=0, help="the first (0)")
    parser.add_argument("--effort", type=int, default=1, help="of the search (1)")
    parser.add_argument("--json", type=Path, help="where to write every outcome")
    parser.add_argument("--known", type=Path, help="outcomes of an earlier run, whose optima are taken over")
    parser.add_argument("--show", type=int, metavar="SEED", help="one program, its assignments and plans")
    parser.add_argument("--sub-axes", action="store_true", help="axes may be taken apart")
    parser.add_argument("--machine", default=IDEAL.name, help=f"for which is decided ({IDEAL.name})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for HiGHS, a program ({SECONDS:g})")
    args = parser.parse_args()
    machine = chosen(args.machine)
    examiner = Examiner(args.effort, args.sub_axes, args.seconds, machine)
    if args.show is not None:
        print("\n".join(told(examiner.examine(random_program(args.show)), machine)))
        return 0
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    known = {row["seed"]: Outcome.of(row) for row in json.loads(args.known.read_text())} if args.known else {}
    seeds = range(args.seed, args.seed + args.programs)
    outcomes: list[Outcome] = []
    try:
        for seed in track(seeds, "programs", console=console, transient=True, disable=not console.is_terminal):
            outcomes.append(examiner.examine(random_program(seed), known.get(seed)).outcome)
            print(outcomes[-1], flush=True)
    except KeyboardInterrupt:
        print("stopped")
    if args.json:
        rows = [json.dumps(asdict(one) | {"ratio": one.ratio}) for one in outcomes]
        args.json.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    print("\n".join(summary(outcomes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
