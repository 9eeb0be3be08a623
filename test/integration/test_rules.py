"""The rules of every op family, proved by brute force on few samples; tools/prove/validate_rules.py takes all."""

from __future__ import annotations

from typing import Any

import pytest

from tools.prove import validate_rules
from tools.prove.rule_samples.families import samples
from tools.prove.rule_samples.sample import Sample


@pytest.mark.turns(8)
@pytest.mark.parametrize("sample", validate_rules.quick_samples(), ids=lambda s: s.op.removeprefix("stablehlo."))
def test_no_rule_claims_what_is_wrong_or_misses_what_is_right(sample: Sample) -> None:
    found = validate_rules.validate(sample, limit=5)
    assert found.incorrect == []
    assert [m for m in found.missing if not validate_rules.reason_for(sample, m)] == []


def test_every_op_that_is_split_has_a_sample() -> None:
    """Or stands among those that cannot have one, with the reason."""
    assert validate_rules.without_samples() == []
    assert all(validate_rules.NOT_SAMPLED.values())


def test_the_search_sees_a_rule_that_claims_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its rule for columns, ``add`` has a missing split."""
    from dataclasses import replace

    from shardpass.ops.model import Pointwise
    from shardpass.ops.registry import table
    from shardpass.ops.splits.factors import Kind

    (sample,) = [s for s in samples("elementwise") if s.op == "stablehlo.add" and "f32" in s.name]
    entry = table()[sample.op]

    def poorer(op: Any) -> Any:
        rule = entry.rule(op)
        assert rule is not None
        return Pointwise(replace(rule, factors=(rule.factors[0], replace(rule.factors[1], kind=Kind.REPLICATED))))

    monkeypatch.setitem(table(), sample.op, replace(entry, read=poorer))
    found = validate_rules.validate(sample, limit=3)
    assert found.incorrect == []
    assert found.missing == ["operand 0 dim 1, operand 1 dim 1, result 0 dim 1"]


def test_the_proof_sees_a_rule_that_claims_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sort split along the dimension that it orders."""
    from dataclasses import replace

    from shardpass.ops.model import Pointwise
    from shardpass.ops.registry import table
    from shardpass.ops.splits.factors import Kind

    sample = next(s for s in samples("indexing") if s.op == "stablehlo.sort")
    entry = table()[sample.op]

    def bolder(op: Any) -> Any:
        rule = entry.rule(op)
        assert rule is not None
        return Pointwise(replace(rule, factors=tuple(replace(f, kind=Kind.PARALLEL) for f in rule.factors)))

    monkeypatch.setitem(table(), sample.op, replace(entry, read=bolder))
    assert validate_rules.validate(sample, limit=3).incorrect != []
