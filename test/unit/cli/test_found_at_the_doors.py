"""What ``tools/fuzz/doors.py`` found, made smaller: a command ended by a signal or an internal error, or never."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from support.onnx_models import N, model, split

from shardpass.cli import check, check_replication, opt, plan
from shardpass.cost.machine import FOLDER
from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import make_context, parse_module
from shardpass.ir.doors import Format, format_of
from shardpass.ir.written import Form, written
from tools.processes import environment

MODULE = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"


@pytest.mark.parametrize("filler", ["\n" * 4000, "/**/" * 2000, "// a\n" * 2000, " /*\n*/ //\n\t" * 500], ids=len)
def test_what_a_file_is_takes_one_look(filler: str) -> None:
    """In a process of its own: an expression that goes back never ends, and no signal of Python's ends it."""
    code = (
        "import sys; from shardpass.ir.doors import format_of; data = sys.stdin.buffer.read(); "
        "print(*(format_of(data + end).name for end in (b'x', b'HloModule x')))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=filler.encode(), capture_output=True, timeout=60, env=environment())
    assert done.stdout.split() == [b"TEXT", b"HLO_TEXT"], done.stderr


@pytest.mark.parametrize("text", ["HloModule x\n", "\n// a\n/* HloModule */ HloModule x, y"])
def test_hlo_text_is_still_known(text: str) -> None:
    assert format_of(text.encode()) is Format.HLO_TEXT


@pytest.mark.parametrize(
    ("pipeline", "anchor"),
    [("func.func()", "func.func"), ("builtin.module(cse,any(func.func()))", "func.func"), ("x.y(),cse", "x.y")],
)
def test_an_anchor_without_a_pass(
    pipeline: str, anchor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.mlir").write_text(MODULE)
    assert opt.main([str(tmp_path / "m.mlir"), pipeline]) == 1
    error = capsys.readouterr().err
    assert f"expected a pass inside {anchor}(...), found nothing [SP103]" in error
    column = next(line for line in error.splitlines() if line.strip() == "^").index("^")
    assert error.splitlines()[1][column:].startswith(anchor)


def test_replication_on_one_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(f"module attributes {{mhlo.num_partitions = 1 : i32}} {{ {MODULE} }}")
    assert check_replication.main([str(tmp_path / "m.mlir"), "--print-varying"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400], ids=["above", "below"])
def test_a_machine_with_a_number_that_is_no_float(
    number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.toml"
    file.write_text((FOLDER / "h100.toml").read_text().replace("bandwidth = 450e9", f"bandwidth = {number}"))
    assert plan.main(["f32[8]", "{devices=[4]<=[4]}", "{replicated}", f"--machine={file}"]) == 1
    assert "from 1e-50 to 1e+50, or inf is needed [SP903]" in capsys.readouterr().err


# ---------------------------------------------------------------- values of attributes that the bindings cannot read

UNREADABLE = ["loc(unknown)", 'loc("f.py":1:2)', "dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>"]


@pytest.mark.parametrize("value", UNREADABLE)
@pytest.mark.parametrize(
    "text",
    [
        "func.func @main(%x: tensor<8xf32> {a.b = VALUE}) -> tensor<8xf32> { return %x : tensor<8xf32> }",
        "func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32> {a.b = VALUE}) { return %x : tensor<8xf32> }",
        "func.func @main(%x: tensor<8xf32> {mhlo.sharding = VALUE}) -> tensor<8xf32> { return %x : tensor<8xf32> }",
        f"module attributes {{mhlo.num_partitions = VALUE}} {{ {MODULE} }}",
        "module attributes {mhlo.num_partitions = 4 : i32} { func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { "
        "%y = stablehlo.add %x, %x {mhlo.sharding = VALUE} : tensor<8xf32> return %y : tensor<8xf32> } }",
    ],
    ids=["argument", "result", "sharding of an argument", "module", "sharding of an op"],
)
def test_an_attribute_that_cannot_be_read(
    text: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first two ended the process."""
    (tmp_path / "m.mlir").write_text(text.replace("VALUE", value))
    assert opt.main([str(tmp_path / "m.mlir"), "propagate"]) == 1
    shown = capsys.readouterr()
    assert not shown.out
    assert "error: the value of an attribute cannot be read: " in shown.err
    assert "[SP245]" in shown.err


@pytest.mark.parametrize("value", UNREADABLE)
def test_an_attribute_that_nobody_reads_is_kept(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "%y = stablehlo.add %x, %x {a.b = VALUE} : tensor<8xf32> return %y : tensor<8xf32>"
    text = f"func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{ {body} }}".replace("VALUE", value)
    (tmp_path / "m.mlir").write_text(text)
    assert opt.main([str(tmp_path / "m.mlir"), "propagate"]) == 0
    assert "a.b = " in capsys.readouterr().out


# ---------------------------------------------------------------- names of locations


@pytest.mark.parametrize("name", ["a\\FFb", "\\C3", "\\\\\\80"])
def test_a_location_whose_name_is_no_text(name: str) -> None:
    text = f'module {{ func.func @main(%x: f32 loc("{name}")) {{ return loc("{name}"(unknown)) }} }}'
    with pytest.raises(ShardpassError, match="a location, an attribute or an annotation met a name or a text") as error:
        parse_module(text, "m.mlir")
    assert error.value.code == "SP135"


def test_an_annotation_whose_name_is_no_text() -> None:
    text = 'module { func.func @main(%x: f32 {a.b = "x", "a.\\FFb" = 1 : i32}) { return } }'
    with pytest.raises(ShardpassError, match="met a name or a text") as error:
        parse_module(text, "m.mlir")
    assert error.value.code == "SP135"
    parse_module(text.replace("\\FF", "\\C3\\A9"), "m.mlir")


@pytest.mark.parametrize(
    "text",
    [
        'module attributes {"a.\\FFb" = 1 : i32} {}',
        'module attributes {"a\\FFb" = 1 : i32} {}',  # MLIR refuses it, and what it says ends a process
        'module { func.func @main() attributes {a.b = 1 : i32, "a.\\FFb"} { return } }',
        'module { func.func @main(%x: T) { %y = stablehlo.add %x, %x {"a\\FFb" = [1, 2]} : T\n return } }',
        'module { func.func @main(%x: T) { %y = stablehlo.add %x, %x {k = {"a\\FFb"}} : T\n return } }',
        'module { func.func @main(%x: T {"\\00a.b" = "c"}) { return } }',  # the bindings call it ""
        'module attributes {"a.b\\00c" = 1 : i32} {}',  # and this one a.b
    ],
    ids=[
        "of a module",
        "that MLIR refuses",
        "without a value",
        "of an op",
        "of a dictionary in it",
        "that begins with a NUL",
        "with a NUL in it",
    ],
)
def test_an_attribute_whose_name_is_no_text(text: str) -> None:
    text = text.replace(": T", ": tensor<f32>")
    with pytest.raises(ShardpassError, match="an attribute or an annotation met a name or a text") as error:
        parse_module(text, "m.mlir")
    assert error.value.code == "SP135"


def test_the_value_of_an_attribute_may_be_bytes() -> None:
    attributes = 'api_version = 2 : i32, backend_config = "a\\FF\\00", names = ["b", "\\FE", "c"]'
    call = f"stablehlo.custom_call @f() {{{attributes}}} : () -> tensor<f32>"
    module = parse_module(f"module {{ func.func @main() {{ %0 = {call}\n return }} }}", "m.mlir")
    assert 'backend_config = "a\\FF\\00"' in str(module)


@pytest.mark.parametrize("name", ["\\C3\\A9", "\\\\C3", "a\\22b", "\\\\"])
def test_a_location_whose_name_is_text(name: str) -> None:
    parse_module(f'module {{ func.func @main() {{ return loc("{name}") }} }}', "m.mlir")


def test_bytecode_with_such_a_name(tmp_path: Path) -> None:
    """As another tool writes it: the byte is put in the place of a letter."""
    module = parse_module('module { func.func @main() { return loc("anamehere") } }', "m.mlir", make_context())
    path = tmp_path / "m.mlirbc"
    with path.open("wb") as file:
        module.operation.write_bytecode(file)
    data = path.read_bytes()
    assert b"anamehere" in data
    with pytest.raises(ShardpassError, match="utf-8") as error:
        parse_module(data.replace(b"anamehere", b"aname\xffere"), "m.mlirbc")
    assert error.value.code == "SP127"


def test_hlo_that_converts_to_an_invalid_module() -> None:
    """A sharding names an axis that its mesh has not: MLIR says so as it reads what was converted."""
    module = parse_module(
        """module attributes {mhlo.num_partitions = 4 : i32} {
          sdy.mesh @mesh = <["rows"=4]>
          func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}]>}) -> tensor<8xf32> {
            return %x : tensor<8xf32>
          }
        }"""
    )
    with written(module, Form.hlo) as file:
        text = file.read()
    parse_module(text, "m.hlo")
    with pytest.raises(ShardpassError, match='unknown axis name: "rows"') as error:
        parse_module(text.replace(b'<["rows"=4]>', b'<["columns"=4]>'), "m.hlo")
    assert error.value.code == "SP127"


# ---------------------------------------------------------------- ONNX models


def _check(proto: onnx.ModelProto, folder: Path, *words: str) -> int:
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return check.main([str(folder / "m.onnx"), *words])


ROWS = split([0, 1, 2, 3], (0, 4))


def test_a_product_of_one_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = model([N("MatMul", ["x"], ["y"], {"x": ROWS})], {"x": [8, 8]})
    assert _check(proto, tmp_path) == 1
    assert "MatMul needs at least 2 inputs and has 1 [SP707]" in capsys.readouterr().err


def test_a_name_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = model([N("Relu", ["abcdef"], ["y"])], {"abcdef": [8]}).SerializeToString().replace(b"abcdef", b"abc\xffef")
    (tmp_path / "m.onnx").write_bytes(data)
    assert check.main([str(tmp_path / "m.onnx")]) == 1
    error = capsys.readouterr().err
    assert "[SP702]" in error
    assert "is not UTF-8" in error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda p: p.graph.node[0].input.__setitem__(0, "z"),
            "no graph input, weight or earlier node makes its input 'z'",
        ),
        (lambda p: p.graph.output[0].__setattr__("name", "z"), "graph output 'z': it cannot be converted to StableHLO"),
        (lambda p: p.graph.input[0].type.tensor_type.__setattr__("elem_type", 0), "its element type, number 0"),
        (
            lambda p: p.graph.input[0].type.tensor_type.shape.dim[0].__setattr__("dim_value", -4),
            "its shape is not a list of sizes",
        ),
    ],
)
def test_a_model_that_has_no_program(change, said, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    proto = model([N("Relu", ["x"], ["y"])], {"x": [8, 8]})
    change(proto)
    assert _check(proto, tmp_path, "--stablehlo", str(tmp_path / "out")) == 1
    error = capsys.readouterr().err
    assert said in error
    assert "[SP706]" in error
    assert not (tmp_path / "out").exists()
