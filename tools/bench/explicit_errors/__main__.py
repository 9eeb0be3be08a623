"""Repairs the programs, a line each; see the package."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import jax
from jax.sharding import AxisType

import shardpass
from shardpass.advise.repair.repair import Repairs
from tools.bench.explicit_errors.table import MISTAKES, Mistake
from tools.bench.peers import set_devices
from tools.bench.unified_diff import applied
from tools.load_file import loaded

NEAR = 1.02
_numbers = count()


@dataclass(frozen=True)
class Outcome:
    """Of one program. ``ratio``: the modelled time of the repaired program over that of the right one."""

    name: str
    traces: int
    ratio: float
    bytes: int
    right_bytes: int
    seconds: float
    edits: str

    @property
    def good(self) -> bool:
        return 0 < self.ratio <= NEAR


def outcome(mistake: Mistake) -> Outcome:
    """Repairs a program by the first edits that keep its arguments; its price is that of the repaired file."""
    with over_a_mesh(), tempfile.TemporaryDirectory() as folder:
        right = _explained(mistake, mistake.right, folder)
        path, module = _loaded(mistake, mistake.wrong, folder)
        start = time.process_time()
        try:
            found = shardpass.suggest(getattr(module, mistake.function), *_arguments(module, mistake))
        except shardpass.ShardpassError as error:
            return Outcome(
                mistake.function, 0, 0.0, 0, right.total_bytes_received, time.process_time() - start, str(error)
            )
        seconds = time.process_time() - start
        if not isinstance(found, Repairs):
            raise ValueError(f"{mistake.function} traces as it is")
        best = next(one for one in found.alternatives if not one.arguments)
        made = _explained(mistake, applied(path.read_text(), best.diff), folder)
    return Outcome(
        mistake.function,
        found.traces,
        made.step_seconds / right.step_seconds,
        made.total_bytes_received,
        right.total_bytes_received,
        seconds,
        str(best),
    )


@contextmanager
def over_a_mesh() -> Iterator[None]:
    """Inside, the mesh is 2 x 4 Explicit axes."""
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        yield


def _loaded(mistake: Mistake, text: str, folder: str) -> tuple[Path, Any]:
    path = Path(folder, f"{mistake.file}_{next(_numbers)}.py")
    return path, loaded(path, text)


def _arguments(module: Any, mistake: Mistake) -> tuple[Any, ...]:
    arguments: tuple[Any, ...] = getattr(module, f"{mistake.function}_arguments")()
    return arguments


def _explained(mistake: Mistake, text: str, folder: str) -> Any:
    _, module = _loaded(mistake, text, folder)
    return shardpass.explain(getattr(module, mistake.function), *_arguments(module, mistake), effort=0)


def main(argv: Sequence[str] | None = None) -> int:
    """0 where every program traces by its edits, and costs no more than NEAR times the right one."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.explicit_errors", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs whose name begins so (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes there")
    args = parser.parse_args(argv)
    chosen = [one for one in MISTAKES if not args.names or one.function.startswith(tuple(args.names))]
    outcomes = []
    for one in chosen:
        result = outcome(one)
        outcomes.append(result)
        print(
            f"{result.name:16} {result.ratio:6.3f} {result.bytes:8} of {result.right_bytes:8} "
            f"{result.traces:3} traces {result.seconds:5.1f} s  {result.edits}",
            flush=True,
        )
    print(
        f"{sum(one.ratio > 0 for one in outcomes)} of {len(outcomes)} trace, {sum(one.good for one in outcomes)} near"
    )
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1))
    return 0 if all(one.good for one in outcomes) else 1


if __name__ == "__main__":
    set_devices()
    sys.exit(main())
