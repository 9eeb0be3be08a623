"""How long the passes take: shardpass, in one call and pass by pass, beside Shardy's C++ passes, interleaved.

    python -m tools.bench.compile                                         every program on a 4x2 mesh
    python -m tools.bench.compile --programs transformer-2 scan-12 --repeat 9
    python -m tools.bench.compile --mesh 64x64 --json compile.json

Programs are training steps (tools/bench/compile_programs.py): transformers of 2 to 96 layers unrolled and of 12 and 48
layers scanned, a convolution network, a mixture of experts, for a mesh (data x model) of any size. Every repetition
runs, on one parsed copy of the program each: the pipeline "partition" in one call, its passes one by one, and Shardy's
passes one by one (propagation, explicit reshards, collectives, local shapes). The table gives medians: milliseconds,
and microseconds for each op of the imported program. "First" is the first call of a process, before any cache is warm.

Not timed: lowering by JAX, parsing, and the inlining of calls that Shardy needs before (shardpass inlines in its
import). Each program has a child process of its own, because a pass of Shardy's may end the process; where Shardy
refuses a program, the table says so.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir, passmanager
from rich.console import Console
from rich.progress import track
from rich.table import Table

from shardpass.diagnostics import collect
from shardpass.importing.inline_calls import inline_calls
from shardpass.ir.context import parse_module
from shardpass.pipeline.named import NAMED
from shardpass.pipeline.run import run_in_place
from tools.bench.compile_programs import PROGRAMS, MeshSize
from tools.processes import environment, module_command

OURS = NAMED["partition"].split(",")
SHARDY = (
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "func.func(sdy-reshard-to-collectives)",
    "sdy-convert-global-to-local",
)
CONTROL_FLOW = ("stablehlo.while", "stablehlo.if", "stablehlo.case")
Times = dict[str, float]  # seconds by pass


@dataclass(frozen=True, slots=True)
class Result:
    """One program, in seconds: medians, and ``first``, the first call of the process.

    ``passes`` are the passes of shardpass run one by one, ``total`` all of them in one call. ``shardy`` is empty and
    ``refused`` says why where Shardy does not take the program.
    """

    program: str
    mesh: str
    ops: int
    first: float
    total: float
    passes: Times
    shardy: Times
    refused: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as long as Shardy's passes ours take."""
        return self.total / sum(self.shardy.values()) if self.shardy else None


# ---------------------------------------------------------------- one repetition


def in_one_call(text: str) -> float:
    module = parse_module(text)
    start = time.perf_counter()
    with collect():
        run_in_place(module, "partition")
    return time.perf_counter() - start


def pass_by_pass(text: str) -> Times:
    """A pass that stands twice in the pipeline (cse) counts once, with both its times."""
    module, times = parse_module(text), dict.fromkeys(OURS, 0.0)
    with collect():
        for name in OURS:
            start = time.perf_counter()
            run_in_place(module, f"builtin.module({name})")
            times[name] += time.perf_counter() - start
    return times


def shardy_pass_by_pass(text: str) -> Times:
    """Raises MLIRError where a pass refuses the program."""
    module, times = parse_module(text), {}
    with module.context:
        inline_calls(module)
        for name in SHARDY:
            manager = passmanager.PassManager.parse(f"builtin.module({name})")
            start = time.perf_counter()
            manager.run(module.operation)
            times[short(name)] = time.perf_counter() - start
    return times


def short(pipeline: str) -> str:
    """The name of the only pass of ``pipeline``."""
    found = re.search(r"sdy-[a-z-]+", pipeline)
    assert found is not None
    return found[0]


def count_ops(text: str) -> int:
    """Ops of the imported main, those inside loops and branches with them; regions of reducers do not count."""
    module = parse_module(text)
    with collect():
        run_in_place(module, "import")

    def count(block: Any) -> int:
        inside = (b for op in block.operations if op.operation.name in CONTROL_FLOW for r in op.regions for b in r)
        return len(list(block.operations)) + sum(map(count, inside))

    return count(module.body.operations[0].regions[0].blocks[0])


