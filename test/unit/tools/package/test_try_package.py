"""What ``make package`` finds in a wheel that is not as it should be."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tools.package.try_package import EXTRAS, wrong_with

METADATA = "\n".join(["License-Expression: Apache-2.0", *(f"Provides-Extra: {extra}" for extra in EXTRAS), ""])
FILES = {
    "shardpass/__init__.py": "",
    "shardpass/py.typed": "",
    "shardpass-0.1.0.dist-info/METADATA": METADATA,
    "shardpass-0.1.0.dist-info/licenses/LICENSE": "",
    "shardpass-0.1.0.dist-info/licenses/NOTICE": "",
}


def found(tmp_path: Path, files: dict[str, str]) -> list[str]:
    source = tmp_path / "source"
    (source / "shardpass").mkdir(parents=True)
    for name in ("__init__.py", "py.typed"):
        (source / "shardpass" / name).touch()
    wheel = tmp_path / "shardpass-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wrong_with(wheel, source)


def test_a_wheel_as_it_should_be(tmp_path: Path) -> None:
    assert found(tmp_path, FILES) == []


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith("METADATA")])
def test_a_file_that_was_forgotten(name: str, tmp_path: Path) -> None:
    (fault,) = found(tmp_path, {n: text for n, text in FILES.items() if n != name})
    assert fault.startswith("lacks")
    assert name.rpartition("/")[2] in fault


def test_a_file_too_many(tmp_path: Path) -> None:
    assert found(tmp_path, {**FILES, "shardpass/notes.txt": ""}) == ["holds shardpass/notes.txt"]


def test_an_extra_that_is_gone(tmp_path: Path) -> None:
    files = {**FILES, "shardpass-0.1.0.dist-info/METADATA": METADATA.replace("Provides-Extra: onnx\n", "")}
    assert found(tmp_path, files) == ["does not say 'Provides-Extra: onnx'"]
