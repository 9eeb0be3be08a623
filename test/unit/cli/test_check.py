"""shardpass-check on modules and ONNX models: what it prints in each format, what it writes, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardpass.cli.check import main

MODULE = """func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
"""


@pytest.fixture
def models() -> Any:
    pytest.importorskip("onnx")
    from support import onnx_models

    return onnx_models


def mismatch(models: Any) -> bytes:
    """Add of rows and columns: wrong; then Relu, which is in no list."""
    n, split = models.N, models.split
    nodes = [
        n("Add", "AB", "C", {"A": split([0, 1], (0, 2)), "B": split([0, 1], (1, 2))}),
        n("Abs", "A", "E", {"A": split([0, 1], (0, 2)), "E": split([0, 1], (1, 2))}),
    ]
    return models.model(nodes, {"A": [32, 1024], "B": [32, 1024]}).SerializeToString()


def test_an_onnx_model_is_known_by_its_bytes(models: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "no-extension"
    path.write_bytes(mismatch(models))
    assert main([str(path)]) == 1
    said = capsys.readouterr().err
    assert (
        f"{path}: error: ONNX-B1: node 'n0' (Add): axis 0 of 'B' is in one piece and axis 0 of 'A' in 2 shards" in said
    )
    assert "[SP731]" in said
    assert "help: split corresponding axes in the same way" in said
    # device 0 holds 16 of 32 rows, and is to hold 512 of 1024 columns: it lacks 16 * 512 floats
    assert "remark: ONNX-D4" in said
    assert "32768 bytes" in said


def test_names_of_a_model_are_printed_without_what_terminals_obey(models: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.onnx"
    nodes = [models.N("\x1b[31m", "A", "B\x07", {"A": models.split([0, 1], (0, 2))})]
    path.write_bytes(models.model(nodes, {"A": [32, 1024]}).SerializeToString())
    main([str(path), "--print-inferred"])
    said = capsys.readouterr()
    assert "(\\x1b[31m)" in said.out
    assert "\\x07" in said.out
    assert not {"\x1b", "\x07"} & {*said.out, *said.err}


def test_json_and_sarif_of_a_model(models: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(mismatch(models))
    assert main([str(path), "--format", "json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["summary"] == {"error": 2, "remark": 1}
    assert [row["code"] for row in said["findings"]] == ["SP731", "SP731", "SP721"]
    assert main([str(path), "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    (one,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert [row["id"] for row in one["tool"]["driver"]["rules"]] == ["SP731", "SP721"]
    assert [(r["ruleId"], r["ruleIndex"], r["level"]) for r in one["results"]] == [
        ("SP731", 0, "error"), ("SP731", 0, "error"), ("SP721", 1, "note"),
    ]  # fmt: skip
    where = one["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert where == str(path)


def test_the_completed_model_needs_nothing_more(models: Any, tmp_path: Path, capsys: Any) -> None:
    import onnx

    n, split = models.N, models.split
    nodes = [
        n("MatMul", "XW", "H", {"W": split([0, 1], (1, 2))}),
        n("Tanh", "H", "T"),
        n("MatMul", ["T", "V"], "Y", {"V": split([0, 1], (0, 2))}),
    ]
    path, out, again = tmp_path / "m.onnx", tmp_path / "full.onnx", tmp_path / "again.onnx"
    proto = models.model(nodes, {"X": [4, 6], "W": [6, 8], "V": [8, 2]})
    path.write_bytes(proto.SerializeToString())
    assert main([str(path), "-o", str(out), "--print-inferred"]) == 0
    said = capsys.readouterr().out
    assert "output 'H': 1x2 shards on {0} {1}  (ONNX-M4)" in said
    assert "input 'T': 1x2 shards on {0} {1}  (ONNX-D1)" in said
    assert "output 'Y': whole on {0,1}  (ONNX-M4)" in said
    full = onnx.load(out)
    specs = {s.tensor_name: s for s in full.graph.node[2].device_configurations[0].sharding_spec}
    assert set(specs) == {"T", "V", "Y"}
    assert list(specs["Y"].device) == [-1]
    assert list(specs["Y"].index_to_device_group_map[0].value) == [0, 1]
    del full.graph.node[1].device_configurations[:]  # what the file said before is as it was
    assert main([str(out), "--strict", "-o", str(again)]) == 0
    assert "no problem found" in capsys.readouterr().out
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"", "SP702"), (b"\x08\x0b\xff\xff\xff", "SP702"), (b"\x08\x0a\x3a\x00", ""), (b"\x08\x0b\x3a\x00", "")],
    ids=["empty", "damaged", "old IR", "empty graph"],
)
def test_files_that_are_no_multi_device_model(data: bytes, code: str, models: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert main([str(path)]) == bool(code)
    said = capsys.readouterr().err
    assert (code or "SP704") in said
    assert "help:" in said


def test_without_the_package_onnx(models: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(mismatch(models))
    hidden = (
        "import sys; sys.modules['onnx'] = None; from shardpass.cli.check import main; sys.exit(main(sys.argv[1:]))"
    )
    run = subprocess.run([sys.executable, "-c", hidden, str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "[SP701]" in run.stderr
    assert "pip install 'shardpass[onnx]'" in run.stderr


def test_a_module_in_json_and_sarif(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    assert main([str(path), "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["findings"]
    assert (row["code"], row["line"], row["severity"]) == ("SP203", 1, "error")
    assert main([str(path), "--format", "sarif"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1


def test_two_things_for_stdout_are_bad_usage(capsys: Any) -> None:
    assert main(["m.onnx", "-o", "-", "--print-inferred"]) == 2
    assert main(["m.onnx", "-o", "-", "--format", "json"]) == 2
    assert "stdout" in capsys.readouterr().err


def test_stablehlo_of_a_model_is_input_for_the_other_commands(models: Any, tmp_path: Path, capsys: Any) -> None:
    n, split = models.N, models.split
    path, out = tmp_path / "m.onnx", tmp_path / "m.mlir"
    nodes = [n("MatMul", "XW", "Y", {"X": split([0, 1], (1, 2)), "W": split([0, 1], (0, 2))})]
    path.write_bytes(models.model(nodes, {"X": [4, 6], "W": [6, 8]}, devices=2).SerializeToString())
    assert main([str(path), "--stablehlo", str(out)]) == 0
    assert main([str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{path}: no problem found", f"{out}: no problem found"]


def test_no_stablehlo_of_a_wrong_model(models: Any, tmp_path: Path) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "m.mlir"
    path.write_bytes(mismatch(models))
    assert main([str(path), "--stablehlo", str(out)]) == 1
    assert not out.exists()


# ------------------------------------------------------------------------------------- modules

EIGHT = "tensor<8x8xf32>"
ROWS, COLUMNS, WHOLE = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{replicated}"


def product(a: str, b: str, op: str = "add", result: str = "tensor<8x8xf32>") -> str:
    how = ", contracting_dims = [1] x [0]" if op == "dot_general" else ""
    kind = f"(tensor<8x8xf32>, tensor<8x8xf32>) -> {result}" if how else result
    return f"""module attributes {{mhlo.num_partitions = 4 : i32}} {{
func.func @main(%a: {EIGHT} {{mhlo.sharding = "{a}"}}, %b: {EIGHT} {{mhlo.sharding = "{b}"}}) -> {result} {{
  %0 = stablehlo.{op} %a, %b{how} : {kind}
  return %0 : {result}
}}
}}
"""


def findings(text: str, tmp_path: Path, capsys: Any, *options: str) -> list[tuple[str, str, int]]:
    """(severity, code, line) of each finding."""
    path = tmp_path / "m.mlir"
    path.write_text(text)
    status = main([str(path), "--format", "json", *options])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert status == any(row["severity"] == "error" for row in found)
    return [(row["severity"], row["code"], row["line"]) for row in found]


def test_rows_against_columns_over_one_axis(tmp_path: Path, capsys: Any) -> None:
    text = product(ROWS, COLUMNS)
    assert findings(text, tmp_path, capsys) == [("remark", "SP240", 3)]
    assert findings(text, tmp_path, capsys, "--strict") == [("error", "SP240", 3)]
    path = tmp_path / "m.mlir"
    assert main([str(path)]) == 0
    # of a device's 2 rows of 8 floats, 3/4 come from others
    assert "a device receives 48 bytes" in capsys.readouterr().err


def test_shardings_that_fit_pass_strictly(tmp_path: Path, capsys: Any) -> None:
    assert findings(product(ROWS, ROWS), tmp_path, capsys, "--strict", "--perf") == []
    assert findings(product(COLUMNS, ROWS, "dot_general"), tmp_path, capsys, "--strict", "--perf") == []


def test_what_is_repeated_whole_or_gathered(tmp_path: Path, capsys: Any) -> None:
    text = product(WHOLE, WHOLE, "dot_general").replace(
        ") -> tensor<8x8xf32> {", f') -> (tensor<8x8xf32> {{mhlo.sharding = "{WHOLE}"}}) {{'
    )
    assert findings(text, tmp_path, capsys, "--no-perf") == []
    for options in ((), ("--perf",), ("--remarks",)):
        assert findings(text, tmp_path, capsys, *options) == [
            ("remark", "SP242", 3), ("remark", "SP243", 2), ("remark", "SP243", 2),
        ]  # fmt: skip
    path = tmp_path / "m.mlir"
    main([str(path)])
    said = capsys.readouterr().err
    # 8 * 8 * 8 multiplications on each of four devices; 256 bytes of which a quarter would do
    assert (
        "cut into 1 parts, and there are 4 devices: 4 devices compute each part, 75% of its 512 multiplications" in said
    )
    assert "whole on each of 4 devices: 256 bytes instead of 64" in said
    gathered = f"""module attributes {{mhlo.num_partitions = 4 : i32}} {{
      func.func @main(%a: {EIGHT} {{mhlo.sharding = "{ROWS}"}}) -> ({EIGHT} {{mhlo.sharding = "{WHOLE}"}}) {{
        return %a : tensor<8x8xf32>
      }} }}"""
    codes = [code for _, code, _ in findings(gathered, tmp_path, capsys, "--perf")]
    assert codes == ["SP240", "SP241"]


NAMED = """sdy.mesh @mesh = <["data"=2, "model"=8]>
func.func @main(%x: tensor<4x480xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<30x4x4xf32> {
  %0 = stablehlo.reshape %x : (tensor<4x480xf32>) -> tensor<4x30x16xf32>
  %1 = stablehlo.dot_general %0, %0, batching_dims = [1] x [1], contracting_dims = [2] x [2]
    : (tensor<4x30x16xf32>, tensor<4x30x16xf32>) -> tensor<30x4x4xf32>
  return %1 : tensor<30x4x4xf32>
}
"""


def test_remarks_name_the_axes_of_the_program(tmp_path: Path, capsys: Any) -> None:
    """480 columns over 8 are 30 heads over 2 of 8: a device has 4 * 60 floats of the 4 * 240 that it needs."""
    path = tmp_path / "m.mlir"
    path.write_text(NAMED)
    assert main([str(path)]) == 0
    shown = capsys.readouterr().err
    assert "{devices" not in shown
    assert "comes as P(None, 'model') and is needed as P(None, 'model:(1)2')" in shown
    (cause,) = [line for line in shown.splitlines() if "[SP247]" in line]
    assert f"{path}:3:8: remark: 30 over 8: the 8 shards over 'model' do not divide dimension 1 of" in cause
    assert "a device receives 2880 bytes" in cause
    assert "help: 24 or 32 would divide" in shown


def test_the_next_doors_are_named_where_nothing_is_wrong(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(product(ROWS, ROWS))
    assert main([str(path)]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{path}: no problem found\n"
    assert shown.err.count("next:") == 1
    assert all(f"shardpass {command} " in shown.err for command in ("run --check", "prove", "explain"))
    assert main([str(path), "--format", "json"]) == 0
    assert "next:" not in capsys.readouterr().err
    path.write_text(product("{devices=[4]<=[4]}", ROWS))
    assert main([str(path)]) == 1
    assert "next:" not in capsys.readouterr().err


def test_constraints_that_pad_are_remarked(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(
        """sdy.mesh @mesh = <["m"=8]>
        func.func @main(%x: tensor<8x30xf32>) -> (tensor<8x30xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
        %0 = sdy.sharding_constraint %x <@mesh, [{}, {"m"}]> : tensor<8x30xf32>
        return %0 : tensor<8x30xf32> }"""
    )
    assert main([str(path)]) == 0
    shown = capsys.readouterr().err
    assert f"{path}:3:14: remark: dimension 1 of tensor<8x30xf32> has size 30, which 8 shards do not divide" in shown
    assert "help: 24 or 32 would divide, and save 6% of memory" in shown  # 2 of 32 are padding


def test_findings_of_several_steps_at_once(tmp_path: Path, capsys: Any) -> None:
    text = product("{devices=[4,1]0,1,1,3}", "{devices=[4]<=[4]}").replace(
        "%a, %b :", '%a, %b {mhlo.sharding = "{dev"} :'
    )
    assert findings(text, tmp_path, capsys) == [("error", "SP202", 2), ("error", "SP202", 3), ("error", "SP203", 2)]


def test_the_sharding_of_every_value(tmp_path: Path, capsys: Any) -> None:
    path, out = tmp_path / "m.mlir", tmp_path / "full.mlir"
    path.write_text(product(ROWS, ROWS))
    assert main([str(path), "--print-inferred", "-o", str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{path}:2:17: argument 0 tensor<8x8xf32>: {ROWS} (given)",
        f"{path}:2:{path.read_text().splitlines()[1].index('%b') + 1}: argument 1 tensor<8x8xf32>: {ROWS} (given)",
        f"{path}:3:8: stablehlo.add tensor<8x8xf32>: {ROWS} (propagated)",
        f"{path}: no problem found",
    ]
    assert f'mhlo.sharding = "{ROWS}"}} : tensor<8x8xf32>' in out.read_text()
    assert main([str(out), "--strict"]) == 0


def test_replication_in_json(tmp_path: Path, capsys: Any) -> None:
    from shardpass.cli.check_replication import main as check_replication

    path = tmp_path / "m.mlir"
    path.write_text(product(ROWS, ROWS))
    assert check_replication([str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


WRONG_CLAIM = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<2x2xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {}]>]
      manual_axes={"x", "y"} (%t: tensor<2x2xf32>) {
    sdy.return %t : tensor<2x2xf32>
  } : (tensor<4x4xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
"""


def test_sarif_names_the_command_that_ran(tmp_path: Path, capsys: Any) -> None:
    from shardpass.cli.check_replication import main as check_replication

    path = tmp_path / "m.mlir"
    path.write_text(WRONG_CLAIM)
    logs = []
    for command in (main, check_replication):
        command([str(path), "--format", "sarif"])
        logs += json.loads(capsys.readouterr().out)["runs"]
    assert [run["tool"]["driver"]["name"] for run in logs] == ["shardpass-check", "shardpass-check-replication"]
    assert {result["ruleId"] for result in logs[1]["results"]} == {"SP237"}


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_a_module_that_says_wrong_numbers_of_devices_in_json_and_sarif(form: str, tmp_path: Path, capsys: Any) -> None:
    """The check of annotations alone met the same error again, which then came as text."""
    text = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"
    (tmp_path / "m.mlir").write_text(f"module attributes {{mhlo.num_replicas = 0 : i32}} {{ {text} }}")
    assert main([str(tmp_path / "m.mlir"), "--format", form]) == 1
    shown = capsys.readouterr()
    assert not shown.err
    found = json.loads(shown.out)
    codes = (
        [d["code"] for d in found["findings"]] if form == "json" else [r["ruleId"] for r in found["runs"][0]["results"]]
    )
    assert codes == ["SP235"]
