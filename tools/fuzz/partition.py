"""Differential fuzzer: random StableHLO programs, partitioned and run on many devices, against one device.

    python -m tools.fuzz.partition --programs 500            seeds 0 to 499
    python -m tools.fuzz.partition --only 1234               one seed, with its text and all that is said of it
    python -m tools.fuzz.partition --only 1234 --shrink      the smallest program that fails as seed 1234 does

Each program is partitioned, run by XLA on its devices with rubbish in the padding of its arguments, and compared with
the program as it stands on one device: exact values must be equal, others close. ``--reference`` also runs it
on StableHLO's reference interpreter. Programs run in batches, each batch in a process of its own, which XLA may abort
or never leave; the program that did it is named and the batch goes on behind it. Ctrl-C prints what was found so far.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from tools.fuzz.examine import Outcome, examine
from tools.fuzz.programs import Program
from tools.fuzz.random_program import random_program
from tools.fuzz.smaller import smaller
from tools.processes import ChildFailed, JsonChild, answer, environment, module_command

BATCH = 100  # programs that a child examines
OPS = 12
REPORT_EVERY = 250  # programs, where there is no terminal that shows a bar
SECONDS_PER_PROGRAM = 120
SECONDS_TO_START = 300
# three quarters of the time are XLA's, and half of that is what LLVM would spend on making the code fast
XLA_FLAGS = "--xla_backend_optimization_level=0"
FAILURES = ("wrong", "error", "abort")


# ---------------------------------------------------------------- in child processes


def serve(reference: bool) -> None:
    """Run in the child: a pickled program on each line of stdin, its outcome on a line of stdout."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 12)
    for line in sys.stdin:
        given = json.loads(line)
        if given is None:
            answer({})
            continue
        program = pickle.loads(base64.b64decode(given))
        try:
            outcome = examine(program, reference)
        except Exception as error:  # whatever it is, the next program is another matter
            outcome = Outcome(program.seed, "error", f"{type(error).__name__}: {error}")
        answer({"kind": outcome.kind, "detail": outcome.detail})


def run_all(programs: Sequence[Program], reference: bool = False) -> Iterator[Outcome]:
    """Yield the outcome of each of ``programs``, in order; a child that dies or hangs takes one program with it."""
    flags = " ".join([p for p in (os.environ.get("XLA_FLAGS"), XLA_FLAGS) if p])
    command = module_command("tools.fuzz.partition", "--serve", *(["--reference"] if reference else []))
    child = JsonChild(command, environment(XLA_FLAGS=flags), SECONDS_PER_PROGRAM)
    try:
        for number, program in enumerate(programs):
            if number % BATCH == 0:
                child.close()
            try:
                if child.process is None:
                    child.ask(None, SECONDS_TO_START)
                found = child.ask(base64.b64encode(pickle.dumps(program)).decode())
                yield Outcome(program.seed, found["kind"], found["detail"])
            except ChildFailed as failure:
                yield Outcome(program.seed, "abort", f"{failure}: {failure.words}")
    finally:
        child.close()


# ---------------------------------------------------------------- shrinking


def shrink(program: Program, outcome: Outcome, reference: bool = False, tries: int = 400) -> tuple[Program, Outcome]:
    """A program that fails in the same way and has no smaller one that does."""
    progress = True
    while progress and tries > 0:
        progress = False
        candidates = smaller(program)
        for candidate, found in zip(candidates, run_all(candidates, reference), strict=False):
            tries -= 1
            if found.kind == outcome.kind and _alike(found, outcome):
                program, outcome, progress = candidate, found, True
                break
    return program, outcome


def _alike(one: Outcome, other: Outcome) -> bool:
    """Errors are alike where their codes are."""

    def code(outcome: Outcome) -> str:
        found = [part.split("]")[0] for part in outcome.detail.split("[SP")[1:]]
        return found[0] if found else ""

    return one.kind != "error" or code(one) == code(other)


# ---------------------------------------------------------------- command


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--programs", type=int, default=200, help="how many seeds")
    parser.add_argument("--only", type=int, metavar="SEED", help="this seed, and its program's text")
    parser.add_argument(
        "--ops", type=int, default=OPS, help="at most so many ops in a program; another number, other programs"
    )
    parser.add_argument("--reference", action="store_true", help="run on StableHLO's reference interpreter too")
    parser.add_argument("--shrink", action="store_true", help="print the smallest program that fails alike")
    parser.add_argument("--keep-going", action="store_true", help="shrink every failure, not the first three")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.reference)
        return 0
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if args.only is not None:
        args.seed, args.programs = args.only, 1
        print(random_program(args.only, args.ops).text(), flush=True)
    programs = [random_program(seed, args.ops) for seed in range(args.seed, args.seed + args.programs)]
    counts: Counter[str] = Counter()
    failed: list[tuple[Program, Outcome]] = []
    try:
        columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("programs", total=len(programs))
            for program, outcome in zip(programs, run_all(programs, args.reference), strict=False):
                counts[outcome.kind] += 1
                progress.advance(task)
                if not console.is_terminal and counts.total() % REPORT_EVERY == 0:
                    console.print(f"{counts.total()} programs: {_told(counts)}")
                if outcome.kind not in ("ok",):
                    failed.append((program, outcome))
                    progress.console.print(f"seed {outcome.seed}: {outcome.kind}: {outcome.detail}", markup=False)
        if args.shrink:
            for program, outcome in failed if args.keep_going else failed[:3]:
                small, found = shrink(program, outcome, args.reference)
                print(f"// seed {program.seed}: {found.kind}: {found.detail}".replace("\n", "\n// "))
                print(small.text(), flush=True)
    except KeyboardInterrupt:
        console.print("stopped")
    print(_told(counts))
    return 1 if any(counts[kind] for kind in (*FAILURES, "invalid")) else 0


if __name__ == "__main__":
    sys.exit(main())
