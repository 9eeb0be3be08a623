"""Compares the plans, a line for each model; see the package."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jax.sharding import AxisType

import shardpass
from shardpass.advise.repair.errors import read
from shardpass.advise.repair.repair import repairs
from tools.bench.explicit_corpus.forms import form, lowered, plan_of
from tools.bench.peers import set_devices
from tools.bench.real_programs import real_programs

SAME, FEWER, MORE, REFUSED, REPAIRED = "same", "fewer bytes", "more bytes", "refused", "repaired"
OTHER = "same bytes"  # in other collectives
# Models that receive more because JAX gives a type to a value that Auto axes leave open: an array of 12 rows that is
# padded to 14 is split into 7 and 7, so that its slices are rows of two devices.
TYPED = frozenset({"wave_3d"})


@dataclass(frozen=True)
class Outcome:
    """Of one model. ``verdict``: the plan over Explicit axes beside that over Auto ones. ``reason``: of a refusal."""

    name: str
    verdict: str
    auto: int
    explicit: int
    reason: str = ""

    def __str__(self) -> str:
        figures = "" if self.verdict in (SAME, REFUSED) else f" ({self.explicit} beside {self.auto})"
        return f"{self.name:32} {self.verdict}{figures} {self.reason}".rstrip()


def outcome(program: Any, effort: int, repair: bool = False) -> Outcome:
    plan, auto = plan_of(lowered(program, AxisType.Auto), effort)
    try:
        text = lowered(program, AxisType.Explicit)
    except Exception as error:  # whatever JAX or a library raises on explicit axes
        if repair:
            return _repaired(program, auto, error)
        return Outcome(program.name, REFUSED, auto, 0, _reason(error))
    other, explicit = plan_of(text, effort)
    verdict = SAME if plan == other else OTHER if explicit == auto else FEWER if explicit < auto else MORE
    return Outcome(program.name, verdict, auto, explicit)


def _repaired(program: Any, auto: int, error: Exception) -> Outcome:
    """The model with the cheapest edits that ``shardpass.suggest`` prints for it."""
    try:
        with form(program, AxisType.Explicit) as (function, shapes):
            answer = repairs(function, shapes, {}, error, "ideal")
    except shardpass.ShardpassError:
        answer = None
    if answer is None:
        return Outcome(program.name, REFUSED, auto, 0, _reason(error))
    best = next((one for one in answer.alternatives if not one.arguments), answer.alternatives[0])
    return Outcome(program.name, REPAIRED, auto, best.bytes, f"{len(best.edits)} edits, {answer.traces} traces")


def _reason(error: Exception) -> str:
    clash = read(error)
    if clash is None:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return f"{Path(clash.place.file).name}:{clash.place.line} {clash.name}: {clash.text[:160]}"


def main(argv: Sequence[str] | None = None) -> int:
    """0 where no model that JAX accepts on Explicit axes receives more bytes than on Auto axes, but those of TYPED."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.explicit_corpus", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="models whose name or family begins so (default: all)")
    parser.add_argument("--effort", type=int, default=0, choices=(0, 1, 2), help="of the passes (default: 0)")
    parser.add_argument("--repair", action="store_true", help="price the models that JAX refuses with suggest's edits")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes there")
    args = parser.parse_args(argv)
    outcomes = []
    for program in real_programs().values():
        begins = tuple(args.names)
        if not program.available or (begins and not (program.name.startswith(begins) or program.family in begins)):
            continue
        outcomes.append(outcome(program, args.effort, args.repair))
        print(outcomes[-1], flush=True)
    counts = Counter(one.verdict for one in outcomes)
    print(f"{len(outcomes)} models: {', '.join(f'{count} {verdict}' for verdict, count in counts.most_common())}")
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1))
    return int(any(one.verdict == MORE and one.name not in TYPED for one in outcomes))


if __name__ == "__main__":
    set_devices()
    sys.exit(main())
