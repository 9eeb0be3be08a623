"""tools/bench/expert_forms.py: small forms at effort 0 receive what arithmetic says, and so say their formulas."""

from __future__ import annotations

import json

import pytest

from tools.bench import expert_forms
from tools.bench.expert_forms import Planned, Row, planned
from tools.bench.expert_programs import FORMS, Form
from tools.bench.expert_programs.attention import GatheredKeys, Ring, Ulysses
from tools.bench.expert_programs.data import Hybrid, Zero
from tools.bench.expert_programs.experts import Experts
from tools.bench.expert_programs.inference import Decode, WeightGathered, WeightStationary1D, WeightStationary2D
from tools.bench.expert_programs.layers import Sizes
from tools.bench.expert_programs.llama import FsdpRemat, FsdpTensor
from tools.bench.expert_programs.tensor import DataTensor, MegatronMlp, ReadmeBlock, TiedEmbedding
from tools.bench.underspecified_programs.layers import Sizes as Gpt

# 32 wide, 4 heads of 8, 64 hidden: 4 * 32*32 elements of attention and 3 * 32*64 of the MLP, 20480 bytes in bf16
LAYER = Sizes(model=32, heads=4, kv=4, head=8, hidden=64)
STREAM = 2 * 2 * 16 * 32  # bytes of activations on a device: 2 sequences of 16 tokens
GPT = Gpt(batch=8, seq=16, model=32, heads=4, ff=64, vocab=64, layers=1)
PERCEPTRON = 4 * 2 * 16 * 32  # bytes of an up and a down product of 16x32 in f32

# name: (a small form, bytes by its formula, bytes that the formula leaves out)
SMALL: dict[str, tuple[Form, float, float]] = {
    # tiles of 16 tokens * 8 heads * 4 in bf16 over 4 devices: 256 bytes, of which 3/4 go elsewhere
    "ulysses": (Ulysses(4, 16, 8, 4), 4 * 192, 0),
    "ulysses_train": (Ulysses(4, 16, 8, 4, train=True), 8 * 192, 0),
    "gathered_keys": (GatheredKeys(4, 32, 4, 1, 8), 2 * (2 * 32 * 8) * 3 / 4, 0),
    "ring": (Ring(4, 16, 2, 4), 3 * 2 * (2 * 4 * 2 * 4), 0),
    "megatron_mlp": (MegatronMlp(4, 2, 8, 16, 64), 2 * (2 * 3 / 4) * (2 * 2 * 8 * 16), 0),
    # a quarter of the weights, of which each of 2 holds half, gathered and scattered; four sums over 4 devices
    "llama_fsdp_tensor": (
        FsdpTensor(2, 4, 1, 4, 16, LAYER),
        2 * 20480 / 4 / 2 + 4 * (2 * 3 / 4) * STREAM,
        2 * (2 * 1 / 2) * 64,  # gradients of two norms, over fsdp
    ),
    # left out: gradients of one h by q, k, v, and by gate and up, as far as they are reduce-scattered one by one, and
    # those of norms over 8 devices
    "llama_sequence": (
        FsdpTensor(2, 4, 1, 4, 16, LAYER, sequence=True),
        2 * 20480 / 4 / 2 + 4 * (2 * 3 / 4) * STREAM,
        3 * 3 / 4 * STREAM + 2 * (2 * 7 / 8) * 64,
    ),
    "llama_fsdp_remat": (FsdpRemat(4, 2, 4, 8, LAYER), 2 * 3 * 20480 * 3 / 4, 4 * (2 * 3 / 4) * 64),
    "hsdp": (Hybrid(2, 4, 1, 64, 8, 16), (2 * 1 / 2) * (4 * 2 * 8 * 16) / 4, 0),
    # 3 sums of 2 tokens * 32 in bf16, and 4 pairs of 6 bytes for each token
    "decode_70b": (
        Decode(4, 1, 2, 8, 64, Sizes(32, 8, 4, 8, 64)),
        3 * (2 * 3 / 4) * (2 * 2 * 32) + 3 / 4 * (6 * 2 * 4),
        0,
    ),
    # of 2 sequences on a device: 6 sums of activations, 3 of a number a token; gradients of 64*32 words, 4 * 32*32 and
    # 2 * 32*64 weights, a half each, and of 3 norms. Left out: the sum of the gradient of log_softmax, and the loss
    "transformer_data_model": (
        DataTensor(4, 2, GPT),
        6 * (2 * 16 * 32 * 4) + 3 * (2 * 16 * 4) + (2 * 3 / 4) * 4 * ((2048 + 4096 + 4096) / 2 + 3 * 32),
        2 * 16 * 4 + (2 * 3 / 4) * 4,
    ),
    # 16 tokens on a device; half of the table's gradient is sent; left out: the loss
    "tied_embedding": (
        TiedEmbedding(2, 4, 4, 8, 16, 64),
        2 * (2 * 3 / 4) * (2 * 16 * 16) + 3 * (2 * 3 / 4) * (4 * 16) + (2 * 1 / 2) * (2 * 64 * 16 / 4),
        (2 * 1 / 2) * 4,
    ),
    # blocks of 8 places * 8 for 4 experts, of which 3 are elsewhere; the gate of 8x4
    "experts": (Experts(4, 16, 8, 8, 16), 4 * 3 * (2 * 8 * 8) + (2 * 3 / 4) * (4 * 8 * 4), 0),
    "zero1": (Zero(1, 4, 1, 64, 16, 32), 2 * PERCEPTRON * 3 / 4, 0),
    "zero2": (Zero(2, 4, 1, 64, 16, 32, parts=2), 3 * PERCEPTRON * 3 / 4, 0),
    "zero3": (Zero(3, 4, 1, 64, 16, 32), 2 * PERCEPTRON * 3 / 4, 0),
    "weight_stationary_1d": (WeightStationary1D(1, 1, 8, 4, 2, 16, 64), 2 * (2 * 4 * 2 * 16) * 7 / 8, 0),
    # 2 * 8 tokens * 16 / 2 gathered over 4 devices, 2 * 8 tokens * 64 / 4 over 2; both ways
    "weight_stationary_2d": (WeightStationary2D(2, 2, 2, 4, 2, 16, 64), 2 * (128 * 3 / 4 + 256 * 1 / 2), 0),
    "weight_gathered": (WeightGathered(2, 2, 2, 8, 16, 16, 64), 2 * (2 * 16 * 64) * 7 / 8, 0),
}
OTHERS = {"llama_405b_fsdp": "llama_fsdp_remat", "transformer_small": "transformer_data_model"}  # of equal programs


