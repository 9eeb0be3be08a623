"""Which collectives run, how often, and what devices receive, worked out by hand."""

import sys

import pytest

from shardpass.hlo.collectives import HloCollectives
from shardpass.hlo.read import read_program

FOUR = "replica_groups={{0,1,2,3}}"
GATHER = f"f32[8]{{0}} all-gather(%p), {FOUR}, dimensions={{0}}"  # 32 bytes, of which 3/4 come from others


def rows(*lines, more="", header="HloModule m, num_partitions=4", devices=None):
    body = "\n".join(f"  {line}" for line in lines)
    text = f"{header}\n\n{more}\nENTRY %main (p: f32[8]) -> f32[8] {{\n{body}\n}}\n"
    return HloCollectives(read_program(text), devices).rows


def computation(name, *lines):
    return "\n".join([f"%{name} (p: f32[8]) -> f32[8] {{", *(f"  {line}" for line in lines), "}", "", ""])


def test_collectives_inside_of_fusions_calls_and_asynchronous_computations():
    more = computation("inner", f"ROOT %g = {GATHER}")
    lines = [
        "%a = f32[8] fusion(%p), kind=kCustom, calls=%inner",
        "%b = f32[8] call(%a), to_apply=%inner",
        "%c = ((f32[8]), f32[8], u32[]) async-start(%b), calls=%inner",
        "%d = f32[8] async-done(%c), calls=%inner",
    ]
    (found,) = rows(*lines, more=more)
    assert (found.kind, found.times, dict(found.received)) == ("all_gather", 3, {24: (0, 1, 2, 3)})


def test_the_reduce_scatter_of_tpus_is_no_all_reduce():
    """32 bytes are summed, of which a device receives the parts of its own slice from three others."""
    whole = f"%s = f32[8]{{0}} all-reduce(%p), {FOUR}, to_apply=%add"
    more = computation(
        "all-reduce-scatter.3", whole, "ROOT %d = f32[2] dynamic-slice(%s, %at), dynamic_slice_sizes={2}"
    )
    (found,) = rows("%f = f32[2] fusion(%p), kind=kCustom, calls=%all-reduce-scatter.3", more=more)
    assert (found.kind, dict(found.received)) == ("reduce_scatter", {24: (0, 1, 2, 3)})


def test_a_permute_that_is_sent_and_received():
    pairs = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}"
    lines = [
        f"%r = (f32[8]{{0}}, u32[], token[]) recv(%t), channel_id=1, {pairs}",
        f"%s = (f32[8]{{0}}, u32[], token[]) send(%p, %t), channel_id=1, {pairs}",
        "%h = (f32[8]{0}, u32[], token[]) recv(%t), channel_id=2, is_host_transfer=true",
    ]
    (found,) = rows(*lines)
    assert (found.kind, dict(found.received)) == ("collective_permute", {32: (1, 2)})


def test_reducers_are_not_run():
    more = computation("add", f"ROOT %g = {GATHER}")
    assert rows("%a = f32[] reduce(%p, %p), dimensions={0}, to_apply=%add", more=more) == ()


def test_loops_inside_of_loops_multiply():
    more = computation("inner", f"ROOT %g = {GATHER}") + computation("no", "ROOT %c = pred[] constant(true)")
    loop = 'f32[8] while(%p), condition=%no, body=%{}, backend_config={{"known_trip_count":{{"n":"{}"}}}}'
    more += computation("outer", f"ROOT %w = {loop.format('inner', 5)}")
    (found,) = rows(f"%w = {loop.format('outer', 3)}", more=more)
    assert (found.times, found.unknown_loops) == (15, 0)
    unknown = "%w = f32[8] while(%p), condition=%no, body=%outer"
    (found,) = rows(unknown, more=more)
    assert (found.times, found.unknown_loops) == (5, 1)


def test_of_a_conditional_the_dearest_branch_counts():
    more = computation("one", f"ROOT %g = {GATHER}")
    more += computation("two", f"%g = {GATHER}", f"ROOT %h = {GATHER}")
    for branches in (
        "branch_computations={%one, %two}",
        "true_computation=%one, false_computation=%two",
    ):
        found = rows(f"%c = f32[8] conditional(%i, %p, %p), {branches}", more=more)
        assert [(one.computation, one.counted) for one in found] == [("one", False), ("two", True), ("two", True)]