def measure(name: str, size: MeshSize, repeat: int, *, shardy: bool = True) -> Result:
    """Measures in this process, which a pass of Shardy's may end."""
    text = PROGRAMS[name](size).lower(size)
    first = in_one_call(text)
    totals: list[float] = []
    ours: list[Times] = []
    theirs: list[Times] = []
    refused = "" if shardy else "it ends the process"
    for _ in range(repeat):
        totals.append(in_one_call(text))
        ours.append(pass_by_pass(text))
        if not refused:
            try:
                theirs.append(shardy_pass_by_pass(text))
            except ir.MLIRError as error:
                refused = first_diagnostic(error)
    peers = {} if refused else medians(theirs)
    return Result(name, str(size), count_ops(text), first, statistics.median(totals), medians(ours), peers, refused)


def first_diagnostic(error: ir.MLIRError) -> str:
    """The first message of MLIR, without the values that it lists."""
    found: list[str] = [d.message for d in error.error_diagnostics] or [str(error)]
    return found[0].partition("but got")[0].partition(":")[0].strip()[:160]


def medians(runs: Sequence[Times]) -> Times:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


# ---------------------------------------------------------------- children


def ask_child(name: str, size: MeshSize, repeat: int) -> Result:
    """The result from a process of its own; without Shardy where that ends the process. Raises RuntimeError."""
    for more in ((), ("--without-shardy",)):
        command = module_command("tools.bench.compile", "--child", name, "--mesh", str(size), "--repeat", str(repeat))
        done = subprocess.run([*command, *more], capture_output=True, text=True, env=environment(JAX_PLATFORMS="cpu"))
        if done.returncode == 0:
            return Result(**json.loads(done.stdout.splitlines()[-1]))
    raise RuntimeError(f"{name}: status {done.returncode}: {done.stderr.strip()[-600:]}")


# ---------------------------------------------------------------- report


def table(results: Sequence[Result], *, passes: bool) -> Table:
    """Totals of every program, with the passes of both sides where ``passes``."""
    found = Table(title="compile time, medians; lower is better", box=None)
    for column in ("program", "mesh", "ops", "", "ms", "us an op"):
        found.add_column(column, justify="left" if column in ("program", "") else "right", no_wrap=True)
    for result in results:
        rows: list[tuple[str, float]] = [("shardpass, in one call", result.total), ("  first", result.first)]
        if passes:
            rows += [(f"  {name}", seconds) for name, seconds in result.passes.items()]
            rows.append(("  sum of passes", sum(result.passes.values())))
        if result.shardy:
            rows.append((f"Shardy ({result.ratio:.1f} times as fast)", sum(result.shardy.values())))
            rows += [(f"  {name}", seconds) for name, seconds in result.shardy.items() if passes]
        for index, (label, seconds) in enumerate(rows):
            head = (result.program, result.mesh, f"{result.ops:,}") if index == 0 else ("", "", "")
            found.add_row(*head, label, f"{1e3 * seconds:.1f}", f"{1e6 * seconds / result.ops:.1f}")
    return found


def a_size(text: str) -> MeshSize:
    """``4x2``: devices along data and model."""
    data, _, model = text.partition("x")
    if not (data.isdecimal() and model.isdecimal() and int(data) > 0 and int(model) > 0):
        raise argparse.ArgumentTypeError(f"a mesh is written 4x2 (data x model), not {text!r}")
    return MeshSize(int(data), int(model))


def a_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 up, not {text!r}")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), metavar="NAME",
                        help=f"of: {', '.join(PROGRAMS)} (default: all)")  # fmt: skip
    parser.add_argument("--mesh", type=a_size, default=MeshSize(4, 2), metavar="DxM", help="default: 4x2")
    parser.add_argument("--repeat", type=a_count, default=5, help="repetitions (default: %(default)s)")
    parser.add_argument("--totals", action="store_true", help="do not list the passes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    parser.add_argument("--child", choices=PROGRAMS, help=argparse.SUPPRESS)
    parser.add_argument("--without-shardy", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        found = measure(arguments.child, arguments.mesh, arguments.repeat, shardy=not arguments.without_shardy)
        print(json.dumps(asdict(found)))
        return 0
    console = Console(stderr=True)
    results: list[Result] = []
    try:
        for name in track(arguments.programs, "programs", console=console, transient=True):
            results.append(ask_child(name, arguments.mesh, arguments.repeat))
            if not console.is_terminal:
                print(f"{name}: {results[-1].total * 1e3:.1f} ms", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {len(results)} of {len(arguments.programs)} programs", file=sys.stderr)
    Console().print(table(results, passes=not arguments.totals))
    for result in results:
        if result.refused:
            print(f"Shardy does not take {result.program}: {result.refused}")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
