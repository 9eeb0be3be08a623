"""Which lines a report quotes: the user's source, and no other file that a module names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shardpass.diagnostics import Place
from shardpass.report.source_lines import source_line


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "part").mkdir(parents=True)
    return folder


def written(file: Path) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("first\n  second\n")
    return file


def quoted(file: Path, work: Path) -> str:
    return source_line(Place(str(file), 2), [work])


@pytest.mark.parametrize("name", ["train.py", "part/model.mlir", "épée\nb.py"])
def test_source_is_quoted(work: Path, name: str) -> None:
    assert quoted(written(work / name), work) == "second"


@pytest.mark.parametrize(
    "name", [".env", ".secret.py", ".git/config.py", ".ssh/id.py", "key.pem", "notes", "data.json"]
)
def test_other_files_are_not(work: Path, name: str) -> None:
    assert quoted(written(work / name), work) == ""


def test_dots_above_the_folder_do_not_matter(tmp_path: Path) -> None:
    folder = tmp_path / ".cache" / "work"
    folder.mkdir(parents=True)
    assert quoted(written(folder / "train.py"), folder) == "second"


def test_links_that_lead_out_are_not_followed(tmp_path: Path, work: Path) -> None:
    outside = written(tmp_path / "outside.py")
    (work / "soft.py").symlink_to(outside)
    (work / "folder").symlink_to(tmp_path)
    assert quoted(work / "soft.py", work) == ""
    assert quoted(work / "folder" / "outside.py", work) == ""
    os.link(outside, work / "hard.py")
    assert quoted(work / "hard.py", work) == ""


def test_links_inside_are_followed(work: Path) -> None:
    written(work / "train.py")
    (work / "part" / "same.py").symlink_to(work / "train.py")
    assert quoted(work / "part" / "same.py", work) == "second"


def test_a_link_to_a_file_of_another_kind_is_not(work: Path) -> None:
    """The file that is read counts, and not the name that leads to it."""
    written(work / ".env")
    (work / "train.py").symlink_to(work / ".env")
    assert quoted(work / "train.py", work) == ""