@pytest.mark.parametrize(
    ("op", "groups"),
    [
        # iota(8) as [2,4], transposed, in rows of 2
        ("all-gather", "replica_groups=[4,2]<=[2,4]T(1,0)|((0, 4), (1, 5), (2, 6), (3, 7))"),
        ("all-gather", "replica_groups=[2,4]<=[8]|((0, 1, 2, 3), (4, 5, 6, 7))"),
        ("all-gather", "replica_groups={{0,2},{1,3}}|((0, 2), (1, 3))"),
        ("all-gather", "replica_groups=mesh['x'=4,'y'=2] {'y'}|((0, 1), (2, 3), (4, 5), (6, 7))"),
        ("all-gather", "replica_groups=mesh['x'=4,'y'=2] {'x':(1)2}|((0, 4), (1, 5), (2, 6), (3, 7))"),
        ("all-reduce", "replica_groups={}|((0, 1, 2, 3, 4, 5, 6, 7),)"),
        # a channel without global ids: groups of replicas, of which there is one, with all its partitions
        ("all-reduce", "channel_id=1, replica_groups={{0}}|((0, 1, 2, 3, 4, 5, 6, 7),)"),
        ("all-reduce", "channel_id=1, replica_groups={{0}}, use_global_device_ids=true|()"),
        ("collective-permute", "channel_id=1, source_target_pairs={{0,1},{2,2},{1,0}}|((0, 1), (1, 0))"),
        ("collective-permute", "channel_id=1, source_target_pairs={}|()"),
    ],
)
def test_groups(op, groups):
    text, _, expected = groups.partition("|")
    found = rows(f"%a = f32[8] {op}(%p), {text}", header="HloModule m, num_partitions=8")
    assert str(found[0].groups if found else ()) == expected


def test_groups_over_axes_of_a_mesh_need_no_grammar(monkeypatch):
    monkeypatch.setitem(sys.modules, "shardpass.sharding.notations.syntax", None)  # whose import would fail
    header = "HloModule m, num_partitions=6"
    (found,) = rows("%a = f32[8] all-gather(%p), replica_groups=mesh['i'=2,'j'=3] {'j'}", header=header)
    assert found.groups == ((0, 1, 2), (3, 4, 5))


@pytest.mark.parametrize(
    ("op", "text", "expected"),
    [
        # 2 replicas of 2 partitions: device = replica * 2 + partition
        ("all-reduce", "replica_groups={{0,1}}", ((0, 2), (1, 3))),
        ("all-reduce", "channel_id=1, replica_groups={{0,1}}", ((0, 1, 2, 3),)),
        ("all-reduce", "channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true", ((0, 1), (2, 3))),
        ("all-to-all", "channel_id=1, replica_groups={{0,1}}", ((0, 1), (2, 3))),
    ],
)
def test_replicas_and_partitions(op, text, expected):
    header = "HloModule m, replica_count=2, num_partitions=2"
    (found,) = rows(f"%a = f32[8] {op}(%p), {text}", header=header)
    assert found.groups == expected


def test_a_module_that_says_no_number_of_devices_has_those_of_its_groups():
    """As of a proto."""
    text = "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %a = f32[8] all-gather(%p), replica_groups=HERE\n}\n"
    for groups, devices in (
        ("[2,4]<=[8]", 8),
        ("{{0,1},{2,3}}", 4),
        ("mesh['x'=4,'y'=3] {'y'}", 12),
    ):
        found = HloCollectives(read_program(text.replace("HERE", groups)))
        assert found.devices == devices
        assert len(found.rows) == 1


def test_calls_that_double_take_no_exponential_time():
    more = computation("c0", f"ROOT %g = {GATHER}")
    for k in range(1, 200):
        call = f"f32[8] call(%p), to_apply=%c{k - 1}"
        more += computation(f"c{k}", f"%a = {call}", f"ROOT %b = {call}")
    (found,) = rows("ROOT %w = f32[8] call(%p), to_apply=%c199", more=more)
    assert found.times == 2**199


def test_calls_in_a_circle_end():
    more = computation("a", "ROOT %x = f32[8] call(%p), to_apply=%b")
    more += computation("b", f"%g = {GATHER}", "ROOT %x = f32[8] call(%p), to_apply=%a")
    assert len(rows("ROOT %w = f32[8] call(%p), to_apply=%a", more=more)) >= 1
