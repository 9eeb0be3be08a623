"""Programs of real sizes as XLA:TPU and XLA:GPU compile them, without devices: rows, bytes, memory and times.

    pip install 'shardpass[tpu,gpu]'
    python -m tools.bench.targets h100 v5e v5p --store FOLDER               what is not stored yet is compiled
    python -m tools.bench.targets v5e:4x4 --store FOLDER --only llama mlp --ways plain     one size of slice
    python -m tools.bench.targets --store FOLDER --write docs/howto/accelerators.md    the tables of what is stored

The programs of test/integration/models and the expert forms (tools/bench/expert_programs) are lowered for a target of
their size, and compiled in three ways: ``plain`` is XLA's own program, ``pinned`` that with shardpass's decisions as
constraints (``spj.pin``), ``own`` the program of shardpass, as ``use()`` runs it. For 16 devices, forms have the sizes
of ``AT_16``, and of a program for 8 the shortest mesh axis that can be is doubled. Nothing is run. Each answer is a
line of FOLDER/rows.jsonl, and its HLO a file beside it.

Counted: bytes that a device receives, by the rows of the report and by the text of HLO (tools/bench/hlo_traffic.py),
which have to be equal; memory as the compiler says, and as the account of shardpass has it; seconds of a step in the
order of the compiler. It fails where rows and text differ, or where a pinned program is above plain in anything.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar, cast

from tools.bench.expert_programs import FORMS
from tools.bench.expert_programs.layers import LLAMA_70B
from tools.bench.real_programs import RealProgram, real_programs
from tools.bench.report import geometric_mean, markdown_table, show_table, write_between
from tools.processes import ROOT

WAYS = ("plain", "pinned", "own")
FIGURES = ("bytes", "memory", "seconds")
SAME = 1.0001
MOST = 16  # devices
SMALL = 1 << 24  # bytes
T = TypeVar("T")
TARGETS = {
    "h100": {4: "h100:2x2", 6: "h100:2x3", 8: "h100:2x4", 16: "h100:2x8"},
    "v5e": {4: "v5e:2x2", 8: "v5e:2x4", 16: "v5e:4x4"},
    "v5p": {4: "v5p:2x2x1", 8: "v5p:2x2x2", 16: "v5p:2x2x4"},
}
AT_16: dict[str, dict[str, Any]] = {
    "ulysses": {"devices": 16},
    "ulysses_train": {"devices": 16},
    "ring": {"devices": 16},
    "gathered_keys": {"length": 65536},  # fits a v5e
    "megatron_mlp": {"tensor": 16},
    "decode_70b": {"tensor": 16, "sizes": replace(LLAMA_70B, kv=16)},
    "transformer_data_model": {"model": 4},
    "transformer_small": {"model": 4},
    "experts": {"devices": 16},
    "llama_fsdp_tensor": {"fsdp": 4, "tensor": 4, "batch": 4},
    "llama_sequence": {"fsdp": 4, "tensor": 4, "batch": 4},
    "llama_fsdp_remat": {"fsdp": 16, "batch": 16},
    "llama_405b_fsdp": {"fsdp": 16, "batch": 16},
    "hsdp": {"data": 8, "tokens": 32768},
    "tied_embedding": {"data": 4, "tensor": 4},
    "zero1": {"data": 16, "tokens": 32768},
    "zero2": {"data": 16, "tokens": 32768},
    "zero3": {"data": 16, "tokens": 32768},
    "weight_stationary_1d": {"z": 16, "batch": 128},
    "weight_stationary_2d": {"x": 4, "y": 2, "z": 2, "batch": 128},
    "weight_gathered": {"x": 4, "y": 2, "z": 2, "batch": 128},
}
MARKS = ("<!-- table: tools/bench/targets.py -->", "<!-- end of the table -->")
HEADS = ("target", "way", "corpus", "programs", "bytes", "memory", "seconds", "above plain", "rows = text")


@dataclass(frozen=True, slots=True)
class Row:
    """One program for one target in one way.

    Attributes:
        text, bytes: that a device receives, as counted in HLO's text and by the rows of the report.
        collectives: in HLO's text.
        memory, temporaries: as the compiler says; ``account``: of temporaries, that of shardpass for its own program.
        seconds: of a step in the compiler's order; ``work``: modelled, and ``estimated`` by the compiler, which may
            have no estimate.
        spent: processor seconds; of a pin without its compiler's.
    """

    target: str
    name: str
    way: str
    text: int = 0
    bytes: int = 0
    collectives: int = 0
    memory: int = 0
    temporaries: int = 0
    account: int | None = None
    seconds: float = 0.0
    work: float = 0.0
    estimated: float | None = None
    spent: float = 0.0
    failure: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.target, self.name, self.way

    @property
    def corpus(self) -> str:
        return "forms" if self.name in FORMS else "real"

    @property
    def is_equal(self) -> bool:
        """Whether rows and text have the same bytes."""
        return self.text == self.bytes

    def above(self, plain: Row) -> dict[str, float]:
        """The figures that are above the plain program's, with the ratio."""
        pairs = ((what, getattr(self, what), getattr(plain, what)) for what in FIGURES)
        return {what: ours / theirs if theirs else 99.0 for what, ours, theirs in pairs if ours > theirs * SAME}


