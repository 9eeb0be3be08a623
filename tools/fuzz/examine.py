"""One random program, partitioned and run on many devices, compared with the program on one device.

Exact values must be equal, others close. Where the two differ, StableHLO's reference interpreter decides whether XLA on
one device is at fault.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shardpass.cost.chosen import VARIABLE, machine_text
from shardpass.cost.links import Switch
from shardpass.cost.machine import Machine
from tools.fuzz.programs import Program, on_one_device
from tools.values import Array, Fact, rubbish

TOLERANCE = {"f64": 1e-9, "f32": 1e-4, "bf16": 0.1, "f16": 0.02, "complex<f32>": 1e-4}


@dataclass(frozen=True, slots=True)
class Outcome:
    """``kind``: ok, wrong (another result), error (refused or internal), abort, invalid (no program at all).

    And xla: the interpreter, on the program as it stands, agrees with the partitioned one and not with XLA.
    """

    seed: int
    kind: str
    detail: str = ""


def examine(program: Program, reference: bool = False) -> Outcome:
    """Runs ``program`` both ways and compares. XLA may abort the process."""
    import shardpass
    from shardpass.diagnostics import ShardpassError, collect
    from shardpass.runtime import compile_single, interpret

    text, arrays = program.text(), program.inputs()
    try:
        whole = [np.asarray(x) for x in compile_single(on_one_device(program).text())(*arrays)]
    except ShardpassError as error:
        return Outcome(program.seed, "invalid", str(error))
    try:
        with collect(), prices(program.eager):
            module = shardpass.run_pipeline(text, "partition")
            executable = shardpass.compile(module)
            placed = [
                p.place(array, rubbish(fact))
                for p, array, (fact, _) in zip(executable._arguments, arrays, program.arguments, strict=True)
            ]
            split = [np.asarray(x) for x in executable.run(*placed)]
            ways = [("XLA", split)]
            if reference:
                ways.append(("the reference interpreter", interpret(module, *arrays)))
    except ShardpassError as error:
        return Outcome(program.seed, "error", str(error))
    problem = next((f"on {way}, {d}" for way, found in ways if (d := differences(program, whole, found))), "")
    if not problem:
        return Outcome(program.seed, "ok")
    if blames_xla(program, arrays, whole, split):
        return Outcome(program.seed, "xla", f"XLA on one device is wrong, says the interpreter: {problem}")
    return Outcome(program.seed, "wrong", problem)


def blames_xla(program: Program, arrays: Sequence[Array], whole: Sequence[Array], split: Sequence[Array]) -> bool:
    """Whether the interpreter agrees with ``split``, and not with ``whole``, on each result in which the two differ.

    It is asked for one result at a time, as it does not know all ops, and others may need those.
    """
    import shardpass
    from shardpass.diagnostics import ShardpassError, collect
    from shardpass.runtime import interpret

    facts, judged = program.facts(), False
    for result, one_device, many in zip(program.results, whole, split, strict=True):
        fact = facts[result[0]]
        if not compare(one_device, many, fact):
            continue
        alone = on_one_device(replace(program, results=(result,)))
        try:
            with collect():
                (third,) = interpret(shardpass.run_pipeline(alone.text(), "partition"), *arrays)
        except ShardpassError:  # an op that the interpreter does not know
            return False
        if not compare(third, one_device, fact) or compare(third, many, fact):
            return False
        judged = True
    return judged


def differences(program: Program, whole: Sequence[Array], found: Sequence[Array]) -> str:
    """The first result of ``program`` in which ``found`` differs from ``whole``, and how; "" where none does."""
    facts = program.facts()
    for index, (want, got, (value, _)) in enumerate(zip(whole, found, program.results, strict=True)):
        difference = compare(want, got, facts[value])
        if difference:
            return f"result {index}: {difference}"
    return ""


# an element takes as long as a kilobyte of the network
EAGER = Machine("eager", "", math.inf, 2e8, {"f32": 5e7}, (Switch(None, 0.0, 5e10),), {}, ())


@contextmanager
def prices(eager: bool) -> Iterator[None]:
    """For which machine programs are partitioned: ``eager`` makes work so slow that every op is split all it can be."""
    before = os.environ.get(VARIABLE)
    if eager:
        os.environ[VARIABLE] = machine_text(EAGER)
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        else:
            os.environ.pop(VARIABLE, None)


def compare(want: Any, got: Any, fact: Fact) -> str:
    """How ``got`` differs from ``want``; "" where it does not."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if fact.bound == np.inf and not fact.exact:
        return ""
    if fact.exact:
        same = np.asarray((want == got) | ((want != want) & (got != got)))
    else:
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        rate = TOLERANCE[fact.type.element]
        same = np.isclose(got.astype(wide), want.astype(wide), rtol=rate, atol=rate * fact.bound, equal_nan=True)
    if same.all():
        return ""
    first = tuple(map(int, np.argwhere(~same)[0]))
    return f"{int((~same).sum())} of {same.size} elements, first at {list(first)}: {got[first]}, not {want[first]}"
