"""The arrays of an HLO collective: their names, the ops they belong to, and neighbouring ops.

1. A collective has the metadata of the op for which the partitioner made it. One without (XLA joins and moves some) is
   given that of the nearest op that has a line: what makes its operand, and then what takes its result.
2. An array is a parameter's path, ``params['up']``, where the operand is a copy or a slice of the parameter, also in a
   loop that hands it on; ``[i]`` marks a slice.
3. Else the array is what the op that makes it stands for in the user's text. Of what a derivative computes the text is
   that of the forward op: ``backward of h @ w``.

4. XLA joins collectives of several lines. The joined collective has the metadata of one of them; those of the others
   are on the elements of its result.

State: the loops of bodies, read once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from shardpass.cost.collective import REDUCE_SCATTER
from shardpass.hlo.collectives import HloCollective
from shardpass.hlo.read import Computation, HloOp, HloProgram, Shape
from shardpass.ir.frames import NO_FRAME, Frame
from shardpass.report.naming import Sources, seen_frame
from shardpass.sharding.quoting import shown

_SAME = frozenset({"copy", "bitcast", "convert", "reshape", "transpose", "optimization-barrier", "copy-done"})
_CUT = frozenset({"slice", "dynamic-slice"})
_ELEMENTS = frozenset({"get-tuple-element"})
_INLINE = frozenset({"fusion", "call"})
_FURTHEST = 48  # ops that are gone back through
_NEAR = 24  # ops that are looked at for a line

Spot = tuple[str, HloOp]  # a computation and an op in it


@dataclass(frozen=True)
class Part:
    """The arrays of a collective that come from the same line.

    Attributes:
        named: the op whose metadata says where they come from.
        operands: what makes them; ``results``: what a device gets.
        sliced: whether each device uses only its own slice of these results.
    """

    named: HloOp
    operands: tuple[HloOp, ...]
    results: tuple[Shape, ...]
    sliced: bool = False

    @property
    def given(self) -> tuple[Shape, ...]:
        """The arrays on a device before the collective, its operands."""
        return tuple(shape for op in self.operands for shape in op.shapes)


class Values:
    """The values of ``program``, named by the text that ``sources`` read."""

    def __init__(self, program: HloProgram, sources: Sources) -> None:
        self.program, self.sources = program, sources

    # ---------------------------------------------------------------- lines

    def nearest(self, computation: str, op: HloOp) -> HloOp:
        """Return the op whose metadata has the source line of ``op``: ``op``, or its nearest neighbour with a line."""
        for _, one in self._neighbours(computation, op):
            if self.program.frames.location(one.attributes):
                return one
        return op

    def _neighbours(self, computation: str, op: HloOp) -> Iterator[Spot]:
        """Yield ``op``, the producers of its operands, then the users of its result, the nearest first."""
        yield computation, op
        inner = self.program.computations[computation]
        if (around := self._fusions.get(computation)) is not None:
            yield around  # XLA:TPU writes the line of a collective on the fusion that runs it
        for users in (False, True):
            queue, seen = deque([op]), {op.name}
            while queue and len(seen) < _NEAR:
                one = queue.popleft()
                names = [user.name for user in inner.users.get(one.name, ())] if users else one.operands
                for name in names:
                    if name in inner.ops and name not in seen:
                        seen.add(name)
                        queue.append(inner.ops[name])
                        yield computation, inner.ops[name]

    # ---------------------------------------------------------------- arrays

    def parts(self, one: HloCollective, sliced: frozenset[int] = frozenset()) -> list[Part]:
        """Group the arrays of a collective by line; a single part if XLA did not combine collectives.

        ``sliced``: the numbers of results of which each device uses only its own slice; these form separate parts.
        """
        inner, results = self.program.computations[one.computation], self._results(one)
        names = () if one.op.opcode == "recv" else one.op.operands  # which takes a token
        operands = [inner.ops[name] for name in names if name in inner.ops]
        whole = Part(self.nearest(one.computation, one.op), tuple(operands), results, len(sliced) == len(results))
        if len(operands) != len(results) or len(operands) < 2:
            return [whole]
        elements = {user.number: user for user in inner.users.get(one.op.name, ()) if user.opcode in _ELEMENTS}
        lines: dict[tuple[str, bool], list[tuple[HloOp, int]]] = {}
        for place, operand in enumerate(operands):
            candidates = [elements[place], operand] if place in elements else [operand]
            named = next((op for op in candidates if self.program.frames.location(op.attributes)), whole.named)
            lines.setdefault((str(self._frame(named).place), place in sliced), []).append((named, place))
        return [
            Part(
                some[0][0],
                tuple(operands[place] for _, place in some),
                tuple(results[place] for _, place in some),
                keeps,
            )
            for (_, keeps), some in lines.items()
        ]

    def _results(self, one: HloCollective) -> tuple[Shape, ...]:
        """Return the arrays that a device receives; for a fusion that scatters sums, the slices."""
        root = self.program.computations[one.computation].root
        scatters = one.kind == REDUCE_SCATTER and one.op.opcode == "all-reduce" and root is not None
        return root.shapes if scatters and root is not None else one.op.results

    def array(self, computation: str, part: Part) -> str:
        """Return the names of the arrays that the collective moves."""
        names = [self._named(computation, op) for op in part.operands]
        several = list(dict.fromkeys(filter(None, names)))
        return several[0] + (f" and {len(several) - 1} more" if len(several) > 1 else "") if several else ""

    def _frame(self, op: HloOp) -> Frame:
        return seen_frame(self.program.frames.location(op.attributes), shown(op.stack))

    def _named(self, computation: str, op: HloOp) -> str:
        spot, cut = self.behind(computation, op)
        stack = shown(spot[1].stack)
        if spot[1].opcode == "parameter":
            is_path = spot[0] == self.program.entry and stack and not stack.startswith("jit(")
            return stack + cut if is_path else ""
        frame = self._frame(spot[1])
        text = "" if frame is NO_FRAME else self.sources.expression(frame)
        if not text:
            return ""
        return f"backward of {text}" if "transpose(" in stack else text + cut

    def behind(self, computation: str, op: HloOp) -> tuple[Spot, str]:
        """Follow ``op`` through copies, slices and fusions to the op that computes the value.

        Returns this op and the mark of a slice on the way, "[i]" or "".
        """
        cut = ""
        bound: dict[str, Spot] = {}  # of each fusion that was entered, where it stands
        for _ in range(_FURTHEST):
            inner = self.program.computations[computation]
            if op.opcode in _INLINE and op.called and (root := self._root(op.called[0][1])) is not None:
                bound[op.called[0][1]] = (computation, op)
                computation, op = op.called[0][1], root
                continue
            if op.opcode == "parameter" and computation in bound:
                outer, call = bound[computation]
                before = self._operand(self.program.computations[outer], call, op.number)
                computation = outer
            elif op.opcode in _SAME or op.opcode in _CUT:
                before = self._operand(inner, op, 0)
                cut = cut or ("[i]" if op.opcode in _CUT and before is not None else "")
            elif op.opcode == "get-tuple-element":
                element = self._element(computation, op)
                computation, before = element if element is not None else (computation, None)
            else:
                before = None
            if before is None:
                break
            op = before
        return (computation, op), cut

    def _root(self, name: str) -> HloOp | None:
        entered = self.program.computations.get(name)
        return None if entered is None else entered.root

    @staticmethod
    def _operand(inner: Computation, op: HloOp, place: int) -> HloOp | None:
        return inner.ops.get(op.operands[place]) if 0 <= place < len(op.operands) else None

    def _element(self, computation: str, op: HloOp) -> Spot | None:
        """Return the op that makes an element of a tuple; for a value that a loop's body passes on, the op outside."""
        inner = self.program.computations[computation]
        whole = self._operand(inner, op, 0)
        if whole is not None and whole.opcode == "tuple":
            source = self._operand(inner, whole, op.number)
        elif whole is not None and whole.opcode == "parameter" and computation in self._loops:
            root = inner.root
            returned = None if root is None else self._operand(inner, root, op.number)
            if returned is None or (returned.opcode, returned.operands, returned.number) != (
                "get-tuple-element",
                op.operands,
                op.number,
            ):
                return None
            computation, loop = self._loops[computation]
            outer = self.program.computations[computation]
            start = self._operand(outer, loop, 0)
            source = self._operand(outer, start, op.number) if start is not None and start.opcode == "tuple" else None
        else:
            source = None
        return None if source is None else (computation, source)

    @cached_property
    def _fusions(self) -> dict[str, Spot]:
        """Map the name of each fused computation to the fusion."""
        return {
            name: (computation, op)
            for computation, inner in self.program.computations.items()
            for op in inner.ops.values()
            if op.opcode == "fusion"
            for _, name in op.called
        }

    @cached_property
    def _loops(self) -> dict[str, Spot]:
        """Map the name of each loop's body to the loop."""
        return {
            name: (computation, op)
            for computation, inner in self.program.computations.items()
            for op in inner.ops.values()
            if op.opcode == "while"
            for attribute, name in op.called
            if attribute == "body"
        }
