"""Rewrite a per-device program as one program that runs the ops of all devices.

StableHLO's reference interpreter can run N programs at once, but on as many threads as the machine has cores, and
devices that wait for each other (for three seconds at most) then wait for ever on a small machine. Here each op
of the program is written N times, once for each device, and a collective becomes its definition in the StableHLO
specification, over the values of all devices: concatenations, slices and reductions.

State: for each value of the program its N copies, one a device.

State: ``noted``, an i32 vector: 0, or the number from 1 of the first op at which devices chose differently, followed by
the choice of each device.

Invariants: after an op is emitted, copy d of each result depends on device d alone, but for collectives; constants
stand for `partition_id`.

Cases:
1. a collective: over the copies of all devices;
2. `partition_id`: a constant for each device;
3. `call`: the callee is emitted in its place;
4. `while`, `if` and `case` with a collective inside: one op that carries the values of all devices, and takes the
   branch of device 0. Where another device chooses another branch, the program notes the op and all choices, and later
   results mean nothing: see ``waiting``;
5. every other op: cloned, with its regions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from shardpass.ir.blocks import copied_block
from shardpass.ir.collectives import OPS
from shardpass.ir.integers import integer
from shardpass.ir.tensors import every_op, operation, shape_of
from shardpass.ops.tiles.boxes import cut, zeros

Values = list[Any]  # of one value of the program, on each device
Table = dict[Any, Values]


class Lockstep:
    """Emits each op for all devices, one device after another, at the current insertion point.

    References to emitted ops are kept in the table alone.
    """

    def __init__(self, functions: dict[str, Any], devices: int) -> None:
        self.functions = functions
        self.devices = devices
        self.chosen: list[Any] = []  # the ops that ``noted`` numbers
        self.noted: Any = None

    def function(self, name: str, arguments: Sequence[Values]) -> list[Values]:
        """Emit a call of a function; return its results, each on all devices."""
        if self.noted is None:
            self.noted = _integers([0] * (1 + self.devices))
        (block,) = self.functions[name].regions[0].blocks
        return self.run(block, dict(zip(block.arguments, arguments, strict=True)))

    def run(self, block: Any, table: Table) -> list[Values]:
        """Emit the ops of ``block``; return the operands of its terminator, each on all devices."""
        *ops, last = map(operation, block.operations)
        for op in ops:
            results = self.emit(op, [table[value] for value in op.operands], table)
            table.update(zip(op.results, results, strict=True))
        return [table[value] for value in last.operands]

    def emit(self, op: Any, operands: list[Values], table: Table) -> list[Values]:
        """Emit one op; return its results, each on all devices."""
        if op.name == "func.call":
            return self.function(op.attributes["callee"].value, operands)
        if op.name == "stablehlo.partition_id":
            return [[_device_id(device) for device in range(self.devices)]]
        if op.name in _COLLECTIVES:
            return _COLLECTIVES[op.name](self, op, operands)
        if op.name in _CONTROL and self.communicates(op):
            return self.together(op, operands, table)
        copies = [self.clone(op, device, [v[device] for v in operands], table) for device in range(self.devices)]
        return [list(row) for row in zip(*(copy.results for copy in copies), strict=True)]

    def communicates(self, op: Any) -> bool:
        """Return whether ``op`` contains a collective, also in a function that it calls."""
        return any(
            inner.name in OPS
            or (inner.name == "func.call" and self.communicates(self.functions[inner.attributes["callee"].value]))
            for inner in every_op(op)
        )

    def together(self, op: Any, operands: list[Values], table: Table) -> list[Values]:
        """Emit a control-flow op for all devices; device 0 chooses the branch."""
        number = self._number(op)
        if op.name == "stablehlo.while":
            return self._loop(op, operands, table, number)
        choices = (
            operands[0] if op.name == "stablehlo.if" else [_taken(choice, len(op.regions)) for choice in operands[0]]
        )
        self.noted = self._first(self.noted, self._differing(number, choices))
        types = [*(r.type for r in op.results for _ in range(self.devices)), self.noted.type]
        new = ir.Operation.create(op.name, types, [operands[0][0]], regions=len(op.regions))
        before = self.noted
        for source, target in zip(op.regions, new.regions, strict=True):
            (body,) = source.blocks
            self.noted = before
            with ir.InsertionPoint(target.blocks.append()):
                rows = self.run(body, dict(table))
                stablehlo.ReturnOp([*(v for row in rows for v in row), self.noted])
        *results, self.noted = new.results
        return self.rows(results)

    def _loop(self, op: Any, operands: list[Values], table: Table, number: int) -> list[Values]:
        """Emit a loop that ends when devices choose differently; the condition is evaluated again after the loop."""
        given = [*(v for row in operands for v in row), self.noted]
        types = [v.type for v in given]
        condition, body = (region.blocks[0] for region in op.regions)
        new = ir.Operation.create(op.name, types, given, regions=2)
        for source, target in zip((condition, body), new.regions, strict=True):
            block = target.blocks.append(*types)
            *arguments, self.noted = block.arguments
            inner = {**table, **dict(zip(source.arguments, self.rows(arguments), strict=True))}
            with ir.InsertionPoint(block):
                rows = self.run(source, inner)
                if source == condition:
                    alike = self._first(self.noted, self._differing(number, rows[0]))
                    stablehlo.ReturnOp([stablehlo.and_(rows[0][0], _is_zero(alike))])
                else:
                    stablehlo.ReturnOp([*(v for row in rows for v in row), self.noted])
        *results, self.noted = new.results
        values = self.rows(results)
        (again,) = self.run(condition, {**table, **dict(zip(condition.arguments, values, strict=True))})
        self.noted = self._first(self.noted, self._differing(number, again))
        return values

    def _number(self, op: Any) -> int:
        if op not in self.chosen:
            self.chosen.append(op)
        return self.chosen.index(op) + 1

    def _differing(self, number: int, choices: Values) -> Any:
        """Emit a vector of an op's number and the devices' choices; zeros if all devices choose alike."""
        one = ir.RankedTensorType.get([1], ir.IntegerType.get_signless(32))
        scalar = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
        numbers = [stablehlo.reshape(one, stablehlo.convert(scalar, choice)) for choice in choices]
        direction = stablehlo.ComparisonDirectionAttr.get("NE")
        differ = [stablehlo.compare(numbers[0], other, direction) for other in numbers[1:]]
        some = differ[0] if differ else stablehlo.compare(numbers[0], numbers[0], direction)
        for other in differ[1:]:
            some = stablehlo.or_(some, other)
        vector = concatenate([_integers([number]), *numbers], 0)
        return self._select(some, vector, _integers([0] * (1 + self.devices)))

    def _first(self, earlier: Any, later: Any) -> Any:
        """Emit the vector ``earlier``, or ``later`` if ``earlier`` is 0."""
        some = stablehlo.compare(cut(earlier, 0, 0, 1), _integers([0]), stablehlo.ComparisonDirectionAttr.get("NE"))
        return self._select(some, earlier, later)

    def _select(self, which: Any, yes: Any, no: Any) -> Any:
        wide = ir.RankedTensorType.get([1 + self.devices], ir.IntegerType.get_signless(1))
        return stablehlo.select(stablehlo.broadcast_in_dim(wide, which, ir.DenseI64ArrayAttr.get([0])), yes, no)

    def waiting(self, noted: Sequence[int]) -> tuple[Any, int, int, Any] | None:
        """Return (collective, device that waits there, device that does not come, op where their ways part).

        ``noted``: the vector that the run gave. None where no device waits for certain: each may then go on, and what
        it computes is not known.
        """
        op = self.chosen[noted[0] - 1]
        choices = [_branch(op, int(number)) for number in noted[1:]]
        for device, choice in enumerate(choices):
            for collective in self._met(op, choice):
                for group in _partners(collective):
                    missing = [other for other in group if choices[other] != choice]
                    if device in group and missing and self._waits(collective, device, missing[0]):
                        return collective, device, missing[0], op
        return None

    def _met(self, op: Any, region: int) -> list[Any]:
        """Return the collectives that every device meets in a region, up to the first op that may skip some."""
        result = []
        for inner in map(operation, op.regions[region].blocks[0].operations if region >= 0 else ()):
            if inner.name in OPS:
                result.append(inner)
            elif inner.name == "func.call" and self.communicates(inner):
                function = self.functions[inner.attributes["callee"].value]
                result += self._met(function, 0)
                if any(each.name in _CONTROL and self.communicates(each) for each in every_op(function)):
                    break
            elif self.communicates(inner):
                break
        return result

    def _waits(self, collective: Any, device: int, other: int) -> bool:
        """Return whether ``device`` waits for ``other`` in the collective; in a permute only the target waits."""
        if collective.name != "stablehlo.collective_permute":
            return True
        return [other, device] in np.array(collective.attributes["source_target_pairs"]).tolist()

    def rows(self, values: Any) -> list[Values]:
        """Split a flat list, device by device within each value, into [value][device]."""
        flat = list(values)
        return [flat[k : k + self.devices] for k in range(0, len(flat), self.devices)]

    def clone(self, op: Any, device: int, operands: list[Any], table: Table) -> Any:
        """Clone an op for one device, replacing the operands and the outside values that its regions use."""
        copy = op.clone()
        for index, value in enumerate(operands):
            copy.operands[index] = value
        self._enter(copy, device, table)
        return copy

    def _enter(self, copy: Any, device: int, table: Table) -> None:
        for inner in list(every_op(copy))[1:]:
            if inner.name == "stablehlo.partition_id":
                with ir.InsertionPoint(inner):
                    inner.results[0].replace_all_uses_with(_device_id(device))
                inner.erase()
                continue
            for index, value in enumerate(inner.operands):
                if value in table:
                    inner.operands[index] = table[value][device]


# --- collectives, as in the StableHLO specification


def _by_group(run: Lockstep, op: Any, operands: list[Values], compute: Callable[[Values], Values]) -> list[Values]:
    """Apply ``compute`` to the values of each group, for each operand; return the results by device."""
    results = []
    for values in operands:
        row: Values = [None] * run.devices
        for group in groups(op):
            for device, result in zip(group, compute([values[d] for d in group]), strict=True):
                row[device] = result
        results.append(row)
    return results


def _all_gather(run: Lockstep, op: Any, operands: list[Values]) -> list[Values]:
    dim = op.attributes["all_gather_dim"].value
    return _by_group(run, op, operands, lambda tiles: [concatenate(tiles, dim)] * len(tiles))


def _all_to_all(run: Lockstep, op: Any, operands: list[Values]) -> list[Values]:
    split, concat = op.attributes["split_dimension"].value, op.attributes["concat_dimension"].value
    count = op.attributes["split_count"].value

    def exchanged(tiles: Values) -> Values:
        parts = [pieces(tile, split, count) for tile in tiles]
        return [concatenate(list(row), concat) for row in zip(*parts, strict=True)]

    return _by_group(run, op, operands, exchanged)


def _permute(run: Lockstep, op: Any, operands: list[Values]) -> list[Values]:
    sources = {int(target): int(source) for source, target in np.array(op.attributes["source_target_pairs"])}
    (values,) = operands
    return [
        [
            values[sources[d]] if d in sources else zeros(values[d].type.element_type, shape_of(values[d]))
            for d in range(run.devices)
        ]
    ]


def _all_reduce(run: Lockstep, op: Any, operands: list[Values]) -> list[Values]:
    return _by_group(run, op, operands, lambda tiles: [combine(op, tiles)] * len(tiles))


def _reduce_scatter(run: Lockstep, op: Any, operands: list[Values]) -> list[Values]:
    dim = op.attributes["scatter_dimension"].value
    return _by_group(run, op, operands, lambda tiles: pieces(combine(op, tiles), dim, len(tiles)))


def _broadcast(run: Lockstep, op: Any, operands: list[Values]) -> list[Values]:
    (values,) = operands
    first = {device: group[0] for group in groups(op) for device in group}
    return [
        [
            values[first[d]] if d in first else zeros(values[d].type.element_type, shape_of(values[d]))
            for d in range(run.devices)
        ]
    ]


_COLLECTIVES: dict[str, Callable[[Lockstep, Any, list[Values]], list[Values]]] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_permute": _permute,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.collective_broadcast": _broadcast,
}


_CONTROL = ("stablehlo.while", "stablehlo.if", "stablehlo.case")


def _branch(op: Any, choice: int) -> int:
    """Return the index of the region that a device with ``choice`` enters; -1 if it leaves a loop."""
    if op.name == "stablehlo.while":
        return 1 if choice else -1
    return 1 - choice if op.name == "stablehlo.if" else choice


def _partners(op: Any) -> list[list[int]]:
    """Return the devices that meet in a collective, group by group."""
    if op.name == "stablehlo.collective_permute":
        return np.array(op.attributes["source_target_pairs"]).tolist()  # type: ignore[no-any-return]
    return groups(op)


def groups(op: Any) -> list[list[int]]:
    """Return the device groups of a collective, in order."""
    return [[int(d) for d in row if d >= 0] for row in np.array(op.attributes["replica_groups"])]


# --- what they are made of


def _device_id(device: int) -> Any:
    return integer(ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32)), device)


def _taken(choice: Any, count: int) -> Any:
    """Emit the index of the branch that a ``case`` takes; a choice out of range takes the last branch."""
    ui32 = ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))
    return stablehlo.minimum(stablehlo.convert(ui32, choice), integer(ui32, count - 1))


def _integers(numbers: Sequence[int]) -> Any:
    i32 = ir.IntegerType.get_signless(32)
    return stablehlo.constant(ir.DenseElementsAttr.get(np.array(numbers, np.int32), type=i32))


def _is_zero(noted: Any) -> Any:
    same = stablehlo.compare(cut(noted, 0, 0, 1), _integers([0]), stablehlo.ComparisonDirectionAttr.get("EQ"))
    return stablehlo.reshape(ir.RankedTensorType.get([], ir.IntegerType.get_signless(1)), same)


def concatenate(values: Sequence[Any], dim: int) -> Any:
    return stablehlo.concatenate(list(values), dim) if len(values) > 1 else values[0]


def pieces(value: Any, dim: int, count: int) -> list[Any]:
    """Slice ``value`` into ``count`` equal parts along ``dim``."""
    size = shape_of(value)[dim] // count
    return [cut(value, dim, k * size, (k + 1) * size) for k in range(count)]


def combine(op: Any, values: Sequence[Any]) -> Any:
    """Reduce ``values``, in order, with the collective's computation applied to each element.

    The computation is of scalars; over arrays it is StableHLO's `map`.
    """
    total = values[0]
    dims = ir.DenseI64ArrayAttr.get(list(range(len(shape_of(total)))))
    for value in values[1:]:
        mapped = ir.Operation.create("stablehlo.map", [total.type], [total, value], {"dimensions": dims}, regions=1)
        copied_block(op.regions[0].blocks[0], mapped.regions[0])
        total = mapped.results[0]
    return total
