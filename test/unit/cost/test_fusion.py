"""The table of fusions: each op has one row, and every op that shardpass knows has one, or is named here."""

from __future__ import annotations

from collections import Counter

from shardpass.cost.fusion import OTHER, ROWS, Operands, Result, fusion_of
from shardpass.ops.owners import FAMILY_OF_OP

# Ops that XLA cannot look into, that importing writes in others, or that no program of arrays has.
WITHOUT_A_ROW = frozenset(
    [
        "return",
        "composite",
        "tuple",
        "get_tuple_element",
        "after_all",
        "create_token",
        "async_start",
        "async_done",
        "infeed",
        "outfeed",
        "send",
        "recv",
        "collective_reduce",
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_gather",
        "dynamic_iota",
        "dynamic_pad",
        "dynamic_reshape",
        "set_dimension_size",
        "cross-replica-sum",
        "unary_einsum",
        "custom_call",
        "batch_norm_inference",
        "batch_norm_training",
        "batch_norm_grad",
    ]
)


def test_every_op_has_one_row() -> None:
    names = Counter(name for row in ROWS for name in row.ops)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_known_op_has_a_row() -> None:
    missing = {name for name in FAMILY_OF_OP if fusion_of(name) is OTHER}
    chlo = {name for name in missing if name.startswith("chlo.")}
    assert {name.removeprefix("stablehlo.") for name in missing - chlo} == WITHOUT_A_ROW
    # importing writes them in others; a scan is a loop
    assert all(name.startswith("chlo.broadcast_") or name == "chlo.scan" for name in chlo)


def test_the_table_names_known_ops_alone() -> None:
    names = {name if "." in name else f"stablehlo.{name}" for row in ROWS for name in row.ops}
    assert names - set(FAMILY_OF_OP) == set()


def test_what_reads_from_memory_is_written() -> None:
    """A call of a library gives no fusion a place for what follows."""
    assert all(row.result is Result.WRITTEN for row in ROWS if row.operands is Operands.READ)
