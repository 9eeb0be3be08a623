#!/usr/bin/env python
"""An attack on what a decision states: "within 0.4% of the least sum", so no plan may cost less than that bound.

    python -m tools.prove.attack                            60 programs, 20 tries each
    python -m tools.prove.attack --programs 5 --seed 100    other tries, of the first five
    python -m tools.prove.attack --parts                    what parts of axes would save

A try writes what a user can: some open values of a program are given random shardings in its text, the rest is decided
again, and the plan is priced. Where that price is below the bound that the decision of the program itself states, the
statement is refuted, and the try is printed. Shardings are over whole axes, as the statement says; with ``--parts``
over parts of them too, which shows where parts pay. Programs are those of tools/bench (free forms of underspecified
programs), and random ones. Exits with 1 where one is refuted.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from jaxlib.mlir import ir

import shardpass
from shardpass.cost.chosen import chosen
from shardpass.cost.machine import IDEAL, Machine
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.annotations import SHARDING
from shardpass.ops.splits.factors import Axes
from shardpass.passes.propagate import barriers
from shardpass.planning.axes import sub_axes, whole_axes
from shardpass.planning.search import Bound, decide
from shardpass.program.program import OpKind, Program
from shardpass.program.table import table_of
from shardpass.sharding import Sharding
from tools.bench.peers import set_devices
from tools.bench.underspecified_programs import PROGRAMS
from tools.prove.cheapest.random_programs import random_program

REFUTED = 1 - 1e-4  # of a bound: a price below it refutes the statement
MOST = 3  # values that a try gives a sharding
LARGE = 400  # ops of a program that is attacked


@dataclass(frozen=True)
class Attack:
    """The statement about one program, and the least price that a try reached, with the shardings that it wrote."""

    name: str
    bound: Bound
    price: float
    written: tuple[str, ...]

    @property
    def refuted(self) -> bool:
        return self.bound.least is not None and self.price < self.bound.least * REFUTED

    def __str__(self) -> str:
        least = self.bound.least
        ratio = f"not bounded ({self.bound.why})" if least is None else f"{self.price / least if least else 1:.4f}"
        return f"{self.name}: {ratio}{'  REFUTED by ' + '; '.join(self.written) if self.refuted else ''}"


def attack(name: str, text: str, tries: int, seed: int, machine: Machine = IDEAL, parts: bool = False) -> Attack | None:
    """Attacks one program; None where it is too large, or nothing is decided."""
    rng = Random(f"{name} {seed}")
    with collect():
        first = _decided(text, machine)
        if first is None:
            return None
        bound, least = first, first.plan
        written: tuple[str, ...] = ()
        for _ in range(tries if bound.least is not None else 0):
            other, shardings = _written(text, rng, parts)
            try:
                found = _decided(other, machine)
            except ShardpassError:
                continue  # two of them contradict one another
            if found is not None and found.plan < least:
                least, written = found.plan, shardings
    return Attack(name, bound, least, written)


def _decided(text: str, machine: Machine) -> Bound | None:
    """Returns what the decision about ``text`` states, with the price of its plan."""
    module = shardpass.run_pipeline(text, "shardpass-import")
    with module.context:
        table = table_of(module, "propagate")
        if table.program.count > LARGE:
            return None
        return decide(table.program, barriers(table.program, table.handles), 1, machine).bound


def _written(text: str, rng: Random, parts: bool) -> tuple[str, tuple[str, ...]]:
    """Returns ``text`` with random shardings of up to ``MOST`` of its open values, and these."""
    module = shardpass.run_pipeline(text, "shardpass-import")
    with module.context:
        table = table_of(module, "propagate")
        program, signature = table.program, table.handles.signature
        rows: dict[int, Any] = dict(zip(program.body.arguments, signature.arguments, strict=True))
        for op in program.body.ops:
            if op.kind is OpKind.SPLIT and len(op.results) == 1:
                rows[op.results[0]] = table.handles.ops[op.number].attributes
        open_values = [value for value in rows if value not in program.annotations and program.arrays[value]]
        written = []
        for value in rng.sample(open_values, min(len(open_values), rng.randint(1, MOST))):
            sharding = _random(program, value, rng, parts)
            rows[value][SHARDING] = ir.StringAttr.get(str(sharding))
            written.append(f"value {value}, {program.array(value)}: {sharding}")
        signature.write()
        return str(module), tuple(written)


def _random(program: Program, value: int, rng: Random, parts: bool) -> Sharding:
    """Returns a random even sharding of a value, over whole axes, or over ``parts`` of them too."""
    mesh, shape = program.mesh, program.array(value).shape
    dims: list[Axes] = [()] * len(shape)
    used: set[int] = set()
    every = (sub_axes if parts else whole_axes)(mesh)
    for axes in rng.sample(every, len(every)):
        place = rng.randrange(len(shape) + 1)
        if place < len(shape) and used.isdisjoint(axes) and shape[place] % mesh.count((*dims[place], *axes)) == 0:
            dims[place] = (*dims[place], *axes)
            used.update(axes)
    return mesh.sharding(tuple(dims))


def programs() -> Iterator[tuple[str, str]]:
    """Yields programs by name: random ones and, one for one, those that say little about their shardings."""
    known = iter(PROGRAMS.items())
    for seed in itertools.count():
        yield f"random {seed}", random_program(seed).text
        for name, program in itertools.islice(known, 1):
            yield name, program.in_form("free").lower().text


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=60, help="how many (60)")
    parser.add_argument("--tries", type=int, default=20, help="of each (20)")
    parser.add_argument("--seed", type=int, default=0, help="of the tries (0)")
    parser.add_argument("--parts", action="store_true", help="shardings over parts of axes too")
    parser.add_argument("--machine", default=IDEAL.name, help=f"for which is decided ({IDEAL.name})")
    arguments = parser.parse_args(argv)
    set_devices()
    found: list[Attack] = []
    try:
        for name, text in programs():
            if len(found) == arguments.programs:
                break
            one = attack(name, text, arguments.tries, arguments.seed, chosen(arguments.machine), arguments.parts)
            if one is not None:
                found.append(one)
                print(one, flush=True)
    except KeyboardInterrupt:
        print("stopped")
    bounded = [one for one in found if one.bound.least is not None]
    refuted = sum(one.refuted for one in found)
    print(f"{len(found)} programs, {len(bounded)} bounded; {refuted} refuted")
    return int(refuted > 0)


if __name__ == "__main__":
    sys.exit(main())
