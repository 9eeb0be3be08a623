"""All fuzzers together, by turns, until the time is over.

    python -m tools.fuzz.all --minutes 60               seeds from the clock; the first line says which
    python -m tools.fuzz.all --minutes 60 --seed 1234   the same seeds again
    python -m tools.fuzz.all --minutes 5 --only doors sharding --out found.json

The fuzzers: doors (what commands read), partition (random programs beside one device), redistributions (four
campaigns), sharding (texts beside XLA's parser), faults (interrupts, full disks, and the like). Each goes on from where
its last turn ended, so that no seed is tried twice. A failure is printed with the command that shows it again. Exit
status 1 if there was any. Ctrl-C ends it, and prints what was found so far.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

TURN = 60.0  # seconds of a turn; less where the time is short
DETAIL = 600  # characters of a failure that are kept
MOST = 1 << 30  # cases of a turn, which its time ends


@dataclass(frozen=True, slots=True)
class Found:
    """``kind``: ok, error (a documented one, which was right), or a failure in any other word; ``again``: a command."""

    kind: str
    detail: str = ""
    again: str = ""

    @property
    def failed(self) -> bool:
        return self.kind not in ("ok", "error")


Turn = Callable[[int], Iterator[Found]]
"""The cases from a seed on, one for each seed, without end."""


@dataclass(slots=True)
class Account:
    """What a fuzzer found. ``first``: its first seed."""

    first: int
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[Found] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        return self.kinds.total()

    @property
    def next(self) -> int:
        return self.first + self.cases

    def add(self, found: Found) -> None:
        self.kinds[found.kind] += 1
        if found.failed:
            self.failures.append(found)

    def as_json(self) -> dict[str, Any]:
        told = [{"kind": f.kind, "detail": f.detail[:DETAIL], "again": f.again} for f in self.failures]
        return {
            "first": self.first,
            "cases": self.cases,
            "seconds": round(self.seconds),
            "kinds": dict(self.kinds),
            "failures": told,
        }


# ---------------------------------------------------------------- the fuzzers


def _doors(stack: ExitStack) -> Turn:
    from tools.fuzz.doors import Doors

    doors = stack.enter_context(Doors())
    count = len(doors.doors)

    def turn(seed: int) -> Iterator[Found]:
        for number in range(seed, seed + MOST):
            for o in doors.outcomes([doors.doors[number % count]], number // count, 1):
                kind = "error" if o.kind == "usage" else o.kind
                yield Found(kind, f"{o.name}: {o.detail}", f"python -m tools.fuzz.doors --only {o.name}")

    return turn


def _partition(stack: ExitStack) -> Turn:
    from tools.fuzz.partition import BATCH, OPS, run_all
    from tools.fuzz.random_program import random_program

    def turn(seed: int) -> Iterator[Found]:
        for first in range(seed, seed + MOST, BATCH):
            for o in run_all([random_program(number, OPS) for number in range(first, first + BATCH)]):
                # where XLA on one device is wrong, says the interpreter, the partitioned program is right
                kind = "ok" if o.kind == "xla" else {"error": "refused"}.get(o.kind, o.kind)
                yield Found(kind, f"{o.seed}: {o.detail}", f"python -m tools.fuzz.partition --only {o.seed}")

    return turn


def _redistribution(name: str) -> Callable[[ExitStack], Turn]:
    def made(stack: ExitStack) -> Turn:
        from tools.fuzz.redistribute import run

        def turn(seed: int) -> Iterator[Found]:
            for o in run(name, seed, MOST):
                kind = {"error": "refused"}.get(o.kind, o.kind)
                again = f"python -m tools.fuzz.redistribute {name} --seed {o.number} --problems 1"
                yield Found(kind, f"{o.number}: {o.detail}", again)

        return turn

    return made


def _sharding(stack: ExitStack) -> Turn:
    from importlib.metadata import version

    from tools.fuzz.sharding import compare, probe, texts

    beside_xla = version("jaxlib").startswith("0.10.")  # later ones read the named form in another way

    def turn(seed: int) -> Iterator[Found]:
        for number in range(seed, seed + MOST):  # one text for each seed
            again = f"python -m tools.fuzz.sharding xla --seed {number} --count 1"
            if not beside_xla:
                probe(*texts(number, 1))
                yield Found("ok", again=again)
                continue
            for text, outcome, problem in compare(number, 1):
                kind = "wrong" if problem else "ok" if outcome == "ok" else "error"
                yield Found(kind, f"{text!r}: {problem}", again)

    return turn


def _faults(stack: ExitStack) -> Turn:
    from tools.fuzz.fault_cases import cases
    from tools.fuzz.faults import Faults

    faults = Faults(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-"))))
    count = len(list(cases()))

    def turn(seed: int) -> Iterator[Found]:
        for number in range(seed, seed + MOST):
            series, at = divmod(number * _STEP, count)
            case = list(cases(series))[at]
            laws = faults.broken(case)
            again = f"python -m tools.fuzz.faults --seed {series} --only {at}"
            yield Found("broken" if laws else "ok", f"{case}: {'; '.join(laws)}", again)

    return turn


_STEP = 37  # neighbours are alike: the cases are taken far from one another

FUZZERS: Mapping[str, Callable[[ExitStack], Turn]] = {
    "doors": _doors,
    "partition": _partition,
    **{f"redistribute-{name}": _redistribution(name) for name in ("simulator", "xla", "reference", "shardy")},
    "sharding": _sharding,
    "faults": _faults,
}


# ---------------------------------------------------------------- the rotation


def rotate(
    turns: Mapping[str, Turn],
    accounts: Mapping[str, Account],
    seconds: float,
    each: float,
    told: Callable[[str, Found], object],
    done: Callable[[str], object],
) -> None:
    """Gives each of ``turns`` ``each`` seconds, again and again, until ``seconds`` are over; fills ``accounts``.

    A fuzzer that raises has failed, and gets its next turn. ``told``: of each failure; ``done``: at the end of a turn.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, turn in turns.items():
            start = time.monotonic()
            if start >= end:
                return
            try:
                _one_turn(turn, accounts[name], min(end, start + each), partial(told, name))
            finally:
                accounts[name].seconds += time.monotonic() - start
            done(name)