# ---------------------------------------------------------------- programs


def programs(devices: int, only: Sequence[str]) -> Iterator[tuple[str, Callable[[str], str]]]:
    """Yields the names of the programs for ``devices``, and what lowers each for a platform: small programs first.

    ``only``: how names begin.
    """
    for name, program in _only(real_programs(), only):
        if program.available and (wide := _widened(program, devices)) is not None:
            yield name, partial(_text, wide)
    for name, form in _only(FORMS, only):
        wider: Any = form if devices < MOST else replace(form, **AT_16.get(name, {}))  # type: ignore[type-var]
        if wider.count(*dict(wider.axes)) == devices:
            yield name, wider.text


def _only(named: Mapping[str, T], only: Sequence[str]) -> Iterator[tuple[str, T]]:
    return (pair for pair in named.items() if pair[0].startswith(tuple(only)))


def _widened(program: RealProgram, devices: int) -> RealProgram | None:
    """Returns a program over ``devices``: as it is, or with twice the devices along one axis; None if it cannot be."""
    if program.devices == devices:
        return program
    for axis in sorted(range(len(program.mesh)), key=program.mesh.__getitem__) if devices == MOST else ():
        mesh = tuple(size * (1 + (place == axis)) for place, size in enumerate(program.mesh))
        wide: Any = replace(program, mesh=mesh)  # type: ignore[type-var]
        if wide.devices == devices and _divides(wide):
            return cast(RealProgram, wide)
    return None


def _divides(program: RealProgram) -> bool:
    """Returns whether the mesh divides what is split over it."""
    try:
        program.lower()
    except ValueError:
        return False
    return True


def _text(program: RealProgram, platform: str) -> str:
    return program.lower(platform).text


# ---------------------------------------------------------------- one program


def measure(way: str, text: str, target: str, trials: int) -> tuple[Row, str]:
    """Compiles a program; returns its figures and its HLO."""
    from shardpass.advise.pin.pin import pin_module
    from shardpass.advise.suggest.explain import pipeline
    from shardpass.advise.suggest.take import decide_for
    from shardpass.cost.chosen import machine_text
    from shardpass.ir.context import parse_module
    from shardpass.pipeline.run import run_in_place
    from shardpass.report.build import explain_module
    from shardpass.report.hlo.programs import explain_partitioned_by
    from shardpass.targets.machine import machine_of
    from shardpass.targets.target import parse_target
    from tools.bench.hlo_traffic import traffic

    wanted = parse_target(target)
    machine = machine_text(machine_of(wanted))
    module, account, partitioner = parse_module(text), None, "xla"
    with module.context:
        if way == "pinned":
            module, _ = pin_module(module, machine=machine, most=trials, target=wanted)
        elif way == "own":
            decide_for(module, machine, None)
            run_in_place(module, pipeline(1))
            memory = explain_module(module, "").memory
            account, partitioner = None if memory is None else memory.temporaries, "shardpass"
        report = explain_partitioned_by(partitioner, module, "", None, machine, None, wanted)
    built: Any = report.built
    moved = traffic(built.hlo, wanted.devices)
    schedule = report.schedule
    row = Row(
        target,
        "",
        way,
        moved.bytes,
        report.total_bytes_received,
        moved.collectives,
        built.memory,
        built.temporaries,
        account,
        schedule.seconds if schedule is not None else 0.0,
        sum((fact.seconds for fact in report.compute or ()), 0.0),
        report.estimated_seconds,
    )
    return row, built.hlo


def compile_all(options: argparse.Namespace, known: dict[tuple[str, str, str], Row]) -> None:
    """Compiles what is not known, and adds it to the store."""
    from shardpass.targets.target import parse_target

    options.store.mkdir(parents=True, exist_ok=True)
    for kind in options.kinds:
        chip = kind.partition(":")[0]
        for devices, target in TARGETS[chip].items():
            some = programs(devices, options.only) if kind in (target, chip) else ()
            for name, lower, way in ((*one, way) for one in some for way in options.ways):
                if (target, name, way) in known:
                    continue
                before, hlo = _spent(target), ""
                try:
                    row, hlo = measure(way, lower(parse_target(target).platform), target, options.trials)
                except Exception as error:  # a line of the table
                    row = Row(target, "", way, failure=f"{type(error).__name__}: {' '.join(str(error).split())[:400]}")
                row = replace(row, name=name, spent=round(_spent(target) - before, 2))
                known[row.key] = row
                if hlo:
                    path = options.store / target.replace(":", "_") / f"{name}.{way}.hlo.gz"
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(gzip.compress(hlo.replace(f"{ROOT}/", "").encode(), mtime=0))
                with (options.store / "rows.jsonl").open("a") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
                state = row.failure or ("" if row.is_equal else f"TEXT {row.text:,} ROWS {row.bytes:,}")
                print(f"{target:10} {name:28} {way:6} {row.bytes:>14,} {row.spent:6.1f} s  {state}"[:400], flush=True)


