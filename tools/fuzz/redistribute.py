#!/usr/bin/env python
"""Redistributions by the thousand, held to laws that have witnesses of their own.

    python -m tools.fuzz.redistribute simulator --problems 100000    both planners, and the simulator's proof
    python -m tools.fuzz.redistribute xla --problems 2000            on XLA's CPU devices, all element types
    python -m tools.fuzz.redistribute reference --problems 300       on StableHLO's reference interpreter
    python -m tools.fuzz.redistribute exhaustive                     all of rank 2 on 2x2, 2x4, 2x2x2, 2x2x3
    python -m tools.fuzz.redistribute exhaustive --xla               and on XLA's devices too
    python -m tools.fuzz.redistribute shardy --problems 400          bytes beside the program that Shardy emits
    python -m tools.fuzz.redistribute all                            the lot, as `make fuzz-redistribute` does

The laws are in tools/prove/redistribution_laws.py, the campaigns in tools/fuzz/redistribution_campaigns.py. Child
processes do the work, which XLA may abort and which may hang: that is a failure of one problem, and the next is asked
of a new child. ``--shrink`` looks for the simplest problem that fails alike. Ctrl-C says what was found so far and
where to go on. Exit status 1 if any problem failed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shardpass.diagnostics import collect
from tools.fuzz.redistribution_campaigns import Campaign, campaigns
from tools.fuzz.smaller_redistribution import smaller
from tools.processes import environment, module_command
from tools.prove.law import Broken
from tools.prove.redistribution_problems import Problem

DEVICES = 24
SECONDS_PER_PROBLEM = 120
CHILD = module_command("tools.fuzz.redistribute")
READY = "@ready"  # a child's first line


# ---------------------------------------------------------------- in child processes


@dataclass(frozen=True, slots=True)
class Outcome:
    """``kind``: ok, broken (a law), error (a diagnostic, or an exception of ours), abort, hang."""

    number: int
    kind: str
    detail: str = ""
    tags: tuple[str, ...] = ()


def outcome_of(campaign: Campaign, problem: Problem) -> Outcome:
    try:
        with collect():
            return Outcome(problem.number, "ok", "", tuple(campaign.examine(problem)))
    except Broken as broken:
        return Outcome(problem.number, "broken", str(broken))
    except Exception as error:  # whatever it is, the next problem is another matter
        return Outcome(problem.number, "error", f"{type(error).__name__}: {str(error).splitlines()[0]}")


def serve() -> None:
    """The child: a line of JSON says which campaign and which numbers; each is answered with a line."""
    asked = json.loads(sys.stdin.readline())
    campaign = campaigns(asked["xla"])[asked["campaign"]]
    if campaign.devices:
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", DEVICES)
    print(READY, flush=True)
    for number in range(asked["first"], asked["last"]):
        print("@" + json.dumps(asdict(outcome_of(campaign, campaign.problem(number)))), flush=True)


class NoChild(Exception):
    """A child ended before it could be asked anything."""


def run(name: str, first: int, count: int, *, xla: bool = True) -> Iterator[Outcome]:
    """The outcomes of problems ``first`` to ``first + count - 1``, in order. Raises NoChild."""
    campaign, last = campaigns(xla)[name], first + count
    while first < last:
        until = min(last, first + campaign.life)
        for outcome in _child({"campaign": name, "first": first, "last": until, "xla": xla}):
            first = outcome.number + 1
            yield outcome


def _child(asked: dict[str, Any]) -> Iterator[Outcome]:
    """What one child answers, and how it ended where that was before its time."""
    process = subprocess.Popen(
        [*CHILD, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    number = asked["first"]
    try:
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.close()
        lines = _lines(process.stdout.fileno())
        if next(lines, None) != READY.encode()[1:]:
            raise NoChild(process.stderr.read().decode(errors="replace").strip())
        for line in lines:
            if line is None:
                yield Outcome(number, "hang", f"took more than {SECONDS_PER_PROBLEM} s")
                return
            outcome = Outcome(**{**json.loads(line), "tags": tuple(json.loads(line)["tags"])})
            number = outcome.number + 1
            yield outcome
        if number < asked["last"]:
            said = process.stderr.read().decode(errors="replace").strip()[-600:]
            yield Outcome(number, "abort", f"the process ended with status {process.wait()}: {said}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def _lines(stream: int) -> Iterator[bytes | None]:
    """Lines that begin with @, without it; None where none comes in time."""
    held = b""
    end = time.monotonic() + SECONDS_PER_PROBLEM
    while select.select([stream], [], [], max(0.0, end - time.monotonic()))[0]:
        got = os.read(stream, 1 << 16)
        if not got:
            return
        *whole, held = (held + got).split(b"\n")
        if whole:
            end = time.monotonic() + SECONDS_PER_PROBLEM
        yield from (line[1:] for line in whole if line.startswith(b"@"))
    yield None


# ---------------------------------------------------------------- simpler problems that fail alike


def shrunk(name: str, outcome: Outcome, *, xla: bool = True, tries: int = 300) -> tuple[Problem, Outcome]:
    """A problem that fails in the same words, numbers aside, and has no simpler one that does. In this process."""
    campaign = campaigns(xla)[name]
    problem, progress = campaign.problem(outcome.number), True
    while progress and tries > 0:
        progress = False
        for candidate in smaller(problem):
            tries -= 1
            found = outcome_of(campaign, candidate)
            if found.kind == outcome.kind and _words(found) == _words(outcome):
                problem, outcome, progress = candidate, found, True
                break
    return problem, outcome


def _words(outcome: Outcome) -> str:
    return "".join(c for c in outcome.detail.split("{")[0] if c.isalpha() or c == " ")[:40]


# ---------------------------------------------------------------- command


@dataclass(slots=True)
class Report:
    """What a campaign found."""

    campaign: str
    first: int
    asked: int
    done: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return self.done - self.kinds["ok"]

    def add(self, outcome: Outcome, problem: Callable[[int], Problem]) -> str:
        """Counts an outcome -> what to tell of it; "" where it is well."""
        self.done += 1
        self.kinds[outcome.kind] += 1
        self.tags.update(outcome.tags)
        if outcome.kind == "ok":
            return ""
        text = str(problem(outcome.number))
        self.failures.append(
            {"number": outcome.number, "kind": outcome.kind, "detail": outcome.detail, "problem": text}
        )
        return f"{self.campaign} {outcome.number}: {outcome.kind}: {outcome.detail}\n    {text}"

    def as_json(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in ("campaign", "first", "asked", "done", "failures")}
        return {**found, "kinds": dict(self.kinds), "tags": dict(self.tags.most_common())}

    def lines(self) -> list[str]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        return [
            f"{self.campaign}: {self.done} of {self.asked} problems from {self.first} on: {kinds or 'none'}",
            *(f"    {count:>7} {tag}" for tag, count in self.tags.most_common()),
        ]


def campaign(name: str, first: int, count: int, xla: bool, console: Any) -> tuple[Report, bool]:
    """Runs a campaign and shows how it goes -> its report, and whether it was stopped."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    report = Report(name, first, count)
    problem = campaigns(xla)[name].problem
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    outcomes = run(name, first, count, xla=xla)
    try:
        with Progress(
            *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True
        ) as progress:
            task = progress.add_task(name, total=count)
            for outcome in outcomes:
                if told := report.add(outcome, problem):
                    progress.console.print(told, markup=False, highlight=False, soft_wrap=True)
                progress.update(task, advance=1, description=f"{name}, {report.failed} failed")
    except KeyboardInterrupt:
        outcomes.close()  # type: ignore[attr-defined]
        console.print(f"stopped; to go on: {name} --seed {first + report.done} --problems {count - report.done}")
        return report, True
    return report, False


