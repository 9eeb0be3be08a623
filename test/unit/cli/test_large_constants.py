"""A module of large constants: what is alive at once is counted in modules, and Python holds no copy of it for long.

The figures are the peaks of whole processes, the compiler's own children counted, as the kernel keeps them.
"""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from jaxlib.mlir import ir

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.ir.dialects import make_context
from shardpass.ir.doors import Format, LargeFile

MIB = 1 << 20
SIZE = 64  # MiB of the constant
ROWS, COLUMNS = SIZE * MIB // 4 // 4096, 4096
PROGRAM = """
module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<{columns}x8xf32> {{mhlo.sharding = "{{devices=[1,4]<=[4]}}"}}) -> tensor<{rows}x8xf32> {{
    %c = stablehlo.constant dense<0.0> : tensor<{rows}x{columns}xf32>
    %0 = stablehlo.dot_general %c, %x, contracting_dims = [1] x [0]
        : (tensor<{rows}x{columns}xf32>, tensor<{columns}x8xf32>) -> tensor<{rows}x8xf32>
    return %0 : tensor<{rows}x8xf32>
  }}
}}
"""
CHILD = """
import importlib, resource, sys
main = importlib.import_module(f"shardpass.cli.{sys.argv[1]}").main
status = main(sys.argv[2:])
# of the process itself: what it began with as a fork is in both of two peaks that are compared
own = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(max(int(own), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss), file=sys.stderr)
sys.exit(status)
"""


def elements(rows: int, columns: int) -> np.ndarray:
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def bytecode(how: str, rows: int, columns: int) -> bytes:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAM.format(rows=rows, columns=columns))
        constant = module.body.operations[0].regions[0].blocks[0].operations[0]
        if how == "dense":
            constant.attributes["value"] = ir.DenseElementsAttr.get(elements(rows, columns))
        elif how == "beside":
            kind = constant.results[0].type
            value = ir.DenseResourceElementsAttr.get_from_buffer(elements(rows, columns), "weights", kind)
            constant.attributes["value"] = value
        out = io.BytesIO()
        module.operation.write_bytecode(out)
        return out.getvalue()


def peak(*arguments: str, piped: Path | None = None) -> int:
    """Bytes, of a command and of its children, each by itself. ``piped``: a file that comes through a pipe."""
    with ExitStack() as stack:
        child = Path(stack.enter_context(TemporaryDirectory()), "child.py")
        child.write_text(CHILD)
        command = [sys.executable, str(child), *arguments]
        given = None
        if piped is not None:
            given = stack.enter_context(subprocess.Popen(["cat", str(piped)], stdout=subprocess.PIPE)).stdout
        done = subprocess.run(command, stdin=given, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1]) * 1024


def constant_of(path: Path) -> np.ndarray:
    with make_context():
        module = ir.Module.parse(path.read_bytes())
        ops = list(module.body.operations[0].regions[0].blocks[0].operations)
        constants = [op.attributes["value"] for op in ops if op.operation.name == "stablehlo.constant"]
        return next(np.array(value) for value in constants if "xf32" in str(value.type))


