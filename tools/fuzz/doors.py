"""Fuzzer of the doors: all that a command reads, changed in ways that nobody means.

    python -m tools.fuzz.doors --cases 2000              seeds 0 to 1999, the doors by turns
    python -m tools.fuzz.doors --door hlo --seconds 60   one door, for a minute
    python -m tools.fuzz.doors --only hlo:1234           one case, with its input and all that is said of it
    python -m tools.fuzz.doors --only hlo:1234 --shrink  the smallest input that fails alike

The doors: MLIR text and bytecode, portable artefacts, jax.export artefacts, HLO text and protos, pipelines, command
lines, shardings in every notation, machines, ONNX models. Laws, of every case:

1. the command ends by itself, within its time and memory: no signal, no abort;
2. its status is 0, or 1 with an error of the tables that is not "internal"; or 2, of a command line that was changed;
3. no traceback, no line of a log and no control character reaches the terminal;
4. what it wrote is read by MLIR, by XLA, or as JSON; after an error there is no output, and never a temporary file.

A case is made from its door and its seed. Exit status 1 if any case breaks a law. Ctrl-C prints what was found so far.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.fuzz.door_case import Case
from tools.fuzz.door_cases import DOORS, make
from tools.fuzz.door_inputs import read
from tools.fuzz.door_laws import CODE, Ended, broken
from tools.fuzz.smaller_bytes import smallest
from tools.processes import ChildFailed, JsonChild, answer, environment, module_command

TRIES = 300  # of shrinking a case
REPORT_EVERY = 1000  # cases, where there is no terminal that shows a bar
SHOWN = 4000  # characters of an input


@dataclass(frozen=True, slots=True)
class Outcome:
    """``kind``: ok (status 0), error (a documented one), usage (status 2), broken (a law)."""

    door: str
    seed: int
    kind: str
    detail: str = ""
    code: str = ""

    @property
    def name(self) -> str:
        return f"{self.door}:{self.seed}"


# ---------------------------------------------------------------- in the child


def serve(inputs: Path) -> None:
    """The child: a line of JSON asks for a case, and is answered with its outcome."""
    from tools.fuzz import forked

    forked.prepare()
    known = read(inputs)
    with tempfile.TemporaryDirectory(prefix="doors-") as folder:
        for line in sys.stdin:
            asked = json.loads(line)
            case = make(asked["door"], asked["seed"], known)
            if asked["shrink"]:
                answer(_shrunk(case, lambda case: forked.run(case, Path(folder))))
            else:
                answer(_judged(case, forked.run(case, Path(folder)), whole=asked["whole"]))


def _judged(case: Case, ended: Ended, *, whole: bool = False) -> dict[str, Any]:
    laws = broken(case, ended)
    kind = "broken" if laws else {0: "ok", 1: "error"}.get(ended.status, "usage")
    named = CODE.search(ended.err)
    found = {"kind": kind, "detail": "\n".join(laws), "code": named[1] if named else ""}
    return found | _shown(case, ended) if whole else found


def _shown(case: Case, ended: Ended) -> dict[str, Any]:
    def text(data: bytes) -> str:
        if any(byte < 32 and byte not in b"\t\n\r" for byte in data):
            return data.hex()
        return data.decode("utf-8", "backslashreplace")

    return {
        "case": str(case),
        "files": {name: text(data) for name, data in {**case.files, "<stdin>": case.stdin}.items() if data},
        "status": ended.status,
        "out": text(ended.out),
        "err": ended.err,
    }


def _shrunk(case: Case, run: Callable[[Case], Ended]) -> dict[str, Any]:
    """The case with the smallest file, or command line, that breaks the same laws."""

    def said(case: Case) -> list[str]:
        return ["".join(c for c in law[:40] if c.isalpha()) for law in broken(case, run(case))]

    wanted = said(case)
    if not wanted:
        return _judged(case, run(case), whole=True)
    if case.door == "arguments":
        kept = smallest(list(case.words), lambda words: said(replace(case, words=tuple(words))) == wanted, TRIES)
        case = replace(case, words=tuple(kept))
    else:
        for name in case.files:
            case = _smaller_file(case, name, lambda less: said(less) == wanted)
    return _judged(case, run(case), whole=True)


def _smaller_file(case: Case, name: str, fails: Callable[[Case], bool]) -> Case:
    def having(data: bytes) -> Case:
        return replace(case, files={**case.files, name: data})

    return having(smallest(case.files[name], lambda data: fails(having(data)), TRIES))


# ---------------------------------------------------------------- outside


class Doors:
    """A child that runs cases, and the inputs that it starts from; both are made when the block is entered."""

    def __enter__(self) -> Doors:
        self._folder = tempfile.TemporaryDirectory(prefix="doors-inputs-")
        done = subprocess.run(
            module_command("tools.fuzz.door_inputs", self._folder.name),
            env=environment(JAX_PLATFORMS="cpu"),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            self._folder.cleanup()
            raise ChildFailed("no inputs could be made", done.stderr[-600:])
        command = module_command("tools.fuzz.doors", "--serve", self._folder.name)
        self._child = JsonChild(command, environment(JAX_PLATFORMS="cpu"), timeout=900)
        self.doors = [door for door in DOORS if door != "onnx" or self._has("onnx")]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._child.close()
        self._folder.cleanup()

    def _has(self, kind: str) -> bool:
        return any(Path(self._folder.name, kind).iterdir())

    def ask(self, door: str, seed: int, *, shrink: bool = False, whole: bool = False) -> dict[str, Any]:
        return self._child.ask({"door": door, "seed": seed, "shrink": shrink, "whole": whole})

    def outcomes(self, doors: Sequence[str], first: int, count: int) -> Iterator[Outcome]:
        """The outcomes of ``count`` seeds, the doors by turns."""
        for number in range(count):
            door, seed = doors[number % len(doors)], first + number // len(doors)
            try:
                found = self.ask(door, seed)
            except ChildFailed as error:
                found = {"kind": "broken", "detail": f"the process that forks {error}", "code": ""}
            yield Outcome(door, seed, found["kind"], found["detail"], found["code"])


# ---------------------------------------------------------------- command


def _show(found: dict[str, Any]) -> None:
    print(found["case"])
    for name, text in found["files"].items():
        print(f"---- {name}\n{text[:SHOWN]}{'...' if len(text) > SHOWN else ''}")
    print(f"---- status {found['status']}\n{found['out'][:SHOWN]}\n---- stderr\n{found['err'][:SHOWN]}")
    print(f"---- {found['kind']} {found['detail']}", flush=True)


def _table(counts: dict[str, Counter[str]]) -> str:
    rows = [f"{'door':<12}{'cases':>8}{'ok':>8}{'errors':>8}{'usage':>8}{'broken':>8}"]
    for door, kinds in counts.items():
        parts = "".join(f"{kinds[kind]:>8}" for kind in ("ok", "error", "usage", "broken"))
        rows.append(f"{door:<12}{kinds.total():>8}{parts}")
    return "\n".join(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--door", choices=list(DOORS), action="append", help="this door alone; may be given again")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--cases", type=int, default=2000, help="how many in all (default: 2000)")
    parser.add_argument("--seconds", type=float, help="go on for so long instead")
    parser.add_argument("--only", metavar="DOOR:SEED", help="this case, with its input and what is said of it")
    parser.add_argument("--shrink", action="store_true", help="with --only: the smallest input that fails alike")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    return parser


def main() -> int:
    parser = _parser()
    args = parser.parse_args()
    if args.serve:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks ends it
        serve(args.serve)
        return 0
    with Doors() as doors:
        if args.only is not None:
            door, _, seed = args.only.partition(":")
            if door not in DOORS or not seed.isdigit():
                parser.error(f"--only takes a door and a seed, as in hlo:12, and not {args.only!r}")
            found = doors.ask(door, int(seed), shrink=args.shrink, whole=True)
            _show(found)
            return int(found["kind"] == "broken")
        if "onnx" not in doors.doors:
            print("onnx is skipped: the package onnx is not installed")
        chosen = [door for door in doors.doors if args.door is None or door in args.door]
        return _campaign(doors, chosen, args) if chosen else 0


def _campaign(doors: Doors, chosen: Sequence[str], args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    counts: dict[str, Counter[str]] = {door: Counter() for door in chosen}
    start, count = time.monotonic(), args.cases if args.seconds is None else sys.maxsize
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("cases", total=None if args.seconds else count)
            for number, outcome in enumerate(doors.outcomes(chosen, args.seed, count), 1):
                counts[outcome.door][outcome.kind] += 1
                progress.advance(task)
                if outcome.kind == "broken":
                    progress.console.print(f"{outcome.name}: {outcome.detail}", markup=False, soft_wrap=True)
                if not console.is_terminal and number % REPORT_EVERY == 0:
                    console.print(f"{number} cases, {time.monotonic() - start:.0f} s")
                if args.seconds is not None and time.monotonic() - start > args.seconds:
                    break
    except KeyboardInterrupt:
        console.print("stopped")
    print(_table(counts))
    return int(any(kinds["broken"] for kinds in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
