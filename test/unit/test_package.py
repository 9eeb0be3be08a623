"""What the package says of itself. ``make package`` looks into its wheel and installs it in an empty environment."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import jax
import jaxlib
import pytest

import shardpass
from shardpass.cli.shardpass import COMMANDS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def bounds(name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The oldest version of a dependency that is taken, and the first that is not."""
    (said,) = (d for d in PROJECT["dependencies"] if re.match(rf"{name}[<>=]", d))
    low, high = re.fullmatch(rf"{name}>=([\d.]+),<([\d.]+)", said).groups()
    return numbers(low), numbers(high)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.match(r"[\d.]*\d", text)[0].split("."))


@pytest.mark.parametrize(("name", "module"), [("jax", jax), ("jaxlib", jaxlib)])
def test_the_tests_run_with_a_version_that_the_package_takes(name: str, module: object) -> None:
    """To move a bound: run test/unit/ir/test_jax_private.py with the new version first; it names each private part of
    JAX that moved. Mend shardpass/ir/jax_private.py, then all tests, then the bound here and in the README."""
    low, high = bounds(name)
    found = numbers(module.__version__)
    assert low <= found < high, f"{name} {module.__version__} is not one that pyproject.toml takes"


def test_the_readme_says_which_versions() -> None:
    low, high = bounds("jax")
    readme = (ROOT / "README.md").read_text()
    assert f"jax {'.'.join(map(str, low))} to {high[0]}.{high[1] - 1}" in readme
    assert PROJECT["requires-python"] == ">=3.11"
    assert "Python 3.11 or newer" in readme


def test_the_version() -> None:
    """Of the installed package; of a source tree that is only on the path, that it is not known."""
    assert shardpass.__version__ in (PROJECT["version"], "0+unknown")
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_command_is_a_module_with_main() -> None:
    commands = {
        path.stem.replace("_", "-"): f"shardpass.cli.{path.stem}:main"
        for path in (ROOT / "shardpass" / "cli").glob("*.py")
        if re.search(r"^def main\(", path.read_text(), re.MULTILINE)
    }
    assert set(commands) == {"shardpass", *COMMANDS}
    scripts = {name.removeprefix("shardpass-"): target for name, target in PROJECT["scripts"].items()}
    assert scripts == {name: target for name, target in commands.items() if name in scripts}
    alone = {"budget", "calibrate", "diff", "machines", "pin"}  # of the command shardpass alone
    assert set(commands) - set(scripts) == alone


def test_classifiers_are_of_versions_that_are_tested() -> None:
    said = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert said == ["3.11", "3.12", "3.13"]
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in said


def test_the_lock_file_has_what_the_package_and_its_extras_need() -> None:
    """After a change of pyproject.toml: ``make lock``."""
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)$", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE))
    wanted = [*PROJECT["dependencies"], *(d for extra in PROJECT["optional-dependencies"].values() for d in extra)]
    for said in wanted:
        name, low = re.match(r"([\w.-]+)[^>]*>=([\d.]+)", said).groups()
        assert name in locked, f"{name} is not in requirements-dev.lock: run `make lock`"
        assert numbers(locked[name]) >= numbers(low), f"{name} {locked[name]} is older than {said}: run `make lock`"
