"""The report: text, JSON and HTML of hostile and of empty input."""

import base64
import hashlib
import itertools
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from shardpass.advise.find.source import unified
from shardpass.cli.explain import explain, main
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.report.explanation import Explanation
from shardpass.report.findings import DROP, Figures, Finding, Findings
from shardpass.report.naming import Sources
from shardpass.report.page import to_html
from shardpass.report.rows import BACKWARD, HintFact, MemoryFacts, Row
from shardpass.report.text import show_bytes, text
from shardpass.sharding import AxisRef


def use(kind="all_gather", size=4096, **fields):
    given = {"axes": ("x",), "group_size": 2, "place": Place("m.py", 3, 1), "reason": "dot takes it whole"}
    return Row(kind, bytes_each=size, **{**given, **fields})


def found(*rows, folders=(), **fields):
    return Explanation("m.mlir", 4, (("x", 4),), rows, sources=Sources(folders), **fields)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 50, "5120.0 TiB")],
)
def test_bytes_have_units(count, shown):
    assert show_bytes(count) == shown


def test_the_report_counts_and_adds():
    lines = text(found(use(), use("all_reduce", 1024), use())).splitlines()
    assert lines[0] == "m.mlir: 4 devices, x=4"
    assert lines[1].startswith("each device receives 9.0 KiB in 3 collectives, ")
    assert lines[-2:] == ["2 x all_gather: 8.0 KiB", "1 x all_reduce: 1.0 KiB"]


def test_nothing_is_said_in_two_lines():
    assert text(Explanation("m.mlir", 1, (), ())) == "m.mlir: 1 device\nno collectives"


def test_what_repeats_is_folded_and_the_dearest_comes_first():
    layers = [use(array=f"p[{k}]['w']", size=100, place=Place("m.py", 9, 1)) for k in range(24)]
    shown = text(found(use(size=3000), *layers))
    assert "24 x all_gather over x: p[*]['w']" in shown
    assert shown.index("m.py:3") < shown.index("m.py:9")
    program = text(found(*layers, use(size=3000)), sort="program")
    assert program.index("m.py:9") < program.index("m.py:3")
    assert " 56%    2.9 KiB " in shown  # 3000 of 5400


def test_groups_are_of_lines_axes_kinds_or_arrays():
    report = found(use(), use("all_reduce", 10, axes="y"), use(size=6, axes="y", array="w[1]"))
    assert [(one.key, one.bytes_received) for one in report.by_axis()] == [("x", 4096), ("y", 16)]
    assert [(one.key, one.bytes_received) for one in report.by_line()] == [("m.py:3", 4112)]
    assert [one.key for one in report.grouped("kind")] == ["all_gather", "all_reduce"]
    assert [one.key for one in report.grouped("array")] == ["", "w[*]"]


FIT, LIBRARY = Place("train.py", 3, 1), (Place("lib/a.py", 1), Place("lib/a.py", 5))


def trained(*more):
    """900 bytes at one line that calls a library, of which 600 at one of its lines, by two scopes; 100 elsewhere."""
    sizes = [(400, (LIBRARY[0], "head")), (200, (LIBRARY[0], "tail")), (200, (LIBRARY[1],)), (100, ())]
    rows = [use("all_gather", size, array=f"a{size}", place=FIT, path=path) for size, path in sizes]
    return found(*rows, use("all_reduce", 100, place=Place("train.py", 9, 1)), *more)


def test_a_line_that_holds_most_is_a_tree():
    lines = [line.split("us  ")[1] for line in text(trained()).splitlines() if "us  " in line]
    assert lines == ["train.py:3", "  a.py:1", "    head", "    tail", "  a.py:5", "  train.py:3", "train.py:9"]
    tree = json.loads(trained().json())["lines"]
    assert [(line["place"], line["bytes_received"], line["collectives"]) for line in tree] == [
        ("train.py:3", 900, [0, 1, 2, 3]),
        ("train.py:9", 100, [4]),
    ]
    first, second, own = tree[0]["parts"]
    assert (first["place"], first["bytes_received"], first["collectives"]) == ("lib/a.py:1", 600, [0, 1])
    assert [(part["place"], part["collectives"]) for part in first["parts"]] == [("head", [0]), ("tail", [1])]
    assert (second["place"], second["parts"], own["place"], own["collectives"]) == ("lib/a.py:5", [], "train.py:3", [3])
    data = Page(to_html(trained())).data["groups"]["line"]
    assert [part["full"] for part in data[0]["parts"]] == ["lib/a.py:1", "lib/a.py:5", "train.py:3:1"]
    assert [part["place"] for part in data[0]["parts"][0]["parts"]] == ["head", "tail"]


