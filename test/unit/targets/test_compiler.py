"""Variants of a program as XLA compiles them, in one child."""

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_runtime import COMPILE_FAILED
from shardpass.hlo.read import read_program
from shardpass.hlo.work import work_of
from shardpass.ir import jax_private
from shardpass.runtime.peers import SHARDY, WAYS, XLA
from shardpass.targets import child
from shardpass.targets import compiler as targets_compiler
from shardpass.targets.compiled import Compiled
from shardpass.targets.compiler import ENDED_IDLE, Compiler, shared
from shardpass.targets.target import cpu

# y = x @ w, w whole: nothing is sent; with y gathered, each device gets 7 of 8 tiles of [8, 16] f32
PROGRAM = """
module @step attributes {{mhlo.num_partitions = 8 : i32}} {{
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%x: tensor<64x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}},
      %w: tensor<32x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}})
      -> (tensor<64x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{result}, {{}}]>}}) {{
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
    return %0 : tensor<64x16xf32>
  }}
}}
"""  # noqa: E501  IR is not wrapped
SPLIT, WHOLE = PROGRAM.format(result='{"data"}'), PROGRAM.format(result="{}")


def test_one_child_compiles_all_variants():
    with Compiler(cpu(8)) as compiler:
        split = compiler.compile(SPLIT.encode())
        first = compiler._child
        whole = compiler.compile(WHOLE.encode())
        assert compiler._child is first
        assert compiler.compiled == 2
    assert first.poll() is not None
    assert split.bytes_received == 0
    assert whole.bytes_received == 7 * 8 * 16 * 4
    assert split.arguments == whole.arguments == 4 * (8 * 32 + 32 * 16)
    assert whole.memory - whole.temporaries == whole.arguments + 64 * 16 * 4


@pytest.mark.parametrize("way", WAYS)
def test_each_partitioner_gathers_the_result(way):
    with Compiler(cpu(8)) as compiler:
        found = compiler.compile(WHOLE.encode(), way=way)
    assert found.bytes_received == 7 * 8 * 16 * 4
    assert (found.arguments, found.results) == (4 * (8 * 32 + 32 * 16), 64 * 16 * 4)


def test_a_program_that_a_partitioner_refuses_names_it():
    with Compiler(cpu(8)) as compiler, pytest.raises(ShardpassError, match="shardy") as raised:
        compiler.compile(b"module { nonsense }", way=SHARDY)
    assert raised.value.code == "SP553"


def test_products_that_xla_cannot_tile_are_computed_by_a_library(monkeypatch):
    options = []

    def built(*_):
        options.append(jax_private._overrides.get())
        if len(options) == 1:
            raise COMPILE_FAILED.error(reason=f"INTERNAL: {child.NO_TILES} that satisfy hlo: %dot.85 = f32[22,32]")
        return "the program"

    monkeypatch.setattr(child, "_built", built)
    assert child._executable(SPLIT.encode(), cpu(8), True, XLA) == "the program"
    assert options == [(), (("xla_gpu_enable_triton_gemm", False),)]


def test_a_draft_has_the_bytes_and_products_of_the_program():
    with Compiler(cpu(8)) as compiler:
        draft, whole = compiler.compile(WHOLE.encode(), draft=True), compiler.compile(WHOLE.encode())
    assert draft.bytes_received == whole.bytes_received == 7 * 8 * 16 * 4
    assert draft.arguments == whole.arguments
    assert sum(one.work.flops for one in work_of(read_program(draft.hlo))) == 2 * 8 * 32 * 16
    assert draft.temporaries == pytest.approx(whole.temporaries, rel=0.05)


def test_seconds_are_those_of_the_machine():
    from support.machines import switched

    slow = switched("slow", 1.0, 448.0, 1e30)  # a second of latency, 448 B/s, no work
    with Compiler(cpu(8)) as compiler:
        assert compiler.compile(SPLIT.encode()).seconds(slow) == pytest.approx(0, abs=1e-12)
        assert compiler.compile(WHOLE.encode()).seconds(slow) == pytest.approx(1 + 7 * 8 * 16 * 4 / 448)


def test_a_loop_counts_as_often_as_it_runs():
    """12 trips of a product of 2 * 64 * 64 * 64 operations, at one a second; the bytes take no time to speak of."""
    from support.machines import switched

    matrix = "tensor<64x64xf32>"
    loop = f"""
module attributes {{mhlo.num_partitions = 8 : i32}} {{
  func.func @main(%x: {matrix}, %w: {matrix}) -> {matrix} {{
    %n = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %n, %h = %x) : tensor<i32>, {matrix}
     cond {{
      %m = stablehlo.constant dense<12> : tensor<i32>
      %c = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %p = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : ({matrix}, {matrix}) -> {matrix}
      stablehlo.return %j, %p : tensor<i32>, {matrix}
    }}
    return %0#1 : {matrix}
  }}
}}
"""
    machine = switched("slow", 1.0, 1.0, 1e30, flops=1.0)
    with Compiler(cpu(8)) as compiler:
        assert compiler.compile(loop.encode()).seconds(machine) == pytest.approx(12 * 2 * 64**3)


