"""shardpass-prove: text, JSON and SARIF show both programs' lines, what was known, and the inputs that refute."""

import json
from pathlib import Path

import numpy as np
import pytest

import shardpass
from shardpass.cli.prove import main
from shardpass.runtime import interpret

WHOLE = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<2x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
                  %y: tensor<8x3xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<2x3xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<2x8xf32>, tensor<8x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
"""
DOT = WHOLE.split("\n").index("    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]") + 1


@pytest.fixture
def files(tmp_path):
    """The whole program, its partitioned one, and that with sums of two devices in the place of four."""
    texts = {"whole": WHOLE, "right": str(shardpass.run_pipeline(WHOLE, "partition"))}
    assert "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>" in texts["right"]
    texts["wrong"] = texts["right"].replace("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>",
                                            "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>")  # fmt: skip
    for name, text in texts.items():
        (tmp_path / f"{name}.mlir").write_text(text)
    return {name: str(tmp_path / f"{name}.mlir") for name in texts}


def line_of(path, word):
    (number,) = (n for n, line in enumerate(Path(path).read_text().splitlines(), 1) if word in line)
    return number


def test_text_of_what_is_not_proved_names_both_lines(files, capsys):
    assert main([files["whole"], files["wrong"], "--no-run"]) == 3
    first, whole, operand = capsys.readouterr().err.splitlines()
    sum_line = line_of(files["wrong"], "stablehlo.all_reduce")
    assert first.startswith(f"unknown: {files['wrong']}:{sum_line}:")
    assert whole.strip().startswith(f"in the whole program: {files['whole']}:{DOT}:")
    assert whole.endswith("stablehlo.dot_general")
    assert operand.strip() == "operand 0 holds a value of reduce over the range [0, 2)"


def test_json_of_what_is_not_proved_names_both_lines(files, capsys):
    assert main([files["whole"], files["wrong"], "--no-run", "--format", "json"]) == 3
    row = json.loads(capsys.readouterr().out)
    assert (row["verdict"], row["op"], row["whole_op"]) == ("unknown", "stablehlo.all_reduce", "stablehlo.dot_general")
    assert row["whole_place"].startswith(f"{files['whole']}:{DOT}:")
    assert row["operands"] == ["a value of reduce over the range [0, 2)"]
    assert "difference" not in row


def test_the_inputs_that_refute_do(files, capsys):
    """NumPy's product is the witness of the whole program, the reference interpreter that of the other one."""
    assert main([files["whole"], files["wrong"], "--format", "json"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert row["verdict"] == "refuted"
    difference = row["difference"]
    x, y = (np.array(given, np.float32) for given in difference["inputs"])
    at = tuple(difference["at"])
    assert difference["whole"] == pytest.approx(float((x @ y)[at]), rel=1e-5)
    (found,) = interpret(Path(files["wrong"]).read_text(), x, y)
    assert difference["local"] == pytest.approx(float(found[at]), rel=1e-5)
    assert abs(difference["whole"] - difference["local"]) > 1e-2
    assert main([files["whole"], files["wrong"]]) == 1
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines[0].startswith("refuted: ")
    (first,) = (line for line in lines if line.startswith("argument 0 = ["))
    assert [float(number) for number in first.removeprefix("argument 0 = [").rstrip("]").split(",")] == pytest.approx(
        x.ravel().tolist(), rel=1e-5
    )
    (second,) = (line for line in lines if line.startswith("argument 1 = ["))
    assert second.endswith("... (24 elements, of shape [8, 3])")


@pytest.mark.parametrize(("options", "status", "code", "level"), [
    (["--no-run"], 3, "SP955", "warning"), ([], 1, "SP954", "error"),
])  # fmt: skip
def test_sarif(files, capsys, options, status, code, level):
    assert main([files["whole"], files["wrong"], "--format", "sarif", *options]) == status
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"] == "shardpass-prove"
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == (code, level)
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == code
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == files["wrong"]
    assert place["physicalLocation"]["region"]["startLine"] == line_of(files["wrong"], "stablehlo.all_reduce")
    whole, *others = result["relatedLocations"]
    assert whole["physicalLocation"]["artifactLocation"]["uri"] == files["whole"]
    assert whole["physicalLocation"]["region"]["startLine"] == DOT
    assert any("operand 0 holds" in row["message"]["text"] for row in others)
    assert any("argument 0 = [" in row["message"]["text"] for row in others) == (status == 1)


def test_sarif_of_a_proof_has_no_result(files, capsys):
    assert main([files["whole"], files["right"], "--format", "sarif"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["results"] == []


def test_a_strict_proof_takes_no_law(tmp_path, capsys):
    """The program of one device adds 0, so -0 becomes 0."""
    side = '{mhlo.sharding = "{manual}", shardpass.global_type = tensor<2xf32>, shardpass.sharding = "{replicated}"}'
    whole, local = tmp_path / "whole.mlir", tmp_path / "local.mlir"
    whole.write_text("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}")
    local.write_text(
        "module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"func.func @main(%x: tensor<2xf32> {side}) -> (tensor<2xf32> {side}) {{\n"
        "  %c = stablehlo.constant dense<0.0> : tensor<2xf32>\n"
        "  %r = stablehlo.add %x, %c : tensor<2xf32>\n  return %r : tensor<2xf32>\n}\n}"
    )
    assert main([str(whole), str(local)]) == 0
    _, law = capsys.readouterr().out.splitlines()
    assert law.strip() == f"by the law x + 0 = x (1 place: -0 may become 0): {local}:4:8"
    assert main([str(whole), str(local), "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["laws"]
    assert row == {"law": "zero", "equation": "x + 0 = x", "risk": "-0 may become 0", "places": [f"{local}:4:8"]}
    assert main([str(whole), str(local), "--strict", "--no-run"]) == 3
    assert f"unknown: {local}:4:8: stablehlo.add: it is no more than equal by x + 0 = x" in capsys.readouterr().err
