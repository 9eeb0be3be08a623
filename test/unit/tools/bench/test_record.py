"""Public measurements beside the model: the file is complete, and a small pair has the ratio of its bytes."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tools.bench.record.__main__ import Row, row
from tools.bench.record.programs import made
from tools.processes import ROOT

MEASURED = tomllib.loads((ROOT / "tools/bench/record/record.toml").read_text())["measured"]


def test_at_least_20_measurements_have_two_figures_and_a_link() -> None:
    assert len({entry["name"] for entry in MEASURED}) == len(MEASURED) >= 20
    for entry in MEASURED:
        assert entry["link"].startswith("https://github.com/")
        assert entry["before"] != entry["after"] > 0
        assert len(entry["forms"]) == 2


@pytest.mark.parametrize("entry", MEASURED, ids=lambda entry: entry["name"])
def test_both_forms_differ(entry: dict[str, Any]) -> None:
    kinds = entry.get("kinds") or [entry["kind"]] * 2
    one, other = (
        made(kind, {**entry.get("common", {}), **fields}) for kind, fields in zip(kinds, entry["forms"], strict=True)
    )
    assert one != other
    assert one.axes == other.axes or "kinds" in entry


def test_a_rate_is_turned_into_a_time() -> None:
    """Twice the tokens a second are half of the time; a modelled difference of 0.4% ranks nothing."""
    entry = {"before": 1.0, "after": 2.0, "unit": "tok/s"}
    assert Row(entry, 0.5, 0.9).right
    assert not Row(entry, 0.5, 0.996).right
    assert not Row(entry, 0.5, 1.2).right


def test_gathered_logits_take_longer_by_their_bytes() -> None:
    """On 4 devices, of 2048 x 8192 logits in f32 a device receives 3/4: 48 MiB at 450 GB/s, 112 us. Split logits send
    sums of a figure a row, and their gradients a width of 16: less than half of the time.
    """
    sizes = {"tokens": 2048, "model": 16, "vocabulary": 8192}
    forms = [{"gathered": True}, {"gathered": False}]
    entry = {"before": 2.0, "after": 1.0, "unit": "s", "machine": "h100", "kind": "loss", "common": sizes}
    found = row({**entry, "forms": forms})
    assert found.published == 0.5
    assert found.modelled < 0.5
