"""Describe a built module as steps over buffers, for the account of ``cost.memory``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.cost import copies
from shardpass.cost.fusion import COPY, IN_PLACE
from shardpass.cost.lifetimes import OTHERS, Block, Buffer, Client, Step
from shardpass.cost.memory import Account, account
from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.donation import donated
from shardpass.ir.order import bytes_of
from shardpass.ir.tensors import ints, shape_of
from shardpass.ir.walk import CONTROL_FLOW, inputs_of, operation

PRODUCT = "stablehlo.dot_general"


def _integer(attribute: Any) -> int:
    return int(ir.IntegerAttr(attribute).value)


@dataclass(frozen=True)
class ModuleMemory:
    """The memory account of a module.

    Attributes:
        account: peaks and buffers; ``account.at`` are indices into ``ops``.
        ops: the ops of the module, in order.
        values: the value of each buffer; None for a buffer that is no value.
    """

    account: Account
    ops: tuple[Any, ...]
    values: tuple[Any, ...]


def memory_of(module: Any, client: Client = OTHERS) -> ModuleMemory:
    """Compute the account of ``@main`` of a module."""
    main = main_of(module)
    steps = _Steps(client)
    body = steps.block(main.regions[0].blocks[0])
    given, made = ([steps.sizes[buffer] for buffer in side] for side in (body.arguments, body.returned))
    lent = {body.arguments[place]: index for place, index in donated(Signature(main), given, made)}
    return ModuleMemory(account(body, steps.sizes, client, lent), tuple(steps.ops), tuple(steps.values))


class _Steps:
    """The steps of blocks, with tables that number their buffers and ops."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.sizes: list[int] = []
        self.values: list[Any] = []
        self.ops: list[Any] = []
        self._numbers: dict[Any, Buffer] = {}
        self._copies: dict[Buffer, Buffer] = {}  # in this block, of what was copied into another layout already

    def block(self, block: Any) -> Block:
        outer, self._copies = self._copies, {}
        arguments = tuple(map(self._of, block.arguments))
        *ops, end = map(operation, block.operations)
        steps = tuple(step for op in ops for step in self._steps(op))
        self._copies = outer
        return Block(arguments, steps, tuple(map(self._of, end.operands)))

    def _of(self, value: Any) -> Buffer:
        buffer = self._numbers.get(value)
        if buffer is None:
            buffer = self._numbers[value] = self._new(bytes_of(value.type), value)
        return buffer

    def _new(self, size: int, value: Any = None) -> Buffer:
        self.sizes.append(size)
        self.values.append(value)
        return len(self.sizes) - 1

    def _steps(self, op: Any) -> Iterator[Step]:
        number, name = len(self.ops), op.name
        self.ops.append(op)
        blocks: tuple[Block, ...] = ()
        if name in CONTROL_FLOW:
            blocks = tuple(self.block(block) for region in op.regions for block in region.blocks)
        inputs = map(_untransposed, op.operands) if name == PRODUCT else inputs_of(op)
        reads, makes = list(map(self._of, inputs)), list(map(self._of, op.results))
        find = _LAYOUTS.get(name) if self.client.orders or name != PRODUCT else None
        before, after = find(op) if find is not None else ((), ())
        for index in before:
            copy = self._copies.get(reads[index])
            if copy is None:
                copy = self._copies[reads[index]] = self._new(self.sizes[reads[index]])
                yield Step(number, COPY, (copy,), (reads[index],))
            reads[index] = copy
        later = []
        for index in after:
            copy = self._new(self.sizes[makes[index]])
            later.append(Step(number, COPY, (makes[index],), (copy,)))
            makes[index] = copy
        if name == "stablehlo.custom_call" and len(op.attributes.get("output_operand_aliases", ())) > 0:
            aliased = hlo.OutputOperandAlias(op.attributes["output_operand_aliases"][0]).operand_index
            reads.insert(0, reads.pop(aliased))
            name = IN_PLACE
        yield Step(number, _called(op, name), tuple(makes), tuple(reads), 0, blocks)
        yield from later


def _called(op: Any, name: str) -> str:
    """Name an op in the account: a transpose that moves no elements counts as a reshape."""
    if name == "stablehlo.transpose":
        moved = copies.out_of_order(shape_of(op.operands[0]), ints(op.attributes["permutation"]))
        return name if moved else "stablehlo.reshape"
    if name != "stablehlo.concatenate":
        return name
    shape, size = shape_of(op.results[0]), bytes_of(op.results[0].type)
    dim, count = _integer(op.attributes["dimension"]), prod(shape)
    return "concatenate" if count and copies.apart(shape, dim, size // count, len(op.operands)) else name


def _untransposed(value: Any) -> Any:
    """Return the value that a product reads instead of ``value``, as products accept transposed matrices."""
    maker = value.owner
    if getattr(maker, "name", "") == "stablehlo.transpose" and len(shape_of(value)) == 2:
        return maker.operands[0]
    return value


# ---------------------------------------------------------------- layouts: which operands and results are copied

_Copied = tuple[Sequence[int], Sequence[int]]


def _product(op: Any) -> _Copied:
    numbers = hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = (ints(numbers.lhs_batching_dimensions), ints(numbers.rhs_batching_dimensions))
    contracted = (ints(numbers.lhs_contracting_dimensions), ints(numbers.rhs_contracting_dimensions))
    copied_operands = copies.of_product([shape_of(operand) for operand in op.operands], batch, contracted)
    return [index for index, copied in enumerate(copied_operands) if copied], ()


def _convolution(op: Any) -> _Copied:
    numbers = hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image = (numbers.input_batch_dimension, *ints(numbers.input_spatial_dimensions), numbers.input_feature_dimension)
    kernel = (
        *ints(numbers.kernel_spatial_dimensions),
        numbers.kernel_input_feature_dimension,
        numbers.kernel_output_feature_dimension,
    )
    made = (numbers.output_batch_dimension, *ints(numbers.output_spatial_dimensions), numbers.output_feature_dimension)
    sides = zip(op.operands, (image, kernel), strict=True)
    before = [index for index, (side, wanted) in enumerate(sides) if copies.out_of_order(shape_of(side), wanted)]
    return before, [0] if copies.out_of_order(shape_of(op.results[0]), made) else []


def _gather(op: Any) -> _Copied:
    return (), [0] if copies.along(shape_of(op.results[0]), _integer(op.attributes["all_gather_dim"])) else []


def _scatter(op: Any) -> _Copied:
    return [0] if copies.along(shape_of(op.operands[0]), _integer(op.attributes["scatter_dimension"])) else [], ()


def _exchange(op: Any) -> _Copied:
    """List the copies of an all_to_all: XLA cuts the operand into parts, and joins the received ones."""
    return [0], [0]


def _call(op: Any) -> _Copied:
    """List copies by the call's layouts, the innermost dimension first."""
    if "operand_layouts" not in op.attributes:
        return (), ()
    copied = []
    for values, name in ((op.operands, "operand_layouts"), (op.results, "result_layouts")):
        wanted = [[int(dim) for dim in reversed(list(layout))] for layout in op.attributes[name]]
        pairs = enumerate(zip(values, wanted, strict=True))
        copied.append([index for index, (value, dims) in pairs if copies.out_of_order(shape_of(value), dims)])
    return copied[0], copied[1]


_LAYOUTS: dict[str, Callable[[Any], _Copied]] = {
    PRODUCT: _product,
    "stablehlo.convolution": _convolution,
    "stablehlo.all_gather": _gather,
    "stablehlo.reduce_scatter": _scatter,
    "stablehlo.all_to_all": _exchange,
    "stablehlo.custom_call": _call,
}
