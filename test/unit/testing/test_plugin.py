"""The pytest plugin, in sessions of its own: budgets, meshes, virtual devices, programs compiled once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shardpass.testing.plugin import locked

pytest_plugins = ["pytester"]

TEST = """
import jax, jax.numpy as jnp, pytest
from jax.sharding import NamedSharding, PartitionSpec as P

X = jax.ShapeDtypeStruct((8, 32), jnp.float32)

@pytest.mark.shardpass_meshes({"d": 4}, {"d": 2, "m": 2})
def test_sum(collectives, shardpass_mesh):
    assert jax.device_count() == 4
    f = jax.jit(lambda x: jnp.sum(x, 0), in_shardings=NamedSharding(shardpass_mesh, P("d")))
    program = collectives.within_budget(f, X)
    assert program == collectives(f, X)
    collectives.check(f, X, expect={"all_reduce": 1}, never=["all_gather"])
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    pytester.makeini("[pytest]\nshardpass_devices = 4\n")
    pytester.makepyfile(test_it=TEST)
    return pytester


def test_budgets_are_written_and_then_hold(session: pytest.Pytester) -> None:
    run = ("-p", "shardpass.testing.plugin", "-p", "no:randomly", "-q")
    session.runpytest_subprocess(*run).assert_outcomes(failed=2)  # no budget
    session.runpytest_subprocess(*run, "--shardpass-update").assert_outcomes(passed=2)
    text = (session.path / "test_it.budget.toml").read_text()
    assert '["test_it.py::test_sum[d2xm2]"]' in text
    assert text.count("all_reduce = [") == 2
    assert len(list((session.path / ".pytest_cache/d/shardpass").iterdir())) == 2  # each program compiled once
    session.makepyfile(test_it=TEST.replace("jnp.sum(x, 0)", "jnp.sum(x, 0) + jnp.max(x)"))
    failed = session.runpytest_subprocess(*run)
    failed.assert_outcomes(failed=2)
    failed.stdout.fnmatch_lines(["*all_reduce over d: expected 1 array, *, got 2 arrays, *"])
    failed.stdout.no_fnmatch_line("*excesses*")  # no source of shardpass


def test_workers_of_xdist_share_programs_and_write_one_budget_file(session: pytest.Pytester) -> None:
    run = ("-p", "shardpass.testing.plugin", "-p", "no:randomly", "-q", "-n", "2")
    session.runpytest_subprocess(*run, "--shardpass-update").assert_outcomes(passed=2)
    assert (session.path / "test_it.budget.toml").read_text().count("all_reduce = [") == 2
    assert len(list((session.path / ".pytest_cache/d/shardpass").iterdir())) == 2
    assert not list(session.path.glob(".*.lock"))


def test_a_lock_keeps_others_out_also_while_its_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")

    def add() -> None:
        for _ in range(40):
            with locked(path):
                path.write_text(str(int(path.read_text()) + 1))

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(add) for _ in range(8)]:
            done.result()
    assert path.read_text() == "320"
    assert [one.name for one in tmp_path.iterdir()] == ["count"]


@pytest.mark.fresh_process  # what it has loaded is counted
def test_the_plugin_loads_nothing_where_it_is_unused(pytester: pytest.Pytester) -> None:
    loaded = "{name for name in sys.modules if name.startswith('shardpass')}"
    known = "{'shardpass', 'shardpass.testing', 'shardpass.testing.plugin'}"
    pytester.makepyfile(f"import sys\ndef test_it(): assert {loaded} == {known}")
    pytester.runpytest_subprocess("-p", "shardpass.testing.plugin", "-q").assert_outcomes(passed=1)
