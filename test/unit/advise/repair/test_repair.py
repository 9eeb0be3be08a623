"""``suggest`` of a function that raises an error of types: the printed edits make the function trace."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import jax
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.advise.repair.repair import Repairs
from tools.bench.unified_diff import applied
from tools.load_file import loaded
from tools.processes import environment, module_command

HEAD = """import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


"""
PRODUCT = "def f(x, w):\n    return x @ w\n"
CASES = {  # body of f(x, w), and the words of the right edit, one of which is in the first diff
    "product": (PRODUCT, ("jnp.matmul(x, w, out_sharding=", "jax.reshard(w, ")),
    "einsum": (
        "def f(x, w):\n    return jnp.einsum('bd,df->bf', x,\n        w,  # up\n    )\n",
        ("out_sharding=", "reshard"),
    ),
    "sort": ("def f(x, w):\n    return jnp.sort(x)\n", ("jnp.sort(jax.reshard(x, P(",)),
    "sums": ("def f(x, w):\n    return jnp.cumsum(x, axis=1)\n", ("jnp.cumsum(jax.reshard(x, P(",)),
    "select": (
        "def f(x, w):\n    return jnp.where(x > 0, x, jax.reshard(-x, P()))\n",
        ("jax.reshard(-x, P('data', 'model'))",),
    ),
    "carry": (
        "def f(x, w):\n    start = jnp.zeros((8, 16))\n"
        "    return jax.lax.scan(lambda c, _: (c + x, None), start, None, length=3)[0]\n",
        ("jax.reshard(start, P('data', 'model'))",),
    ),
    "branches": (
        "def f(x, w):\n    return jax.lax.cond(True, lambda x: x, lambda x: jax.reshard(x, P()), x)\n",
        ("lambda x: jax.reshard(x, P('data', 'model'))",),
    ),
    "switch": (
        "def f(x, w):\n    parts = [lambda x: x, lambda x: -x, lambda x: jax.reshard(x, P())]\n"
        "    return jax.lax.switch(1, parts, x)\n",
        ("lambda x: jax.reshard(x, P('data', 'model'))",),
    ),
    "dict": (
        "def f(x, w):\n"
        "    def step(carry, _):\n"
        "        return {'n': carry['n'] + 1, 'h': [carry['h'][0] + x]}, None\n"
        "    start = {'n': 0, 'h': [jnp.zeros((8, 16))]}\n"
        "    return jax.lax.scan(step, start, None, length=3)[0]\n",
        ("'h': [jax.reshard(jnp.zeros((8, 16)), P('data', 'model'))]",),
    ),
    "constraint": (
        "def f(x, w):\n    return jax.lax.with_sharding_constraint(x, P(None, 'model'))\n",
        ("jax.reshard(x, P(None, 'model'))",),
    ),
    "two errors": ("def f(x, w):\n    h = x @ w\n    return jnp.sort(h, axis=0)\n", ("jnp.sort(",)),
    "closure": (
        "def make():\n    def g(x, w):\n        return x @ w\n    return g\n\n\nf = make()\n",
        ("reshard", "out_sharding"),
    ),
}


@pytest.fixture(autouse=True)
def mesh() -> Iterator[jax.sharding.Mesh]:
    made = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(made):
        yield made


def arguments(mesh: jax.sharding.Mesh) -> tuple[jax.ShapeDtypeStruct, ...]:
    def array(shape: tuple[int, ...], *axes: str | None) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*axes)))

    return array((8, 16), "data", "model"), array((16, 32), "model", None)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, Repairs]:
    """The module of one product, and the edits for it."""
    module = loaded(tmp_path_factory.mktemp("product") / "train.py", HEAD + PRODUCT)
    over = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(over):
        found = shardpass.suggest(module.f, *arguments(over))
    assert isinstance(found, Repairs)
    return module, found


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CASES)
def test_each_printed_diff_makes_the_file_trace(name: str, mesh: jax.sharding.Mesh, tmp_path: Path) -> None:
    body, words = CASES[name]
    path = tmp_path / "train.py"
    module = loaded(path, HEAD + body)
    before = module.f.__code__
    found = shardpass.suggest(module.f, *arguments(mesh))
    assert isinstance(found, Repairs)
    assert module.f.__code__ is before
    plain = [one for one in found.alternatives if not one.arguments]
    assert plain
    assert any(word in plain[0].diff for word in words), plain[0].diff
    for number, one in enumerate(plain):
        repaired = loaded(tmp_path / f"repaired_{number}.py", applied(HEAD + body, one.diff))
        jax.jit(repaired.f).lower(*arguments(mesh))  # raises where the edit does not hold
    with pytest.raises(Exception, match=r"shard|type"):  # nothing that was traced with edits is left in JAX's caches
        jax.jit(module.f).lower(*arguments(mesh))


def test_the_figures_are_those_of_the_repaired_program(
    product: tuple[ModuleType, Repairs], mesh: jax.sharding.Mesh, tmp_path: Path
) -> None:
    _, found = product
    first = found.alternatives[0]
    repaired = loaded(tmp_path / "repaired.py", applied(HEAD + PRODUCT, first.diff))
    report = shardpass.explain(repaired.f, *arguments(mesh), effort=0)
    assert first.bytes == report.total_bytes_received
    # a partial sum of 4 x 32 floats over 4 devices: three quarters of it are received once at least
    assert first.bytes >= 4 * 32 * 4 * 3 // 4
    assert json.loads(found.json())["alternatives"][0]["bytes"] == first.bytes
    assert len(found.alternatives) <= found.programs < found.traces
    assert str(found).splitlines()[-1].startswith(f"the cheapest of {found.programs} programs")


def test_another_spec_of_an_argument_is_an_alternative(
    product: tuple[ModuleType, Repairs], mesh: jax.sharding.Mesh
) -> None:
    module, found = product
    (path, before, after), *_ = found.alternatives[-1].arguments
    assert (path, before) == ("w", "P('model')")
    spec = eval(after, {"P": P})
    x, w = arguments(mesh)
    other = jax.ShapeDtypeStruct(w.shape, w.dtype, sharding=NamedSharding(mesh, spec))
    jax.jit(module.f).lower(x, other)


def test_errors_of_another_kind_pass(mesh: jax.sharding.Mesh, tmp_path: Path) -> None:
    module = loaded(tmp_path / "train.py", HEAD + "def f(x, w):\n    return x + w\n")
    with pytest.raises(TypeError, match="incompatible shapes"):
        shardpass.suggest(module.f, *arguments(mesh))


def test_a_limit_of_memory_leaves_out_what_needs_more(
    product: tuple[ModuleType, Repairs], mesh: jax.sharding.Mesh
) -> None:
    module, every = product
    sizes = sorted({one.memory for one in every.alternatives})
    assert len(sizes) > 1
    within = shardpass.suggest(module.f, *arguments(mesh), memory_limit=sizes[-1] - 1)
    assert isinstance(within, Repairs)
    assert all(one.memory < sizes[-1] for one in within.alternatives)
    with pytest.raises(shardpass.ShardpassError, match=r"keep the memory of a device below 64 B") as caught:
        shardpass.suggest(module.f, *arguments(mesh), memory_limit=64)  # x's tile alone has 64
    assert caught.value.code == "SP804"


def test_another_partitioner_is_refused(mesh: jax.sharding.Mesh, tmp_path: Path) -> None:
    module = loaded(tmp_path / "train.py", HEAD + PRODUCT)
    with pytest.raises(shardpass.ShardpassError, match=r"cannot be compiled by xla") as caught:
        shardpass.suggest(module.f, *arguments(mesh), partitioner="xla")
    assert caught.value.code == "SP843"
    assert caught.value.diagnostics[0].place.line == 7


def test_no_edit_says_what_was_tried(mesh: jax.sharding.Mesh) -> None:
    names: dict[str, object] = {"jnp": jax.numpy}
    code = compile("def f(x, w):\n    return x @ w\n", "/nowhere/train.py", "exec")  # a file that nobody can read
    exec(code, names)
    with pytest.raises(shardpass.ShardpassError) as caught:
        shardpass.suggest(names["f"], *arguments(mesh))
    assert caught.value.code == "SP840"
    assert "Contracting dimensions are sharded" in str(caught.value)


SCRIPT = """
import sys
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

@jax.jit
def step(x, w):
    return x @ w

x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data", "model")))
w = jax.device_put(jnp.ones((16, 32)), NamedSharding(mesh, P("model", None)))
if "context" in sys.argv:
    with jax.set_mesh(mesh):
        print(step(x, w).shape)
else:
    print(step(x, w).shape)
"""


@pytest.mark.parametrize("words", ["", " context"])
def test_of_a_script(tmp_path: Path, words: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    where = {**environment(), "JAX_NUM_CPU_DEVICES": "8", "XLA_FLAGS": ""}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=where, check=False)

    done = run(*module_command("shardpass", "suggest", f"train.py:step{words}", "--json"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["operands"] == {"x": "float32[8@data,16@model]", "w": "float32[16@model,32]"}
    path.write_text(applied(SCRIPT, found["alternatives"][0]["diff"]))
    again = run(module_command("shardpass")[0], "train.py", *words.split())
    assert again.stdout == "(8, 32)\n", again.stderr  # the script runs with the edit
