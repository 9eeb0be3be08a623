"""The tool that runs JAX's own tests: on a file of ours, as JAX's are in no package."""

from __future__ import annotations

import json
from pathlib import Path

from tools.prove import jax_suites

SUITE = """
import os
import unittest

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from shardpass.jax import stats


class Suite(unittest.TestCase):
    def test_a_sum(self):
        mesh = Mesh(np.array(jax.devices()), "x")
        x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("x")))
        self.assertEqual(jax.jit(jnp.sum)(x), 28)

    def test_of_xla(self):
        self.assertEqual(stats()["partitioned"], 0)

    def test_that_dies(self):
        os._exit(3)

    def test_of_two_orders(self):
        one, other = (Mesh(np.array(jax.devices()[::step]), "x") for step in (1, -1))
        x = jax.device_put(jnp.arange(8.0), NamedSharding(one, P("x")))
        self.assertEqual(jax.device_put(x, NamedSharding(other, P("x"))).sum(), 28)

    @unittest.skip("not here")
    def test_that_is_skipped(self):
        pass
"""


def test_a_file_with_the_hook_and_what_fails_without_it(tmp_path: Path, capsys) -> None:
    (tmp_path / "pjit_test.py").write_text(SUITE)
    found = tmp_path / "found.json"
    status = jax_suites.main(["--tests", str(tmp_path), "--json", str(found), "--share", "0"])
    (file,) = json.loads(found.read_text())
    plain, hooked = file["plain"], file["hooked"]
    assert hooked["tests"] == {
        "Suite.test_a_sum": "passed",
        "Suite.test_of_two_orders": "passed",
        "Suite.test_of_xla": "failed",
        "Suite.test_that_dies": jax_suites.DIED,
        "Suite.test_that_is_skipped": "skipped",
    }
    assert plain["tests"] == {"Suite.test_of_xla": "passed", "Suite.test_that_dies": jax_suites.DIED}
    assert plain["counts"] == {}
    assert hooked["counts"]["partitioned"] > 0
    assert status == 1
    assert "fails with the hook: pjit_test.py Suite.test_of_xla" in capsys.readouterr().out


def test_what_is_known_and_what_is_left_to_xla(monkeypatch, capsys) -> None:
    plain = jax_suites.read_record(['{"begun": "T.a"}', '{"test": "T.a", "outcome": "passed", "stats": {}}'])
    stats = {"partitioned": 2, "fallback": 1, "SP208 f": 1}
    row = json.dumps({"test": "T.a", "outcome": "failed", "stats": stats})
    compared = [jax_suites.Compared("t_test.py", jax_suites.read_record(['{"begun": "T.a"}', row]), plain)]
    assert jax_suites.report(compared, 0.5) == 1
    monkeypatch.setitem(jax_suites.OF_XLA, "T.a", "it reads HLO")
    assert jax_suites.report(compared, 0.5) == 0
    assert jax_suites.report(compared, 0.9) == 1
    told = capsys.readouterr().out
    assert "66.67% of 3 programs are partitioned" in told
    assert "left to XLA, SP208: 1\n    T.a (f)" in told
    assert "(it reads HLO)" in told


def test_a_file_that_cannot_be_imported_is_no_success(tmp_path: Path, capsys) -> None:
    (tmp_path / "pjit_test.py").write_text("from jax import what_jax_never_had\n")
    (tmp_path / "pmap_test.py").write_text("import unittest\n")
    assert jax_suites.main(["--tests", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert "cannot be imported: pjit_test.py" in told.out
    assert "pmap_test.py" not in told.out.split("└")[1]  # it has no tests, which is no fault
    assert "what_jax_never_had" in told.err
