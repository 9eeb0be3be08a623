"""``shardpass suggest train.py:step`` of a script with explicit axes."""

import subprocess

from tools.processes import environment, module_command

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P, reshard

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)

@jax.jit
def step(x, w):
    x = reshard(x, P(None, None))
    return reshard(jnp.tanh(x @ w), P("data", "model"))

x = jax.device_put(jnp.ones((16, 32)), NamedSharding(mesh, P("data")))
w = jax.device_put(jnp.ones((32, 64)), NamedSharding(mesh, P(None, "model")))
step(x, w)
open("ran", "w").close()
"""


def test_the_edit_is_printed_with_bytes_before_and_after(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    where = {**environment(), "JAX_NUM_CPU_DEVICES": "8", "XLA_FLAGS": ""}
    done = subprocess.run(
        module_command("shardpass", "suggest", "train.py:step"),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=where,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "-    x = reshard(x, P(None, None))" in done.stdout
    assert "received 1.5 KiB -> 0 B" in done.stdout  # (16 - 4) rows of 32 floats
    assert not (tmp_path / "ran").exists()