def _one_turn(turn: Turn, account: Account, until: float, told: Callable[[Found], object]) -> None:
    try:
        with closing(turn(account.next)) as cases:  # type: ignore[type-var]
            for found in cases:
                account.add(found)
                if found.failed:
                    told(found)
                if time.monotonic() >= until:
                    return
    except Exception as error:
        found = Found("raised", f"{account.next}: {type(error).__name__}: {error}")
        account.add(found)
        told(found)


# ---------------------------------------------------------------- command


def table(accounts: Mapping[str, Account]) -> str:
    rows = [f"{'fuzzer':<24}{'cases':>9}{'ok':>9}{'errors':>9}{'failures':>9}{'seconds':>9}"]
    total = Account(0)
    for name, account in accounts.items():
        rows.append(_row(name, account))
        total.kinds.update(account.kinds)
        total.failures += account.failures
        total.seconds += account.seconds
    return "\n".join([*rows, _row("all", total)])


def _row(name: str, account: Account) -> str:
    figures = (
        account.cases,
        account.kinds["ok"],
        account.kinds["error"],
        len(account.failures),
        round(account.seconds),
    )
    return f"{name:<24}" + "".join(f"{figure:>9,}" for figure in figures)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, help="the first seed of each fuzzer (default: from the clock)")
    parser.add_argument(
        "--only", nargs="+", choices=list(FUZZERS), metavar="FUZZER", help="these: " + ", ".join(FUZZERS)
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write what was found as JSON, after each turn")
    return parser


def main() -> int:
    args = _parser().parse_args()
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False)
    seed = int(time.time()) % 10**8 * 10 if args.seed is None else args.seed
    chosen: Sequence[str] = args.only or list(FUZZERS)
    accounts = {name: Account(seed) for name in chosen}
    seconds = args.minutes * 60
    start = time.monotonic()

    def told(name: str, found: Found) -> None:
        console.print(f"{name}: {found.kind}: {found.detail[:DETAIL]}\n    {found.again}", markup=False, style="red")

    def done(name: str) -> None:
        account = accounts[name]
        said = ", ".join(f"{count:,} {kind}" for kind, count in account.kinds.most_common())
        console.print(
            f"{(time.monotonic() - start) / 60:6.1f} min  {name:<24}{account.cases:>9,}  {said}", markup=False
        )
        if args.out:
            found = {"seed": seed, "minutes": args.minutes, "fuzzers": {n: a.as_json() for n, a in accounts.items()}}
            args.out.write_text(json.dumps(found, indent=2) + "\n")

    console.print(f"seed {seed}", markup=False)
    try:
        with ExitStack() as stack:
            turns = {name: FUZZERS[name](stack) for name in chosen}
            rotate(turns, accounts, seconds, min(TURN, seconds / len(chosen)), told, done)
    except KeyboardInterrupt:
        console.print("stopped")
    print(table(accounts))
    return int(any(account.failures for account in accounts.values()))


if __name__ == "__main__":
    sys.exit(main())
