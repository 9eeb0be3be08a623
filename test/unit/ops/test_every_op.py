"""Every op of the installed dialects has an entry, and docs/ops.md tells of each."""

from __future__ import annotations

import re

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.ops import registry
from shardpass.ops.families.replicated import REASONS
from tools.docs import make_ops_docs as docs


def test_the_dialects_are_read() -> None:
    """Witnesses from the specification, so that an empty list cannot pass."""
    names = docs.dialect_ops()
    assert {"stablehlo.add", "stablehlo.convolution", "stablehlo.while", "stablehlo.case", "chlo.erf_inv"} <= names
    assert len(names) > 150


def test_every_op_of_stablehlo_and_chlo_is_in_the_registry() -> None:
    assert sorted(docs.dialect_ops() - set(registry.table())) == []


def test_an_op_is_split_or_has_a_reason() -> None:
    for entry in registry.table().values():
        assert (entry.family == "replicated") == (REASONS.get(entry.name) == entry.note)
        assert docs.words(entry), entry.name


def test_the_page_tells_of_every_op() -> None:
    told = set(re.findall(r"`((?:stablehlo|chlo|mhlo)\.[\w-]+)`", docs.render()))
    assert set(registry.table()) <= told


def test_the_page_says_that_quantized_types_do_not_parse() -> None:
    (row,) = (line for line in docs.render().splitlines() if "`stablehlo.uniform_quantize`" in line)
    assert "no `!quant.uniform` types" in row
    with pytest.raises(ShardpassError) as caught:
        parse_module("func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.1>>) { return }")
    assert caught.value.code == "SP101"


def test_the_page_is_not_stale() -> None:
    assert docs.PAGE.read_text() == docs.render(), "run `make docs`"
