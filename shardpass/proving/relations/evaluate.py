"""Walk over a program and derive the content of each value from the contents of the arguments.

The whole program and the program of one device are walked by the same rules: the whole one as a program of one device
whose tiles are whole arrays. A value that no rule knows has no contents, which its users pass on; the first op where
something was lost is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.ir.walk import operation
from shardpass.proving.relations.calls import waiting_in
from shardpass.proving.relations.laws import Law, Laws
from shardpass.proving.relations.pieces import Bools, Content, Ints, Piece, full, tidy
from shardpass.proving.relations.terms import Terms


class Unknown(Exception):
    """Raised if a rule cannot determine the contents of the results, with the reason."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An op after which the content of a value is unknown although its operands were known."""

    op: Any
    why: str
    certain: bool = False  # whether it is known that the programs differ


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """A branch or a loop that a walk is in: ``number`` of that, and ``which``, the value that chooses the branch."""

    name: str
    number: int
    which: Content | None = None


@dataclass(frozen=True, eq=False)
class Site:
    """An op with the contents of its operands."""

    op: Any
    operands: list[Content]
    walk: Walk

    @property
    def terms(self) -> Terms:
        return self.walk.terms

    @property
    def devices(self) -> int:
        return self.walk.devices

    def takes(self, law: Law) -> bool:
        """Return whether the op may take ``law``, which is then written down; where it may not, something is lost."""
        if self.walk.laws.allows(law, self.op):
            return True
        self.walk.losses.append(Loss(self.op, f"it is no more than equal by {law.equation}, where {law.risk}"))
        return False

    def result(self, pieces: Sequence[Piece | None], index: int = 0) -> Content:
        shape, element = type_of(self.op.results[index])
        return Content(shape, element, tidy(pieces))


Rule = Callable[[Site], list[Content]]


class Walk:
    """One program on ``devices`` devices."""

    def __init__(self, terms: Terms, devices: int, functions: Mapping[str, Any], rules: Mapping[str, Rule],
                 laws: Laws) -> None:  # fmt: skip
        self.terms, self.devices, self.functions, self.rules, self.laws = terms, devices, functions, rules, laws
        self.values: dict[Any, Content] = {}
        self.losses: list[Loss] = []
        self.new: list[tuple[Any, int]] = []  # ops that made terms, with the size of the table before
        self.loops: list[Any] = []  # those of the whole program
        self.known_loops: list[Any] | None = None  # of the whole program, for the walk of the other one
        self.stuck: list[Loss] = []  # ops that may wait for other devices or run forever, for all that is known
        self.steps: tuple[Step, ...] = ()
        self.active = np.ones(devices, bool)  # the devices that take the branches that the walk is in
        self.effects: Any = None  # where one of the programs has effects, those of this walk
        self.promises: list[Any] = []  # of the whole program
        self.known_promises: list[Any] | None = None  # of the whole program, for the walk of the other one
        self.unkept: list[Loss] = []  # promises that do not follow from these
        self._loop_count = 0
        self.sides: list[Any] = []  # how arguments and results of main are cut

    def next_loop(self) -> int:
        """Return a unique number for a loop of the walk."""
        self._loop_count += 1
        return self._loop_count

    def inside(
        self, block: Any, arguments: Sequence[Content], step: Step | None, active: Bools | None = None
    ) -> list[Content]:
        """Return as ``block`` does, in a branch or a loop, for the devices ``active``."""
        steps, devices = self.steps, self.active
        self.steps = steps if step is None else (*steps, step)
        self.active = devices if active is None else devices & active
        result = self.block(block, arguments)
        self.steps, self.active = steps, devices
        return result

    @property
    def _noted(self) -> tuple[list[Any], ...]:
        return self.losses, self.new, self.stuck, self.unkept, self.promises, self.laws.uses

    def state(self) -> tuple[list[int], Any]:
        """Return the current state, for ``back_to``."""
        return [len(rows) for rows in self._noted], None if self.effects is None else self.effects.state()

    def back_to(self, state: tuple[list[int], Any]) -> None:
        """Restore ``state``: drop everything recorded since then."""
        for rows, count in zip(self._noted, state[0], strict=True):
            del rows[count:]
        if self.effects is not None:
            self.effects.back_to(state[1])

    def block(self, block: Any, arguments: Sequence[Content]) -> list[Content]:
        """Return the operands of the terminator of ``block``."""
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
        noted = None if self.effects is None else self.effects.enter(op, self.functions)
        steps, active = self.steps, self.active
        try:
            if rule is None:
                raise Unknown("no rule knows this op")
            result = rule(Site(op, operands, self))
        except (Unknown, IndexError, ValueError) as error:
            self.steps, self.active = steps, active
            why = str(error) if isinstance(error, Unknown) else f"its rule does not know this form of the op ({error})"
            self.losses.append(Loss(op, why))
            self.stuck += [Loss(inner, why) for inner in waiting_in(op, self.functions)]
            if noted is not None:
                self.effects.lose(op, why, noted, self.functions)
            return [nothing(value) for value in op.results]
        if noted is not None:
            self.effects.leave(op, noted, self.functions)
        if len(self.terms.all) > before:
            self.new.append((op, before))
        if self.active.all() and not all(c.covered() for c in result) and all(c.covered() for c in operands):
            self.losses.append(Loss(op, "part of its result follows from nothing that is known"))
        return result

    def everywhere(self, term: int, index: Ints, shape: Sequence[int]) -> Piece:
        """Return a piece that covers tiles of ``shape`` with one element of ``term``; ``index``: [devices, rank of
        term].
        """
        return full(term, np.zeros((index.shape[1], len(shape)), np.int64), index, shape)


def is_token(kind: Any) -> bool:
    return str(kind) in ("!stablehlo.token", "!mhlo.token")


def type_of(value: Any) -> tuple[tuple[int, ...], str]:
    kind = value.type
    try:
        return tuple(kind.shape), str(kind.element_type)
    except (AttributeError, ValueError):
        return (), "i32" if is_token(kind) else str(kind)  # a token is a number, as in shardpass's programs


def nothing(value: Any) -> Content:
    return Content(*type_of(value), ())
