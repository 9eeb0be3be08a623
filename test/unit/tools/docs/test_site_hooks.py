"""The site has a page for each code, and a table of all; links and anchors of docs/diagnostics.md hold in both."""

import re

from shardpass.diagnostics.core import codes
from tools.docs.site_hooks import code_pages, code_table
from tools.processes import ROOT

DIAGNOSTICS = (ROOT / "docs" / "diagnostics.md").read_text()


def test_every_code_has_a_page() -> None:
    pages = code_pages(DIAGNOSTICS)
    assert set(pages) == {f"diagnostics/{row.id}.md" for row in codes()}
    for row in codes():
        assert pages[f"diagnostics/{row.id}.md"].startswith(f"# {row.id} (")


def test_links_of_pages_name_files() -> None:
    for name, text in code_pages(DIAGNOSTICS).items():
        for target in re.findall(r"\]\(([^)#]+)", text):
            if "://" not in target:
                assert ((ROOT / "docs" / name).parent / target).resolve().exists(), (name, target)


def test_table_has_a_row_and_the_anchor_of_each_code() -> None:
    table = code_table(DIAGNOSTICS)
    rows = re.findall(
        r'^\| <span id="(sp\d{3})-\w+"></span>\[(SP\d{3})\]\(diagnostics/SP\d{3}\.md\) \|', table, re.MULTILINE
    )
    assert [code for _, code in rows] == [row.id for row in codes()]
    assert all(anchor == code.lower() for anchor, code in rows)
    assert "### " not in table


def test_bars_in_messages_do_not_end_cells() -> None:
    page = "# D\n\n## SP0xx: Things\n\n### SP001 (error)\n\na | b\n\nMore.\n"
    assert code_table(page) == (
        "# D\n\n## SP0xx: Things\n\n| code | severity | message |\n|---|---|---|\n"
        '| <span id="sp001-error"></span>[SP001](diagnostics/SP001.md) | error | a \\| b |\n'
    )
