"""The pytest plugin: the fixture ``collectives``, budget files, meshes, and virtual devices.

    def test_step(collectives):
        collectives.check(step, params, batch, never=["all_to_all"])      # as assert_collectives
        collectives.within_budget(step, params, batch)                    # tests/test_step.budget.toml

pytest loads this module in each session where shardpass is installed, so nothing else is imported before a test asks
for the fixture. Workers of pytest-xdist share the compiled programs and the budget files: programs are files by digest
in pytest's cache, and a budget file is read, changed and replaced under a lock.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shardpass.report.collectives import Collectives

MESHES = "shardpass_meshes"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("shardpass", "collectives of partitioned JAX programs")
    group.addoption(
        "--shardpass-update", action="store_true", help="write the budgets of the tests that run instead of comparing"
    )
    help = "give JAX N virtual CPU devices before it starts"
    group.addoption("--shardpass-devices", type=int, metavar="N", help=help)
    parser.addini("shardpass_devices", "virtual CPU devices for JAX, as --shardpass-devices", default="")
    parser.addini("shardpass_budget", "the budget file of all tests (default: test_x.budget.toml beside test_x.py)")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Set the number of virtual devices before a conftest can start JAX."""
    given = early_config.known_args_namespace.shardpass_devices or early_config.getini("shardpass_devices")
    if not given:
        return
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["JAX_NUM_CPU_DEVICES"] = str(given)
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_num_cpu_devices", int(given))


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    help = "run the test once for each mesh, a dictionary of axis sizes, which is the fixture shardpass_mesh"
    config.addinivalue_line("markers", f"{MESHES}(*meshes): {help}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each mesh in its mark."""
    mark = metafunc.definition.get_closest_marker(MESHES)
    if mark is not None and "shardpass_mesh" in metafunc.fixturenames:
        ids = ["x".join(f"{name}{size}" for name, size in one.items()) for one in mark.args]
        metafunc.parametrize("shardpass_mesh", mark.args, ids=ids, indirect=True)


@pytest.fixture
def shardpass_mesh(request: pytest.FixtureRequest) -> Any:
    """Return the ``jax.sharding.Mesh`` of this test run: one of those that the mark ``shardpass_meshes`` lists."""
    import jax

    sizes: dict[str, int] | None = getattr(request, "param", None)
    if sizes is None:
        raise pytest.UsageError(f"mark the test: @pytest.mark.{MESHES}({{'data': 4, 'model': 2}})")
    types = (jax.sharding.AxisType.Auto,) * len(sizes)
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=types)


class Checker:
    """The fixture ``collectives``: a call returns the ``Collectives`` of a function, like
    ``shardpass.testing.collectives``.
    """

    def __init__(self, budget: Path, name: str, update: bool) -> None:
        self._budget, self._name, self._update = budget, name, update

    def __call__(self, f: Any, *args: Any, **kwargs: Any) -> Collectives:
        from shardpass.testing.asking import collectives

        return collectives(f, *args, **kwargs)

    def check(self, f: Any, *args: Any, **kwargs: Any) -> Collectives:
        """Assert which collectives the function has, as ``assert_collectives``."""
        from shardpass.testing.asking import assert_collectives

        __tracebackhide__ = True
        return assert_collectives(f, *args, **kwargs)

    def within_budget(self, f: Any, *args: Any, name: str | None = None, **kwargs: Any) -> Collectives:
        """Assert that the function is within its budget; with ``--shardpass-update`` write the budget.

        ``name``: of the budget in the file, by default the test's; to be given where a test has several.

        Raises:
            CollectivesError: an AssertionError with the table of what is over the budget.
            ShardpassError: SP642 where the file has no such budget; SP640 where the file is no budget.
        """
        from shardpass.testing.checking import check_budget, update_budget

        __tracebackhide__ = True
        program = self(f, *args, **kwargs)
        name, target = name or self._name, str(kwargs.get("target") or "")
        if self._update:
            with locked(self._budget):
                update_budget(self._budget, name, program, target)
        else:
            check_budget(self._budget, name, program)
        return program


@pytest.fixture
def collectives(request: pytest.FixtureRequest) -> Checker:
    """Return the checker of this test: see ``Checker``."""
    from shardpass.testing.store import STORE

    cache = request.config.cache
    STORE.folder = None if cache is None else cache.mkdir("shardpass")
    given = request.config.getini("shardpass_budget")
    path = request.path
    budget = request.config.rootpath / given if given else path.with_name(f"{path.stem}.budget.toml")
    name = request.node.nodeid.replace("\\", "/").rpartition("/")[2]
    return Checker(budget, name, request.config.getoption("--shardpass-update"))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out of the block for the same ``path``, where the system has file locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    lock = path.with_name(f".{path.name}.lock")
    while True:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_at(lock, file.fileno()):
                continue  # the process that had the lock removed this file, and others may lock its successor
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether an open file is the file at ``path``."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
