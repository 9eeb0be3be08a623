"""Find all-reduces whose devices each use only their own slice, as in a reduce-scatter.

XLA's partitioner writes a sum that is split next as all-reduce and dynamic-slice. A later pass on GPU and TPU makes a
reduce-scatter of the two, of half the bytes; on CPU nothing does. An all-reduce is of this kind where each use of each
of its results is a dynamic-slice of at most one g-th of the elements, g being the size of a group, whose start depends
on the device (``partition-id``, ``replica-id``). Uses are followed through ops that only arrange or convert, and
through parameters of fusions and calls; starts through operands, and parameters of the fusion or call that they stand
in. An all-reduce whose slices start from a value that a loop carries is not recognised.

Cost: the uses of an all-reduce, and what the starts of its slices are computed from.
"""

from __future__ import annotations

from shardpass.hlo.collectives import HloCollective
from shardpass.hlo.read import HloOp, HloProgram

_ARRANGES = frozenset({"bitcast", "reshape", "copy", "transpose", "convert"})
_DEVICE = frozenset({"partition-id", "replica-id"})
_INLINE = frozenset({"fusion", "call"})
_ELEMENT = "get-tuple-element"


class Slices:
    """Finds the all-reduces of ``program`` whose devices use only slices of the results."""

    def __init__(self, program: HloProgram) -> None:
        self.program = program
        self._callers: dict[str, list[tuple[str, HloOp]]] = {}
        for name, computation in program.computations.items():
            for op in computation.ops.values():
                if op.opcode in _INLINE:
                    for _, called in op.called:
                        self._callers.setdefault(called, []).append((name, op))

    def sliced_results(self, one: HloCollective) -> frozenset[int]:
        """Return the indices of the results whose devices each use only their own slice.

        XLA combines several sums in one op; an op with one result has the number 0.
        """
        uses: dict[int, bool] = {}
        for part in self._parts(one):
            if part is not None:
                number = max(part.number, 0) if part.opcode == _ELEMENT else 0
                uses[number] = uses.get(number, True) and self._sliced_by(one, part)
        return frozenset(number for number, sliced in uses.items() if sliced)

    def sliced_bytes(self, one: HloCollective) -> int:
        """Return the bytes of the results in ``sliced_results``."""
        results = one.op.results
        return sum(results[number].bytes for number in self.sliced_results(one) if number < len(results))

    def _sliced_by(self, one: HloCollective, part: HloOp) -> bool:
        return self._sliced(one.computation, part, min(map(len, one.groups)), set())

    def _parts(self, one: HloCollective) -> list[HloOp | None]:
        """Return the ops that yield the collective's arrays; None stands for an op that uses several arrays at once."""
        inner = self.program.computations[one.computation]
        op = one.op
        if op.opcode.endswith("-start"):
            done = inner.users.get(op.name, [])
            if len(done) != 1:
                return [None]
            op = done[0]
        if not op.type.startswith("("):
            return [op]
        users = inner.users.get(op.name, [])
        return [part if part.opcode == _ELEMENT else None for part in users]

    def _sliced(self, computation: str, op: HloOp, group: int, seen: set[tuple[str, str]]) -> bool:
        """Return whether all users of ``op``'s result take the device's slice of it."""
        if (computation, op.name) in seen:
            return False
        seen.add((computation, op.name))
        users = self.program.computations[computation].users.get(op.name, [])
        if op.is_root or not users or len(op.shapes) != 1:
            return False
        size = op.shapes[0].elements
        return all(self._is_slice(computation, op, user, size, group, seen) for user in users)

    def _is_slice(
        self, computation: str, op: HloOp, user: HloOp, size: int, group: int, seen: set[tuple[str, str]]
    ) -> bool:
        if user.opcode == "dynamic-slice" and user.operands[0] == op.name:
            small = sum(shape.elements for shape in user.shapes) * group <= size
            return small and any(self._by_device(computation, start) for start in user.operands[1:])
        if user.opcode in _ARRANGES:
            return self._sliced(computation, user, group, seen)
        if user.opcode not in _INLINE or not user.called or user.called[0][1] not in self.program.computations:
            return False
        name = user.called[0][1]
        entering = [
            self.program.computations[name].parameters.get(place)
            for place, operand in enumerate(user.operands)
            if operand == op.name
        ]
        return all(one is not None and self._sliced(name, one, group, seen) for one in entering)

    def _by_device(self, computation: str, name: str) -> bool:
        """Return whether a value depends on the device's number, ``partition-id``."""
        stack, seen = [(computation, name)], {(computation, name)}
        while stack:
            where, what = stack.pop()
            op = self.program.computations[where].ops.get(what)
            if op is None:
                continue
            if op.opcode in _DEVICE:
                return True
            before = [(where, operand) for operand in op.operands]
            if op.opcode == "parameter":
                calls = self._callers.get(where, ())
                before = [(outer, c.operands[op.number]) for outer, c in calls if 0 <= op.number < len(c.operands)]
            stack += [one for one in before if one not in seen]
            seen.update(before)
        return False
