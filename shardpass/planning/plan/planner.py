"""Make the ``ProgramPlan`` of a program and its shardings: one walk in program order, on plain values.

Each op is one of (``OpKind``):

1. SPLIT: ``choose`` takes the cheapest split; operands are brought to it, from the nearest copy or computed again
   (``rematerialize``); padding that a reduction would see is masked; partial results are completed, by reduce_scatter
   where the wanted sharding splits over the same axes and by all_reduce for the rest; results are brought to what is
   wanted;
2. WHOLE: operands replicated, computed on every device, results sliced; a remark says what that costs. A call of the
   host is made by one device (``Op.once``): its results, zero on the others, are partial sums over all devices;
3. CONSTRAINT: the operand's array under another sharding, from which users of the result start; where constraints do
   not hold (``Program.wishes``), they start from any copy of the array;
4. ENTER_REGION, LEAVE_REGION: the tile passes the border as it is (``regions``);
5. CONTROL_FLOW: what crosses the border of its regions has the sharding of the op's result; a predicate is replicated,
   so that every device takes the same way and collectives inside meet; a value from outside is brought once in each
   region;
6. ENTER_MANUAL, UNTOUCHED: a tile goes in as it is; ops of a region that is manual over all axes are left alone.

State: ``copies``. Complexity: O(ops x copies of an array, which are few) and one decision for each distinct (model,
copies at hand, wanted); each new (type, source, target) plans one redistribution for its price. Region nesting is
walked recursively.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardpass.cost.machine import IDEAL, Machine
from shardpass.ops.splits.assign import Side, complete
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.choose import Choice, Choices, Decided, OperandChoice, ResultChoice, decided_on
from shardpass.planning.options.copies import Copies
from shardpass.planning.options.hoists import Hoists
from shardpass.planning.options.linear import accumulations
from shardpass.planning.options.regions import passing, with_manual
from shardpass.planning.options.rematerialize import Movers
from shardpass.planning.options.sums import NO_SUMS, Summands
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.unused import without_unused
from shardpass.planning.price.borders import borders
from shardpass.planning.price.steps import (
    Alone,
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    Copy,
    Mask,
    OperandPlan,
    OpPlan,
    Remark,
    Reshard,
    ResultPlan,
    SplitPlan,
    Step,
    UntouchedPlan,
    WholePlan,
)
from shardpass.program.program import Array, Block, Op, OpKind, Program
from shardpass.program.shardings import Factors, Shardings
from shardpass.sharding import Sharding


def plan_program(
    program: Program,
    shardings: Shardings,
    decided: Decided | None = None,
    *,
    folded: bool = False,
    machine: Machine = IDEAL,
) -> ProgramPlan:
    """Return the plan of ``program`` under ``shardings`` on ``machine``.

    ``decided``: decisions of earlier plans on a machine, which then replaces ``machine``; this plan adds to them.
    ``folded``: whether ``fold`` made the program.
    """
    decided = decided or decided_on(program.mesh, machine)
    return without_unused(_Planner(program, shardings, decided).run(), folded)


def plan_decided(program: Program, shardings: Shardings, decided: Decided) -> tuple[ProgramPlan, Shardings]:
    """Return the plan, and ``shardings`` reduced to the ways of ops and the shared copies that change the plan."""
    planner = _Planner(program, shardings, decided)
    plan = without_unused(planner.run(), False)
    return plan, replace(shardings, ways=planner.ways, partial=planner.summands.over, copies=planner.movers.used)


class _Planner:
    def __init__(self, program: Program, shardings: Shardings, decided: Decided) -> None:
        self.program = program
        self.shardings = shardings
        self.prices = decided.prices
        self.copies = Copies(decided.prices, decided.clock)
        self.borders = borders(program)
        self.hoists = Hoists(self.copies, program)
        self.movers = Movers(self.copies, self.borders, shardings.copies)
        self.choices = Choices(decided, self.copies)
        self.summands = Summands(program, shardings)
        self.accumulations = accumulations(program) if shardings.partial else {}
        self.ways: dict[int, Factors] = {}  # of ``shardings``, where the values around suggest another split

    def run(self) -> ProgramPlan:
        program = self.program
        arguments = self._enter(program.body.arguments, program.mesh)
        ops = self._ops(program.body)
        returned: list[OperandPlan | None] = []
        ends: list[Sharding | None] = []
        for index, value in enumerate(program.body.returned):
            placed = self.copies.placed.get(value)
            if placed is None:
                returned.append(None)
                ends.append(None)
                continue
            target = self.shardings.results[index] or placed.sharding
            returned.append(self._bring(value, target, f"result {index} of the program"))
            ends.append(target)
        body = BlockPlan(arguments, ops, tuple(returned))
        return ProgramPlan(program, body, tuple(ends), machine=self.copies.clock.machine)

    def _enter(self, arguments: Sequence[int], mesh: PrimeMesh) -> tuple[tuple[int, Sharding], ...]:
        out = []
        for value in arguments:
            type_ = self.program.arrays[value]
            if type_ is not None:
                sharding = self.wanted(value, type_, mesh)
                self.copies.hold(value, type_, sharding, mesh)
                out.append((value, sharding))
        return tuple(out)

    def wanted(self, value: int, type_: Array, mesh: PrimeMesh) -> Sharding:
        """Return the sharding that propagation gave ``value``, replicated if it gave none."""
        sharding = self.shardings.of.get(value)
        if sharding is None or sharding.is_unknown or (mesh.manual and sharding.is_replicated):
            return mesh.replicated(type_.rank)
        return sharding

    def _bring(self, value: int, target: Sharding, cause: str, masks: tuple[Mask | Alone, ...] = ()) -> OperandPlan:
        steps: list[Step] = []
        copy = self.movers.bring(value, target, cause, steps)
        return OperandPlan(copy, tuple(steps), masks)

    # ---------------------------------------------------------------- ops

    def _ops(self, block: Block) -> tuple[OpPlan, ...]:
        return tuple([self._op(op) for op in block.ops])

    def _op(self, op: Op) -> OpPlan:
        match op.kind:
            case OpKind.SPLIT:
                return self._split(op)
            case OpKind.WHOLE:
                return self._whole(op)
            case OpKind.CONSTRAINT:
                return self._constraint(op)
            case OpKind.ENTER_REGION:
                return self._enter_region(op)
            case OpKind.LEAVE_REGION:
                return self._leave_region(op)
            case OpKind.CONTROL_FLOW:
                return self._control_flow(op)
            case OpKind.ENTER_MANUAL:
                return UntouchedPlan(op, self.copies.placed[op.operands[0]].copy)
            case OpKind.UNTOUCHED:
                return UntouchedPlan(op)

    def _explained(self, cause: str, op: Op) -> str:
        """Return ``cause``, followed by the conflict that propagation had to decide at ``op``, if any."""
        why = self.shardings.conflicts.get(op.number)
        return f"{cause}; {why}" if why else cause

    def _split(self, op: Op) -> SplitPlan:
        placed = [self.copies.placed[value] for value in op.operands]
        types = [self.program.array(value) for value in op.results]
        assert op.model is not None
        wanted = [self.wanted(v, t, op.mesh) for v, t in zip(op.results, types, strict=True)]
        if op.model.looks_on:
            wanted = [one.sharding for one in placed]
        sums, way = self.summands.at(op), self.shardings.ways.get(op.number)
        at = op.model, op.mesh, placed, types, wanted, self.borders[op.number]
        own = self.choices.of(*at) if way is None or sums == NO_SUMS else None
        if way is None or (own is not None and own.factors == dict(way) and not own.completes_twice):
            assert own is not None
            choice = own
        else:
            choice = self.choices.of(*at, way, sums)
            if own is None or own.factors != choice.factors or own.results != choice.results:
                self.ways[op.number] = way
        if self.program.pinned.isdisjoint(op.results) and sums == NO_SUMS:
            self.movers.made_by(op)
        operands, twice = [], len({*op.operands}) < len(op.operands)
        for index, (value, chosen) in enumerate(zip(op.operands, choice.operands, strict=True)):
            if sums.over and self.summands.is_summand(op, index):
                operands.append(self._summand(op, index, chosen, sums.over))
                continue
            if (placed[index].sharding is chosen.sharding and not chosen.masks) or index in choice.local.ignored:
                operands.append(OperandPlan(placed[index].copy))
                continue
            cause = self._explained(f"operand {index} of {op.name}", op)
            steps: list[Step] = []
            if twice and (first := self._first(op, index, choice)) is not None:
                self.movers.bring(value, first, cause, steps)
            copy = self.movers.bring(value, chosen.sharding, cause, steps)
            operands.append(self.hoists.place(OperandPlan(copy, tuple(steps), chosen.masks), op, index))
        results = tuple(
            [
                self._result(op, value, type_, made, sharding)
                for value, type_, made, sharding in zip(op.results, types, choice.results, wanted, strict=True)
            ]
        )
        return SplitPlan(op, tuple(operands), choice.local, results, choice.remarks)

    def _first(self, op: Op, index: int, choice: Choice) -> Sharding | None:
        """Return the copy to make first for an op that takes one array twice, None if it makes neither nearer.

        Example, the Gram matrix ``x @ x.T`` of rows: the right operand is gathered whole, and the left one cut from it.
        """
        value, target, copies = op.operands[index], choice.operands[index].sharding, self.copies
        placed = copies.placed[value]
        for later in range(index + 1, len(op.operands)):
            other = choice.operands[later].sharding
            if op.operands[later] != value or later in choice.local.ignored or other == target:
                continue
            apart = copies.price(placed, target) + min(
                copies.price(placed, other), copies.between(placed, target, other)
            )
            for first in (other, placed.mesh.replicated(placed.type.rank)):
                both = [copies.between(placed, first, end) for end in (target, other) if end != first]
                if copies.price(placed, first) + sum(both) < apart:
                    return first
        return None

    def _summand(self, op: Op, index: int, chosen: OperandChoice, over: Axes) -> OperandPlan:
        """Plan an operand that the op reads as a summand: a partial one unchanged, a whole one zeroed on all
        devices but the first.
        """
        value = op.operands[index]
        if value in self.summands.over:
            return OperandPlan(self.copies.placed[value].copy, (), chosen.masks)
        cause = self._explained(f"operand {index} of {op.name}", op)
        return self._bring(value, chosen.sharding, cause, (*chosen.masks, Alone(over)))

    def _result(self, op: Op, value: int, type_: Array, made: ResultChoice, wanted: Sharding) -> ResultPlan:
        """Plan a result that is computed as ``made`` and needed as ``wanted``, and record its copy."""
        computed = made.computed
        reshard = None
        wanted = computed if computed.unreduced else wanted
        # whether all ops that make the value make this copy, and the user does not say that it is there in another
        alike = not self.copies.is_made(value) or self.copies.has(value, computed)
        alike = alike and value not in self.program.pinned
        self.copies.hold(value, type_, wanted, op.mesh)
        if computed is not wanted and computed != wanted:
            price = self.prices.move(type_, computed, wanted, op.mesh)
            cause = self._explained(f"result of {op.name}", op)
            reshard = Reshard(Copy(value, computed), wanted, type_, op.mesh, price, cause)
            if alike:
                self.copies.add(value, computed)
        return ResultPlan(value, made.dims, made.completions, computed, wanted, reshard)

    def _whole(self, op: Op) -> WholePlan:
        """Plan an op that every device computes on whole operands; its results are sliced."""
        gathered = 0
        operands: list[tuple[int, OperandPlan]] = []
        for value in dict.fromkeys((*op.operands, *op.captured)):
            placed = self.copies.placed.get(value)
            if placed is None:
                continue
            target = placed.mesh.replicated(placed.type.rank)
            gathered += self.copies.bytes(placed, self.copies.nearest(placed, target)[1], target)
            who = "every device computes" if op.once is None else "one device computes"
            cause = self._explained(f"{who} {op.name}: {op.why_whole}", op)
            operands.append((value, self._bring(value, target, cause)))
        remarks = (Remark("SP301", None, None, (), (), gathered),) if gathered and op.once is None else ()
        results = []
        for place, value in enumerate(op.results):
            type_ = self.program.arrays[value]
            if type_ is not None:
                wanted = self.wanted(value, type_, op.mesh)
                made = ResultChoice.of(((),) * type_.rank, op.mesh)
                if op.once is not None and place not in op.order:
                    made = self._summed(made, type_, wanted, op.mesh)
                results.append(self._result(op, value, type_, made, wanted))
        return WholePlan(op, tuple(operands), tuple(results), remarks)

    def _summed(self, made: ResultChoice, type_: Array, wanted: Sharding, mesh: PrimeMesh) -> ResultChoice:
        """Complete on all devices a result that is on one device, with zeros on the others."""
        side = Side(type_.shape, (), mesh.dims(wanted, type_.rank), type_.element)
        combiner = "or" if type_.element.mlir == "i1" else "add"
        dims, done = complete(side, made.dims, tuple(range(len(mesh.sizes))), combiner, mesh)
        return ResultChoice(dims, done, mesh.sharding(dims))

    def _constraint(self, op: Op) -> ConstraintPlan:
        value, result = op.operands[0], op.results[0]
        type_ = self.program.array(result)
        target = self.wanted(result, type_, op.mesh)
        operand = self.hoists.place(self._bring(value, target, self._explained("a sharding constraint", op)), op, 0)
        if op.number in self.program.wishes:
            self.copies.hold(result, type_, target, op.mesh, array=value)
        else:
            self.copies.hold(result, type_, target, op.mesh, tile=operand.copy)
        return ConstraintPlan(op, operand)

    # ---------------------------------------------------------------- manual regions

    def _enter_region(self, op: Op) -> BorderPlan:
        """Plan the entry of a region that is manual over some axes: the tile of the array passes unchanged."""
        value, result = op.operands[0], op.results[0]
        type_, placed = self.program.array(result), self.copies.placed[value]
        wanted = self.wanted(result, type_, op.mesh)
        inner = passing(op.mesh.dims(wanted, type_.rank), type_.shape, placed.shape, op.mesh)
        outer, border = with_manual(placed.dims, op.mesh, inner), op.mesh.sharding(inner)
        operand = self._bring(value, placed.mesh.sharding(outer), self._explained("argument of a manual region", op))
        self.copies.hold(result, type_, border, op.mesh)
        return BorderPlan(op, operand, ResultPlan(result, inner, (), border, border, None))

    def _leave_region(self, op: Op) -> BorderPlan:
        value, result = op.operands[0], op.results[0]
        type_ = self.program.array(result)
        wanted = self.wanted(result, type_, op.mesh)
        inner = self.copies.placed.get(value)
        if inner is None:  # out of a region that is manual over all axes
            dims = op.mesh.dims(wanted, type_.rank)
            self.copies.hold(result, type_, wanted, op.mesh)
            return BorderPlan(op, None, ResultPlan(result, dims or ((),) * type_.rank, (), wanted, wanted, None))
        passes = passing(inner.dims, inner.shape, type_.shape, inner.mesh)
        cause = self._explained("result of a manual region", op)
        operand = self._bring(value, inner.mesh.sharding(passes), cause)
        outer = with_manual(op.mesh.dims(wanted, type_.rank), inner.mesh, passes)
        return BorderPlan(op, operand, self._result(op, result, type_, ResultChoice.of(outer, op.mesh), wanted))

    # ---------------------------------------------------------------- control flow

    def _control_flow(self, op: Op) -> ControlFlowPlan:
        types = [self.program.array(value) for value in op.results]
        wanted = [self.wanted(v, t, op.mesh) for v, t in zip(op.results, types, strict=True)]
        operands = []
        for index, value in enumerate(op.operands):
            target = wanted[index] if op.is_loop else op.mesh.replicated(self.program.array(value).rank)
            operands.append(self._bring(value, target, self._explained(f"operand {index} of {op.name}", op)))
        blocks = []
        self.hoists.enter(op)
        for index, block in enumerate(op.blocks):
            predicate = [op.mesh.replicated(0)] if op.is_loop and index == 0 else None
            blocks.append(self._region(op, block, wanted, predicate or wanted))
        before = self.hoists.leave()
        results = self._summed_behind(op, operands, blocks)
        for value, type_, sharding in zip(op.results, types, wanted, strict=True):
            self.copies.hold(value, type_, sharding, op.mesh)
        return ControlFlowPlan(op, tuple(operands), tuple(blocks), tuple(wanted), before, results)

    def _summed_behind(
        self, loop: Op, operands: list[OperandPlan], blocks: list[BlockPlan]
    ) -> tuple[ResultPlan | None, ...]:
        """Move the completions of sums accumulated in ``loop`` to after the loop, and return the completed results.

        They move where they are all_reduces, and the op reads what is carried, and returns its result, as it lies. The
        operand of the loop is then a summand: zero on all devices but the first.
        """
        results: list[ResultPlan | None] = [None] * len(loop.results)
        for number, (of, place, operand) in self.accumulations.items():
            if of.number != loop.number:
                continue
            body = blocks[1]
            at = next(index for index, plan in enumerate(body.ops) if plan.op.number == number)
            plan, end = body.ops[at], body.returned[place]
            assert isinstance(plan, SplitPlan)
            assert end is not None
            (made,), read = plan.results, plan.operands[operand]
            if made is None or not made.completions or any(step.dim is not None for step in made.completions):
                continue
            alone = [mask for mask in read.masks if isinstance(mask, Alone)]
            if len(alone) != len(read.masks) or not alone or read.steps or made.reshard is not None or end.steps:
                continue
            read = replace(read, masks=())
            inside = tuple([read if index == operand else each for index, each in enumerate(plan.operands)])
            plan = replace(plan, operands=inside, results=(replace(made, completions=()),))
            blocks[1] = replace(body, ops=(*body.ops[:at], plan, *body.ops[at + 1 :]))
            operands[place] = replace(operands[place], masks=(*operands[place].masks, *alone))
            results[place] = replace(made, value=loop.results[place])
        return tuple(results) if any(results) else ()

    def _region(self, op: Op, block: Block, carried: Sequence[Sharding], targets: Sequence[Sharding]) -> BlockPlan:
        """Plan the ops of ``block``, and reshard the operands of its terminator to ``targets``."""
        arguments = []
        for value, sharding in zip(block.arguments, carried if op.is_loop else (), strict=True):
            self.copies.hold(value, self.program.array(value), sharding, op.mesh)
            arguments.append((value, sharding))
        mark = self.copies.entered()
        ops = self._ops(block)
        cause = f"value {{}} that a region of {op.name} returns"
        returned = tuple(
            self._bring(value, target, cause.format(index))
            for index, (value, target) in enumerate(zip(block.returned, targets, strict=True))
        )
        self.copies.left(mark)
        self.hoists.left()
        return BlockPlan(tuple(arguments), ops, returned)
