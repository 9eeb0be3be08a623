"""Small faults in a room of the package, and whether the tests of that room notice them.

A test that passes whatever the code does holds nothing. This tool makes small faults (``mutation.faults``), one at a
time, in a copy of the tree, and runs the tests that execute the faulty lines: those under test/unit/ROOM, by a trace of
one run without faults. It prints which test notices first, and the faults that none notices as differences.

    python -m tools.prove.mutate --rooms runtime,partition --count 50 --seed 1

A fault that no test notices is a gap in the tests, or changes nothing that can be seen (an equivalent one: a faster
detour, a bound on a cache); a reader has to say which. Faults are drawn by lines, from a seed. All tests must pass
without a fault. A run that takes much longer than without the fault is ended, and counts as noticed. Sweeps are whole;
with SHARDPASS_TEST_WHOLE=0 in the environment, tests are those that ``make test`` draws today. Ctrl-C, or SIGTERM, ends
it with what was counted until then.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from pathlib import Path

from tools.prove.mutation.faults import Fault, faults, is_other
from tools.prove.mutation.traced_lines import Outcome
from tools.prove.mutation.trials import Trial, begin, copy_tree, import_slow_parts

ROOT = Path(__file__).parents[2]
PACKAGE = "shardpass"
ROOMS = ("ops", "redistribute", "runtime", "partition")
TRACED_SECONDS = 3600.0  # for one run of a room's tests without a fault
TIMES = 10  # as long as without a fault, and --limit more, a run with one may take


@dataclass(frozen=True)
class Options:
    """As the command's: ``seconds`` of tests for a fault, ``limit`` of a run beside its tests' own time."""

    count: int
    seed: int
    jobs: int
    seconds: float
    limit: float


@dataclass(frozen=True)
class Verdict:
    """A fault, and the test that notices it first ("" for none) of the ``tests`` that run its lines."""

    fault: Fault
    test: str
    reason: str
    tests: int

    def __str__(self) -> str:
        what = f"{self.fault.file}:{self.fault.line}: {self.fault.kind}"
        if self.test:
            return f"noticed   {what}, by {self.test}: {self.reason[:100]}"
        return f"SURVIVED  {what}, {self.tests} tests run it"


@dataclass
class Room:
    """One room: the ``tests`` to run for each line, from a run without faults."""

    outcome: Outcome
    by_line: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    by_file: dict[str, set[str]] = field(default_factory=dict)
    imported: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for test, lines in self.outcome.lines.items():
            for file, numbers in lines.items():
                for number in numbers:
                    if test:
                        self.by_line.setdefault((file, number), set()).add(test)
                    else:
                        self.imported.add((file, number))
                if test:
                    self.by_file.setdefault(file, set()).add(test)

    def tests(self, fault: Fault, seconds: float) -> list[str]:
        """The tests that execute the statement of the fault, then others of its file: the fastest of each first.

        The others, as what one test computes a cache may keep for them. Of what runs at import each does. Where no test
        executes the statement, those of the file ``test_NAME.py``, as they may start processes that do. The first test
        always, and more while they take no more than ``seconds``.
        """
        places = [(fault.file, line) for line in range(fault.lines[0], fault.lines[1] + 1)]
        direct = set().union(*(self.by_line.get(place, set()) for place in places))
        if direct or any(place in self.imported for place in places):
            tests = direct | self.by_file.get(fault.file, set())
        else:
            tests = {test for test in self.outcome.seconds if f"/test_{Path(fault.file).stem}.py::" in test}
        ordered = sorted(tests, key=lambda test: (test not in direct, self._seconds(test), test))
        ends = list(accumulate(map(self._seconds, ordered)))
        return [test for k, (test, end) in enumerate(zip(ordered, ends, strict=True)) if not k or end <= seconds]

    def expected(self, tests: Sequence[str]) -> float:
        """The seconds that these tests took."""
        return sum(map(self._seconds, tests))

    def _seconds(self, test: str) -> float:
        return self.outcome.seconds.get(test, 0.0)


def draw(sources: Mapping[str, bytes], count: int, seed: int) -> list[Fault]:
    """So many faults on different lines, by ``seed``; fewer where there are fewer lines."""
    at: dict[tuple[str, int], list[Fault]] = {}
    for file, text in sorted(sources.items()):
        for fault in faults(file, text):
            at.setdefault((file, fault.line), []).append(fault)
    rng = random.Random(seed)
    orders = (rng.sample(at[line], len(at[line])) for line in rng.sample(sorted(at), len(at)))
    drawn = (next((fault for fault in order if is_other(fault, sources[fault.file])), None) for order in orders)
    return list(islice(filter(None, drawn), count))


def trace_room(tree: Path, package: str, tests: Sequence[str]) -> Room:
    """Runs all tests once, with their lines noted; those that fail are left out of what the room has."""
    trial = begin(tree, package, tests, TRACED_SECONDS, trace=tree / package)
    while (outcome := trial.result()) is None:
        time.sleep(0.1)
    if outcome.failed:
        sys.exit(f"without a fault {outcome.failed} fails: {outcome.reason}")
    return Room(outcome)


def verdicts(
    trees: Sequence[Path], package: str, room: Room, drawn: Sequence[Fault], options: Options
) -> Iterator[Verdict]:
    """A verdict for each fault, as they come; one fault at a time in each of the ``trees``."""
    running: list[tuple[Trial, Path, Fault, bytes, int]] = []
    try:
        yield from _verdicts(trees, package, room, drawn, options, running)
    finally:
        for trial, *_ in running:
            trial.end()


def _verdicts(
    trees: Sequence[Path],
    package: str,
    room: Room,
    drawn: Sequence[Fault],
    options: Options,
    running: list[tuple[Trial, Path, Fault, bytes, int]],
) -> Iterator[Verdict]:
    waiting, free = list(reversed(drawn)), list(trees)
    while waiting or running:
        while waiting and free:
            fault = waiting.pop()
            tests = room.tests(fault, options.seconds)
            if not tests:
                yield Verdict(fault, "", "", 0)
                continue
            tree = free.pop()
            file = tree / package / fault.file
            text = file.read_bytes()
            _write(file, fault.apply(text))
            limit = options.limit + TIMES * room.expected(tests)
            running.append((begin(tree, package, tests, limit), tree, fault, text, len(tests)))
        time.sleep(0.02)
        for one in list(running):
            trial, tree, fault, text, count = one
            outcome = trial.result()
            if outcome is not None:
                running.remove(one)
                _write(tree / package / fault.file, text)
                shutil.rmtree(tree / ".hypothesis", ignore_errors=True)  # what it learnt of this fault
                free.append(tree)
                yield Verdict(fault, outcome.failed, outcome.reason, count)


def _write(file: Path, text: bytes) -> None:
    """Writes a source file, and removes what Python compiled of it."""
    file.write_bytes(text)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def mutate(root: Path, package: str, room: str, tests: Sequence[str], options: Options) -> Iterator[Verdict]:
    """Draws faults in the folder ``room`` of ``package``, and prints and yields what the tests notice."""
    import_slow_parts()
    with tempfile.TemporaryDirectory() as folder:
        first = copy_tree(root, Path(folder) / "tree0")
        base = first / package
        sources = {str(p.relative_to(base)): p.read_bytes() for p in sorted((base / room).rglob("*.py"))}
        drawn = draw(sources, options.count, options.seed)
        known = trace_room(first, package, tests)
        trees = [first, *(shutil.copytree(first, Path(folder) / f"tree{i}") for i in range(1, options.jobs))]
        for verdict in verdicts(trees, package, known, drawn, options):
            print(f"{package}/{verdict}", flush=True)
            if not verdict.test:
                print(verdict.fault.diff(sources[verdict.fault.file]), flush=True)
            yield verdict


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.prove.mutate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree (default: this one)")
    parser.add_argument("--package", default=PACKAGE, help="its package (default: %(default)s)")
    parser.add_argument("--rooms", default=",".join(ROOMS), help="folders of the package (default: %(default)s)")
    parser.add_argument("--count", type=int, default=50, help="faults in each room (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which faults are drawn (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="faults that are tried at a time (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="of tests for a fault, the fastest first (default: %(default)g)"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=60.0,
        help=f"seconds of a run, beside {TIMES} times its tests' (default: %(default)g)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts there too")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = Options(given.count, given.seed, given.jobs, given.seconds, given.limit)
    rows: list[dict[str, object]] = []
    for room in given.rooms.split(","):
        tests = [f"test/unit/{room}"]
        if not (given.root / given.package / room).is_dir() or not (given.root / tests[0]).is_dir():
            parser.error(f"{room!r} is no folder of {given.package}/ that has tests in test/unit/")
        done: list[Verdict] = []
        stopped = ""
        try:
            done.extend(mutate(given.root, given.package, room, tests, options))
        except KeyboardInterrupt:
            stopped = ", and was stopped"
        noticed = sum(bool(verdict.test) for verdict in done)
        print(f"{room}: {noticed} of {len(done)} noticed ({noticed / max(len(done), 1):.0%}){stopped}", flush=True)
        rows += [{"room": room, **vars(v.fault), "test": v.test, "reason": v.reason, "tests": v.tests} for v in done]
        if stopped:
            break
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
