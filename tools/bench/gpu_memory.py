"""The account of memory beside XLA's for GPUs, without a GPU: expert forms at real sizes, compiled for hosts of H100s.

    pip install 'shardpass[gpu]'                                  no CUDA library is needed
    python -m tools.bench.gpu_memory                              all forms of tools/bench/expert_programs
    python -m tools.bench.gpu_memory ulysses zero1 --json gpu.json --hlo folder

XLA:GPU's compiler is a shared library that compiles ahead of time for a described device (``shardpass.targets``). Each
form is partitioned by shardpass for the machine h100, and compiled so; nothing is run. Temporaries are those of
``Compiled.memory_analysis``: XLA's buffer assignment after its own fusions, its scheduler and its combined collectives.
A second program is the form as XLA's own partitioner compiles it.

Counted: how far the account of all memory (arguments, results, temporaries) is off.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from tools.bench.report import geometric_mean, show_table

HOST = 8  # devices
HEADS = ("form", "devices", "account MiB", "XLA:GPU MiB", "account/XLA", "of all memory", "XLA's partitioner MiB")


@dataclass(frozen=True, slots=True)
class Row:
    """One form: bytes of temporaries, ours and those of XLA's buffer assignment; ``rest``: arguments and results."""

    name: str
    devices: int
    account: int
    xla: int
    rest: int
    partitioned_by_xla: int

    @property
    def of_all(self) -> float:
        """The account over XLA's, with arguments and results in both."""
        return (self.account + self.rest) / (self.xla + self.rest)


def measure(name: str, text: str, folder: Path | None) -> Row:
    """Partitions and compiles one form."""
    import shardpass
    from shardpass.ir.written import bytecode
    from shardpass.suggesting.explain import pipeline
    from shardpass.targets.compiler import shared
    from shardpass.targets.target import parse_target

    module = shardpass.run_pipeline(text, pipeline(1, machine="h100"))
    report = shardpass.explain(module, machine="h100")
    compiler = shared(parse_target(f"h100:{report.devices}"))
    ours, whole = compiler.compile(bytecode(module)), compiler.compile(text.encode())
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, one in (("shardpass", ours), ("xla", whole)):
            (folder / f"{name}.{kind}.hlo").write_text(one.hlo)
    assert report.memory is not None
    temporaries = (report.memory.temporaries, ours.temporaries)
    return Row(name, report.devices, *temporaries, ours.arguments + ours.results, whole.temporaries)


def cells(row: Row) -> list[str]:
    """A line of the table."""
    ratio = f"{row.account / row.xla:.2f}" if row.xla else "-"
    account, xla, theirs = (f"{size / 2**20:.1f}" for size in (row.account, row.xla, row.partitioned_by_xla))
    return [row.name, str(row.devices), account, xla, ratio, f"{row.of_all:.2f}", theirs]


def summary(rows: Sequence[Row]) -> str:
    """The lines below the table."""
    ratios = [row.of_all for row in rows]
    far = math.exp(sum(abs(math.log(one)) for one in ratios) / len(ratios))
    middle = f"geometric mean {geometric_mean(ratios):.3f}, median {median(ratios):.2f}"
    ends = f"{min(ratios):.2f} to {max(ratios):.2f}; off by {far:.3f} in geometric mean"
    return f"account over XLA:GPU's, of all memory: {middle}, {ends}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", metavar="FORM", help="all, where none is named")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--hlo", type=Path, metavar="FOLDER", help="write the compiled programs there")
    options = parser.parse_args(argv)
    import jax

    jax.config.update("jax_platforms", "cpu")
    from tools.bench.expert_programs import FORMS

    rows = [measure(name, FORMS[name].text(), options.hlo) for name in options.forms or FORMS]
    show_table("temporaries of a device, compiled for H100s", HEADS, [cells(row) for row in rows], [summary(rows)])
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
