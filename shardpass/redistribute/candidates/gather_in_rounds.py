"""Gathers that hold little beside their result: for limits in bytes that nothing cheaper keeps.

An all_gather along another dimension than the leading one holds its result twice, as it is transposed (``memory``). In
rounds each tile goes to its place as it comes: the result once, and two tiles beside it, for the price of a collective
for each member of a group. So dimension by dimension, the one that grows most last, when two of its tiles are least.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from shardpass.redistribute.candidates.digit_forms import FREE, Assignment, DigitProblem
from shardpass.redistribute.candidates.digit_search import block_dim, digit_forms
from shardpass.redistribute.candidates.route import route
from shardpass.redistribute.problem.device_arrays import row_of, travels
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder, Form, in_sequence

MOST_GATHER_ROUNDS = 32  # of one gather


def lean_forms(problem: DigitProblem) -> list[Form]:
    """The forms of ``digit_forms`` with their gather dimension by dimension, in rounds where that holds less."""
    last = route(problem).last
    by_dim: dict[int, list[int]] = {}
    for m, t in enumerate(last):
        if t != FREE and problem.target[m] == FREE:
            by_dim.setdefault(problem.digits[t].dim, []).append(m)
    if not by_dim:
        return []
    forms = digit_forms(replace(problem, target=last))
    state: Assignment = last
    rest: list[Form] = []
    for digits in sorted(by_dim.values(), key=problem.size):
        after = tuple(FREE if m in digits else t for m, t in enumerate(state))
        rest.append(_gather(replace(problem, source=state, target=after, partial=()), digits))
        state = after
    return [in_sequence(form, *rest) for form in forms]


def _gather(stage: DigitProblem, digits: list[int]) -> Form:
    """Of the mesh ``digits``, which hold parts of one dimension."""
    digits = sorted(digits, key=lambda m: stage.source[m])
    dim = block_dim(stage, stage.target, [stage.source[m] for m in digits])
    leading = dim is not None and math.prod(stage.tile(stage.target)[:dim]) == 1
    if dim is None or leading or stage.size(digits) > MOST_GATHER_ROUNDS:
        return digit_forms(stage)[0]
    return partial(_in_rounds, stage, digits, dim)


def _in_rounds(stage: DigitProblem, digits: list[int], dim: int, builder: Builder) -> None:
    """Round r: everyone is sent the tile of the member r places on, wherever it belongs along ``dim``."""
    groups, place = stage.groups(digits), stage.number(digits)
    size, chunk = groups.shape[1], builder.tile
    source_of = groups[row_of(groups), (place + np.arange(size)[:, None]) % size]
    names = stage.names.along(travels(source_of))
    rounds = ops.ChunkRounds(chunk, chunk, dim, source_of, None, place, names)
    builder.rounds([rounds], source_of, chunk, stage.tile(stage.target))
