"""The walk over a program: what each value holds, from what the arguments hold.

The whole program and the program of one device are walked by the same rules: the whole one as a program of one device
whose tiles are whole arrays. A value that no rule knows holds nothing, which its users pass on; the first op where
something was lost is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.ir.walk import operation
from shardpass.proving.relations.pieces import Content, Ints, Piece, full, tidy
from shardpass.proving.relations.terms import Terms


class Unknown(Exception):
    """What a rule cannot say, and why: the results hold nothing."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An op at which something that was known of the operands was lost."""

    op: Any
    why: str


@dataclass(frozen=True, eq=False)
class Site:
    """An op with what its operands hold."""

    op: Any
    operands: list[Content]
    walk: Walk

    @property
    def terms(self) -> Terms:
        return self.walk.terms

    @property
    def devices(self) -> int:
        return self.walk.devices

    def result(self, pieces: Sequence[Piece | None], index: int = 0) -> Content:
        shape, element = type_of(self.op.results[index])
        return Content(shape, element, tidy(pieces))


Rule = Callable[[Site], list[Content]]


class Walk:
    """One program on ``devices`` devices."""

    def __init__(self, terms: Terms, devices: int, functions: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
        self.terms, self.devices, self.functions, self.rules = terms, devices, functions, rules
        self.values: dict[Any, Content] = {}
        self.losses: list[Loss] = []
        self.new: list[tuple[Any, int]] = []  # ops that made terms, with the size of the table before
        self.loops: list[Any] = []  # those of the whole program
        self.known_loops: list[Any] | None = None  # of the whole program, for the walk of the other one
        self._loop_count = 0
        self.sides: list[Any] = []  # how arguments and results of main are cut

    def next_loop(self) -> int:
        """A number that no other loop of the walk has."""
        self._loop_count += 1
        return self._loop_count

    def block(self, block: Any, arguments: Sequence[Content]) -> list[Content]:
        """What the terminator of ``block`` hands on."""
        for argument, content in zip(block.arguments, arguments, strict=True):
            self.values[argument] = content
        *body, end = [operation(op) for op in block.operations]
        for op in body:
            for value, content in zip(op.results, self.op(op), strict=True):
                self.values[value] = content
        return [self.values[value] for value in end.operands]

    def op(self, op: Any) -> list[Content]:
        operands = [self.values[value] for value in op.operands]
        before = len(self.terms.all)
        rule = self.rules.get(op.name)
        try:
            if rule is None:
                raise Unknown("no rule knows this op")
            result = rule(Site(op, operands, self))
        except Unknown as error:
            self.losses.append(Loss(op, str(error)))
            return [nothing(value) for value in op.results]
        except (IndexError, ValueError) as error:  # a form of the op that its rule does not know
            self.losses.append(Loss(op, f"its rule does not know this form of the op ({error})"))
            return [nothing(value) for value in op.results]
        if len(self.terms.all) > before:
            self.new.append((op, before))
        if not all(c.covered() for c in result) and all(c.covered() for c in operands):
            self.losses.append(Loss(op, "part of its result follows from nothing that is known"))
        return result

    def everywhere(self, term: int, index: Ints, shape: Sequence[int]) -> Piece:
        """A piece that covers tiles of ``shape`` with one element of ``term``; ``index``: [devices, rank of term]."""
        return full(term, np.zeros((index.shape[1], len(shape)), np.int64), index, shape)


def type_of(value: Any) -> tuple[tuple[int, ...], str]:
    kind = value.type
    try:
        return tuple(kind.shape), str(kind.element_type)
    except (AttributeError, ValueError):
        return (), str(kind)


def nothing(value: Any) -> Content:
    return Content(*type_of(value), ())
