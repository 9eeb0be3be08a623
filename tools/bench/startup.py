"""How long the command line takes as a whole process, and which imports that time goes to.

    python -m tools.bench.startup                            medians of 9 runs of each command, imports by package
    python -m tools.bench.startup --repeat 21 --modules 15   and the 15 modules that take longest themselves
    python -m tools.bench.startup --json startup.json

Commands run in turn, each as a new process from its start to its end; an empty Python and ``import jax`` stand beside
them as floors. Imports come from one more run of each command with ``-X importtime`` (which slows it): the time of a
package is the sum of what its modules take themselves, without the modules that these import.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tools.processes import ROOT, environment

OPT = ("-c", "import sys; from shardpass.cli.opt import main; sys.argv[0] = 'shardpass-opt'; sys.exit(main())")
COMMANDS: dict[str, tuple[str, ...]] = {
    "python": ("-c", ""),
    "import jax": ("-c", "import jax"),
    "import shardpass": ("-c", "import shardpass"),
    "shardpass-opt --help": (*OPT, "--help"),
    "shardpass-opt --version": (*OPT, "--version"),
    "shardpass-opt mlp_train_step.mlir partition": (*OPT, "examples/mlp_train_step.mlir", "partition"),
}
_IMPORT = re.compile(r"^import time:\s*(\d+) \|\s*(\d+) \|\s*(\S+)$")


@dataclass(frozen=True, slots=True)
class Startup:
    """One command: seconds of each run, and microseconds that each imported module takes itself."""

    command: str
    seconds: list[float]
    modules: dict[str, int]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def packages(self) -> Counter[str]:
        """Microseconds by top-level package."""
        found: Counter[str] = Counter()
        for module, taken in self.modules.items():
            found[package_of(module)] += taken
        return found


def package_of(module: str) -> str:
    """``numpy`` of numpy.linalg; all of the standard library is one package."""
    top = module.partition(".")[0]
    return "the standard library" if top in sys.stdlib_module_names else top


def read_import_times(stderr: str) -> dict[str, int]:
    """What ``-X importtime`` writes: module -> microseconds that it takes itself."""
    rows = (_IMPORT.match(line) for line in stderr.splitlines())
    return {row[3]: int(row[1]) for row in rows if row is not None}


def run_once(command: Sequence[str]) -> float:
    """Seconds of a process. Raises RuntimeError where it fails."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment(), cwd=ROOT)
    taken = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])}: status {done.returncode}: {done.stderr.strip()[-400:]}")
    return taken


def imports_of(command: Sequence[str]) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command], capture_output=True, text=True, env=environment(), cwd=ROOT
    )
    return read_import_times(done.stderr)


def measure(names: Sequence[str], repeat: int) -> list[Startup]:
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in track(range(repeat), "runs", console=Console(stderr=True), transient=True):
        for name in names:
            seconds[name].append(run_once(COMMANDS[name]))
    return [Startup(name, seconds[name], imports_of(COMMANDS[name])) for name in names]


# ---------------------------------------------------------------- report


def times_table(results: Sequence[Startup]) -> Table:
    found = Table(box=None, pad_edge=False)
    for column in ("command", "median ms", "least ms", "imports ms", "modules"):
        found.add_column(column, justify="left" if column == "command" else "right", no_wrap=True)
    for r in results:
        imports = sum(r.modules.values()) / 1e3
        found.add_row(
            r.command, f"{1e3 * r.median:.0f}", f"{1e3 * min(r.seconds):.0f}", f"{imports:.0f}", f"{len(r.modules):,}"
        )
    return found


def imports_table(result: Startup, modules: int) -> Table:
    """Packages of more than a hundredth of all imports, then the slowest modules."""
    found = Table(box=None, pad_edge=False)
    found.add_column("package or module")
    found.add_column("ms", justify="right")
    packages = result.packages()
    least = packages.total() / 100
    for name, taken in packages.most_common():
        if taken >= least:
            found.add_row(name, f"{taken / 1e3:.1f}")
    for name, taken in Counter(result.modules).most_common(modules):
        found.add_row(f"  {name}", f"{taken / 1e3:.1f}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9, help="runs of each command (default: %(default)s)")
    parser.add_argument("--modules", type=int, default=5, help="list so many modules (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    arguments = parser.parse_args(argv)
    if arguments.repeat < 1 or arguments.modules < 0:
        parser.error("--repeat must be at least 1, --modules at least 0")
    results = measure(list(COMMANDS), arguments.repeat)
    console = Console(highlight=False)
    console.print("whole processes; lower is better", style="bold")
    console.print(times_table(results))
    for result in results:
        if result.command.startswith("shardpass"):
            console.print(f"\nimports of {result.command}, with -X importtime", style="bold")
            console.print(imports_table(result, arguments.modules))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
