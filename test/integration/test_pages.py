"""The pages of the site: their code runs and prints what they say, and nothing on any page stays untried."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import jax
import pytest
from support import pages

DOCS = pages.ROOT / "docs"
ALL = sorted(DOCS.rglob("*.md"))

# Pages whose code another test holds, which reads it in a way of its own.
ELSEWHERE = {
    "contributing.md": "integration/test_contributing.py",
    "device_sets.md": "integration/test_device_sets_page.py",
    "diagnostics.md": "unit/diagnostics/test_codes.py",
    "explain.md": "integration/test_explain_page.py",
    "howto/mistakes.md": "unit/tools/docs/test_cookbook.py",
    "jax.md": "unit/jax/test_jax_page.py",
    "ops.md": "integration/test_rules.py",
    "partitioning.md": "integration/test_partitioning_page.py",
    "passes.md": "unit/tools/docs/test_pass_pages.py",
    "propagation.md": "integration/test_propagation_page.py",
    "redistribution.md": "unit/redistribute/test_page.py",
    "sharding.md": "unit/sharding/test_docs.py",
    "suggest.md": "integration/test_suggest_page.py",
    "tutorial_explicit.md": "integration/test_jax_pages.py",
    "tutorial_jax.md": "unit/jax/test_jax_page.py",
}
# Pages with figures of XLA's compiler, which change with its version.
FIGURES_OF_XLA = {"howto/memory.md"}
LIBRARIES = {"howto/keras.md": "keras"}  # which `make setup` installs, and a smaller environment may lack
LONG = {"tutorial.md"}  # searches for edits take 20 seconds of the processor each
RUN = [page for page in ALL if page.relative_to(DOCS).as_posix() not in ELSEWHERE and pages.blocks(page)]


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def marked(page: Path) -> object:
    return pytest.param(page, marks=pytest.mark.long) if name(page) in LONG else page


@pytest.mark.parametrize("page", [*map(marked, RUN)], ids=name)
def test_the_code_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    if name(page) in FIGURES_OF_XLA and jax.version.__version_info__ >= (0, 12):
        pytest.skip("the page has the figures of XLA in jax 0.10")
    if name(page) in LIBRARIES and find_spec(LIBRARIES[name(page)]) is None:
        pytest.skip(f"no {LIBRARIES[name(page)]} here")
    printed = dict(pages.run(page, tmp_path))
    for block, text in pages.expected(page):
        assert pages.matches(text.text, printed[block]), f"{page.name}, line {text.line}: printed\n{printed[block]}"


@pytest.mark.parametrize("page", RUN, ids=name)
def test_every_block_is_of_a_kind_that_is_tried(page: Path) -> None:
    kinds = {block.language for block in pages.blocks(page) if not block.title}
    assert kinds <= {"python", "bash", "text"}


def test_pages_with_tests_of_their_own_have_them() -> None:
    for page, test in ELSEWHERE.items():
        if (DOCS / page).exists() and pages.blocks(DOCS / page):
            assert (pages.ROOT / "test" / test).exists(), f"{page}: no {test}"


@pytest.mark.parametrize(
    ("pattern", "printed", "same"),
    [
        ("a\n...\nb\n", "a\nx\ny\nb\n", True),
        ("a\n...\nb\n", "a\nb\n", True),
        ("took ... ms\n", "took 3.5 ms\n", True),
        ("took ... ms\n", "took 3.5 s\n", False),
        ("a\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_what_matches(pattern: str, printed: str, same: bool) -> None:
    assert pages.matches(pattern, printed) is same


@pytest.mark.parametrize("page", [*ALL, DOCS / "llms.txt", pages.ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_of_pages_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_figures_of_the_comparison_are_those_of_their_pages() -> None:
    """A benchmark that is run again changes its page; what the comparison quotes must change with it."""
    text = (DOCS / "comparison.md").read_text()
    models, programs = (DOCS / "models.md").read_text(), (DOCS / "underspecified.md").read_text()
    ours = re.findall(
        r"^- (?:bytes|memory): geometric mean of ours over the better peer ([\d.]+)", models, re.MULTILINE
    )
    right = re.findall(r"^- (?:shardpass|xla|shardy): right on (\d+) of 90", models, re.MULTILINE)
    little = re.findall(r"^- .*form over the best of all: geometric mean ([\d.]+)", programs, re.MULTILINE)
    assert len(ours) == 2
    assert len(right) == 3
    assert len(little) == 4
    for figure in (*ours, ", ".join(right), *little):
        assert f"| {figure} |" in text, figure
    rows = re.findall(r"^\| (XLA|best) \|.*$", (DOCS / "redistribution.md").read_text(), re.MULTILINE)
    assert len(rows) == 4  # two tables
    table = re.findall(r"^\| XLA \|(.*)\|$", (DOCS / "redistribution.md").read_text(), re.MULTILINE)
    times = [re.findall(r"[\d.]+", row) for row in table]
    assert f"| {times[0][1]} |" in text  # of 189 problems
    assert f"| {times[1][0]} |" in text  # of 34 problems


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (pages.ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert [name(page) for page in ALL if name(page) not in listed] == []


@pytest.mark.parametrize("page", ALL, ids=name)
def test_files_that_pages_name_exist(page: Path) -> None:
    named = re.findall(r"`((?:shardpass|tools|test)/[\w/]+(?:\.\w+|/))`", page.read_text())
    assert [path for path in named if not (pages.ROOT / path).exists()] == []