@pytest.mark.parametrize("bad", ["module {", SPLIT.replace("num_partitions = 8", "num_partitions = 16")])
def test_a_program_that_fails_leaves_the_next_alone(bad):
    with Compiler(cpu(8)) as compiler:
        with pytest.raises(ShardpassError) as raised:
            compiler.compile(bad.encode())
        assert raised.value.diagnostics[0].code == "SP553"
        assert compiler.compile(SPLIT.encode()).bytes_received == 0


def test_a_child_that_ends_is_replaced():
    with Compiler(cpu(8)) as compiler:
        compiler.compile(SPLIT.encode())
        compiler._child.kill()
        with pytest.raises(ShardpassError, match="xla"):
            compiler.compile(SPLIT.encode())
        assert compiler.compile(SPLIT.encode()).bytes_received == 0


def test_a_child_that_ended_for_want_of_work_is_replaced_without_an_error():
    with Compiler(cpu(8), idle=0.01) as compiler:
        compiler.compile(SPLIT.encode())
        first = compiler._child
        assert first.wait(60) == ENDED_IDLE
        assert compiler.compile(SPLIT.encode()).bytes_received == 0
        assert compiler._child is not first


def test_one_child_serves_all_reports_for_as_many_devices(monkeypatch):
    assert shared(cpu(8)) is shared(cpu(8))
    shared(cpu(8)).compile(SPLIT.encode())
    first = shared(cpu(8))._child
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    assert shared(cpu(8))._child is None
    assert first.poll() is not None


def test_a_child_that_takes_too_long_is_ended():
    with Compiler(cpu(8), timeout=0.01) as compiler, pytest.raises(ShardpassError, match=r"more than 0 s"):
        compiler.compile(SPLIT.encode())


def test_sums_that_are_joined_and_sliced_are_scattered():
    """Of two joined sums of [64, 64] and [16, 16] f32 over 8, each device keeps 8 rows of the first alone."""
    hlo = """
HloModule m, is_scheduled=true, num_partitions=8, entry_computation_layout={(f32[64,64]{1,0}, f32[16,16]{1,0})->(f32[8,64]{1,0}, f32[16,16]{1,0})}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main_spmd (p: f32[64,64], q: f32[16,16]) -> (f32[8,64], f32[16,16]) {
  %p = f32[64,64]{1,0} parameter(0)
  %q = f32[16,16]{1,0} parameter(1)
  %both = (f32[64,64]{1,0}, f32[16,16]{1,0}) all-reduce(%p, %q), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=%add
  %first = f32[64,64]{1,0} get-tuple-element(%both), index=0
  %second = f32[16,16]{1,0} get-tuple-element(%both), index=1
  %device = u32[] partition-id()
  %eight = u32[] constant(8)
  %zero = u32[] constant(0)
  %start = u32[] multiply(%device, %eight)
  %slice = f32[8,64]{1,0} dynamic-slice(%first, %start, %zero), dynamic_slice_sizes={8,64}
  ROOT %out = (f32[8,64]{1,0}, f32[16,16]{1,0}) tuple(%slice, %second)
}
"""  # noqa: E501  HLO is not wrapped
    program = Compiled(hlo, cpu(8), 0, 0, 0, 0)
    first, second = 64 * 64 * 4, 16 * 16 * 4
    assert program.bytes_received == 2 * (first + second) * 7 // 8
    assert program.bytes_scattered == first * 7 // 8 + 2 * second * 7 // 8


def test_a_long_compile_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(targets_compiler, "tell", told.append)
    monkeypatch.setattr(targets_compiler, "TOLD", 0.01)
    with Compiler(cpu(8)) as compiler:
        compiler.compile(SPLIT.encode())
    assert told[0] == "XLA:CPU compiles for cpu:8: 0 s"


@pytest.mark.parametrize("installed", [False, True])
def test_a_named_machine_asks_its_own_compiler_and_says_where_another_stands_in(installed, monkeypatch):
    """XLA:GPU is not there, or refuses the program; without the name of a machine nobody asked for it."""
    import shardpass
    from shardpass.diagnostics.table_cost import TARGET_FAILED
    from shardpass.report.hlo import programs

    asked = []

    def compiler(target):
        asked.append(str(target))
        if target.platform == "cpu":
            return shared(target)
        raise TARGET_FAILED.error(compiler=target.compiler, target=str(target), reason="no such call", devices=8)

    monkeypatch.setattr(programs, "is_installed", lambda target: installed)
    monkeypatch.setattr(programs, "shared", compiler)
    said = "XLA:CPU, as XLA:GPU does not compile the program for h100:8: no such call"
    if not installed:
        said = "XLA:CPU in place of XLA:GPU: pip install 'shardpass[gpu]'"
    report = shardpass.explain(WHOLE, partitioner="xla", machine="h100")
    assert asked == ["h100:8", "cpu:8"][not installed :]
    assert report.stand_in == report.as_dict()["compiler"] == said
    assert f"compiled by {said}"[:70] in str(report)
    assert report.total_bytes_received == 7 * 8 * 16 * 4
    assert shardpass.explain(WHOLE, partitioner="xla").stand_in == ""
