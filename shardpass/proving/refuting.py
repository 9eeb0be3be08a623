"""A counterexample: inputs on which the two programs differ, by StableHLO's reference interpreter.

A program of one device that is not proved is run beside the whole program, with anything in the padding of uneven
arguments, on two random inputs and on two at the edges: negative numbers, zeros and equal ones, indices out of bounds,
both values of a predicate. Only a difference that is seen refutes: one of more than rounding explains, in the first
result in which there is one, on any device that has a copy of it. Programs that are large, that the interpreter does
not know, or that take longer than ``SECONDS`` stay unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_runtime import DEVICES_WAIT
from shardpass.ir import annotations as names
from shardpass.ir.context import copy_module
from shardpass.ir.locations import place_of
from shardpass.runtime.inputs import edge_inputs, random_inputs
from shardpass.runtime.interpreter import own_copy, run_each
from shardpass.runtime.partitioned_signature import Signature, read_signature
from shardpass.runtime.tiles import join, split

RUNS = 2
MOST = 2**19  # elements of arguments and results, of all devices together
OPS = 600
SECONDS = 30.0  # for all runs of one of the two programs
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
    device: int | None = None  # which holds it, where another one's copy does not differ

    def __str__(self) -> str:
        where = "" if self.device is None else f" on device {self.device}"
        return (
            f"at {list(self.at)} the whole program has {self.wanted}, and this one {self.local}{where}, "
            f"with the inputs of seed {self.seed}"
        )


@dataclass(frozen=True, eq=False, slots=True)
class Waits:
    """Devices that deadlock. ``why``: the reason. Also the whole program's arguments for which they do."""

    why: str
    seed: int
    inputs: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.why}, with the inputs of seed {self.seed}"


def counterexample(whole: Any, local: Any, *, isolated: bool = True) -> Difference | Waits | str:
    """Return the first difference; where no run shows one, how many runs agree, or why the programs are not run.

    ``isolated``: in a separate process, as ``interpret``. Devices that never end differ from the whole program, too.
    """
    signature = read_signature(local)
    size, lines = _size(signature), max(_ops(local), _ops(whole))
    if size > MOST or lines > OPS:
        return f"not run: {size} elements and {lines} lines, of {MOST} and {OPS} at most"
    one_device = on_one_device(whole, signature)
    if one_device is None:
        return "not run: the whole program has code of one device of several, or tokens"
    arguments = signature.arguments
    runs = [random_inputs(arguments, seed) for seed in range(RUNS)] + edge_inputs(arguments)
    seed = 0
    try:
        every = _results(one_device, runs, isolated), _results(local, runs, isolated)
        for seed, (wanted, answer) in enumerate(zip(*every, strict=True)):
            if (difference := _difference(signature, wanted, answer)) is not None:
                return replace(difference, seed=seed, inputs=tuple(runs[seed]))
    except ShardpassError as error:
        first = error.diagnostics[0]
        if first.code == DEVICES_WAIT.id:
            file = place_of(names.main_of(local).location).file  # which the copy that is run has not
            why = re.sub(r"(?<!\S)-:(?=\d)", lambda _: f"{file}:", f"{first.place}: {first.message}")
            return Waits(why, seed, tuple(runs[seed]))
        return f"not run to the end: {first.message}"
    except (ValueError, TypeError) as error:
        return f"not run to the end: {error}"
    return f"run with {len(runs)} inputs, random ones and some at the edges: the results agree with all"


def _results(module: Any, runs: Sequence[Sequence[Any]], isolated: bool) -> Iterator[list[list[Any]]]:
    """Yield the [result][device] tiles of each run."""
    copy = own_copy(module)
    signature = read_signature(copy)
    tiles = [
        [split(array, side, signature.num_devices, 5) for array, side in zip(run, signature.arguments, strict=True)]
        for run in runs
    ]
    return run_each(copy, signature, tiles, isolated=isolated, timeout=SECONDS)


def _difference(signature: Signature, wanted: list[list[Any]], answer: list[list[Any]]) -> Difference | None:
    """Return where a result first differs, on any device that has a copy. The caller fills in the run."""
    for index, (row, tiles, side) in enumerate(zip(wanted, answer, signature.results, strict=True)):
        holders = side.holders(signature.num_devices)
        for copy in range(1 if side.sharding.is_maximal else holders.shape[-1]):
            whole = join(tiles, side, copy)
            at = _apart(row[0], whole)
            if at is not None:
                tile = tuple(place // size for place, size in zip(at, side.tile, strict=True))
                device = int(holders[tile][copy]) if copy else None
                return Difference(index, at, row[0][at], whole[at], 0, (), device)
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