def test_every_form_has_a_small_one() -> None:
    assert set(FORMS) - set(OTHERS) - {"readme_block"} == set(SMALL)
    for name, (form, _, _) in SMALL.items():
        assert type(form) is type(FORMS[name])
    assert all(type(FORMS[other]) is type(FORMS[name]) for other, name in OTHERS.items())


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", SMALL)
def test_a_small_form_receives_what_its_formula_says(name: str) -> None:
    form, expected, more = SMALL[name]
    formula = form.formula()
    assert formula is not None
    assert formula.bytes == expected
    found = planned(form.text(), "ideal", 0, formula.axis)
    least = expected if form.waits else expected + more  # where sums wait, less may be left out
    assert least <= found.bytes <= expected + more


def test_the_table_of_the_real_sizes() -> None:
    """Figures that were published, or worked out by hand."""
    ulysses = FORMS["ulysses"].formula()
    assert ulysses is not None
    assert ulysses.bytes == 4 * 7 * 2 * 4096 * 4096 / 8  # 4,096 tokens of 4,096 on each of 8 devices
    assert ulysses.collectives == 4
    hsdp = FORMS["hsdp"].formula()
    assert hsdp is not None
    assert hsdp.bytes == 4 * 4 * 4096 * 16384 / 16  # four weights, f32, split over 16: each gets the other's part
    decode = FORMS["decode_70b"].formula()
    assert decode is not None
    assert decode.collectives == 2 * 4 + 1 + 2
    assert FORMS["llama_405b_fsdp"].count("fsdp") == 4096
    assert sum(form.waits for form in FORMS.values()) == 6


def test_a_form_without_a_formula_is_planned_from_its_file() -> None:
    form = ReadmeBlock()
    assert form.formula() is None
    row = expert_forms.measure("readme_block", form, "h100", 1)
    assert not row.failure
    assert row.before is not None
    assert row.before.collectives > 0
    assert row.over_formula(row.before) is None
    assert expert_forms.cells(row)[3:5] == ["-", "-"]


def row(name: str, before: float, after: float, **more: object) -> Row:
    plans = (Planned(100, 2, 0.5, before), Planned(150, 3, 0.25, after))
    return Row(name, "ideal", False, 100.0, 2, *plans, **more)  # type: ignore[arg-type]


def test_rows_that_are_worse_are_named() -> None:
    rows = [row("a", 1.0, 1.0), row("b", 1.0, 2.0), row("c", 0.0, 0.0)]
    assert [one.never_worse for one in rows] == [True, False, True]
    assert rows[1].over_formula(rows[1].after) == 1.5
    failed = Row("d", "ideal", True, None, None, failure="ValueError: no")
    assert not failed.never_worse
    lines = list(expert_forms.summary([*rows, failed]))
    assert lines[0] == "2 of 4 rows take at most the time of effort 0"
    assert lines[1].endswith("above 1: b 2.0000")
    assert lines[2] == "d on ideal: ValueError: no"
    assert expert_forms.cells(failed)[-3] == "fails"


def test_the_command(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(expert_forms, "FORMS", {"small": SMALL["megatron_mlp"][0], "other": ReadmeBlock()})
    out, page = tmp_path / "out.json", tmp_path / "page.md"
    command = ["small", "--machine", "ideal", "--json", str(out), "--markdown", str(page)]
    status = expert_forms.main(command)
    (found,) = json.loads(out.read_text())
    assert found["formula"] == 1536
    assert status == int(found["after"]["step"] > found["before"]["step"] * (1 + 1e-9))
    assert found["before"]["step"] > found["before"]["seconds"] > 0
    assert "| small | ideal |" in page.read_text()
    assert expert_forms.main(["--list"]) == 0
    assert "Shoeybi" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        expert_forms.main(["nothing"])


def test_a_form_that_cannot_be_planned_says_why() -> None:
    refused = expert_forms.measure("small", SMALL["megatron_mlp"][0], "h99", 1)
    assert "'h99'" in refused.failure
    assert refused.ratio is None
    assert not refused.never_worse
