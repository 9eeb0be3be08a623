"""Writes docs/howto/mistakes.md: mistakes that users make, and what a report of XLA's program says of each.

    python -m tools.docs.make_cookbook            write the page: XLA compiles a program and its edits for each kind
    python -m tools.docs.make_cookbook --check    exit 1 if it is stale

The mistakes are those of ``tools.bench.mistakes``, the first of each kind.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from difflib import unified_diff
from itertools import takewhile
from textwrap import wrap

from tools.bench.mistakes.__main__ import PROGRAMS, explained, with_mistake
from tools.bench.mistakes.table import MISTAKES, Mistake
from tools.processes import ROOT

PAGE = ROOT / "docs" / "howto" / "mistakes.md"
HEAD = """# A cookbook of mistakes

<!-- Written by tools/docs/make_cookbook.py: do not edit. -->

Each is a line that people write, in a program that is right otherwise: first the change that makes the mistake, then
what `shardpass.explain(jitted, *arguments, partitioner="xla")` says. Every edit was compiled by XLA before it was
printed. The programs stand in `tools/bench/mistakes/programs/`; the mesh is 4x2, with axes `data` and `model`, and the
machine is `ideal`, as the programs are small and stand for large ones.
"""
WHY = {
    "leftover constraint": "A constraint from a debugging session, or from an earlier layout of the network, stays in "
    "the code. XLA does as it says.",
    "unsplit batch": "The batch is given to `jit` without a sharding. Weights are split, so the program runs, and each "
    "member of `data` computes the same. An edit may split weights in place of the batch, where that saves more.",
    "replicated state": "The weights have shardings, the optimizer's state has none: every device holds all of it.",
    "want of a constraint": "Weights that are split for storage meet a batch that is split over the same axis, and "
    "nothing says which of the two stays. XLA moves the larger.",
    "results forced replicated": "`out_shardings` ask for whole results, so that the last op gathers what the next "
    "call splits again.",
    "axis order": "The right axis on the wrong dimension: `P('model', None)` where `P(None, 'model')` was meant.",
    "a constraint over the wrong dimension": "As above, inside the function.",
    "a lookup, or work that every device does": "A table is split over the axis over which the tokens are split, too.",
    "a size that does not divide": "JAX refuses to split an argument whose size an axis does not divide, so a "
    "vocabulary of 4097 rows stays whole on every device. Pad the array where it is made, and slice it, in the same "
    "sharding, or mask its end where it is used. A constraint may split such a size, and then the last devices compute "
    "on padding.",
    "an embedding lookup": "Rows of a table are over the axis over which the ids are split, too: each device lacks "
    "most rows that it looks up, and its part of the gradient is of rows that others have.",
}


def page() -> str:
    """The page."""
    lines = [HEAD]
    for kind, mistakes in MISTAKES.items():
        lines += recipe(kind, mistakes[0])
    return "\n".join(lines)


def recipe(kind: str, mistake: Mistake) -> Iterator[str]:
    """The lines of one kind: why it happens, the change that makes it, and the findings."""
    right = (PROGRAMS / f"{mistake.program}.py").read_text()
    wrong = with_mistake(right, mistake)
    yield from (f"## {kind[0].upper()}{kind[1:]}", "", *wrap(WHY[kind], 120), "")
    yield from ("```diff", *change(f"{mistake.program}.py", right, wrong), "```", "")
    yield from ("```text", *findings(str(explained(wrong))), "```", "")


def change(name: str, right: str, wrong: str) -> list[str]:
    """The mistake as a unified diff, without the lines that name files."""
    lines = unified_diff(right.splitlines(), wrong.splitlines(), name, name, n=2, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++"))]


def findings(report: str) -> list[str]:
    """The findings of a report's text, which end where the gap begins."""
    lines = report.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("findings"))
    section = list(takewhile(lambda line: not line.startswith("the program, and what"), lines[first:]))
    section = [re.sub(r"(--- a/|\+\+\+ b/).*/", r"\1", line) for line in section]  # of a folder for this run
    while section and not section[-1].strip():
        section.pop()
    return section


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is stale")
    arguments = parser.parse_args()
    os.environ["SHARDPASS_MACHINE"] = "ideal"
    text = page()
    if arguments.check:
        stale = not PAGE.exists() or PAGE.read_text() != text
        print(f"{PAGE.relative_to(ROOT)} is {'stale: python -m tools.docs.make_cookbook' if stale else 'fresh'}")
        return int(stale)
    PAGE.write_text(text)
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