# MLIR's reader of bytecode itself has three copies for a moment
@pytest.mark.parametrize(("how", "most"), [("splat", 0.25), ("dense", 3.5), ("beside", 3.5)])
def test_peak_of_bytecode_in_and_out(how: str, most: float, tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(bytecode(how, 8, COLUMNS))
    (tmp_path / "large").write_bytes(bytecode(how, ROWS, COLUMNS))
    small, large = (
        peak("opt", str(tmp_path / name), "partition", "--emit", "bytecode", "-o", str(tmp_path / f"{name}.out"))
        for name in ("small", "large")
    )
    assert large - small <= most * SIZE * MIB
    if how != "splat":
        np.testing.assert_array_equal(constant_of(tmp_path / "large.out"), elements(ROWS, COLUMNS))


HALF = ROWS // 2  # a constant of 32 MiB


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """small.mlir, small.mlirbc, large.mlir and large.mlirbc, of one program."""
    folder = tmp_path_factory.mktemp("inputs")
    for name, rows in (("small", 8), ("large", HALF)):
        (folder / f"{name}.mlirbc").write_bytes(bytecode("dense", rows, COLUMNS))
        text = PROGRAM.format(rows=rows, columns=COLUMNS)
        raw = elements(rows, COLUMNS).tobytes().hex().upper()
        (folder / f"{name}.mlir").write_text(text.replace("dense<0.0>", f'dense<"0x{raw}">'))
    return folder


# What reads alone: of bytecode, what MLIR's reader takes; of text, the file (two characters a byte), what MLIR's parser
# makes of the characters, and the constant. XLA takes four more for a module that it compiles.
READS = {".mlirbc": 3.5, ".mlir": 4.5}


@pytest.mark.parametrize("form", READS)
@pytest.mark.parametrize(
    ("command", "more"),
    [
        (["explain", "IN"], 0),
        (["check", "IN", "-o", "OUT"], 0),
        (["check_replication", "IN"], 0),
        (["suggest", "IN"], 0),
        (["run", "IN", "partition", "--devices", "4"], 5),
        (["opt", "IN", "partition", "-o", "OUT"], 0),
        (["opt", "IN", "partition", "--emit", "vhlo", "-o", "OUT"], 0.5),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_peak_of_other_commands(command: list[str], more: float, form: str, inputs: Path, tmp_path: Path) -> None:
    peaks = []
    for name in ("small", "large"):
        stands = {"IN": str(inputs / f"{name}{form}"), "OUT": str(tmp_path / "out")}
        peaks.append(peak(*(stands.get(word, word) for word in command)))
    size = HALF * COLUMNS * 4
    assert peaks[1] - peaks[0] <= (READS[form] + more) * size


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A constant of 64 MiB, as bytecode and as text."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "m.mlirbc").write_bytes(bytecode("dense", ROWS, COLUMNS))
    before, after = PROGRAM.format(rows=ROWS, columns=COLUMNS).split("dense<0.0>")
    with (folder / "m.mlir").open("w") as file:
        file.write(f'{before}dense<"0x')
        file.writelines(row.tobytes().hex() for row in elements(ROWS, COLUMNS))
        file.write(f'">{after}')
    return folder


# ``explain`` asks for a module where it is given none; ``opt`` takes "-" for that
@pytest.mark.turns(4)
@pytest.mark.parametrize("command", [["explain"], ["opt", "-", "partition", "-o", "OUT"]], ids=lambda given: given[0])
@pytest.mark.parametrize("form", ["m.mlirbc", "m.mlir"])
def test_peak_of_a_pipe_is_that_of_a_file(command: list[str], form: str, whole: Path, tmp_path: Path) -> None:
    """With a constant of 64 MiB: it was held beside what it becomes, 64 MiB of bytecode and 128 of text."""
    out = str(tmp_path / "out")
    words = [out if word == "OUT" else word for word in command]
    from_pipe = peak(*words, piped=whole / form)
    words = [str(whole / form) if word == "-" else word for word in words]
    from_file = peak(*words, *([str(whole / form)] if command == ["explain"] else []))
    assert from_pipe - from_file <= 0.25 * SIZE * MIB


def test_text_of_a_large_file_is_the_text_of_a_small_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamed out of a file or held: the same bytes."""
    from shardpass.cli.opt import main
    from shardpass.ir import doors

    given, held, streamed = (tmp_path / name for name in ("given", "held", "streamed"))
    given.write_bytes(bytecode("beside", 8, COLUMNS))
    assert main([str(given), "partition", "-o", str(held)]) == 0
    monkeypatch.setattr(doors, "LARGE", 1)
    assert main([str(given), "partition", "-o", str(streamed)]) == 0
    assert held.read_bytes() == streamed.read_bytes()


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_a_large_file_that_is_torn(keep: float, tmp_path: Path) -> None:
    data = bytecode("dense", 8, COLUMNS)
    path = tmp_path / "torn.mlirbc"
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(ShardpassError) as caught:
        parse_module(LargeFile(str(path), Format.BYTECODE), str(path))
    assert [(d.code, d.place.file) for d in caught.value.diagnostics] == [("SP127", str(path))]


@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "ui16", "f64", "i1"])
def test_many_elements_beside_the_module_are_the_same_elements(element: str) -> None:
    """What bytecode hands out, beside what MLIR's parser makes of the hexadecimal text."""
    width = {"f32": 4, "bf16": 2, "i8": 1, "ui16": 2, "f64": 8, "i1": 1}[element]
    count = 1 << 18
    raw = np.random.default_rng(0).integers(0, 2 if element == "i1" else 100, count * width, dtype=np.uint8)
    kind, text = f"tensor<{count}x{element}>", raw.tobytes().hex().upper()
    beside = f"""
func.func @main() -> {kind} {{
  %c = stablehlo.constant dense_resource<w> : {kind}
  return %c : {kind}
}}
{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{text}" }} }} #-}}
"""
    module = shardpass.run_pipeline(beside, "shardpass-import")
    with module.context:
        found = next(
            op.attributes["value"]
            for op in module.body.operations[0].regions[0].blocks[0].operations
            if op.operation.name == "stablehlo.constant"
        )
        assert found == ir.Attribute.parse(f'dense<"0x{text}"> : {kind}')


def test_many_elements_that_are_missing() -> None:
    kind = "tensor<100000xf32>"
    text = f"func.func @main() -> {kind} {{ %c = stablehlo.constant dense_resource<w> : {kind} return %c : {kind} }}"
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(text, "shardpass-import")
    assert [d.code for d in caught.value.diagnostics] == ["SP234"]


def test_peak_of_text_with_a_large_constant(tmp_path: Path) -> None:
    """Its elements are one string of 16 MiB; a location has ``//`` and no line, so that strings are told apart."""
    count = 2 * MIB
    kind = f"tensor<{count}xf32>"
    program = """func.func @main(%x: {kind}) -> {kind} {{
  %c = stablehlo.constant dense<{value}> : {kind} loc("https://example.org")
{lines}  return %c : {kind}
}}
"""
    lines = "".join(f"  %{i} = stablehlo.sine %x : {kind}\n" for i in range(3000))
    for name, value in (("small", "0.0"), ("large", '"0x' + "0000803F00000040" * (count // 2) + '"')):
        (tmp_path / name).write_text(program.format(kind=kind, value=value, lines=lines))
    small, large = (
        peak("opt", str(tmp_path / name), "partition", "--emit", "bytecode", "-o", str(tmp_path / "out"))
        for name in ("small", "large")
    )
    assert large - small <= 8 * count * 8  # of the text; a regular expression took 100 times as much
