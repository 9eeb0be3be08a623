"""No circles of imports in shardpass, between files or between packages.

The graph is read from the syntax trees, so that imports inside functions and under TYPE_CHECKING count: they hide a
circle from Python, not from a reader. An import of a name that a package re-exports is an import of its ``__init__``.

Between packages one kind of import does not count: that of a package's ``__init__`` from its own sub-packages, which
only re-exports their names.

The circles that are still there are listed below. The lists may only shrink: a listed circle that is gone, or has
become smaller, fails the test until the list says so.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "shardpass"
Graph = Mapping[str, Collection[str]]

CIRCLES_OF_FILES: list[set[str]] = []
# plan.py lies below the candidates and planner.py above them, both at the root of redistribute; the same of ops, whose
# model.py lies below the tiles. test/unit/redistribute/test_layers.py holds the files to their order.
CIRCLES_OF_PACKAGES: list[set[str]] = [
    {"shardpass.ops", "shardpass.ops.tiles"},
    {"shardpass.redistribute", "shardpass.redistribute.candidates"},
]


def modules(root: Path) -> dict[str, Path]:
    """Every module of the package at ``root`` by its dotted name; a package's name stands for its ``__init__``."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """The dotted names that ``tree`` imports, those of ``from x import y`` as ``x.y``; relative to ``package``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def imports_of_files(root: Path) -> dict[str, set[str]]:
    files = modules(root)
    graph = {}
    for name, path in files.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        names = imported(ast.parse(path.read_text(encoding="utf-8")), package)
        targets = (full if full in files else full.rpartition(".")[0] for full in names)
        graph[name] = {target for target in targets if target in files}
    return graph


def imports_of_packages(root: Path) -> dict[str, set[str]]:
    files = modules(root)
    packages = {name for name, path in files.items() if path.name == "__init__.py"}

    def package_of(name: str) -> str:
        return name if name in packages else name.rpartition(".")[0]

    graph: dict[str, set[str]] = {package: set() for package in packages}
    for name, targets in imports_of_files(root).items():
        for target in map(package_of, targets):
            re_exported = name in packages and target.startswith(f"{name}.")
            if target != package_of(name) and not re_exported:
                graph[package_of(name)].add(target)
    return graph


def reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    left = list(graph[start])
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += graph[name]
    return found


def circles(graph: Graph) -> list[set[str]]:
    """The sets of nodes that all reach each other (strongly connected components), without those of one node."""
    reach = {name: reached(graph, name) for name in graph}
    found: dict[frozenset[str], None] = {}
    for name in sorted(graph):
        if name in reach[name]:
            found[frozenset({name, *(other for other in reach[name] if name in reach[other])})] = None
    return [set(circle) for circle in found]


def shortest(graph: Graph, circle: Collection[str]) -> list[str]:
    """A shortest way round inside ``circle``, which ends where it began."""
    ways = []
    for start in sorted(circle):
        before: dict[str, str] = {}
        level = [start]
        while level and start not in before:
            following = []
            for name in level:
                for target in sorted(set(graph[name]) & set(circle)):
                    if target not in before:
                        before[target] = name
                        following.append(target)
            level = following
        way = [start, before[start]]
        while way[-1] != start:
            way.append(before[way[-1]])
        ways.append(way[::-1])
    return min(ways, key=len)


def complaints(graph: Graph, listed: Iterable[set[str]]) -> list[str]:
    """A sentence for each circle that is not listed, and for each listed one that is there no more."""
    there, known = circles(graph), list(listed)
    new = [f"{' -> '.join(shortest(graph, c))}; all of this circle: {sorted(c)}" for c in there if c not in known]
    gone = [f"this circle is gone or smaller, take it off the list: {sorted(c)}" for c in known if c not in there]
    return new + gone


def test_no_circles_between_files() -> None:
    assert complaints(imports_of_files(ROOT), CIRCLES_OF_FILES) == []


def test_no_circles_between_packages() -> None:
    assert complaints(imports_of_packages(ROOT), CIRCLES_OF_PACKAGES) == []


# ------------------------------------------------------------------------------------- the check itself


def package(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "p"


@pytest.mark.parametrize(
    "text",
    [
        "from p.a import x",
        "import p.a",
        "from p import a",
        "from .a import x",
        "from . import a",
        "def f():\n    from p.a import x",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import x",
    ],
)
def test_every_kind_of_import_counts(tmp_path: Path, text: str) -> None:
    root = package(tmp_path, {"__init__.py": "", "a.py": "from p.b import y", "b.py": text})
    assert circles(imports_of_files(root)) == [{"p.a", "p.b"}]
    (complaint,) = complaints(imports_of_files(root), [])
    assert complaint.startswith("p.a -> p.b -> p.a;")


def test_a_listed_circle_must_exist() -> None:
    graph = defaultdict(set, {"a": {"b"}, "b": {"a"}, "c": {"a"}})
    assert complaints(graph, [{"a", "b"}]) == []
    (complaint,) = complaints(graph, [{"a", "b"}, {"b", "c"}])
    assert "take it off the list: ['b', 'c']" in complaint


def test_packages(tmp_path: Path) -> None:
    files = {
        "__init__.py": "", "a/__init__.py": "from p.a.part.x import x", "a/one.py": "from p.b import two",
        "a/part/__init__.py": "", "a/part/x.py": "from p.a.one import y", "b/__init__.py": "", "b/two.py": "",
        "b/three.py": "from p.a.one import z",
    }  # fmt: skip
    root = package(tmp_path, files)
    assert circles(imports_of_files(root)) == []
    assert circles(imports_of_packages(root)) == [{"p.a", "p.b"}]
