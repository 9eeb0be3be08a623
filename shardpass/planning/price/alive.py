"""Convert a plan to steps for ``cost.memory``, which accounts for the live bytes on a device, op by op.

A buffer is a copy (an array under a sharding), a partial result that is joined over devices next, or a value of a
region that is manual over all axes. A reshard is one step, which needs beside its ends what its redistribution holds
more. What a plan does not list (the masks of uneven tiles, what an op's own rewrite makes between) is not counted: the
account of the built module has that too (``ir.memory``).

State: one walk over the plan's steps. O(steps).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from shardpass.cost import copies
from shardpass.cost.fusion import COPY, PASSES_ON
from shardpass.cost.lifetimes import END, OTHERS, Block, Buffer, Client
from shardpass.cost.lifetimes import Step as Moment
from shardpass.cost.machine import IDEAL, Machine
from shardpass.cost.memory import Account, account
from shardpass.ops.splits.factors import Kind, Rule
from shardpass.planning.price.listed import Results, operand_copies, operand_steps, redistribution, sources_of
from shardpass.planning.price.steps import (
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    Copy,
    LeftOutPlan,
    OpPlan,
    Reshard,
    SplitPlan,
    Step,
    UntouchedPlan,
    WholePlan,
)
from shardpass.program.program import Op, Program

PRODUCT, TRANSPOSE = "stablehlo.dot_general", "stablehlo.transpose"
NOTHING = -1  # in the place of a token


def alive(
    body: BlockPlan,
    program: Program,
    beside: Mapping[int, int] | None = None,
    client: Client = OTHERS,
    machine: Machine = IDEAL,
) -> Account:
    """Return the account of memory of a program: the bytes alive on a device, op by op.

    ``beside``: bytes that ops need beside operands and results, by the op's number. ``client``: how the backend places
    buffers. ``machine``: for which redistributions are planned.
    """
    block, sizes = _block(body, program, beside, client, machine)
    lent = {block.arguments[place]: index for place, index in program.donated}
    return account(block, sizes, client, lent)


def made_by_op(body: BlockPlan, program: Program, client: Client, machine: Machine) -> dict[int, dict[Buffer, int]]:
    """Return the buffers, with their bytes, that each op (by number) makes in the steps of ``alive``."""
    block, sizes = _block(body, program, None, client, machine)
    made: dict[int, dict[Buffer, int]] = {}
    for step in block.every_step():
        made.setdefault(step.op, {}).update({buffer: sizes[buffer] for buffer in step.makes})
    return made


def _block(
    body: BlockPlan, program: Program, beside: Mapping[int, int] | None, client: Client, machine: Machine
) -> tuple[Block, list[int]]:
    steps = _Steps(program, beside or {}, client, machine)
    return steps.block(body), steps.sizes


class _Steps:
    """Converts the plan of each block into moments of the account, and records the bytes of every buffer."""

    def __init__(self, program: Program, beside: Mapping[int, int], client: Client, machine: Machine) -> None:
        self.program, self.beside, self.client, self.machine = program, beside, client, machine
        self.sizes: list[int] = []
        self._numbers: dict[Copy | int, Buffer] = {}
        self._again: dict[Copy | int, Buffer] = {}  # the first buffers of what this block makes again
        self._copies: dict[Buffer, Buffer] = {}  # in this block, of what was copied into another layout already
        self._transposed: dict[Buffer, Buffer] = {}  # of a matrix, what it is the transposed of

    def block(self, block: BlockPlan) -> Block:
        outer, self._copies = self._copies, {}
        before, self._again = self._again, {}
        arguments = tuple(self._of(Copy(value, sharding)) for value, sharding in block.arguments)
        steps = [step for plan in block.ops for step in self._op(plan)]
        for operand in block.returned:
            if operand is not None:
                steps += self._steps(operand.steps, END)
        self._copies = outer
        returned = self._all([NOTHING if operand is None else operand.copy for operand in block.returned])
        self._numbers.update(self._again)
        self._again = before
        return Block(arguments, tuple(steps), returned)

    # ---------------------------------------------------------------- buffers

    def _of(self, one: Copy | int) -> Buffer:
        """Return the buffer of a copy, or of a value of a manual region (by number), which it makes at the
        first call.
        """
        buffer = self._numbers.get(one)
        if buffer is None:
            value, sharding = (one, None) if isinstance(one, int) else one
            array = None if value == NOTHING else self.program.arrays[value]
            if array is None:
                buffer = self._new(0)
            elif sharding is None or sharding.is_maximal:
                buffer = self._new(array.bytes)
            else:
                buffer = self._new(array.element.bytes(prod(sharding.tile_shape(array.shape))))
            self._numbers[one] = buffer
        return buffer

    def _make(self, one: Copy) -> Buffer:
        """Return the buffer of a copy that a reshard or a repeated op makes.

        A copy may be made again: an op computes rows, a constraint moves them to columns, and the result is rows again.
        The second one is another buffer, for the rest of its block.
        """
        first = self._numbers.pop(one, None)
        if first is not None:
            self._again.setdefault(one, first)
        return self._of(one)

    def _new(self, size: int) -> Buffer:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def _tile(self, value: int, shape: Sequence[int]) -> Buffer:
        """Make a buffer for a tile of ``shape`` with the element type of ``value``."""
        return self._new(self.program.array(value).element.bytes(prod(shape)))

    def _all(self, several: Iterable[Copy | int]) -> tuple[Buffer, ...]:
        return tuple([self._of(one) for one in several])

    # ---------------------------------------------------------------- steps

    def _op(self, plan: OpPlan) -> Iterator[Moment]:
        yield from self._steps(operand_steps(plan), plan.op.number)
        op = plan.op
        match plan:
            case SplitPlan() | WholePlan():
                yield from self._computed(plan, list(self._all(operand_copies(plan))))
            case BorderPlan():
                reads = self._all(operand_copies(plan)) if plan.operand is not None else self._all(op.operands)
                made = Copy(plan.result.value, plan.result.computed)
                yield Moment(op.number, PASSES_ON, (self._of(made),), reads)
                yield from self._moved((plan.result,), op.number)
            case UntouchedPlan():
                if plan.entering is not None:
                    yield Moment(op.number, PASSES_ON, self._all(op.results), self._all((plan.entering,)))
                else:
                    yield self._untouched(op, op.number)
            case ControlFlowPlan():
                makes = self._all(
                    Copy(value, sharding) for value, sharding in zip(op.results, plan.shardings, strict=True)
                )
                blocks = tuple(map(self.block, plan.blocks))
                yield Moment(op.number, op.name, makes, self._all(operand_copies(plan)), 0, blocks)
            case ConstraintPlan() | LeftOutPlan():
                pass

    def _untouched(self, op: Op, number: int) -> Moment:
        """Convert an op of per-device code, with the ops inside of it; all are reported at the op ``number``."""
        blocks = tuple(
            [
                Block(
                    self._all(block.arguments),
                    tuple([self._untouched(inner, number) for inner in block.ops]),
                    self._all(block.returned),
                )
                for block in op.inside
            ]
        )
        reads = self._all((*op.operands, *op.captured))
        return Moment(number, op.name, self._all(op.results), reads, 0, blocks)

    def _steps(self, steps: Iterable[Step], number: int) -> Iterator[Moment]:
        for step in steps:
            reads = self._all(sources_of(step))
            made = self._make(step.made)
            if isinstance(step, Reshard):
                beside = redistribution(step, self.machine).peak_live_bytes - self.sizes[made] - self.sizes[reads[0]]
                yield Moment(number, "", (made,), reads, max(0, beside))
            else:
                yield Moment(number, step.op.name, (made,), reads)

    def _computed(self, plan: SplitPlan | WholePlan, reads: list[Buffer]) -> Iterator[Moment]:
        op = plan.op
        made: list[Buffer] = []
        after: list[Moment] = []
        for index, result in enumerate(plan.results):
            if result is None:
                continue
            whole = self._of(Copy(result.value, result.computed))
            if not result.completions or not isinstance(plan, SplitPlan):
                made.append(whole)
                continue
            shape = plan.local.split.result_tile(index)
            part = self._tile(result.value, shape)
            made.append(part)
            for completion in result.completions:
                if completion.dim is not None and copies.along(shape, completion.dim):
                    copy = self._tile(result.value, shape)
                    after.append(Moment(op.number, COPY, (copy,), (part,)))
                    part = copy
            after.append(Moment(op.number, "", (whole,), (part,)))
        if op.name == TRANSPOSE and self.program.array(op.results[0]).rank == 2 and made:
            self._transposed[made[0]] = reads[0]
        if isinstance(plan, SplitPlan) and op.name == PRODUCT and op.model is not None:
            reads = [self._transposed.get(buffer, buffer) for buffer in reads]
            if self.client.orders:
                yield from self._in_order(plan, op.model.rule, reads)
        yield Moment(op.number, op.name, tuple(made), tuple(reads), self.beside.get(op.number, 0))
        yield from after
        yield from self._moved(plan.results, op.number)

    def _in_order(self, plan: SplitPlan, rule: Rule, reads: list[Buffer]) -> Iterator[Moment]:
        """Yield the copies of a product's operands into the memory layouts that the product needs."""
        split = plan.local.split
        shapes = [split.operand_tile(index) for index in range(2)]
        for index, copied in enumerate(copies.of_product(shapes, *_roles(rule))):
            if copied:
                copy = self._copies.get(reads[index])
                if copy is None:
                    copy = self._copies[reads[index]] = self._tile(plan.op.operands[index], shapes[index])
                    yield Moment(plan.op.number, COPY, (copy,), (reads[index],))
                reads[index] = copy

    def _moved(self, results: Results, number: int) -> Iterator[Moment]:
        for result in results:
            if result is not None and result.reshard is not None:
                yield from self._steps([result.reshard], number)


def _roles(rule: Rule) -> tuple[tuple[list[int], ...], tuple[list[int], ...]]:
    """Return the batch dimensions and the contracted dimensions of a product: each a list for either operand,
    in one order.
    """
    places = [{factor: dim for dim, factors in enumerate(side) for factor in factors} for side in rule.operands]
    shared = sorted(set(places[0]) & set(places[1]))
    added = [rule.factors[factor].kind is Kind.REDUCTION for factor in shared]
    batch, over = [
        tuple([side[factor] for factor, one in zip(shared, added, strict=True) if one is wanted] for side in places)
        for wanted in (False, True)
    ]
    return batch, over
