"""The ops that XLA fuses into one loop, and the work of each op: one table with a row for each group of StableHLO ops.

A fusion is one loop over memory. Of each op the table says two things: whether values that are made for it may be
computed inside of its loop (``Operands``), and whether its result may be computed inside of the loops of its users
(``Result``). What stays inside takes no bytes; what crosses the border of a fusion is written once, and read by each
fusion that needs it.

XLA decides so in ``InstructionFusion`` and ``CpuInstructionFusion`` on CPUs, and in ``PriorityFusion`` with
``gpu_fusible`` on GPUs, which prices each fusion. The table is what both have in common on arrays that are large; the
reasons say where they differ. A fusion also ends at limits that no row states: a fusion of more than five reductions on
CPUs, code that would be repeated too often, shared memory and the number of parameters on GPUs.

Two use the table: the price of work (``planning.borders``), and the account of memory (``cost.lifetimes``).

Example: of ``tanh(x * 2 + b)`` with b broadcast over rows, x and b are read, the tanh is written, and the constant, the
broadcast, the product and the sum are inside.

``python -m tools.bench.fusion`` holds the table to the fusions of compiled HLO.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from shardpass.cost.collective import KINDS


class Operands(enum.Enum):
    """How an op reads its operands."""

    FUSED = "computed inside, or read"
    READ = "read from memory"
    PASSED = "in memory, and not touched"


class Result(enum.Enum):
    """The memory in which the result of an op is made."""

    FREE = "made in each fusion, of nothing"
    VIEW = "the operand's memory under another shape"
    REPEATED = "computed in each fusion that needs the value"
    ONCE = "computed in one fusion, or written"
    WRITTEN = "written to memory"


class Flops(enum.Enum):
    """The rule by which the additions and multiplications of an op are counted."""

    NONE = "none"
    RESULTS = "one for each element of the results"
    TILES = "one for each element of the largest operand or result"
    NEST = "two for each point of the loop nest"
    PART = "one for each element of the update"
    SORT = "log2 n for each element, in rows of n"
    FFT = "5 log2 n for each point of a transform of n points, half of that where one side is real"
    SOLVE = "n for each element that is solved, of an n x n triangle"
    REFLECT = "4 n for each element that is multiplied, by n reflectors"
    BANDED = "8 for each element that is solved"
    CHOLESKY = "n^3 / 3 for each matrix"
    LU = "2/3 n^3 for each square matrix"
    QR = "4/3 n^3 for each square matrix"
    HESSENBERG = "10/3 n^3 for each matrix"
    TRIDIAGONAL = "4/3 n^3 for each symmetric matrix"
    EIGH = "9 n^3 for each matrix"
    EIGEN = "25 n^3 for each matrix"
    SVD = "21 n^3 for each square matrix"


@dataclass(frozen=True, slots=True)
class Row:
    """The rules by which the ops of a group fuse.

    Attributes:
        names: of the ops, separated by blanks; those of StableHLO without their dialect.
        in_place: operand 0 is in memory, and the result takes its place: only what is updated is written.
        straight: element i of the result needs element i of each operand alone, and can take its place.
        in_part: an operand is read where it is needed, so that each such op of a fusion reads for itself.
        spreads: an element of an operand is used for many of the result.
        folds: a matrix that products alone use is read by them as it was before the op.
    """

    names: str
    operands: Operands
    result: Result
    flops: Flops
    reason: str
    in_place: bool = False
    straight: bool = False
    in_part: bool = False
    spreads: bool = False
    folds: bool = False

    @property
    def ops(self) -> list[str]:
        """The names of the ops."""
        return self.names.split()

    @property
    def fuses(self) -> bool:
        """Whether the result, with its fused producers, can only be computed in the loops of its users."""
        return self.operands is Operands.FUSED and self.result not in (Result.VIEW, Result.WRITTEN)


ROWS: tuple[Row, ...] = (
    Row(
        "constant iota get_dimension_size chlo.constant chlo.constant_like",
        Operands.FUSED,
        Result.FREE,
        Flops.NONE,
        "a counter or one number, which takes less time to make than to read; a constant of several numbers is in "
        "memory",
    ),
    Row(
        "partition_id replica_id",
        Operands.READ,
        Result.WRITTEN,
        Flops.NONE,
        "a call that writes one number, which loops read",
    ),
    Row(
        "reshape mhlo.copy",
        Operands.FUSED,
        Result.VIEW,
        Flops.NONE,
        "a bitcast, as arrays are laid out by rows; on a TPU, whose tiles are padded, sometimes a copy; XLA takes out "
        "copies that a program asks for",
    ),
    Row(
        "add and ceil clamp compare complex convert count_leading_zeros floor imag is_finite maximum minimum multiply "
        "negate not or popcnt real reduce_precision round_nearest_afz round_nearest_even select shift_left "
        "shift_right_arithmetic shift_right_logical sign abs subtract xor bitcast_convert map uniform_dequantize "
        "uniform_quantize cosine sine tan chlo.conj chlo.is_inf chlo.is_neg_inf chlo.is_pos_inf chlo.mulhi "
        "chlo.next_after chlo.square chlo.tan",
        Operands.FUSED,
        Result.REPEATED,
        Flops.RESULTS,
        "elementwise and cheap: computing the value again takes less time than to write it and read it back; "
        "bitcast_convert is such a loop too, and no view",
        straight=True,
    ),
    Row(
        "atan2 cbrt divide exponential exponential_minus_one log log_plus_one logistic power remainder rsqrt sqrt "
        "tanh chlo._asin_acos_kernel chlo.acos chlo.acosh chlo.asin chlo.asinh chlo.atan chlo.atanh "
        "chlo.bessel_i1e chlo.cosh chlo.digamma chlo.erf chlo.erf_inv chlo.erfc chlo.lgamma chlo.polygamma chlo.sinh "
        "chlo.zeta mhlo.acos mhlo.acosh mhlo.asin mhlo.asinh mhlo.atanh mhlo.cosh mhlo.erf mhlo.sinh",
        Operands.FUSED,
        Result.ONCE,
        Flops.RESULTS,
        "elementwise and expensive (IsExpensive): XLA does not compute the value again, in a second fusion or for each "
        "element of a broadcast; on a GPU it is, where its model of costs finds that faster",
        straight=True,
    ),
    Row(
        "broadcast_in_dim broadcast",
        Operands.FUSED,
        Result.REPEATED,
        Flops.NONE,
        "each element is read where it is needed (IsAlwaysDuplicable)",
        spreads=True,
    ),
    Row(
        "transpose",
        Operands.FUSED,
        Result.REPEATED,
        Flops.NONE,
        "an index of the loop; products read a matrix along either dimension (TransposeFolding)",
        folds=True,
    ),
    Row(
        "reverse pad concatenate",
        Operands.FUSED,
        Result.REPEATED,
        Flops.NONE,
        "an index of the loop; CPUs keep a concatenate of more than 8 arrays apart",
    ),
    Row(
        "slice dynamic_slice real_dynamic_slice",
        Operands.FUSED,
        Result.REPEATED,
        Flops.NONE,
        "an index of the loop, which reads no more than the slice has",
        in_part=True,
    ),
    Row(
        "gather torch_index_select",
        Operands.FUSED,
        Result.ONCE,
        Flops.NONE,
        "an index of the loop that is read from memory (IsExpensive)",
        in_part=True,
    ),
    Row(
        "reduce",
        Operands.FUSED,
        Result.ONCE,
        Flops.TILES,
        "takes in what makes its operands; the result goes on in an elementwise loop over its own shape, and is "
        "written before it is broadcast; CPUs hand a reduction of 4096 elements or more to a library, and GPUs take "
        "no more than conversions behind one along rows or columns, so that the account of memory has those written",
    ),
    Row(
        "dynamic_update_slice",
        Operands.FUSED,
        Result.WRITTEN,
        Flops.PART,
        "written over the array that is updated, with all that makes the update inside",
        in_place=True,
    ),
    Row(
        "scatter",
        Operands.READ,
        Result.WRITTEN,
        Flops.PART,
        "written over the array that is updated; CPUs loop over indices, GPUs take in what makes the updates",
        in_place=True,
    ),
    Row(
        "reduce_window",
        Operands.READ,
        Result.WRITTEN,
        Flops.TILES,
        "CPUs fuse none; GPUs do where windows do not overlap",
    ),
    Row(
        "dot_general dot convolution einsum chlo.ragged_dot mhlo.ragged_dot",
        Operands.READ,
        Result.WRITTEN,
        Flops.NEST,
        "a call of a library or a kernel of its own; CPUs fuse products of a matrix and a short vector, GPUs a "
        "scale, a bias or an activation behind some products",
    ),
    Row("triangular_solve", Operands.READ, Result.WRITTEN, Flops.SOLVE, "a call of a library"),
    Row("cholesky", Operands.READ, Result.WRITTEN, Flops.CHOLESKY, "a call of a library"),
    Row("fft", Operands.READ, Result.WRITTEN, Flops.FFT, "a call of a library"),
    Row("sort", Operands.READ, Result.WRITTEN, Flops.SORT, "a loop of its own, or a call of a library"),
    Row(
        "select_and_scatter chlo.top_k rng rng_bit_generator",
        Operands.READ,
        Result.WRITTEN,
        Flops.TILES,
        "a loop of its own",
    ),
    Row(
        " ".join(KINDS),
        Operands.READ,
        Result.WRITTEN,
        Flops.NONE,
        "a buffer that is sent and a buffer that is received",
    ),
    Row(
        "optimization_barrier",
        Operands.PASSED,
        Result.VIEW,
        Flops.NONE,
        "nothing is moved, and no fusion crosses: barriers are removed after fusing; XLA:CPU of jaxlib 0.10 removes "
        "them before",
    ),
    Row(
        "while if case",
        Operands.PASSED,
        Result.WRITTEN,
        Flops.NONE,
        "buffers carry values in and out; what regions compute is counted there",
    ),
)

OTHER = Row(
    "", Operands.READ, Result.WRITTEN, Flops.TILES, "custom calls and ops that have no row: as XLA cannot see in"
)

# Steps of an account of memory that are no ops of the program.
PASSES_ON = "stablehlo.reshape"  # a constraint, or the border of a region: what it is given
COPY = "stablehlo.transpose"  # the array in another layout
IN_PLACE = "in place"  # a call that writes into its first operand

_BY_OP: Mapping[str, Row] = {name if "." in name else f"stablehlo.{name}": row for row in ROWS for name in row.ops}
ELEMENTWISE = tuple(name for name, row in _BY_OP.items() if row.straight)
_BY_NAME: Mapping[str, Row] = {
    **_BY_OP,
    IN_PLACE: replace(OTHER, in_place=True, reason="a call that writes into its first operand"),
}


def fusion_of(op: str) -> Row:
    """Return the table's row for the op that MLIR calls ``op``, or ``OTHER``."""
    return _BY_NAME.get(op, OTHER)
