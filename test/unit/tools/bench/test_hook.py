"""tools/bench/hook.py: turns, figures and the table; and that a program and a loop can be measured."""

from __future__ import annotations

import json

import pytest
from support import daily

from tools.bench import hook
from tools.bench.hook import HOOK, PLAIN, Row


def row(name, compile, step, **more):
    return Row(name, dict(zip(hook.WAYS, compile, strict=True)), dict(zip(hook.WAYS, step, strict=True)), **more)


def test_ways_take_turns_and_the_first_round_is_not_counted(monkeypatch):
    asked = []

    def once(way):
        asked.append(way)
        return float(len(asked))

    found = hook.in_turn(2, once)
    assert asked == [HOOK, PLAIN, PLAIN, HOOK, HOOK, PLAIN]
    assert found == {PLAIN: [3.0, 6.0], HOOK: [4.0, 5.0]}


def test_ratios_and_means():
    rows = [
        row("a", (0.2, 0.4), (0.01, 0.005)),
        row("b", (0.4, 0.2), (0.01, 0.02)),
        row("c", (1, 9), (1, 9), left=True),
    ]
    assert rows[0].ratio("compile") == pytest.approx(2)
    assert rows[0].ratio("step") == pytest.approx(0.5)
    assert rows[2].ratio("step") is None  # XLA beside XLA says nothing of the hook
    told = "\n".join(hook.summary([*rows, Row("d", {}, {}, reason="no such thing")]))
    assert "compile: geometric mean of the hook over plain JAX 1.000 over 2 programs; above 1.15x: a 2.00" in told
    assert "step: geometric mean of the hook over plain JAX 1.000 over 2 programs; above 1.0x: b 2.00" in told
    assert "left to XLA: c" in told
    assert "not measured: d (no such thing)" in told
    assert hook.cells(rows[0]) == ["a", "200.00", "400.00", "2.00", "10.00", "5.00", "0.50"]
    assert hook.cells(Row("d", {}, {}))[1:] == ["-"] * 6


def test_programs_are_chosen_by_name_and_family():
    assert hook.chosen(("mlp_sgd",)) == ["mlp_sgd"]
    assert {"mlp_sgd", "mlp_adam"} <= set(hook.chosen(("mlp",)))
    assert hook.chosen(("nothing",)) == []
    pytest.importorskip("flax")
    assert hook.chosen(("nnx",)) == ["nnx_loop"]


def test_a_program_and_a_loop_are_measured_in_children(tmp_path, capsys):
    """One of them each day."""
    names = ["embedding"]
    try:
        import equinox  # noqa: F401
        import optax  # noqa: F401
    except ImportError:
        print("equinox_loop is not measured: equinox or optax is not installed")
    else:
        names.append("equinox_loop")
    names = daily.drawn(names, 1)
    file, page = tmp_path / "out.json", tmp_path / "page.md"
    command = [*names, "--compiles", "1", "--steps", "2", "--json", str(file)]
    assert hook.main([*command, "--markdown", str(page)]) == 0
    rows = [Row(**found) for found in json.loads(file.read_text())]
    measured = {one.name: one for one in rows}
    assert set(names) == set(measured)
    for one in rows:
        assert not one.left
        assert min(*one.compile.values(), *one.step.values()) > 0
    assert f"| {names[0]} |" in page.read_text()
    capsys.readouterr()
