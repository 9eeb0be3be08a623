"""docs/architecture.md: its table has each package once, in the order of the import contract; its files exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "shardpass"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROWS = re.findall(r"^\| ((?:`[\w/]+`(?:, )?)+) \|", PAGE[: PAGE.index("## Contracts")], re.MULTILINE)
PACKAGES = [re.findall(r"`([\w/]+)`", row) for row in ROWS]


def test_the_table_has_each_package_once() -> None:
    names = [name for row in PACKAGES for name in row]
    assert len(set(names)) == len(names)
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {name.partition("/")[0] for name in names} == folders
    for whole in {name.partition("/")[0] for name in names if "/" in name}:
        rooms = {f"{whole}/{path.parent.name}" for path in SOURCE.glob(f"{whole}/*/__init__.py")}
        assert {name for name in names if name.startswith(f"{whole}/")} == rooms


def test_a_package_stands_below_those_that_may_import_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "imports point one way")
    levels = {
        name.strip().removeprefix("shardpass.").replace(".", "/"): i
        for i, row in enumerate(layers)
        for name in row.split("|")
    }
    order = [levels[name] for row in PACKAGES for name in row]
    assert order == sorted(order)


def test_the_files_that_it_names_exist() -> None:
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", PAGE))
    assert len(named) > 40
    assert [name for name in sorted(named) if not (SOURCE / name).exists() and not list(SOURCE.glob(f"*/{name}"))] == []
