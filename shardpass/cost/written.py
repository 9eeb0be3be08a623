"""Which values of a program are written to memory, and which exist inside of a fusion alone.

XLA joins an op with the ops that read it where both are loops over elements. What is made and read inside of such a
fusion has no buffer; what the fusion reads lives until it runs.

| kind | ops | its result | what it reads |
|---|---|---|---|
| FUSED | elementwise, generators, slices, transposes, pads | not written where all readers fuse it | is fused into it |
| REDUCED | reductions | is written | is fused into it |
| ALIAS | reshapes, barriers | is its operand's buffer | |
| UPDATED | updates of slices, scatters | takes the first operand's buffer where that dies | is written |
| WRITTEN | all others: products, collectives, loops, sorts | is written | is written |
"""

from __future__ import annotations

from collections.abc import Sequence

FUSED, REDUCED, ALIAS, UPDATED, WRITTEN = "fused", "reduced", "alias", "updated", "written"

PASSES_ON = "stablehlo.optimization_barrier"  # for who passes its operands on
COPY = "copy"  # an array in another layout: fuses what it reads
IN_PLACE = "in_place"  # for who writes into the first operand


def _named(names: str, dialect: str = "stablehlo") -> frozenset[str]:
    return frozenset(f"{dialect}.{name}" for name in names.split())


_CHLO = _named(
    """
    acos acosh asin asinh atan atanh bessel_i1e conj constant_like cosh digamma erf erf_inv erfc is_inf is_neg_inf
    is_pos_inf lgamma mulhi next_after polygamma sinh square tan zeta
    """,
    "chlo",
)
_CHEAP_CHLO = _named("conj constant_like is_inf is_neg_inf is_pos_inf mulhi square", "chlo")


# element i of the result needs element i of each operand alone
STRAIGHT = _CHLO | _named(
    """
    abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential
    exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or
    popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left
    shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor
    """
)
# computed once, however many read it
COSTLY = (_CHLO - _CHEAP_CHLO) | _named(
    """
    atan2 cbrt divide exponential exponential_minus_one gather log log_plus_one logistic power remainder rsqrt sqrt
    tanh
    """
)
_MOVING = _named("broadcast_in_dim concatenate constant dynamic_slice gather iota pad reverse slice transpose")
CONSTANT = "stablehlo.constant"  # a part of the program, not of its memory

_KINDS = {
    **dict.fromkeys(STRAIGHT | _MOVING | {COPY}, FUSED),
    **dict.fromkeys(_named("reduce"), REDUCED),
    **dict.fromkeys(_named("reshape bitcast_convert optimization_barrier"), ALIAS),
    **dict.fromkeys(_named("dynamic_update_slice scatter") | {IN_PLACE}, UPDATED),
}


def kind_of(name: str) -> str:
    """The kind of the op called ``name``."""
    return _KINDS.get(name, WRITTEN)


def is_written(name: str, readers: Sequence[str], again: bool) -> bool:
    """Whether the result of the op called ``name`` has a buffer. ``readers``: the ops that read it, by name.

    ``again``: each of several readers may compute it for itself.
    """
    if kind_of(name) != FUSED or any(kind_of(reader) not in (FUSED, REDUCED) for reader in readers):
        return True
    return len(readers) > 1 and (name in COSTLY or not again)
