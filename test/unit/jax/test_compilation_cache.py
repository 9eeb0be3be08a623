"""JAX's compilation cache on disk: what one process partitioned and compiled, the next one finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import contextlib, json, os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
import shardpass.jax as spj
import shardpass.jax.hook as hook

jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
run_steps, runs = hook.run_steps, []
hook.run_steps = lambda *given: (runs.append(given), run_steps(*given))[1]
told = []
jax.monitoring.register_event_listener(lambda event, **_: told.append(event.rpartition("/")[2]))

mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
x = jax.device_put(np.arange(32.0, dtype=np.float32).reshape(8, 4), NamedSharding(mesh, P("d")))
step = jax.jit(lambda x: jnp.tanh(x).sum(axis=0) @ x.T)
found = []
for hooked in json.loads(sys.argv[2]):
    told.clear()
    with spj.use(strict=True) if hooked else contextlib.nullcontext():
        value = np.asarray(step(x))
    found.append([sorted({"cache_hits", "cache_misses"} & set(told)), value.tolist()])
assert spj.stats()["partitioned"] == sum(json.loads(sys.argv[2]))
print(json.dumps([found, len(runs)]))
"""

HIT, MISS = ["cache_hits"], ["cache_misses"]


def _run(folder: Path, ways: list[bool]) -> tuple[list[list[str]], list[list[float]], int]:
    """What JAX told of its cache in each way, the results, and how often the passes ran."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), json.dumps(ways)], capture_output=True, text=True, check=True
    )
    found, runs = json.loads(done.stdout.splitlines()[-1])
    return [told for told, _ in found], [value for _, value in found], runs


def test_another_process_finds_what_the_hook_partitioned_and_compiled(tmp_path: Path) -> None:
    first, values, runs = _run(tmp_path, [True])
    assert (first, runs) == ([MISS], 1)
    again, same, runs = _run(tmp_path, [True])
    assert (again, runs) == ([HIT], 0)
    assert same == values


def test_an_entry_of_which_a_part_was_written_is_not_taken(tmp_path: Path) -> None:
    _, values, _ = _run(tmp_path, [True])
    (entry,) = tmp_path.glob("*-shardpass-*-cache")
    entry.write_bytes(entry.read_bytes()[:-100])
    again, same, runs = _run(tmp_path, [True])
    assert (again, runs) == ([HIT], 1)  # partitioned again, to the same program, which XLA compiled before
    assert same == values
    again, same, runs = _run(tmp_path, [True])
    assert (again, runs) == ([HIT], 0)  # it was written anew
    assert same == values


def test_plain_jax_and_the_hook_do_not_share_an_entry(tmp_path: Path) -> None:
    plain, values, runs = _run(tmp_path, [False, True])
    assert (plain, runs) == ([MISS, MISS], 1)
    again, same, runs = _run(tmp_path, [True, False])
    assert (again, runs) == ([HIT, HIT], 0)
    assert same == values[::-1]