def test_a_line_below_a_fifth_of_all_bytes_is_no_tree():
    report = trained(use("all_reduce", 3600, place=Place("train.py", 10, 1)))  # 900 of 4600
    assert all(line["parts"] == [] for line in json.loads(report.json())["lines"])
    assert "a.py:1" not in text(report)


def test_a_tree_of_many_parts_fits_one_screen_unless_all_is_asked_for():
    """40 parts, in each 3 collectives: of the dearest a row is shown, and most parts are summed up."""
    rows = [
        use("all_gather", 100 + k, array=f"a{k}", place=FIT, path=(Place("lib/a.py", k // 3), f"s{k}"))
        for k in range(120)
    ]
    short = text(found(*rows)).splitlines()
    assert len(short) <= 40
    assert "a.py:39" in "".join(short)
    left = show_bytes(sum(100 + k for k in range(108)))  # 36 of the parts
    assert any(line.endswith(f"and 36 more here: {left}") for line in short)
    whole = text(found(*rows), top=0)
    assert all(f"a.py:{k}\n" in whole for k in range(40))


def test_what_has_no_line_is_at_its_scope():
    rows = [use(place=NOWHERE, path=("encoder", "mlp")), use("all_reduce", 1, place=NOWHERE, path=("jit(f)/psum",))]
    report = found(*rows)
    assert "  encoder/mlp\n" in text(report)
    assert "  jit(f)/psum\n" in text(report)
    assert " at encoder/mlp" in text(report, by="kind")
    assert [line["place"] for line in json.loads(report.json())["lines"]] == ["encoder/mlp", "jit(f)/psum"]
    data = Page(to_html(report)).data
    assert [group["place"] for group in data["groups"]["line"]] == ["encoder/mlp", "jit(f)/psum"]
    assert [row["place"] for row in data["rows"]] == ["encoder/mlp", "jit(f)/psum"]


def test_no_line_is_longer_than_the_terminal_and_no_word_is_lost():
    wide = use(
        reason="word " * 30, array="name_of_an_array", source="P('x')", target="P(None, 'x')", direction=BACKWARD
    )
    shown = text(found(wide, memory=MemoryFacts(10**9, 10**9, 10**9)), 80)
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert shown.count("word") == 30
    assert "P('x') -> P(None, 'x')" in shown


def test_many_lines_fit_one_screen_unless_all_are_asked_for():
    rows = [use(size=k + 1, place=Place("m.py", k + 1, 1)) for k in range(300)]
    lines = text(found(*rows)).splitlines()
    assert len(lines) <= 40
    (rest,) = [line for line in lines if line.startswith("and ")]
    assert rest.startswith(f"and {300 - sum('m.py:' in line for line in lines)} lines more")
    assert sum("m.py:" in line for line in text(found(*rows), top=0).splitlines()) == 300
    assert sum("m.py:" in line for line in text(found(*rows), top=2).splitlines()) == 2


def test_markup_in_names_is_text():
    assert "[red]" in text(found(use(reason="[red]x[/red]")))


def test_loops_are_multiplied():
    report = found(use(times=12), use(size=10))
    assert report.total_bytes_received == 12 * 4096 + 10
    assert report.runs == 13
    assert "13 x all_gather" in text(report)


def test_loops_of_unknown_length_are_told_and_a_range_is_shown():
    report = found(use(unknown_loops=1), use(size=10), trips=100)
    assert "1 collective in loops whose trips are not known" in text(report)
    assert f"{show_bytes(4106)} to {show_bytes(409610)}" in text(report)
    assert json.loads(report.json())["total_bytes_received_at_most"] == 409610


def test_a_branch_that_is_not_the_dearest_counts_nothing():
    report = found(use(counted=False), use(size=10))
    assert report.total_bytes_received == 10
    assert "in a branch that receives less" in text(report)


def test_json_holds_plain_values():
    read = json.loads(found(use(times=3), use("all_reduce", 1024)).json())
    assert read["devices"] == 4
    assert read["mesh"] == {"x": 4}
    assert read["total_bytes_received"] == 3 * 4096 + 1024
    assert read["collectives"][1]["kind"] == "all_reduce"
    assert read["collectives"][0]["file"] == "m.py"
    assert (read["collectives"][0]["bytes_each"], read["collectives"][0]["bytes_received"]) == (4096, 3 * 4096)


class Page(HTMLParser):
    """Checks that tags close in order, and reads the page's data."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.scripts, self.title = [], set(), [], ""
        self.feed(source)
        self.close()
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        if self.open[-1:] == ["title"]:
            self.title += data


def test_the_page_is_well_formed_and_stands_alone():
    source = to_html(found(use(), use()))
    page = Page(source)
    assert page.open == []
    assert len(page.scripts) == 2  # the data, and what draws it
    assert len(page.data["rows"]) == 1
    assert not page.tags & {"link", "img", "iframe"}
    assert not re.search(r"https?:|src=|href=|@import|url\(['\"]?[^#'\"]", source.replace("url(#stripes-${key})", ""))


def test_the_page_allows_its_own_script_and_style_alone():
    """The hashes of the policy are those of the elements, as a browser takes them: of the text between the tags."""
    source = to_html(found(use()))
    (policy,) = re.findall(r'Content-Security-Policy"\s*content="([^"]*)"', source)
    assert policy.startswith("default-src 'none'; ")
    for element, rule in (("style", "style-src"), ("script", "script-src")):
        (body,) = re.findall(rf"<{element}>(.*?)</{element}>", source, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy


def test_the_page_is_the_same_each_time():
    assert to_html(found(use(), use("all_reduce"))) == to_html(found(use(), use("all_reduce")))


def test_the_page_has_the_numbers_of_the_report():
    """By addition here: what repeats is one row, and each grouping holds every byte once."""
    rows = [use(times=3, seconds=1.0), use("all_reduce", 10, axes="y", direction=BACKWARD, seconds=0.5), use(times=3)]
    data = Page(to_html(found(*rows))).data
    assert (data["bytes"], data["seconds"], data["runs"]) == (2 * 3 * 4096 + 10, 1.5, 7)
    assert [(row["kind"], row["count"], row["runs"], row["bytes"]) for row in data["rows"]] == [
        ("all_gather", 2, 6, 24576),
        ("all_reduce", 1, 1, 10),
    ]
    for groups in data["groups"].values():
        assert sum(group["bytes"] for group in groups) == data["bytes"]
        assert sorted(number for group in groups for number in group["rows"]) == [0, 1]
    forward, backward = data["bars"]["direction"]
    assert (forward["bytes"], backward["bytes"]) == (24576, 10)
    assert backward["parts"] == [{"axes": ["y"], "bytes": 10}]


def test_a_limit_and_hints_are_on_the_page():
    hint = HintFact("line", "x", "P('x')", "P()", Place("m.py", 3, 1), 100, 40, 0)
    data = Page(to_html(found(use(), memory=MemoryFacts(5, 6, 7), memory_limit=10, hints=(hint,)))).data
    assert (data["memory"]["total"], data["memory"]["limit"]) == (18, 10)
    assert [(one["code"], one["saves"]) for one in data["hints"]] == [("with_sharding_constraint(x, P('x'))", 60)]


def test_names_cannot_break_out_of_the_page():
    evil = "<script>alert(1)</script>\"'>"
    axis = AxisRef(evil).bare
    source = to_html(Explanation(evil, 2, ((evil, 2),), (use(reason=evil, axes=(axis,), place=Place(evil, 1, 1)),)))
    page = Page(source)
    assert source.count("<script") == source.count("</script") == 2  # the page's own
    assert page.title.startswith(evil)
    (row,) = page.data["rows"]
    assert (page.data["file"], row["reason"], row["axes"], row["full"]) == (evil, evil, [axis], f"{evil}:1:1")


def test_source_lines_are_shown_where_the_file_is_there(tmp_path):
    program = tmp_path / "p.py"
    program.write_text("a\nb = x < y\n")
    (row,) = Page(to_html(found(use(place=Place(str(program), 2, 1)), folders=[tmp_path]))).data["rows"]
    assert row["line"] == "b = x < y"


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
    (tmp_path / "secret.py").write_text("root:x:0:0\n")
    monkeypatch.chdir(work)
    return tmp_path


def quoted(place, folders=None):
    (row,) = Page(to_html(found(use(place=place), folders=[Path.cwd()] if folders is None else folders))).data["rows"]
    return bool(row["line"])


def test_a_line_below_the_working_directory_is_quoted(program):
    assert "y = x @ w  # product" in to_html(found(use(place=Place("model.py", 2, 1)), folders=[Path.cwd()]))
    assert quoted(Place(str(program / "work" / "model.py"), 2, 1))


@pytest.mark.parametrize("name", ["{}/secret.py", "../secret.py", "/etc/passwd", "/dev/zero", "/dev/stdin", "\0", ""])
def test_a_file_that_a_stranger_names_is_not_read(program, name):
    assert not quoted(Place(name.format(program), 1, 1))


def test_a_link_out_of_the_working_directory_is_not_followed(program):
    (program / "work" / "link.py").symlink_to(program / "secret.py")
    assert not quoted(Place("link.py", 1, 1))


def test_what_is_no_file_or_too_large_is_not_read(program):
    import os

    os.mkfifo(program / "work" / "pipe.py")
    with (program / "work" / "large.py").open("wb") as file:
        file.truncate(5 << 20)
    for name in ("pipe.py", "large.py", "."):
        assert not quoted(Place(name, 1, 1))


def test_a_folder_that_the_user_names_is_quoted_from(program):
    assert quoted(Place(str(program / "secret.py"), 1, 1), [program])


def test_lines_past_the_end_are_not_quoted(program):
    assert not quoted(Place("model.py", 99, 1))


# ---------------------------------------------------------------- formats and limits

SENDS = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<256x64xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<256x64xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.tanh %x : tensor<256x64xf32>
    return %0 : tensor<256x64xf32>
  }
}
"""  # a device receives 3/4 of 64 KiB


@pytest.mark.parametrize(("limit", "status"), [("48KiB", 1), ("49153", 0), ("1GiB", 0), ("0", 1)])
def test_fail_on_a_line_that_receives_so_much(tmp_path, capsys, limit, status):
    path = tmp_path / "m.mlir"
    path.write_text(SENDS)
    assert main([str(path), "--fail-on", limit]) == status
    shown = capsys.readouterr()
    assert ("SP626" in shown.err) == bool(status)
    assert main([str(path), "--fail-on", limit, "--format", "sarif"]) == status
    shown = capsys.readouterr()
    assert not shown.err
    results = json.loads(shown.out)["runs"][0]["results"]
    assert [(one["ruleId"], one["level"]) for one in results] == [("SP626", "error")] * status
    assert not status or results[0]["properties"] == {"bytes": 256 * 64 * 4 * 3 // 4}


def test_an_empty_program_fails_on_nothing(tmp_path, capsys):
    path = tmp_path / "m.mlir"
    path.write_text(SENDS.replace("{replicated}", "{devices=[4,1]<=[4]}"))
    assert main([str(path), "--fail-on", "0"]) == 0


def test_what_is_printed_goes_to_a_file(tmp_path, capsys):
    path, out = tmp_path / "m.mlir", tmp_path / "out"
    path.write_text(SENDS)
    for words, key in (
        (["--format", "json"], "collectives"),
        (["--json"], "collectives"),
        (["--emit", "perfetto"], "traceEvents"),
        (["--emit", "model-explorer"], "graphs"),
        (["--emit", "model-explorer-data"], str(path)),
        (["--format", "sarif"], "runs"),
    ):
        assert main([str(path), *words, "-o", str(out)]) == 0
        assert key in json.loads(out.read_text())
        assert not capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "--format", "sarif"),
        ("--format", "text", "--emit", "perfetto"),
        ("--html", "-", "--json"),
        ("--fail-on", "much"),
        ("--fail-on", "none"),
        ("--emit", "svg"),
    ],
)
def test_outputs_that_exclude_one_another_are_bad_usage(words, capsys):
    assert main(["m.mlir", *words]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_diffs_of_all_findings_are_one_patch(tmp_path, monkeypatch, capsys):
    """Witness: ``git apply``. The second diff is of the file with the first, as findings are."""
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    before = "a = 1\nb = 2\nc = 3\n"
    texts = [before, before.replace("1", "10"), before.replace("1", "10").replace("2", "20")]
    file = Path("train.py")
    file.write_text(before)
    figures = Figures(0, 0, 0, 0.0)
    diffs = [unified(str(file), *pair) for pair in itertools.pairwise(texts)]
    findings = Findings(tuple(Finding(DROP, "", (), (), figures, figures, diff) for diff in diffs))
    report = found(use(), find_findings=lambda: findings)
    monkeypatch.setattr("shardpass.cli.explain.explain", lambda *_, **__: report)
    Path("m.mlir").write_text("module {}")
    assert main(["m.mlir", "--patch", "fixes.diff"]) == 0
    assert "m.mlir" in capsys.readouterr().out
    subprocess.run(["git", "apply", "fixes.diff"], check=True)
    assert file.read_text() == texts[2]


def test_a_patch_without_a_diff_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(SENDS)
    assert main(["m.mlir", "--patch", "fixes.diff"]) == 0
    assert "no finding has a diff: fixes.diff is empty" in capsys.readouterr().err
    assert Path("fixes.diff").read_text() == ""
