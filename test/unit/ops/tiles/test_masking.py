"""Which combiners have an identity that MLIR can write, asked with and without an MLIR type."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from shardpass.element_types import ELEMENT_TYPES
from shardpass.ir.context import make_context
from shardpass.ops.reducers import COMBINERS
from shardpass.ops.tiles.masking import has_identity, identity_text


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_the_two_questions_have_one_answer(element):
    with make_context():
        kind = ir.Type.parse(element.mlir)
        for combiner in COMBINERS:
            assert has_identity(combiner, element) == (identity_text(combiner, kind) is not None)
