"""Compare NaN, infinities and -0 in the results of a partitioned program with its reference.

Ordinary numbers do not show how a program treats NaN. So the partitioned program and its reference run again with
NaN, infinities and -0 in some elements of the float arguments (``inputs.special_inputs``). NaN and infinities must
appear in the same elements of the results; all other elements are compared as in the first run. The sign of a zero
is not compared.

If the two differ, both are compiled again without two parts of XLA's CPU compiler that lose NaN on one device
(``jax_private.compiled_to_keep_nan``): a library for reductions of some thousand elements, and the algebraic
simplifier, which replaces the product of x and a mask by a choice between x and 0. The cases are:

1. Without these parts, one of the programs computes other numbers from ordinary inputs, because XLA then applies an
initial value that is not the identity more than once. A remark reports that nothing is compared.
2. The two agree now: XLA has lost a NaN. A remark reports it.
3. The reference is partitioned by XLA, and takes the max or min of floats across devices, where XLA's collectives on
CPU lose NaN. A remark reports that nothing is compared.
4. The program takes such a max or min, too, and with ``nan=exact`` (``partition/keep_nan.py``) it agrees with the
reference: XLA's collectives have lost a NaN. A remark names them.
5. A reducer, or the comparator of a sort, compares floats without a test for NaN: its result for NaN depends on the
order of evaluation, which is unspecified. A remark reports that nothing is compared.
6. Anything else is an error.

A remark also reports runs without evidence: all results are NaN, or a loop runs until a condition is true, which NaN
may prevent. If no argument can contain such values, there are no such runs.

Cost: up to ``inputs.SPECIAL_RUNS`` runs of each program. If they differ, each is compiled once more, and the program
twice from case 4 on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Diagnostic, collect, table_runtime
from shardpass.ir.collectives import collective_ops
from shardpass.ir.context import copy_module
from shardpass.ir.frames import user_place
from shardpass.ir.jax_private import compiled_to_keep_nan
from shardpass.ir.trip_counts import trip_count
from shardpass.ir.walk import CONTROL_FLOW, every_op
from shardpass.partition.keep_nan import keep_nan, takes_float_extreme
from shardpass.runtime.compare import tolerance_of
from shardpass.runtime.hlo import has_float_extremes
from shardpass.runtime.inputs import special_inputs
from shardpass.runtime.partitioned_signature import Boundary
from shardpass.runtime.tiles import Array

Trials = Sequence[Sequence[Array]]
"""Inputs for several runs."""

Run = Callable[[Sequence[Array]], Sequence[Array]]
"""From whole arguments to whole results."""

NAMED_AT_MOST = 3
HOLD_PROGRAMS = CONTROL_FLOW | {"builtin.module", "func.func"}  # other regions are reducers and comparators


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first element of a result that differs from the reference."""

    index: int
    element: tuple[int, ...]
    actual: str
    wanted: str

    def __str__(self) -> str:
        return f"result {self.index} at {list(self.element)} is {self.actual} in place of {self.wanted}"