def _spent(target: str) -> float:
    """Processor seconds of this process and of the compiler for ``target``."""
    from shardpass.targets.compiler import shared
    from shardpass.targets.target import parse_target

    return time.process_time() + shared(parse_target(target)).spent


def read_rows(folder: Path) -> dict[tuple[str, str, str], Row]:
    """The rows of a store, the newest of each program."""
    path = folder / "rows.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {row.key: row for row in (Row(**json.loads(line)) for line in lines)}


# ---------------------------------------------------------------- tables


def table(rows: Mapping[tuple[str, str, str], Row]) -> list[list[str]]:
    """A line for each target, way and corpus: geometric means beside plain."""
    lines = []
    for target, way, corpus in sorted({(row.target, row.way, row.corpus) for row in rows.values()}):
        every = [row for row in rows.values() if (row.target, row.way, row.corpus) == (target, way, corpus)]
        some = [row for row in every if not row.failure]
        pairs = [(row, plain) for row in some if (plain := rows.get((target, row.name, "plain"))) and not plain.failure]
        means = []
        for what in FIGURES:
            both = ((getattr(row, what), getattr(plain, what)) for row, plain in pairs)
            means.append(f"{geometric_mean([ours / theirs for ours, theirs in both if ours and theirs]):.3f}")
        above = [row.above(plain) for row, plain in pairs]
        equal = sum(row.is_equal for row in some)
        count = f"{len(some)}" + (f" ({len(every) - len(some)} fail)" if len(some) < len(every) else "")
        lines.append([target, way, corpus, count, *means, _counted(above), f"{equal} of {len(some)}"])
    return lines


def _counted(above: Sequence[Mapping[str, float]]) -> str:
    """Returns in how many programs each figure is above plain, and by how much at most."""
    found = {what: [one[what] for one in above if what in one] for what in FIGURES}
    return ", ".join(f"{what} {len(some)} (to {max(some):.3f})" for what, some in found.items() if some) or "none"


def account(rows: Mapping[tuple[str, str, str], Row]) -> Iterator[str]:
    """Yields, for each target, the account of memory over the compiler's, of its arguments and results too.

    Programs below ``SMALL`` bytes are left out: what they hold is the padding of tiles.
    """
    for target in sorted({row.target for row in rows.values()}):
        pairs = [
            (row.account + row.memory - row.temporaries) / row.memory
            for row in rows.values()
            if row.target == target and row.account is not None and row.memory >= SMALL
        ]
        if pairs:
            far = math.exp(sum(abs(math.log(one)) for one in pairs) / len(pairs))
            middle = f"geometric mean {geometric_mean(pairs):.3f}, median {median(pairs):.2f}"
            ends = f"{min(pairs):.2f} to {max(pairs):.2f}; off by {far:.3f} in geometric mean"
            yield f"{target}: account over the compiler's, of {len(pairs)} programs of 16 MiB or more: {middle}, {ends}"


def faults(rows: Mapping[tuple[str, str, str], Row]) -> Iterator[str]:
    """Yields what is not as it has to be."""
    for row in rows.values():
        plain = rows.get((row.target, row.name, "plain"), row)
        if row.failure:
            yield f"{row.target} {row.name} {row.way}: {row.failure}"
        elif not row.is_equal:
            yield f"{row.target} {row.name} {row.way}: rows {row.bytes:,} bytes, text {row.text:,}"
        elif row.way == "pinned" and row.above(plain):
            figures = ", ".join(f"{what} {ratio:.3f}" for what, ratio in row.above(plain).items())
            yield f"{row.target} {row.name} pinned is above plain: {figures}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="CHIP", help=f"{', '.join(TARGETS)}, or a target of theirs")
    parser.add_argument("--store", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--only", nargs="+", default=("",), metavar="NAME", help="programs whose names begin so")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--trials", type=int, default=12, help="variants that are compiled for a pin; default: 12")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args(argv)
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", MOST)
    rows = read_rows(options.store)
    compile_all(options, rows)
    lines = table(rows)
    found = list(faults(rows))
    show_table("compiled for targets", HEADS, lines, [*account(rows), *found])
    if options.write:
        write_between(options.write, MARKS, markdown_table(HEADS, lines, []))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
