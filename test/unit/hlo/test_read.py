"""HLO's text as the three backends print it: names, types, operands, what a start computes, lines."""

import pytest

from shardpass.hlo.frames import Frames
from shardpass.hlo.read import HloOp, Shape, read_program, shapes_of


def op(line: str) -> HloOp:
    program = read_program(f"HloModule m\n\nENTRY %e (p: f32[8]) -> f32[8] {{\n  {line}\n}}\n")
    (found,) = program.computations["e"].ops.values()
    return found


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("%a = f32[8]{0} add(%x, %y.1), metadata={}", ("x", "y.1")),
        ("%a = f32[8]{0} add(f32[8]{0} %x, f32[8]{0} %y.1)", ("x", "y.1")),
        ("a = f32[8]{0} add(x, y.1)", ("x", "y.1")),
        ("a = f32[8,4]{1,0:T(8,128)} add(f32[8,4]{1,0:T(8,128)} x, f32[8,4]{1,0} y.1)", ("x", "y.1")),
        ("ROOT %a = f32[8]{0} parameter(0), sharding={replicated}", ()),
        ("%a = s32[] constant(5)", ()),
        ("%a = (f32[8]{0}, /*index=1*/f32[8]{0}) tuple(%x, %y.1)", ("x", "y.1")),
    ],
)
def test_operands(line: str, operands: tuple[str, ...]) -> None:
    assert op(line).operands == operands


def test_an_op_is_taken_apart() -> None:
    found = op(
        "ROOT %while.2 = (s32[], f32[8,4]{1,0:T(8,128)S(1)}) while(%t), condition=%c.1, body=%b, "
        'metadata={op_name="jit(f)/while \\"x\\""}'
    )
    assert (found.name, found.opcode, found.is_root, found.operands) == ("while.2", "while", True, ("t",))
    assert found.called == (("condition", "c.1"), ("body", "b"))
    assert found.stack == 'jit(f)/while "x"'
    assert found.shapes == (Shape("s32", ()), Shape("f32", (8, 4)))


@pytest.mark.parametrize(
    ("line", "bytes"),
    [
        # of an asynchronous start the results alone: 8 f32, not the 2 that go in, nor contexts
        ("%a = (f32[2]{0}, f32[8]{0}) all-gather-start(%p)", 32),
        ("%a = ((f32[2]{0}, bf16[2]{0}), (f32[8]{0}, bf16[8]{0})) all-gather-start(%p, %q)", 32 + 16),
        ("%a = (f32[2]{0}, bf16[2]{0}, f32[8]{0}, bf16[8]{0}) all-gather-start(%p, %q)", 32 + 16),
        ("%a = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%p)", 32),
        ("%a = ((f32[8]{0}), f32[2]{0}, u32[]) reduce-scatter-start(%p)", 8),
        ("%a = (f32[8]{0}, bf16[4]{0}) all-reduce-start(%p, %q)", 32 + 8),
        ("%a = (f32[8]{0}, bf16[4]{0}) all-reduce(%p, %q)", 32 + 8),
    ],
)
def test_what_a_collective_computes(line: str, bytes: int) -> None:
    assert sum(shape.bytes for shape in op(line).results) == bytes


@pytest.mark.parametrize(
    ("text", "bytes"),
    [("pred[3]", 3), ("s4[7]", 4), ("f8e4m3fn[5]", 5), ("c64[2]", 16), ("token[]", 0), ("f32[<=4]", 16)],
)
def test_bytes_of_types(text: str, bytes: int) -> None:
    assert shapes_of(text)[0].bytes == bytes


TABLES = """HloModule m

FileNames
1 "lib/python3.11/site-packages/flax/linear.py"
2 "a \\"b\\".py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=2 function_name_id=1 line=7 end_line=7 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=30 end_line=30 column=2 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

ENTRY %e (p: f32[8]) -> f32[8] {
"""


def test_stack_frames_from_the_innermost() -> None:
    frames = read_program(TABLES).frames
    caller = r'"a \22b\22.py":7:4 to 7:9'
    inner = '"lib/python3.11/site-packages/flax/linear.py":30:2'
    assert frames.location('metadata={op_name="x" stack_frame_id=2}') == f"{inner} {caller}"
    assert frames.location("metadata={stack_frame_id=1}") == caller
    assert frames.location('metadata={op_name="x"}') == ""


def test_parents_that_are_not_increased() -> None:
    text = TABLES.replace("parent_frame_id=1", "parent_frame_id=0").replace("parent_frame_id=2", "parent_frame_id=1")
    assert read_program(text).frames.location("metadata={stack_frame_id=2}").endswith(r'"a \22b\22.py":7:4 to 7:9')


def test_the_older_form_of_lines() -> None:
    said = 'metadata={op_name="a" source_file="t.py" source_line=3 source_column=2}, backend_config={"source_line":9}'
    assert Frames().location(said) == '"t.py":3:2'
    assert Frames().location("") == ""
