"""Input that wants harm: control characters in names, bytes that are no text, numbers without end, depth."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shardpass
from shardpass.cli import check, explain, opt, plan, run
from shardpass.diagnostics import Diagnostic, Severity, ShardpassError, printable
from shardpass.ir.depth import MOST, too_deep

MODULE = """
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
    -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) {
  %0 = stablehlo.sine %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
TORN = "\udcff"  # Python's name for the byte 0xff of a command line
LONG = "9" * 5000


def ends(capsys: pytest.CaptureFixture[str], status: int, expected: int) -> str:
    said = capsys.readouterr()
    assert status == expected
    assert "SP199" not in said.err
    return said.err


def test_control_characters_are_shown_and_not_sent() -> None:
    found = Diagnostic(Severity.ERROR, "SP000", "the axis \x1b[31m\x07\x9bx", remedy="a\tb")
    assert str(found) == "error: the axis \\x1b[31m\\x07\\x9bx [SP000]\n    help: a\\tb"


def test_printable_text_can_be_encoded() -> None:
    assert printable(f"a{TORN}\u00e9") == "a\\udcff\u00e9"


def test_an_axis_with_an_escape_in_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the report of every command, on stdout and stderr."""
    path = tmp_path / "m.mlir"
    path.write_text(
        'sdy.mesh @m = <["a\\1B[31m"=2]>\n'
        'func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a\\1B[31m"}, {}]>})\n'
        '    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"a\\1B[31m"}]>}) {\n'
        "  return %x : tensor<8x8xf32>\n}\n"
    )
    for command in (check.main, explain.main):
        assert command([str(path)]) in (0, 1)
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        assert said.out + said.err


def test_bytes_that_are_no_text_as_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    assert "SP120" in ends(capsys, opt.main([f"/no/{TORN}.mlir"]), 1)
    assert "<pipeline>:1:4: error: expected UTF-8" in ends(capsys, opt.main([str(path), f"cse{TORN}"]), 1)
    assert "SP406" in ends(capsys, plan.main([f"f32{TORN}[8]", "{replicated}", "{replicated}"]), 1)
    assert "SP001" in ends(capsys, plan.main(["f32[8]", f"{{{TORN}}}", "{replicated}"]), 1)


@pytest.mark.parametrize("count", ["0", "-1", "x", "4097", "100000", LONG])
def test_numbers_of_devices(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = ends(capsys, run.main(["m.mlir", "partition", f"--devices={count}"]), 2)
    assert "is not a number of devices: give an integer from 1 to 4,096" in said
    assert len(said) < 1000


def test_numbers_without_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    assert "SP406" in ends(capsys, plan.main([f"f32[{LONG}]", "{replicated}", "{replicated}"]), 1)
    assert "error" in ends(capsys, plan.main(["f32[8]", f"{{devices=[{LONG}]<=[2]}}", "{replicated}"]), 1)
    assert "SP107" in ends(capsys, opt.main([str(path), f"shardpass-hoist{{most={LONG}}}"]), 1)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_bytes(b"\xef\xbb\xbf" + MODULE.encode())
    assert opt.main([str(path), "partition"]) == 0
    assert "stablehlo.sine" in capsys.readouterr().out


# --- depth

NESTS = {
    "modules": lambda n: "module {" * n + "}" * n,
    "attributes": lambda n: "module attributes {x.a = " + "[" * n + "]" * n + "} {}",
    "types": lambda n: f"func.func private @f({'tuple<' * n}tensor<4xf32>{'>' * n})",
    "regions": lambda n: 'module { "x.op"() ({' * n + '"x.end"() : () -> () }) : () -> () }' * n,
}


@pytest.mark.parametrize("kind", NESTS)
def test_what_nests_too_deep_is_refused_before_the_parser_sees_it(kind: str) -> None:
    """In a process of its own: the parser would end it."""
    code = (
        "import sys\nfrom shardpass.ir.context import parse_module\nfrom shardpass.diagnostics import ShardpassError\n"
        "try:\n    parse_module(sys.stdin.read(), 'deep.mlir')\n"
        "except ShardpassError as error:\n    print(error.code, error)\n"
    )
    text = "\n" + NESTS[kind](100_000)
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("SP124 deep.mlir:2: error: MLIR's parser gave up"), done.stderr[-500:]
    assert done.returncode == 0


@pytest.mark.parametrize("text", ['"' + "({[<" * MOST + '"', "//" + "(" * (2 * MOST), "-> " * (2 * MOST) + "()" * MOST])
def test_brackets_that_do_not_nest(text: str) -> None:
    assert too_deep(text.encode()) is None
    assert too_deep((text + "\n" + "(" * (MOST + 1)).encode()) == (2, MOST + 1)


def test_an_escaped_quote_does_not_end_a_string() -> None:
    assert too_deep(b'"\\"' + b"(" * (MOST + 1) + b'"') is None
    assert too_deep(b'"\\"' + b")" * MOST + b'"' + b"(" * (MOST + 1)) == (1, MOST + 1)


def test_the_deepest_that_is_let_through_is_parsed() -> None:
    levels = MOST // 2 - 10
    text = "func.func @main(%p: tensor<i1>) {" + '"stablehlo.if"(%p) ({' * levels
    text += "stablehlo.return" + "}, {stablehlo.return}) : (tensor<i1>) -> () stablehlo.return" * (levels - 1)
    text += "}, {stablehlo.return}) : (tensor<i1>) -> () return }"
    done = subprocess.run(
        [sys.executable, "-c", "from shardpass.cli.opt import main; raise SystemExit(main())", "-"],
        input=text, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


# --- constants beside the module

BESIDE = """
func.func @main(%x: tensor<4x{t}> {{mhlo.sharding = "{{devices=[2]<=[2]}}"}}) -> tensor<4x{t}> {{
  %c = stablehlo.constant dense_resource<{name}> : tensor<4x{t}>
  %0 = stablehlo.add %x, %c : tensor<4x{t}>
  return %0 : tensor<4x{t}>
}}
{{-# dialect_resources: {{ builtin: {{ other: "0x0400000001000000", {name}: "0x04000000{hex}" }} }} #-}}
"""


@pytest.mark.parametrize("element", ["f32", "i8", "f64", "i32"])
@pytest.mark.parametrize("name", ["blob", "torch.weights_0"])
def test_elements_that_stand_beside_the_module(element: str, name: str) -> None:
    kind = {"f32": np.float32, "i8": np.int8, "f64": np.float64, "i32": np.int32}[element]
    values = np.array([1, 2, -3, 4], kind)
    text = BESIDE.format(t=element, name=name, hex=values.tobytes().hex().upper())
    module = shardpass.run_pipeline(text, "partition")
    assert "dense_resource" not in str(module).split("{-#")[0]
    if element != "f64":  # JAX would make it f32
        given = np.array([10, 20, 30, 40], kind)
        np.testing.assert_array_equal(np.asarray(shardpass.compile(module)(given)[0]), given + values)


def test_elements_that_are_missing() -> None:
    text = BESIDE.format(t="f32", name="blob", hex="00" * 16).replace('blob: "', 'blub: "')
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(text, "import", filename="m.mlir")
    (found,) = caught.value.diagnostics
    assert (found.code, found.place.line) == ("SP234", 3)
    assert "dense_resource<blob>" in found.message


@pytest.mark.parametrize(
    "body",
    [
        'func.func @"\\FFother"(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }\n'
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }",
        'func.func @main(%x: tensor<2xf32> {mhlo.sharding = "{replicated}\\FF"}) -> tensor<2xf32> '
        "{ return %x : tensor<2xf32> }",
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> "
        '{ %0 = stablehlo.custom_call @"\\FFcall"(%x) : (tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> }',
    ],
    ids=["function", "annotation", "call"],
)
def test_names_that_are_no_text_are_an_error_with_a_remedy(
    body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(body)
    assert opt.main([str(path), "partition"]) == 1
    said = capsys.readouterr().err
    assert "that is not UTF-8, or a name with a NUL [SP135]" in said
    assert "internal" not in said


FORGED = "a\nb.mlir: error: forged \u202e.mlir"


@pytest.mark.parametrize("command", ["check", "explain", "run", "suggest", "opt"])
def test_a_file_name_begins_no_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Of each command, where it succeeds and where the module is none."""
    monkeypatch.chdir(tmp_path)
    more = {"run": ["partition", "--devices", "2"], "suggest": ["--mesh", "x=2"], "opt": ["import"]}.get(command, [])
    main = importlib.import_module(f"shardpass.cli.{command}").main
    for text in (MODULE, "no module"):
        Path(FORGED).write_text(text)
        main([FORGED, *more])
        said = capfd.readouterr()
        shown = said.out + said.err
        assert "\u202e" not in shown
        assert not any(line.startswith("b.mlir") for line in shown.splitlines())
    assert "a\\nb.mlir: error: forged \\u202e.mlir" in shown


def test_review_tools_get_names_that_show_what_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(FORGED).write_text(MODULE.replace("2,1", "3\u202e,1"))
    assert check.main([FORGED, "--format", "sarif"]) == 1
    (result, *_) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%0Ab.mlir%3A%20error%3A%20forged%20%E2%80%AE.mlir"  # RFC 3986, of UTF-8
    assert "\u202e" not in json.dumps(result, ensure_ascii=False)


def test_pages_show_what_names_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    split = '"{devices=[2,1]<=[2]}"}'
    Path(FORGED).write_text(MODULE.replace(split, split + ' loc("w\\E2\\80\\AE")', 1))
    assert explain.main([FORGED, "--html", "page.html"]) == 0
    page = Path("page.html").read_text()
    assert "\u202e" not in page
    assert "\\u202e" in page
    data = re.search(r'id="data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert "w\\u202e" in json.dumps(json.loads(data[1]), ensure_ascii=False).replace("\\\\", "\\")
    assert "\u202e" not in json.dumps(json.loads(data[1]), ensure_ascii=False)
