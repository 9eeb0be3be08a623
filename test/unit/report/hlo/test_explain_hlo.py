"""Reports of HLO: axes, lines, arrays, reasons, joined collectives; on texts by hand of the three backends."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardpass.cost.machine import find_machine
from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import UNNAMED
from shardpass.report.hlo.explain import explain_hlo, mesh_in
from shardpass.report.rows import BACKWARD, FORWARD
from shardpass.report.text import show_seconds
from shardpass.sharding import Mesh

MESH = Mesh((("data", 4), ("model", 2)))
HEADER = "HloModule jit_step, is_scheduled=true, num_partitions=8"


def meta(stack: str, line: int = 0, file: str = "train.py") -> str:
    return f'metadata={{op_name="{stack}"' + (f' source_file="{file}" source_line={line}' if line else "") + "}"


def report(
    *lines: str,
    more: str = "",
    mesh: Mesh | None = MESH,
    header: str = HEADER,
    folders: list[Path] | None = None,
    machine: str = "h100",
):
    add = "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    add += "  ROOT %r = f32[] add(%a, %b)\n}\n"
    body = "\n".join(f"  {line}" for line in lines)
    text = f"{header}\n\n{add}\n{more}\nENTRY %main_spmd (w: f32[64,8], x: f32[16,8]) -> f32[8] {{\n{body}\n}}\n"
    return explain_hlo(text, UNNAMED, mesh=mesh, machine=machine, folders=folders)


W = "%w = f32[64,8]{1,0} parameter(0), " + meta("params['w']")
X = f"%x = f32[16,8]{{1,0}} parameter(1), {meta('x')}"


def test_a_gather_of_an_argument_for_a_product():
    """As XLA for GPU writes it, asynchronously, with typed operands and tiles of memory."""
    stack = "jit(step)/jvp(mlp)/dot_general"
    found = report(
        W,
        X,
        f"%s = (f32[64,8]{{1,0:T(8,128)}}, f32[64,16]{{1,0}}) all-gather-start(f32[64,8]{{1,0}} %w), channel_id=1, "
        f"replica_groups=[4,2]<=[8], dimensions={{1}}, use_global_device_ids=true, {meta(stack, 7)}",
        f"%g = f32[64,16]{{1,0}} all-gather-done(%s), {meta(stack, 7)}",
        f"ROOT %d = f32[16,64]{{1,0}} dot(%x, %g), {meta(stack, 7)}",
    )
    (row,) = found.rows
    assert (row.kind, row.axes, row.group_size, row.array) == ("all_gather", ("model",), 2, "params['w']")
    assert (row.bytes_each, row.times, row.receivers) == (64 * 16 * 4 // 2, 1, None)
    assert (str(row.place), row.names, row.direction, row.path) == ("train.py:7", stack, FORWARD, ("mlp",))
    assert (row.operand, row.result) == ("tensor<64x8xf32>", "tensor<64x16xf32>")
    assert row.reason == "XLA gathers an operand of dot_general: f32[64,8] on each device becomes f32[64,16]"
    assert row.seconds > 0


def test_a_slice_of_a_scanned_argument_is_named_and_counted():
    """A loop hands the argument on; its body gathers a slice, which a fusion takes."""
    more = "\n".join(
        [
            "%cut (a: f32[12,8], k: s32[]) -> f32[8] {",
            "  %a = f32[12,8] parameter(0)",
            "  %k = s32[] parameter(1)",
            "  %z = s32[] constant(0)",
            "  %s = f32[1,8] dynamic-slice(%a, %k, %z), dynamic_slice_sizes={1,8}",
            "  ROOT %b = f32[8] bitcast(%s)",
            "}",
            "",
            "%body (t: (s32[], f32[12,8])) -> (s32[], f32[12,8]) {",
            "  %t = (s32[], f32[12,8]) parameter(0)",
            "  %k = s32[] get-tuple-element(%t), index=0",
            "  %p = f32[12,8] get-tuple-element(%t), index=1",
            "  %f = f32[8] fusion(%p, %k), kind=kLoop, calls=%cut",
            f"  %g = f32[32] all-gather(%f), replica_groups=[2,4]<=[4,2]T(1,0), {meta('jit(f)/while/body/dot', 3)}",
            "  %one = s32[] constant(1)",
            "  %next = s32[] add(%k, %one)",
            "  ROOT %out = (s32[], f32[12,8]) tuple(%next, %p)",
            "}",
            "",
            "%cond (t: (s32[], f32[12,8])) -> pred[] {",
            "  %t = (s32[], f32[12,8]) parameter(0)",
            "  %k = s32[] get-tuple-element(%t), index=0",
            "  %n = s32[] constant(12)",
            "  ROOT %c = pred[] compare(%k, %n), direction=LT",
            "}",
            "",
        ]
    )
    found = report(
        "%w = f32[12,8] parameter(0), " + meta("params['up']"),
        "%zero = s32[] constant(0)",
        "%init = (s32[], f32[12,8]) tuple(%zero, %w)",
        "ROOT %l = (s32[], f32[12,8]) while(%init), condition=%cond, body=%body",
        more=more,
    )
    (row,) = found.rows
    assert (row.array, row.axes, row.times, row.unknown_loops) == ("params['up'][i]", ("data",), 12, 0)
    assert found.total_bytes_received == 12 * 32 * 4 * 3 // 4


def test_a_joined_collective_is_one_row_a_line_and_counts_once():
    """Bytes in all are those of the whole: 2 * 3/4 of 4 * 8 and of 4 * 24 bytes."""
    back = "jit(step)/transpose(jvp())/dot_general"
    found = report(
        X,
        f"%a = f32[8] dot(%x, %x), {meta(back, 8)}",
        f"%b = f32[24] dot(%x, %x), {meta(back, 9)}",
        "%s = (f32[8], f32[24]) all-reduce(%a, %b), replica_groups=[2,4]<=[4,2]T(1,0), to_apply=%add, " + meta(back, 9),
        f"%c = f32[8] get-tuple-element(%s), index=0, {meta(back, 8)}",
        f"ROOT %d = f32[24] get-tuple-element(%s), index=1, {meta(back, 9)}",
    )
    assert [(row.place.line, row.bytes_received, row.joined) for row in found.rows] == [(8, 48, False), (9, 144, True)]
    assert all((row.axes, row.direction) == (("data",), BACKWARD) for row in found.rows)
    assert found.rows[0].reason == "XLA adds up what each device computes of dot_general, f32[8]"
    assert (found.runs, found.total_bytes_received) == (1, 2 * (32 + 96) * 3 // 4)
    whole = report(
        X, "%s = f32[32] all-reduce(%x), replica_groups=[2,4]<=[4,2]T(1,0), to_apply=%add", "ROOT %c = f32[32] copy(%s)"
    )
    assert sum(row.seconds for row in found.rows) == pytest.approx(whole.seconds)


@pytest.mark.parametrize(("machine", "kind", "times"), [("h100", "reduce_scatter", 1), ("cpu", "all_reduce", 2)])
def test_a_sum_of_slices_counts_as_the_machine_would_send_it(machine, kind, times):
    """Over 8 devices a device receives 7/8 of f32[8] by a reduce_scatter, twice that by an all_reduce."""
    lines = (
        X,
        "%id = u32[] partition-id()",
        "%s = f32[8] all-reduce(%x), replica_groups={}, to_apply=%add",
        "ROOT %c = f32[1] dynamic-slice(%s, %id), dynamic_slice_sizes={1}",
    )
    found = report(*lines, machine=machine)
    (row,) = found.rows
    assert (row.kind, row.axes, row.bytes_each) == (kind, ("data", "model"), times * 32 * 7 // 8)
    assert found.total_bytes_received == times * 32 * 7 // 8
    assert "scatters this sum" in row.reason


def test_a_collective_of_shard_map_is_the_programs_own():
    found = report(
        X,
        f"ROOT %s = f32[16,8] all-reduce(%x), replica_groups={{}}, to_apply=%add, {meta('jit(f)/shard_map/psum', 4)}",
    )
    assert found.rows[0].reason == "the program itself asks for psum in shard_map"


def test_one_without_metadata_takes_the_line_of_its_neighbour():
    found = report(
        X,
        f"%n = f32[16,8] negate(%x), {meta('jit(f)/neg', 5)}",
        "%s = f32[16,8] collective-permute(%n), source_target_pairs={{0,1},{1,0}}",
        "ROOT %c = f32[16,8] copy(%s)",
    )
    (row,) = found.rows
    assert (row.place.line, row.axes, row.receivers) == (5, ("model",), (0, 1))


def test_a_row_of_a_library_stands_at_the_users_line():
    tables = "\n".join(
        [
            "FileNames",
            '1 "/x/lib/python3.11/site-packages/flax/linear.py"',
            '2 "train.py"',
            "",
            "FileLocations",
            "1 {file_name_id=2 function_name_id=1 line=41 end_line=41 column=4 end_column=9}",
            "2 {file_name_id=1 function_name_id=1 line=271 end_line=271 column=8 end_column=9}",
            "",
            "StackFrames",
            "1 {file_location_id=1 parent_frame_id=1}",
            "2 {file_location_id=2 parent_frame_id=2}",
        ]
    )
    said = 'metadata={op_name="jit(f)/Dense_0/dot_general" stack_frame_id=2}'
    found = report(
        X,
        f"ROOT %s = f32[16,8] all-reduce(%x), replica_groups={{}}, to_apply=%add, {said}",
        header=f"{HEADER}\n\n{tables}",
    )
    (row,) = found.rows
    assert (row.place.file, row.place.line) == ("train.py", 41)
    assert [str(step).rsplit("/", 1)[-1] for step in row.path] == ["linear.py:271", "Dense_*"]


def test_expressions_of_the_users_file(tmp_path: Path):
    file = tmp_path / "train.py"
    file.write_text("import jax\n\ndef f(x, w):\n    h = jax.nn.relu(x @ w)\n    return h.sum()\n")
    lines = [
        X,
        f'%d = f32[16,8] dot(%x, %x), metadata={{op_name="jit(f)/dot" source_file="{file}" source_line=4 '
        "source_column=20 source_end_line=4 source_end_column=25}",
        f"ROOT %s = f32[16,8] all-reduce(%d), replica_groups={{}}, to_apply=%add, {meta('jit(f)/dot', 4, str(file))}",
    ]
    assert report(*lines, folders=[tmp_path]).rows[0].array == "x @ w"
    assert report(*lines, folders=[]).rows[0].array == ""


def test_axes_without_a_mesh():
    line = "%s = f32[16,8] all-reduce(%x), replica_groups={}, to_apply=%add"
    groups = {
        "mesh['data'=4,'model'=2] {'data'}": ("data",),  # newer XLA keeps the names
        "mesh['axis_0'=4,'axis_1'=1,'axis_2'=2] {'axis_0'}": (),  # these are of no one
        "[2,4]<=[4,2]T(1,0)": (),
    }
    for text, axes in groups.items():
        found = report(X, line.replace("={}", f"={text}"), "ROOT %c = f32[16,8] copy(%s)", mesh=None)
        assert (found.rows[0].axes, found.rows[0].group_size) == (axes, 4)
        assert ("over data" if axes else "in groups of 4") in str(found)
    assert mesh_in('frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}}', 8) == MESH
    assert mesh_in('frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}}', 4) is None


def test_a_program_without_collectives():
    """The copy reads and writes 16 x 8 numbers of 4 bytes."""
    found = report(X, "ROOT %c = f32[16,8] copy(%x)")
    step = show_seconds(2 * 16 * 8 * 4 / find_machine("h100").memory_bandwidth)
    lines = ["step: 8 devices, data=4 model=2, partitioned by XLA", "no collectives"]
    assert str(found).splitlines() == [*lines, f"computes for {step}; compute bounds a step of {step}"]
    assert found.as_dict()["partitioner"] == "xla"
    assert "memory" not in found.as_dict()


@pytest.mark.parametrize(
    ("groups", "header"),
    [
        ("[3,3]<=[8]", HEADER),
        ("[2,4]<=[2,4]T(0,0)", HEADER),
        ("[1,1000000000000]<=[1000000000000]", HEADER),
        ("{}", HEADER.replace("=8", "=100000000000")),
    ],
)
def test_groups_that_are_none_are_refused(groups: str, header: str):
    line = f"%s = f32[16,8] all-reduce(%x), replica_groups={groups}, to_apply=%add"
    with pytest.raises(ShardpassError) as error:
        report(X, line, mesh=None, header=header)
    assert error.value.code == "SP120"


@pytest.mark.parametrize("cut", range(0, 900, 7))
def test_a_torn_text_is_read_as_far_as_it_goes(cut: int):
    """The longest lines of XLA's, cut anywhere: no error of Python's."""
    whole = (
        f"{HEADER}\n\n%b (t: f32[8]) -> f32[8] {{\n  %t = f32[8] parameter(0)\n"
        "  ROOT %g = (f32[8]{0}, /*index=1*/f32[8]) "
        f"all-gather-start(%t, %t), replica_groups=[2,4]<=[4,2]T(1,0), {meta('a/b', 3)}\n}}\n\n"
        "%c (t: f32[8]) -> pred[] {\n  %t = (s32[]) parameter(0)\n  %k = s32[] get-tuple-element(%t), index=0\n"
        "  ROOT %r = pred[] compare(%k, %k), direction=LT\n}\n\n"
        "ENTRY %e (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n"
        "  %w = (f32[8]) while(%p), condition=%c, body=%b\n"
        "  ROOT %s = f32[8] all-reduce(%w, %q), replica_groups={{0,1},{2,3}}, to_apply=%gone\n}\n"
    )
    str(explain_hlo(whole[:cut], "t.hlo"))
