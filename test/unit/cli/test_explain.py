"""The collectives' report: text, JSON and HTML of hostile and of empty input."""

import json
from html.parser import HTMLParser

import pytest

from shardpass.cli.explain import explain
from shardpass.diagnostics import Place, ShardpassError
from shardpass.ir.collectives import CollectiveUse
from shardpass.report.collectives import Explanation, show_bytes, table, text, to_html, to_json


def use(kind="all_gather", size=4096, **fields):
    given = {
        "kind": kind, "axes": "x", "operand": "tensor<4xf32>", "result": "tensor<8xf32>", "group_size": 2,
        "bytes_received": size, "place": Place("m.py", 3, 1), "reason": "operand 0 of dot", "in_loop": False,
    }  # fmt: skip
    return CollectiveUse(**{**given, **fields})


def found(*uses):
    return Explanation("m.mlir", 4, "mesh['x'=4]", uses)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 50, "5120.0 TiB")],
)
def test_bytes_have_units(count, shown):
    assert show_bytes(count) == shown


def test_the_report_counts_and_adds():
    lines = text(found(use(), use("all_reduce", 1024), use())).splitlines()
    assert lines[0] == "m.mlir: 4 devices mesh['x'=4]: 3 collectives, each device receives 9.0 KiB"
    assert lines[-2:] == ["2 x all_gather: 8.0 KiB", "1 x all_reduce: 1.0 KiB"]


def test_nothing_is_said_in_one_line():
    assert text(Explanation("m.mlir", 1, "", ())) == "m.mlir: 1 device: no collectives"


def test_rows_are_one_line_each_where_the_width_is_free():
    long = use(reason="because " * 40)
    assert len(table([long, use()]).splitlines()) == 3


def test_rows_are_wrapped_and_not_cut_in_a_terminal():
    folded = table([use(reason="word " * 30)], width=80)
    assert all(len(line) <= 80 for line in folded.splitlines())
    assert folded.count("word") == 30


def test_markup_in_names_is_text():
    assert "[red]" in table([use(reason="[red]x[/red]")])


def test_loops_are_pointed_out():
    shown = text(found(use(in_loop=True)))
    assert "4.0 KiB in a loop" in shown
    assert "counted for one time round" in shown


def test_json_holds_plain_values():
    read = json.loads(to_json(found(use(), use("all_reduce", 1024))))
    assert read["devices"] == 4
    assert read["total_bytes_received"] == 5120
    assert read["collectives"][1]["kind"] == "all_reduce"
    assert read["collectives"][0]["file"] == "m.py"


class Page(HTMLParser):
    """Checks that tags close in order, and keeps the rows' cells."""

    def __init__(self, source):
        super().__init__()
        self.open, self.cells, self.tags = [], 0, set()
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.cells += tag == "td"


def test_the_page_is_well_formed_and_stands_alone():
    source = to_html(found(use(), use()))
    page = Page(source)
    assert page.open == []
    assert page.cells == 14
    assert not page.tags & {"link", "img", "iframe"}
    assert "http" not in source


def test_names_cannot_break_out_of_the_page():
    evil = "<script>alert(1)</script>\"'>"
    source = to_html(Explanation(evil, 2, evil, (use(reason=evil, axes=evil, place=Place(evil, 1, 1)),)))
    Page(source)
    assert source.count("<script>") == 1  # the page's own
    assert source.count("alert(1)&lt;/script&gt;") >= 4


def test_source_lines_are_shown_where_the_file_is_there(tmp_path):
    program = tmp_path / "p.py"
    program.write_text("a\nb = x < y\n")
    assert "b = x &lt; y" in to_html(found(use(place=Place(str(program), 2, 1))), [tmp_path])


def test_what_cannot_be_partitioned_is_an_error():
    with pytest.raises(ShardpassError, match="SP201"):
        explain(b"func.func @other() { return }", "m.mlir")


# --- lines that a page quotes


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A file of the user's below the working directory, and one beside it that is nobody's business."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "model.py").write_text("import jax\ny = x @ w  # product\n")
    (tmp_path / "secret.txt").write_text("root:x:0:0\n")
    monkeypatch.chdir(work)
    return tmp_path


def quoted(place, folders=None):
    return 'class="source"' in to_html(found(use(place=place)), folders)


def test_a_line_below_the_working_directory_is_quoted(program):
    assert "y = x @ w  # product" in to_html(found(use(place=Place("model.py", 2, 1))))
    assert quoted(Place(str(program / "work" / "model.py"), 2, 1))


@pytest.mark.parametrize("name", ["{}/secret.txt", "../secret.txt", "/etc/passwd", "/dev/zero", "/dev/stdin", "\0", ""])
def test_a_file_that_a_stranger_names_is_not_read(program, name):
    assert not quoted(Place(name.format(program), 1, 1))


def test_a_link_out_of_the_working_directory_is_not_followed(program):
    (program / "work" / "link.py").symlink_to(program / "secret.txt")
    assert not quoted(Place("link.py", 1, 1))


def test_what_is_no_file_or_too_large_is_not_read(program):
    import os

    os.mkfifo(program / "work" / "pipe")
    with (program / "work" / "large.py").open("wb") as file:
        file.truncate(5 << 20)
    for name in ("pipe", "large.py", "."):
        assert not quoted(Place(name, 1, 1))


def test_a_folder_that_the_user_names_is_quoted_from(program):
    assert quoted(Place(str(program / "secret.txt"), 1, 1), [program])


def test_lines_past_the_end_are_not_quoted(program):
    assert not quoted(Place("model.py", 99, 1))