@dataclass(frozen=True, slots=True)
class Special:
    """The comparison on NaN, infinities and -0.

    ``compared``: the number of comparisons. ``mismatches``: one for each result that differs. ``remarks``: SP555,
    SP556.
    """

    compared: int = 0
    mismatches: tuple[Mismatch, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference computation. ``hlo``: the program of XLA's partitioner; "" on one device."""

    name: str
    run: Run
    hlo: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A partitioned ``module`` and its reference.

    Attributes:
        make: from a partitioned module to its run; ``run`` is that of ``module``.
        refer: makes the reference, ``reference``.
        inputs, wanted: the inputs of the first run, and the reference's results.
    """

    module: Any
    make: Callable[[Any], Run]
    run: Run
    refer: Callable[[], Reference]
    reference: Reference
    inputs: Sequence[Array]
    wanted: Sequence[Array]

    def mismatches(self, run: Run, trials: Trials, wanted: Sequence[Sequence[Array]]) -> tuple[Mismatch, ...]:
        """List where ``run`` differs from ``wanted``: at most one element of each result, over all trials."""
        first: dict[int, Mismatch] = {}
        for inputs, theirs in zip(trials, wanted, strict=True):
            for index, (mine, other) in enumerate(zip(run(inputs), theirs, strict=True)):
                apart = mismatch(index, np.asarray(mine), np.asarray(other), greatest(np.asarray(self.wanted[index])))
                if apart is not None:
                    first.setdefault(index, apart)
        return tuple(first[index] for index in sorted(first))


def run_special(subject: Subject, arguments: Sequence[Boundary], seed: int) -> Special:
    """Run ``subject`` on special inputs, and compare with its reference."""
    trials = special_inputs(arguments, seed)
    if not trials:
        return Special()
    if (loop := _unknown_loop(subject.module)) is not None:
        return _not_compared(f"the loop{_at(loop)} runs until a condition holds, which may be never with NaN")
    wanted = [subject.reference.run(inputs) for inputs in trials]
    mismatches = subject.mismatches(subject.run, trials, wanted)
    if mismatches:
        with compiled_to_keep_nan():
            return _explained(subject, trials, mismatches)
    if all(_is_nan(np.asarray(array)).all() for results in wanted for array in results):
        return _not_compared("the unpartitioned program itself gives NaN alone")
    return Special(len(trials))


def _explained(subject: Subject, trials: Trials, first: tuple[Mismatch, ...]) -> Special:
    """Return attributes ``first`` to XLA, with a remark, or else to shardpass."""
    reference, run = subject.refer(), subject.make(subject.module)
    total = len(subject.wanted)
    ordinary, as_before = [subject.inputs], [subject.wanted]
    if any(subject.mismatches(again, ordinary, as_before) for again in (reference.run, run)):
        return _not_compared("without the parts of XLA that lose NaN on one device, it computes other numbers")
    wanted = [reference.run(inputs) for inputs in trials]
    mismatches = subject.mismatches(run, trials, wanted)
    if not mismatches:
        return Special(
            len(trials),
            remarks=(table_runtime.NAN_LOST_ON_ONE_DEVICE.at(count=len(first), total=total, first=first[0]),),
        )
    if has_float_extremes(reference.hlo):
        return _not_compared("the reference, partitioned by XLA, loses NaN in its own max and min across devices")
    lossy = [str(use) for op, use in collective_ops(subject.module) if takes_float_extreme(op)]
    if lossy and not subject.mismatches(subject.make(_exact(subject.module)), trials, wanted):
        more = f"; and {n} more" if (n := len(lossy) - NAMED_AT_MOST) > 0 else ""
        named = "; ".join(lossy[:NAMED_AT_MOST]) + more
        lost = table_runtime.NAN_LOST.at(count=len(mismatches), total=total, first=mismatches[0], collectives=named)
        return Special(len(trials), remarks=(lost,))
    if (reducer := _open_reducer(subject.module)) is not None:
        return _not_compared(f"`{reducer.name}`{_at(reducer)} compares floats by an order in which NaN has no place")
    return Special(len(trials), mismatches)


def _not_compared(reason: str) -> Special:
    return Special(remarks=(table_runtime.NOT_COMPARED.at(reason=reason),))


def _unknown_loop(module: Any) -> Any:
    """Return the first loop with an unknown number of iterations, or None."""
    loops = (op for op in every_op(module.operation) if op.name == "stablehlo.while")
    return next((loop for loop in loops if trip_count(loop) is None), None)


def _exact(module: Any) -> Any:
    """Copy ``module`` with collectives that keep NaN."""
    copy = copy_module(module)
    with collect():  # remarks about the copy are for nobody
        keep_nan(copy)
    return copy


def _open_reducer(module: Any) -> Any:
    """Return the first op whose region compares floats, neither in total order nor after a test for NaN; or None."""
    for op in every_op(module.operation):
        if not len(op.regions) or op.name in HOLD_PROGRAMS:
            continue
        compares = [inner for inner in every_op(op) if inner.name == "stablehlo.compare" and _of_floats(inner)]
        tests = [c for c in compares if c.operands[0] == c.operands[1]]
        if not tests and any("TOTALORDER" not in str(c.attributes.get("compare_type")) for c in compares):
            return op
    return None


def _of_floats(compare: Any) -> bool:
    return isinstance(compare.operands[0].type.element_type, ir.FloatType)


def _at(op: Any) -> str:
    place = user_place(op.location)
    return "" if place == NOWHERE else f" at {place}"


# ---------------------------------------------------------------- results


def mismatch(index: int, actual: Array, wanted: Array, scale: float = 0.0) -> Mismatch | None:
    """Return the first element of ``actual`` that differs from ``wanted``; None if all are equal.

    Floats may be apart by the tolerance of their type times the greatest finite magnitude that is wanted, or ``scale``.
    """
    apart = _apart(actual, wanted, scale)
    if not apart.any():
        return None
    element = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))
    return Mismatch(index, element, str(actual[element]), str(wanted[element]))


def _apart(actual: Array, wanted: Array, scale: float) -> Array:
    tolerance = tolerance_of(wanted.dtype)
    if tolerance == 0:
        return np.asarray(actual != wanted)
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    mine, theirs = actual.astype(wide), wanted.astype(wide)
    both_nan = _is_nan(mine) & _is_nan(theirs)
    finite = np.isfinite(mine) & np.isfinite(theirs)
    allowed = tolerance * (max(scale, greatest(theirs)) or 1.0)
    with np.errstate(invalid="ignore"):
        close = np.abs(np.where(finite, mine - theirs, 0)) <= allowed
    apart: Array = ~(both_nan | (finite & close) | (~finite & (mine == theirs)))
    return apart


def greatest(array: Array) -> float:
    """Return the greatest finite magnitude in ``array``, or 0."""
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))


def _is_nan(array: Array) -> Array:
    """Return a mask of NaN; all False for integers. (``np.isnan`` fails on narrow floats of ml_dtypes.)"""
    return np.asarray(array != array)
