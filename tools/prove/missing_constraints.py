#!/usr/bin/env python
"""Programs from which one constraint was taken out: is it, or one as good, the first hint of ``shardpass.explain``?

    python -m tools.prove.missing_constraints                  every program
    python -m tools.prove.missing_constraints fsdp moe         those whose name begins so

Each program is lowered with all of its constraints, and without one. The report of the second, propagated without a
search (as a partitioner without one would), gives its hints; the first of them is as good as the constraint that was
taken out where the plan with it receives at most ``AS_GOOD`` times the bytes of the complete program. Programs that the
lack of the constraint does not make dearer prove nothing and are an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tools.prove.missing_constraints_programs import PROGRAMS, Lacking

AS_GOOD = 1.02
DEARER = 1.05


@dataclass(frozen=True)
class Verdict:
    """Bytes that a device receives with all constraints, without one, and with the first hint (None: no hint)."""

    name: str
    complete: int
    lacking: int
    hinted: int | None
    taken_out: str
    hint: str

    @property
    def proves(self) -> bool:
        return self.lacking > DEARER * self.complete

    @property
    def good(self) -> bool:
        return self.hinted is not None and self.hinted <= AS_GOOD * self.complete

    def __str__(self) -> str:
        verdict = "good" if self.good else "no better" if self.hinted is None else "falls short"
        if not self.proves:
            verdict = "proves nothing"
        hinted = "-" if self.hinted is None else f"{self.hinted:,}"
        figures = f"{self.complete:>9,} {self.lacking:>9,} {hinted:>9}"
        return f"{self.name:24} {figures}  {verdict:12} taken out: {self.taken_out}; hint: {self.hint}"


def judge(program: Lacking) -> Verdict:
    """The verdict on one program."""
    import shardpass

    complete = shardpass.explain(program.lower(complete=True), effort=0)
    found = shardpass.explain(program.lower(complete=False), effort=0, hints=True)
    first = found.hints[0] if found.hints else None
    return Verdict(
        program.name,
        int(complete.plan.bytes_received),
        int(found.plan.bytes_received),
        None if first is None else first.after,
        program.taken_out,
        "-" if first is None else first.code,
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names; default: all")
    arguments = parser.parse_args(argv)
    wanted = tuple(arguments.programs)
    chosen = [one for one in PROGRAMS.values() if not wanted or one.name.startswith(wanted)]
    if not chosen:
        parser.error(f"no program is named {' or '.join(wanted)}")
    print(f"{'program':24} {'complete':>9} {'lacking':>9} {'hinted':>9}")
    verdicts = []
    for program in chosen:
        verdicts.append(judge(program))
        print(verdicts[-1], flush=True)
    good = sum(verdict.good and verdict.proves for verdict in verdicts)
    print(f"the first hint is the constraint or one as good in {good} of {len(verdicts)}")
    return 0 if good == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
