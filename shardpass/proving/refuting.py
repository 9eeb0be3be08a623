"""A counterexample: inputs on which the two programs differ, by StableHLO's reference interpreter.

A program of one device that is not proved is run beside the whole program, on a few random inputs, with anything in the
padding of uneven arguments. Only a difference that is seen refutes: one of more than rounding explains, in the first
result in which there is one. Programs that are large, or that the interpreter does not know, stay unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_runtime import DEVICES_WAIT
from shardpass.ir import annotations as names
from shardpass.ir.context import copy_module
from shardpass.runtime.inputs import random_inputs
from shardpass.runtime.interpreter import interpret
from shardpass.runtime.partitioned_signature import Signature, read_signature

RUNS = 2
MOST = 2**19  # elements of arguments and results, of all devices together
OPS = 600
SECONDS = 60.0
TOLERANCE = {"float64": 1e-6, "float32": 1e-2, "complex64": 1e-2, "complex128": 1e-6}
COARSE = 0.25


@dataclass(frozen=True, eq=False, slots=True)
class Difference:
    """An element of ``result`` that differs, and the whole program's arguments with which this was seen."""

    result: int
    at: tuple[int, ...]
    wanted: Any
    local: Any
    seed: int
    inputs: tuple[Any, ...]

    def __str__(self) -> str:
        return (
            f"at {list(self.at)} the whole program has {self.wanted}, and this one {self.local}, "
            f"with the inputs of seed {self.seed}"
        )


@dataclass(frozen=True, eq=False, slots=True)
class Waits:
    """Devices that wait for one another forever: ``why``, and the whole program's arguments with which they do."""

    why: str
    seed: int
    inputs: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.why}, with the inputs of seed {self.seed}"


def counterexample(whole: Any, local: Any, *, isolated: bool = True) -> Difference | Waits | None:
    """Return the first difference; None where no run shows one. ``isolated``: in a separate process, as ``interpret``.

    Devices that never end differ from the whole program, too.
    """
    signature = read_signature(local)
    if _size(signature) > MOST or _ops(local) > OPS or _ops(whole) > OPS:
        return None
    one_device = on_one_device(whole, signature)
    if one_device is None:
        return None
    for seed in range(RUNS):
        arrays = random_inputs(signature.arguments, seed)
        try:
            wanted = interpret(one_device, *arrays, isolated=isolated, timeout=SECONDS)
            answer = interpret(local, *arrays, padding=5, isolated=isolated, timeout=SECONDS)
        except ShardpassError as error:
            first = error.diagnostics[0]
            if first.code != DEVICES_WAIT.id:
                return None
            return Waits(f"{first.place}: {first.message}", seed, tuple(arrays))
        except (ValueError, TypeError):
            return None
        for index, (one, other) in enumerate(zip(wanted, answer, strict=True)):
            at = _apart(one, other)
            if at is not None:
                return Difference(index, at, one[at], other[at], seed, tuple(arrays))
    return None


def on_one_device(whole: Any, signature: Signature) -> Any | None:
    """Return the whole program as a partitioned program of one device.

    None where code in the program is of one device of several, and where main has tokens: no array stands for these.
    """
    from shardpass.runtime.reference import manual_region, strip

    if manual_region(whole):
        return None
    copy = copy_module(whole)
    with copy.context, ir.Location.unknown():
        strip(copy)
        attributes = copy.operation.attributes
        for name, count in ((names.NUM_PARTITIONS, 1), (names.NUM_REPLICAS, 1)):
            attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
        annotated = names.Signature(names.main_of(copy))
        counts = len(signature.arguments), len(signature.results)
        if (len(annotated.arguments), len(annotated.results)) != counts:
            return None
        for rows, boundaries in (
            (annotated.arguments, signature.arguments),
            (annotated.results, signature.results),
        ):
            for row, boundary in zip(rows, boundaries, strict=True):
                row[names.SHARDING] = ir.StringAttr.get(names.MANUAL)
                row[names.GLOBAL_TYPE] = ir.TypeAttr.get(ir.Type.parse(boundary.type))
                row[names.TILED_SHARDING] = ir.StringAttr.get("{replicated}")
        annotated.write()
    return copy


def _size(signature: Signature) -> int:
    return sum(prod(b.padded) for b in (*signature.arguments, *signature.results)) * signature.num_devices


def _ops(module: Any) -> int:
    return str(module).count("\n")


def _apart(wanted: Any, answer: Any) -> tuple[int, ...] | None:
    """Return where the two arrays first differ beyond rounding; None where they do not."""
    if wanted.dtype.kind in "iub":
        places = np.argwhere(wanted != answer)
    else:
        x, y = (np.asarray(v, np.complex128 if v.dtype.kind == "c" else np.float64) for v in (wanted, answer))
        special = ~np.isfinite(x) | ~np.isfinite(y)
        scale = float(np.abs(x[~special]).max(initial=0.0))
        limit = TOLERANCE.get(wanted.dtype.name, COARSE) * max(scale, 1e-30)
        with np.errstate(all="ignore"):
            differs = np.where(special, ~((x == y) | (np.isnan(x) & np.isnan(y))), np.abs(x - y) > limit)
        places = np.argwhere(differs)
    if not len(places):
        return None
    return tuple(int(i) for i in places[0])
