"""What a first compile through the hook loads: no parser, no report, no family that the program does not hold."""

from __future__ import annotations

import json
import subprocess
import sys

COMPILE = """
import json, os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
before = set(sys.modules)
import shardpass.jax
imported = set(sys.modules) - before

mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
rows = NamedSharding(mesh, P("d"))
step = jax.jit(lambda w, x: jnp.tanh(x @ w).sum(axis=0), in_shardings=(None, rows))
with shardpass.jax.use(strict=True):
    step.lower(jnp.ones((8, 8)), jnp.ones((16, 8))).compile()
print(json.dumps([sorted(imported), sorted(set(sys.modules) - before), shardpass.jax.stats()["partitioned"]]))
"""


def test_a_first_compile_loads_what_it_needs() -> None:
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=True)
    imported, loaded, partitioned = json.loads(done.stdout.splitlines()[-1])
    assert partitioned == 1
    assert [name for name in loaded if name.split(".")[0] in ("lark", "rich")] == []
    assert [name for name in loaded if name.startswith(("jax.extend", "jax._src.pallas", "shardpass.report"))] == []
    families = {name.rpartition(".")[2] for name in loaded if name.startswith("shardpass.ops.families.")}
    assert {"dot_general", "elementwise", "reduce"} <= families
    late = {
        "cholesky",
        "concatenate",
        "convolution",
        "custom_partitioning",
        "fft",
        "gather",
        "rng",
        "scatter",
        "sort",
        "xla_targets",
    }
    assert families & late == set()
    unasked = (
        "planning.decide.limited",
        "planning.decide.problem",
        "planning.decide.within",
        "partition.matmul_loops.",
        "sharding.notations.by_grammar",
        "sharding.notations.named.",
    )
    assert [name for name in loaded if f"{name}.".startswith(tuple(f"shardpass.{part}" for part in unasked))] == []
    assert not any(name.startswith("shardpass.importing.") for name in imported)  # with the first program
