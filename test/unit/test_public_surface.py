"""What ``import shardpass`` gives: the public names, loaded when they are first used."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import shardpass

ROOT = Path(__file__).parents[2]


def printed(code: str) -> str:
    """What ``code`` prints in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    ).stdout.strip()


def test_import_loads_neither_jax_nor_jaxlib() -> None:
    code = "import sys, shardpass; print([m for m in ('jax', 'jaxlib', 'numpy', 'shardpass.jax') if m in sys.modules])"
    assert printed(code) == "[]"


def test_shardpass_jax_needs_no_import_of_its_own() -> None:
    code = "import shardpass, sys; print(shardpass.jax.use.__module__, shardpass.jax is sys.modules['shardpass.jax'])"
    assert printed(code) == "shardpass.jax.hook True"


def test_the_version_is_that_of_the_project_file() -> None:
    assert shardpass.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.mark.parametrize("module", ["shardpass.jax", "shardpass.testing", "shardpass.ops", "shardpass.onnx"])
def test_dir_of_a_public_module_lists_its_names_alone(module: str) -> None:
    loaded = import_module(module)
    assert dir(loaded) == sorted(loaded.__all__)


@pytest.mark.parametrize("name", shardpass.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(shardpass, name) is getattr(shardpass, name)


def test_dir_lists_the_public_names_alone() -> None:
    assert dir(shardpass) == sorted(shardpass.__all__)


def test_any_other_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'shardpass' has no attribute 'no_such_name'"):
        _ = shardpass.no_such_name  # type: ignore[attr-defined]
