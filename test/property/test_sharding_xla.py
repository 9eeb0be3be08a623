"""The parser beside XLA's own, in child processes, on generated texts and mutants of them.

``python -m tools.fuzz.sharding xla --count 20000`` is the long run of the same comparison.
"""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from tools.fuzz import sharding as fuzz
from tools.processes import environment, module_command
from tools.prove.xla_sharding_oracle import Verdict


@pytest.fixture(scope="module", autouse=True)
def _needs_xla() -> None:
    pytest.importorskip("jaxlib._hlo")


def test_an_order_that_is_none_is_no_disagreement() -> None:
    """XLA prints such an order from its memory; what else stands there is compared all the same."""
    text = "{devices=[2,2]<=[2,2]T(1,1)}"
    assert not fuzz.disagreement(Verdict(text, "ok", "{devices=[2,2]<=[4,7]T(0,0)}", (2, 2), (0, 1, 2, 3)))
    assert fuzz.disagreement(
        Verdict("{devices=[2,2]<=[2,2]T(1,0)}", "ok", "{devices=[2,2]<=[4]}", (2, 2), (0, 1, 2, 3))
    )


@pytest.mark.parametrize(
    ("order", "printed"),
    [("[1,144,1,2]T(2,/*c*/3,/*c/1,/*c*/0)", "[144,2]T(1,3)"), ("[4, 16, 1]T(2,/*cT/0,/*c*/1)", "[4,16]T(1,0)")],
)
def test_fewer_places_than_dimensions_are_refused_whatever_xla_prints(order: str, printed: str) -> None:
    form = "{mesh['z'=6,'y'=48], device_ids=(ORDER), []}"
    assert not fuzz.disagreement(Verdict(form.replace("ORDER", order), "ok", form.replace("ORDER", printed)))
    wrong = form.replace("ORDER", "[6,48]T(2,0)")
    assert "refused" in fuzz.disagreement(Verdict(wrong, "ok", form.replace("ORDER", "[4,16]T(1,0)")))


def test_names_that_xla_prints_without_escapes_are_no_disagreement() -> None:
    text = """{mesh["'data"=8], []}"""
    assert not fuzz.disagreement(Verdict(text, "ok", "{mesh[''data'=8], replicated}"))
    assert "printed" in fuzz.disagreement(Verdict(text, "ok", "{mesh['data'=8], replicated}"))


def test_an_iota_of_other_devices_is_no_disagreement_in_a_tuple_too() -> None:
    other = "{devices=[1,2,2]<=[2,3]T(1,0) last_tile_dims={replicated,manual}}"
    listed = "{devices=[1,2,2]0,2,1,3 last_tile_dims={manual, replicated}}"
    text = f"{{{{devices=[4]<=[4]}}, {other}}}"
    assert not fuzz.disagreement(Verdict(other, "ok", listed))
    assert not fuzz.disagreement(Verdict(text, "ok", f"{{{{devices=[4]<=[4]}}, {listed}}}"))
    assert "refused" in fuzz.disagreement(Verdict(text, "ok", "{{devices=[4]<=[4]}, {devices=[1,2,2]<=[4]}}"))


def test_what_ran_over_its_memory_is_no_verdict() -> None:
    """Six devices for three tiles: XLA writes past the tiles, and what it prints of them is chance."""
    assert not fuzz.disagreement(Verdict("{devices=[3]0,1,2,3,4,5}", "ok", "{devices=[4]0,1,2}", (4,), (0, 1, 2)))
    assert "printed" in fuzz.disagreement(Verdict("{devices=[3]0,1,2}", "ok", "{devices=[4]0,1,2}", (4,), (0, 1, 2)))


def test_tile_counts_below_one_are_refused_whatever_xla_prints() -> None:
    text = "{devices=[1,2,-1,1]0,0 devices=[1,2,-1,1]0,0}"
    assert not fuzz.disagreement(Verdict(text, "ok", "{devices=[1,2,-1,1,1,2,-1]0,49,0,0}"))
    assert "refused" in fuzz.disagreement(Verdict("{devices=[0]0}", "ok", "{devices=[0]0}"))
    text, printed = "{devices=[4,0]<=[2,2]T(1,0)}", "{devices=[4,0]<=[4]}"
    assert not fuzz.disagreement(Verdict(text, "abort_after_parse", printed))
    assert "printed" in fuzz.disagreement(Verdict(text, "ok", printed))


def test_generated_texts() -> None:
    """In a process of its own: the comparison forks, which JAX's threads do not bear."""
    command = module_command("tools.fuzz.sharding", "xla", "--count", "600", "--seed", "77")
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"600 texts, XLA: (\{.*\}); 0 disagreements", done.stdout)
    assert found is not None, done.stdout
    outcomes = ast.literal_eval(found[1])
    assert outcomes["ok"] > 200
    assert outcomes["error"] > 100


def test_the_comparison_sees_a_difference() -> None:
    assert "refused" in fuzz.disagreement(Verdict("{bogus}", "ok", "{bogus}"))
    assert "accepted" in fuzz.disagreement(Verdict("{replicated}", "error"))
    assert "printed" in fuzz.disagreement(Verdict("{replicated}", "ok", "{manual}"))
    wrong = Verdict("{devices=[2]<=[2]}", "ok", "{devices=[2]<=[2]}", (2,), (1, 0))
    assert "tiles" in fuzz.disagreement(wrong)


def test_only_sharding_errors_leave_the_parser() -> None:
    import random

    rng = random.Random(3)
    for _ in range(400):
        fuzz.probe(fuzz.mutated(rng, fuzz.generated(rng)))
    for text in (
        "",
        "{",
        "\0",
        "é",
        "{" * 1000,
        "{devices=[" + "1," * 5000 + "2]0,1}",
        "{maximal device=" + "9" * 5000 + "}",
    ):
        fuzz.probe(text)
