"""The tables of codes as a whole, and the pages that are made from them."""

import re
import string
from pathlib import Path

import pytest

from shardpass.diagnostics import pages
from tools import catalogue
from tools.docs import make_docs

ROOT = Path(__file__).parents[3]
FILES = {
    "table_sharding": "0",
    "table_driver": "1",
    "table_passes": "23",
    "table_redistribute": "4",
    "table_runtime": "5",
    "table_jax": "6",
    "table_report": "6",
    "table_testing": "6",
    "table_explicit": "8",
    "table_suggest": "8",
    "table_onnx": "7",
    "table_cost": "9",
    "table_proving": "9",
}


def test_every_code_stands_once_in_the_table_of_its_number():
    assert len(catalogue.codes()) > 50
    for module, row in catalogue.tables():
        assert re.fullmatch(r"SP\d{3}", row.id)
        assert row.id[2] in FILES[module], f"{row.id} does not belong into {module}"


def test_templates_are_well_formed():
    for row in catalogue.codes():
        for template in (row.message, row.remedy):
            names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
            assert all(name.isidentifier() for name in names), f"{row.id}: {template}"
        assert row.message
        assert not row.message.endswith("."), f"{row.id}: a message is one clause without a full stop"


def test_doubled_braces_are_shown_as_people_see_them():
    assert pages._template("write {{x}} for {value:.2f} <now>") == "write {x} for `{value}` &lt;now>"


def test_a_value_inside_of_code_needs_no_mark_of_its_own():
    assert pages._template("`--n {count}` of {{{all}}} `<x>`") == "`--n {count}` of {`{all}`} `<x>`"


def test_every_row_is_explained_and_says_what_to_do():
    for row in catalogue.codes():
        assert row.explanation.endswith((".", ".)")), f"{row.id} has no explanation of whole sentences"
        assert row.remedy, f"{row.id} has no remedy"


@pytest.mark.parametrize("name", sorted(make_docs.PAGES))
def test_the_page_is_not_stale(name):
    assert (ROOT / "docs" / name).read_text() == make_docs.render(name), "run `make docs`"


def test_check_names_the_stale_pages(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(make_docs, "DOCS", tmp_path)
    monkeypatch.setattr("sys.argv", ["make_docs.py", "--check"])
    for name in make_docs.PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(make_docs.render(name))
    assert make_docs.main() == 0
    (tmp_path / "passes.md").write_text("old")
    assert make_docs.main() == 1
    assert capsys.readouterr().err == "docs/passes.md is stale: run `make docs`\n"
