"""Promises: facts that a program states about its values without computing them, and that no run checks.

``indices_are_sorted`` and ``unique_indices`` of gathers and scatters let a compiler leave out work, and a false promise
makes the result anything. Where results may lie (``output_operand_aliases``) lets a library write over its operands.
So do donated arguments: their memory is lost to the caller, or has another result.
The whole program's promises may be used; another one of the program of one device is not proved.

A promise of the program of one device follows from the whole program's where its indices are a part of those of the
whole program, in order, moved by one number on each device or clamped: both keep the order, and the first keeps
indices different. One index vector is sorted and unique by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.annotations import Signature, custom_call_target, main_of
from shardpass.ir.donation import ALIASING, DONOR
from shardpass.ir.walk import operation
from shardpass.proving.relations.combine import operands_of
from shardpass.proving.relations.evaluate import Loss, Rule, Site, Walk
from shardpass.proving.relations.pieces import Content, Piece
from shardpass.proving.relations.terms import Terms
from shardpass.proving.rules.blocks import ALIASES

SORTED, UNIQUE = "indices_are_sorted", "unique_indices"
_NUMBERS = {
    "stablehlo.gather": ("dimension_numbers", hlo.GatherDimensionNumbers),
    "stablehlo.scatter": ("scatter_dimension_numbers", hlo.ScatterDimensionNumbers),
}
# ops of an index and a number that keep the order of indices, and those that keep indices different
_KEEP = {SORTED: ("add", "subtract", "clamp", "maximum", "minimum"), UNIQUE: ("add", "subtract")}
OPS = (*_NUMBERS, "stablehlo.custom_call")  # that may promise something


@dataclass(frozen=True, eq=False, slots=True)
class Promise:
    """A flag of a gather or scatter, its indices and the dimension of their vectors; or a call and its aliases."""

    name: str
    indices: Content | None
    vector: int
    text: str = ""


def promises(op: Any, operands: Sequence[Content]) -> list[Promise]:
    """Return the promises of ``op``: statements that its results alone do not express."""
    if op.name == "stablehlo.custom_call":
        text = str(op.attributes[ALIASES]) if ALIASES in op.attributes else "[]"
        return [] if text == "[]" else [Promise(custom_call_target(op), None, 0, text)]
    name, numbers = _NUMBERS[op.name]
    indices = operands[1 if op.name == "stablehlo.gather" else len(operands) // 2]
    vector = numbers(op.attributes[name]).index_vector_dim
    if prod(n for d, n in enumerate(indices.shape) if d != vector) == 1:
        return []
    return [
        Promise(flag, indices, vector)
        for flag in (SORTED, UNIQUE)
        if flag in op.attributes and ir.BoolAttr(op.attributes[flag]).value
    ]


def noted(rule: Rule) -> Rule:
    """Return ``rule`` as a rule that notes the promises of its op, too."""

    def with_promises(site: Site) -> list[Content]:
        note(site.walk, site.op, site.operands)
        return rule(site)

    return with_promises


def note(walk: Walk, op: Any, operands: Sequence[Content]) -> None:
    """Record the promises of ``op``: all of the whole program, and those of the per-device program that do not
    follow.
    """
    for one in promises(op, operands):
        if walk.known_promises is None:
            walk.promises.append(one)
        elif not any(_follows(walk.terms, one, other) for other in walk.known_promises):
            what = f"{ALIASES} = {one.text}" if one.indices is None else one.name
            given = one.indices is not None and _is_given(walk.terms, one.indices)
            alone = given and all(other.name != one.name for other in walk.known_promises)
            why = f"it promises {what}, which does not follow from the whole program"
            walk.unkept.append(Loss(op, f"{why}{': its indices are an argument' * alone}", alone))


def donated_alone(whole: Any, local: Any) -> list[Loss]:
    """Return a loss for each argument of main that ``local`` donates, and ``whole`` does not, or to another result.

    An argument that the whole program donates to any result may be donated to one.
    """
    main = operation(main_of(local))
    rows = zip(
        Signature(main_of(whole)).arguments, Signature(main_of(local)).arguments, strict=False
    )  # tokens are no arguments
    return [
        Loss(main, f"it donates argument {index} by {name}, which the whole program does not", True)
        for index, (known, row) in enumerate(rows)
        for name in (ALIASING, DONOR)
        if name in row and DONOR not in known and (name == DONOR or str(known.get(name)) != str(row[name]))
    ]


def _is_given(terms: Terms, indices: Content) -> bool:
    """Return whether indices are an argument of the whole program, which may be any numbers."""
    return indices.covered() and all(terms.all[piece.term].key[0] == "argument" for piece in indices.pieces)


def _follows(terms: Terms, one: Promise, known: Promise) -> bool:
    if (one.name, one.text) != (known.name, known.text):
        return False
    if one.indices is None or known.indices is None:
        return True
    have, want = one.indices, known.indices
    if have.rank != want.rank or one.vector != known.vector or not have.covered() or not want.covered():
        return False
    return all(any(_is_part(terms, one, piece, other, have) for other in want.pieces) for piece in have.pieces)


def _is_part(terms: Terms, promise: Promise, piece: Piece, whole: Piece, have: Content) -> bool:
    """Return whether ``piece`` has all index vectors of its tile, and they are those of ``whole`` in order."""
    batch = [d for d in range(have.rank) if d != promise.vector]
    size = np.array(have.shape, np.int64)[batch]
    if (piece.lo[piece.on][:, batch] != 0).any() or (piece.hi[piece.on][:, batch] != size).any():
        return False
    wide = [d for d in batch if have.shape[d] > 1]
    while piece.term != whole.term:
        term = terms.all[piece.term]
        name = str(term.key[0]).split(".")[-1]
        if name not in _KEEP[promise.name]:
            return False
        if promise.name == SORTED and name in ("add", "subtract"):  # a sum that wraps is not in order
            bounded = {str(terms.all[part].key[0]).split(".")[-1] for part in term.parts}
            if not bounded & {"clamp", "maximum", "minimum"}:
                return False
        operands = operands_of(terms, piece, (piece.lo, piece.hi, piece.on))
        moving = [operand for operand in operands if operand.a[:, wide].any()]
        if len(moving) != 1 or (name == "subtract" and moving[0] is not operands[0]):
            return False
        piece = moving[0]
    return bool((piece.a[:, wide] == whole.a[:, wide]).all())
