#!/usr/bin/env python
"""An attack on what a decision states: within 0.4% of the least sum, and within 3% of a bound of the makespan.

    python -m tools.prove.attack --machine h100             60 programs, 20 tries each
    python -m tools.prove.attack --programs 5 --seed 100    other tries, of the first five
    python -m tools.prove.attack moe_train "random 7"       these programs alone
    python -m tools.prove.attack --parts                    what parts of axes would save
    python -m tools.prove.attack --tiny --programs 500      every sharding of tiny programs
    python -m tools.prove.attack --tiny --first 1000        those of the random programs from the 1000th
    python -m tools.prove.attack --tiny --effort 2          the same of the decision that looks longer

A try writes what a user can: some open values of a program are given random shardings in its text, the rest is decided
again. Where the sum or the makespan of that plan is below the bound that the decision of the program itself states, the
statement is refuted, and the try is printed. Shardings are over whole axes, as the statement says; with ``--parts``
over parts of them too, which shows where parts pay. Programs are those of tools/bench (free forms of underspecified
programs), and random ones. With ``--tiny`` random shardings are written until few are left to choose; all of these are
planned, and the least makespan is compared with the decision's. Each line has the counts so far, and the seconds of
processor time that the program took. Exits with 1 where a statement is refuted.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import time
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
from shardpass.planning.decide.bound import Bound
from shardpass.planning.decide.search import Decision, decide
from shardpass.planning.options.axes import sub_axes, whole_axes
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.plan.trade import refused
from shardpass.program.program import OpKind, Program
from shardpass.program.table import table_of
from shardpass.propagation.program import Propagated
from shardpass.sharding import Sharding
from tools.bench.peers import set_devices
from tools.bench.underspecified_programs import PROGRAMS
from tools.prove.cheapest.random_programs import random_program
from tools.prove.cheapest.space import Domains, Unsupported, space_of

REFUTED, REFUTES = 1 - 1e-4, "REFUTED"  # of a bound: a price below it refutes the statement
MOST = 3  # values that a try gives a sharding
FEW = 250  # shardings of a tiny program
LARGE = 400  # ops of a program that is attacked


@dataclass(frozen=True)
class Attack:
    """The statement about one program, and the least sum and makespan that tries reached, with the shardings written
    for each. ``makespan``: of the decision itself; ``allowed``: the least of plans that spend no more than they may.
    """

    name: str
    bound: Bound
    makespan: float
    sums: tuple[float, tuple[str, ...]]
    spans: tuple[float, tuple[str, ...]]
    allowed: float

    @property
    def is_least(self) -> bool:
        """Whether no try that spends no more than it may is faster than the decision."""
        return self.makespan <= self.allowed / REFUTED

    @property
    def refuted(self) -> bool:
        return any(text.endswith(REFUTES) for text in self._told())

    def _told(self) -> Iterator[str]:
        bounds = ("sum", self.bound.least, self.sums), ("makespan", self.bound.least_makespan, self.spans)
        for name, least, (reached, written) in bounds:
            if least is None:
                yield f"{name} not bounded ({self.bound.why or 'the plan is below the bound of the tables'})"
            else:
                refuted = f" by {'; '.join(written)} {REFUTES}" if reached < least * REFUTED else ""
                yield f"{name} {reached / least if least else 1:.4f}{refuted}"

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self._told())}"


def attack(name: str, text: str, tries: int, seed: int, machine: Machine = IDEAL, parts: bool = False) -> Attack | None:
    """Attacks one program; None where it is too large, or nothing is decided."""
    rng = Random(f"{name} {seed}")
    with collect():
        first = _decided(text, machine)
        if first is None or first[0].bound is None:
            return None
        decision, plan = first
        assert decision.bound is not None
        sums: tuple[float, tuple[str, ...]] = (price(plan), ())
        spans: tuple[float, tuple[str, ...]] = (plan.makespan, ())
        for _ in range(tries):
            other, shardings = _written(text, rng, parts)
            try:
                found = _decided(other, machine)
            except ShardpassError:
                continue  # two of them contradict one another
            if found is not None:
                sums, spans = min(sums, (price(found[1]), shardings)), min(spans, (found[1].makespan, shardings))
    return Attack(name, decision.bound, plan.makespan, sums, spans, spans[0])


def enumerate_all(name: str, text: str, seed: int, machine: Machine = IDEAL, effort: int = 1) -> Attack | None:
    """Plans all shardings of a program in which random ones are written until few are left; None where none are."""
    rng = Random(f"{name} {seed}")
    with collect():
        for _ in range(12):
            program = _read(text)
            try:
                space = space_of(program, Domains(program.mesh))
            except Unsupported:
                return None
            if space.size <= FEW:
                break
            text, _ = _written(text, rng, parts=False, most=1)
        else:
            return None
        try:
            first = _decided(text, machine, effort)
        except ShardpassError:
            return None  # two of the shardings contradict one another
        if first is None or first[0].bound is None or not space.free:
            return None
        plans = [
            plan_program(program, space.shardings(dict(zip(space.domains, row, strict=True))), machine=machine)
            for row in itertools.product(*space.domains.values())
        ]
        plain = plan_program(program, Propagated(program, {}).shardings, machine=machine)
    every = (first[1], *plans)
    allowed = min([first[1].makespan, *[each.makespan for each in plans if not refused(plain, each)]])
    sums, spans = (min(map(price, every)), ("enumeration",)), (min(each.makespan for each in every), ("enumeration",))
    return Attack(name, first[0].bound, first[1].makespan, sums, spans, allowed)


def _read(text: str) -> Program:
    module = shardpass.run_pipeline(text, "shardpass-import")
    with module.context:
        return table_of(module, "propagate").program


def _decided(text: str, machine: Machine, effort: int = 1) -> tuple[Decision, ProgramPlan] | None:
    """Returns the decision about ``text`` and its plan; None where it is too large."""
    module = shardpass.run_pipeline(text, "shardpass-import")
    with module.context:
        table = table_of(module, "propagate")
        if table.program.count > LARGE:
            return None
        decision = decide(table.program, barriers(table.program, table.handles), effort, machine)
        return decision, plan_program(table.program, decision.shardings, decision.decided, machine=machine)


def _written(text: str, rng: Random, parts: bool, most: int = MOST) -> tuple[str, tuple[str, ...]]:
    """Returns ``text`` with random shardings of up to ``most`` of its open values, and these."""
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
        for value in rng.sample(open_values, min(len(open_values), rng.randint(1, most))):
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


def programs(first: int) -> Iterator[tuple[str, str]]:
    """Yields programs by name: random ones from seed ``first`` and, one for one, those that say little."""
    known = iter(PROGRAMS.items())
    for seed in itertools.count(first):
        yield f"random {seed}", random_program(seed).text
        for name, program in itertools.islice(known, 1):
            yield name, program.in_form("free").lower().text


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs to attack; default: the first")
    parser.add_argument("--programs", type=int, default=60, help="how many (60)")
    parser.add_argument("--tries", type=int, default=20, help="of each (20)")
    parser.add_argument("--seed", type=int, default=0, help="of the tries (0)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first random program (0)")
    parser.add_argument("--parts", action="store_true", help="shardings over parts of axes too")
    parser.add_argument("--tiny", action="store_true", help="plan every sharding of tiny programs")
    parser.add_argument("--effort", type=int, default=1, help="of the decision, with --tiny (1)")
    parser.add_argument("--machine", default=IDEAL.name, help=f"for which is decided ({IDEAL.name})")
    arguments = parser.parse_args(argv)
    set_devices()
    found: list[Attack] = []
    machine, seed = chosen(arguments.machine), arguments.seed
    tiny = ((f"random {number}", random_program(number).text) for number in itertools.count(arguments.first))
    source = tiny if arguments.tiny else programs(arguments.first)
    if arguments.names:
        source = ((name, _text(name)) for name in arguments.names)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a limit of time ends with the counts, too
    try:
        for name, text in source:
            if len(found) == arguments.programs:
                break
            begun = time.process_time()
            if arguments.tiny:
                one = enumerate_all(name, text, seed, machine, arguments.effort)
            else:
                one = attack(name, text, arguments.tries, seed, machine, arguments.parts)
            if one is not None:
                found.append(one)
                print(f"{one}; {_counts(found)}; {time.process_time() - begun:.1f} s", flush=True)
    except KeyboardInterrupt:
        print("stopped")
    bounded = [one for one in found if one.bound.least is not None]
    spans = [one for one in found if one.bound.least_makespan is not None]
    print(f"{_counts(found)}; bounds of {len(bounded)} sums, {len(spans)} makespans")
    return int(any(one.refuted for one in found))


def _counts(found: Sequence[Attack]) -> str:
    least, refuted = (sum(each) for each in ([one.is_least for one in found], [one.refuted for one in found]))
    return f"{len(found)} programs, the decision least in {least}, {refuted} refuted"


def _text(name: str) -> str:
    """Return the text of the program ``name``, such as "random 7"."""
    kind, _, number = name.partition(" ")
    return random_program(int(number)).text if kind == "random" else PROGRAMS[name].in_form("free").lower().text


if __name__ == "__main__":
    sys.exit(main())
