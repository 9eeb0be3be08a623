"""How many of the partition fuzzer's programs are proved.

    python -m tools.fuzz.proofs              seeds 0 to 299
    python -m tools.fuzz.proofs 100 200      seeds 100 to 199

Prints a line for each program, and the ops at which the proofs of the others end.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from tools.fuzz.examine import prices
from tools.fuzz.partition import OPS
from tools.fuzz.random_program import random_program
from tools.prove.proofs import table


def programs(first: int, end: int) -> Iterator[tuple[str, str]]:
    """(name, StableHLO) of each seed; while a program is with the caller, its prices hold."""
    for seed in range(first, end):
        program = random_program(seed, OPS)
        with prices(program.eager):
            yield f"seed {seed}", program.text()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument(
        "end", nargs="?", type=int, default=300, help="the first seed that is not proved (default: 300)"
    )
    args = parser.parse_args(argv)
    table(programs(args.first, args.end))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
