"""The tables of codes as a whole, and the pages that are made from them."""

import ast
import importlib
import re
import string
from pathlib import Path

import pytest

from shardpass.diagnostics import pages
from shardpass.diagnostics.core import codes
from tools.docs import make_docs

ROOT = Path(__file__).parents[3]
SERIES = {
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
HEADS = re.findall(r"^\[(.*)\]$", (ROOT / "shardpass/diagnostics/messages.ini").read_text(), re.MULTILINE)
NAMES = [head.split()[1] for head in HEADS]


def test_every_section_has_an_id_and_a_name_of_its_own():
    assert all(re.fullmatch(r"SP\d{3} [A-Z_0-9]+", head) for head in HEADS)
    ids = [head.split()[0] for head in HEADS]
    assert ids == [row.id for row in sorted(codes(), key=lambda row: ids.index(row.id))]
    assert len(set(ids)) == len(ids) > 250
    series = [(id[2], name) for id, name in zip(ids, NAMES, strict=True)]
    assert len(set(series)) == len(series), "a name occurs twice in a series"


@pytest.mark.parametrize("table", SERIES)
def test_a_table_gives_the_codes_of_its_series_by_their_names(table):
    module = importlib.import_module(f"shardpass.diagnostics.{table}")
    for head in HEADS:
        id, name = head.split()
        if id[2] in SERIES[table]:
            assert getattr(module, name).id == id
    with pytest.raises(AttributeError):
        _ = module.NO_SUCH_NAME


def test_every_name_that_is_imported_from_a_table_is_in_it_and_every_name_is_used():
    """No type checker sees the names: they are looked up in messages.ini."""
    used = set()
    for path in [*(ROOT / "shardpass").rglob("*.py"), *(ROOT / "tools").rglob("*.py"), *(ROOT / "test").rglob("*.py")]:
        text = path.read_text()
        if "table_" not in text or path == Path(__file__):
            continue
        aliases = {}  # how the file calls a table
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "shardpass.diagnostics":
                aliases |= {one.asname or one.name: one.name for one in node.names if one.name in SERIES}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shardpass.diagnostics.table_"):
                module = importlib.import_module(node.module or "")
                assert all(hasattr(module, one.name) for one in node.names), f"{path}: {ast.unparse(node)}"
                used.update(one.name for one in node.names)
        for node in ast.walk(ast.parse(text)) if aliases else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
                module = importlib.import_module(f"shardpass.diagnostics.{aliases[node.value.id]}")
                assert hasattr(module, node.attr), f"{path}:{node.lineno}: {node.attr}"
                used.add(node.attr)
    assert set(NAMES) - used == set()


def test_templates_are_well_formed():
    for row in codes():
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
    for row in codes():
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
