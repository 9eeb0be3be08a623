"""A version is tagged where pyproject.toml, CHANGELOG.md and CITATION.cff agree on it, and the tree is clean."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.package import release
from tools.processes import ROOT


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0\n\n- a\n\n## 1.1.0\n")
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.0\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "all")


def test_what_agrees_can_be_tagged(root: Path) -> None:
    assert release.problems(root) == []


@pytest.mark.parametrize(
    ("file", "text", "wrong"),
    [
        ("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## 1.2.0\n", "CHANGELOG.md is 'Unreleased', not '1.2.0'"),
        ("CITATION.cff", "version: 1.1.0\n", "CITATION.cff is of version '1.1.0'"),
        ("pyproject.toml", '[project]\nversion = "1.3.0"\n', "not '1.3.0'"),
    ],
)
def test_what_does_not_agree_is_named(root: Path, file: str, text: str, wrong: str) -> None:
    (root / file).write_text(text)
    assert "not committed" in "\n".join(release.problems(root))
    commit(root)
    assert wrong in "\n".join(release.problems(root))


def test_a_tag_that_exists_is_kept(root: Path) -> None:
    git(root, "tag", "v1.2.0")
    assert release.problems(root) == ["the tag v1.2.0 exists"]


def test_the_citation_is_of_this_version() -> None:
    assert f"\nversion: {release.version_of(ROOT)}\n" in (ROOT / "CITATION.cff").read_text()
