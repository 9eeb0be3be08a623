"""The counter of bytes in compiled HLO: by hand on written text, and against shardpass's own count on real programs."""

import pytest

import shardpass
from shardpass.ir.collectives import collectives, total_bytes
from tools.bench.hlo_traffic import group_size, traffic
from tools.bench.real_programs import real_programs


def entry(*lines):
    return "HloModule m\n\nENTRY %main (p: f32[4]) -> f32[4] {\n" + "".join(f"  {x}\n" for x in lines) + "}\n"


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("%a = f32[8,4]{1,0} all-gather(%p), replica_groups=[2,4]<=[8], dimensions={0}", 32 * 4 * 3 // 4),
        ("%a = bf16[8]{0} all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%add", 2 * 16 // 2),
        ("%a = (f32[4]{0}, s8[4]{0}) all-reduce(%p, %q), replica_groups={{0,1,2,3}}, to_apply=%add", 2 * 20 * 3 // 4),
        ("ROOT %a = f32[2]{0} reduce-scatter(%p), replica_groups={{0,1,2,3}}, dimensions={0}", 8 * 3),
        ("%a = (f32[2]{0}, f32[2]{0}) all-to-all(%p, %q), replica_groups={{0,1}}", 8),
        ("%a = (f32[2]{0}, /*index=1*/f32[2]{0}) all-to-all(%p, %q), replica_groups={{0,1}}", 8),
        ("%a = c64[4]{0} collective-permute(%p), source_target_pairs={{0,1},{1,1}}", 32),
        ("%a = pred[8]{0} all-gather(%p), replica_groups=mesh['a'=4,'b'=2] {'a'}, dimensions={0}", 6),
        ("%a = u32[8]{0} all-gather(%p), replica_groups=mesh['a'=4,'b'=2] {'a':(1)2,'b'}, dimensions={0}", 24),
        ("%a = f8e4m3fn[8]{0} all-gather(%p), replica_groups={}, dimensions={0}", 7),
        ("%a = (f32[2]{0}, f32[8]{0}) all-gather-start(%p), replica_groups={{0,1,2,3}}, dimensions={0}", 24),
    ],
)
def test_bytes_of_one_collective(line, size):
    found = traffic(entry(line), 8)
    assert (found.bytes, found.collectives) == (size, 1)


def test_a_permute_is_counted_where_it_arrives() -> None:
    """Device 0 receives 16 bytes and 1 the same: no device receives 32."""
    there, back = (
        f"%a = f32[4]{{0}} collective-permute(%p), source_target_pairs={{{{{pair}}}}}" for pair in ("0,1", "1,0")
    )
    found = traffic(entry(there, back), 2)
    assert (found.bytes, found.collectives, found.by_kind) == (16, 2, (("collective-permute", 2, 16),))


@pytest.mark.parametrize(
    "line",
    [
        "%a = f32[4]{0} add(%p, %p)",
        "%a = f32[4]{0} all-reduce(%p), replica_groups={{0},{1}}, to_apply=%add",
        "%a = f32[4]{0} collective-permute(%p), source_target_pairs={{0,0},{1,1}}",
        "%a = f32[4]{0} all-gather-done(%p)",
    ],
)
def test_what_moves_nothing_is_no_collective(line):
    assert traffic(entry(line), 2).collectives == 0


LOOP = """HloModule m

%body (p: f32[4]) -> f32[4] {
  %a = f32[4]{0} collective-permute(%p), source_target_pairs={{0,1}}
}

%condition (p: f32[4]) -> pred[] {
  %c = pred[] constant(true)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %w = f32[4]{0} while(%p), condition=%condition, body=%bodySUFFIX
}
"""


def test_a_loop_counts_each_trip_where_they_are_known():
    known = LOOP.replace("SUFFIX", ', backend_config={"known_trip_count":{"n":"5"}}')
    assert (traffic(known, 2).bytes, traffic(known, 2).collectives, traffic(known, 2).unknown_loops) == (80, 5, 0)
    unknown = LOOP.replace("SUFFIX", "")
    assert (traffic(unknown, 2).bytes, traffic(unknown, 2).unknown_loops) == (16, 1)


def test_of_branches_the_one_that_receives_most():
    text = LOOP.replace(
        "while(%p), condition=%condition, body=%bodySUFFIX",
        "conditional(%i, %p, %p), branch_computations={%condition, %body}",
    )
    assert traffic(text, 2).bytes == 16


def test_group_size_without_groups_is_everybody():
    assert group_size("replica_groups={}, dimensions={0}", 6) == 6


@pytest.mark.parametrize("name", ["mlp_forward", "matmul_3d", "jacobi_slices"])
def test_the_counters_agree_on_a_real_program(name):
    module = shardpass.run_pipeline(real_programs()[name].lower().text, "partition")
    found = traffic(shardpass.compile(module).hlo_text(), real_programs()[name].devices)
    assert found.bytes == total_bytes(collectives(module))
