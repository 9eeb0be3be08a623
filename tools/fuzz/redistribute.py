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
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shardpass.diagnostics import collect
from tools.fuzz.redistribution_campaigns import Campaign, campaigns
from tools.fuzz.smaller_redistribution import smaller
from tools.processes import ChildFailed, JsonChild, answer, environment, module_command
from tools.prove.law import Broken
from tools.prove.redistribution_problems import Problem

DEVICES = 24
SECONDS_PER_PROBLEM = 120
SECONDS_TO_START = 300
CHILD = module_command("tools.fuzz.redistribute")


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


def serve(name: str, xla: bool) -> None:
    """Run in the child: the number of a problem on each line of stdin, its outcome on a line of stdout.

    ``null`` is answered at once.
    """
    campaign = campaigns(xla)[name]
    if campaign.devices:
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", DEVICES)
    for line in sys.stdin:
        number = json.loads(line)
        answer({} if number is None else asdict(outcome_of(campaign, campaign.problem(number))))


class NoChild(Exception):
    """A child ended before it could be asked anything."""


def run(name: str, first: int, count: int, *, xla: bool = True) -> Iterator[Outcome]:
    """Yield the outcomes of problems ``first`` to ``first + count - 1``, in order. Raises NoChild."""
    life = campaigns(xla)[name].life
    child = JsonChild([*CHILD, name, "--serve", *(["--xla"] if xla else [])], environment(), SECONDS_PER_PROBLEM)
    try:
        for number in range(first, first + count):
            if (number - first) % life == 0:
                child.close()
            if child.process is None:
                _start(child)
            try:
                found = child.ask(number)
                yield Outcome(**{**found, "tags": tuple(found["tags"])})
            except ChildFailed as failure:
                yield Outcome(number, "hang" if failure.hung else "abort", f"{failure}: {failure.words}")
    finally:
        child.close()


def _start(child: JsonChild) -> None:
    try:
        child.ask(None, SECONDS_TO_START)
    except ChildFailed as failure:
        raise NoChild(failure.words) from None


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
        serve(args.campaign, args.xla)
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
