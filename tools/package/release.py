"""Tags the version of pyproject.toml in this repository, once everything agrees on it. Nothing leaves the machine.

make release                                 tests, packages, the site, and then the tag
python tools/package/release.py --check      says what does not agree, and tags nothing

Refused: a tree with changes; a version whose section is not the first of CHANGELOG.md; a CITATION.cff of another
version; a tag that exists.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def problems(root: Path) -> list[str]:
    """What keeps the version of ``root`` from being tagged."""
    version = version_of(root)
    first = re.search(r"^## (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    out = []
    if first is None or first[1] != version:
        out.append(f"the first section of CHANGELOG.md is {first and first[1]!r}, not {version!r}")
    if cited is None or cited[1] != version:
        out.append(f"CITATION.cff is of version {cited and cited[1]!r}, not {version!r}")
    if _git(root, "status", "--porcelain"):
        out.append("the tree has changes that are not committed")
    if _git(root, "tag", "--list", f"v{version}"):
        out.append(f"the tag v{version} exists")
    return out


def version_of(root: Path) -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="say what does not agree, and tag nothing")
    check = parser.parse_args().check
    version = version_of(ROOT)
    if wrong := problems(ROOT):
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    if not check:
        _git(ROOT, "tag", "--annotate", f"v{version}", "--message", f"shardpass {version}")
    print(f"v{version}" if check else f"tagged v{version}; push it with the packages of out/package/dist")
    return 0


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