def chosen(args: argparse.Namespace) -> list[tuple[str, int]]:
    """The campaigns asked for, and how many problems of each."""
    known = campaigns(args.xla)
    names = [n for n in known if args.campaign in ("all", n) or n.startswith(args.campaign + "-")]
    return [(name, known[name].count if args.problems is None else args.problems) for name in names]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "campaign", nargs="?", default="all", choices=["all", "exhaustive", *campaigns()], metavar="CAMPAIGN"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first problem's number")
    parser.add_argument("--problems", type=int, help="how many; by default as many as the campaign is for")
    parser.add_argument("--xla", action="store_true", help="run exhaustive problems on XLA's devices too")
    parser.add_argument("--shrink", action="store_true", help="print the simplest problem that fails alike")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what was found")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return 0
    from rich.console import Console

    console = Console(stderr=True)
    reports = []
    for name, count in chosen(args):
        try:
            report, stopped = campaign(name, args.seed, count, args.xla, console)
        except NoChild as reason:
            console.print(f"no child process can start:\n{reason}", markup=False)
            return 2
        reports.append(report)
        print("\n".join(report.lines()), flush=True)
        if args.json:
            args.json.write_text(json.dumps([r.as_json() for r in reports], indent=2) + "\n")
        for failure in report.failures[:5] if args.shrink else ():
            if failure["kind"] in ("broken", "error"):
                found = Outcome(failure["number"], failure["kind"], failure["detail"])
                problem, found = shrunk(name, found, xla=args.xla)
                print(f"{failure['number']} made simpler: {found.detail}\n    {problem}", flush=True)
        if stopped:
            break
    return 1 if any(report.failed for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
