"""Each op that shardpass splits has cases in test/lit/ops/<op>/, or a reason why it needs none."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardpass.ops import registry

CASES = Path(__file__).resolve().parents[2] / "lit" / "ops"

# Reason -> ops. A name without a dialect is StableHLO's.
WITHOUT_CASES = {
    "a tile of the result needs the same tile of each operand and nothing else: add/elementwise stands for all": """
        abs and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential
        exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or
        popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left
        shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh uniform_dequantize uniform_quantize
        xor chlo._asin_acos_kernel chlo.acos chlo.acosh chlo.asin chlo.asinh chlo.atan chlo.atanh chlo.bessel_i1e
        chlo.conj chlo.constant_like chlo.cosh chlo.digamma chlo.erf chlo.erf_inv chlo.erfc chlo.is_inf chlo.is_neg_inf
        chlo.is_pos_inf chlo.lgamma chlo.mulhi chlo.next_after chlo.polygamma chlo.sinh chlo.square chlo.tan chlo.zeta
        mhlo.acos mhlo.acosh mhlo.asin mhlo.asinh mhlo.atanh mhlo.copy mhlo.cosh mhlo.erf mhlo.sinh
        """,
    "a stretch of the operands and an op, as broadcast_add/stretches-then-adds shows": """
        chlo.broadcast_and chlo.broadcast_atan2 chlo.broadcast_compare chlo.broadcast_complex chlo.broadcast_divide
        chlo.broadcast_maximum chlo.broadcast_minimum chlo.broadcast_multiply chlo.broadcast_next_after
        chlo.broadcast_or chlo.broadcast_polygamma chlo.broadcast_power chlo.broadcast_remainder chlo.broadcast_select
        chlo.broadcast_shift_left chlo.broadcast_shift_right_arithmetic chlo.broadcast_shift_right_logical
        chlo.broadcast_subtract chlo.broadcast_xor chlo.broadcast_zeta
        """,
    "ends a region, whose op has the cases": "return",
    "its body takes its place in import: unit/importing/test_inline_calls": "composite",
    "refused in import: unit/importing/test_refuse_unsupported": """
        dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape
        real_dynamic_slice set_dimension_size infeed outfeed send recv partition_id
        """,
    "holds no array of its own": "get_tuple_element after_all create_token async_start async_done",
    "of one device's program, not of whole arrays": "collective_reduce cross-replica-sum replica_id",
    "computed whole on every device, as every op without a rule: custom_call/unknown-target": """
        einsum unary_einsum chlo.scan
        """,
}


def bare(name: str) -> str:
    """The name without its dialect, as the folders of test/lit/ops are called."""
    return name.removeprefix("stablehlo.").removeprefix("chlo.").removeprefix("mhlo.")


def excused() -> list[str]:
    names = [name for text in WITHOUT_CASES.values() for name in text.split()]
    return [name if name.startswith(("chlo.", "mhlo.")) else f"stablehlo.{name}" for name in names]


def folders() -> dict[str, int]:
    """Folder of test/lit/ops -> the number of its cases."""
    return {folder.name: len([*folder.glob("*.mlir")]) for folder in CASES.iterdir() if folder.is_dir()}


def test_an_op_has_cases_or_a_reason() -> None:
    having = folders()
    ops = set(registry.table())
    assert sorted(name for name in ops - set(excused()) if not having.get(bare(name))) == []


def test_a_folder_is_named_after_an_op() -> None:
    assert sorted(set(folders()) - {bare(name) for name in registry.table()}) == []


def test_an_excuse_is_given_once_and_for_an_op_without_cases() -> None:
    names = excused()
    assert len(names) == len(set(names))
    assert set(names) <= set(registry.table())
    assert sorted(name for name in names if bare(name) in folders()) == []


@pytest.mark.parametrize("folder", sorted(folders()))
def test_a_case_says_what_it_shows(folder: str) -> None:
    """The first line is a sentence, and the checks are of a function that they label."""
    for case in (CASES / folder).glob("*.mlir"):
        first, *others = case.read_text().splitlines()
        assert first.startswith("// "), case.name
        assert not first.startswith("// RUN"), case.name
        assert any("CHECK-LABEL" in line for line in others), case.name
