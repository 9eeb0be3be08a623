"""Collectives read from HLO text, and the rule by which XLA added none."""

import pytest

from shardpass.ir.context import parse_module
from shardpass.runtime.hlo import HloCollective, added_by_xla, collectives_in, emitted

START = "  %c.1 = f32[4]{0} "
SHAPED = "(%x), channel_id=1, "
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
STRIDED = ((0, 2), (1, 3), (4, 6), (5, 7))
# the forms that XLA prints, one meaning each; worked out by hand
GROUPS = [
    ("replica_groups={{0,1},{2,3},{4,5},{6,7}}", PAIRS),
    ("replica_groups=[4,2]<=[8], use_global_device_ids=true", PAIRS),
    ("replica_groups=[2,4]<=[2,4], dimensions={0}", ((0, 1, 2, 3), (4, 5, 6, 7))),
    ("replica_groups=[4,2]<=[2,2,2]T(0,2,1)", STRIDED),
    ("replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}", PAIRS),
    ("replica_groups=mesh['axis_0'=2,'axis_1'=2,'axis_2'=2] {'axis_1'}", STRIDED),
    # axis_0 of 4 is 2x2; its minor half strides by 2, its major half by 4
    ("replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0':(2)2}", STRIDED),
    ("replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),
    # the ids in mesh order are 0 2 1 3 4 6 5 7
    ("replica_groups=mesh['axis_0'=4,'axis_1'=2], device_ids=([2,2,2]T(0,2,1)) {'axis_1'}", STRIDED),
    ("replica_groups={}", (tuple(range(8)),)),
    # XLA prints names as they are (jaxlib 0.12)
    ("replica_groups=mesh['a'=4,'c]d'=2] {'c]d'}", PAIRS),
    ("replica_groups=mesh['a]'=4,'c'=2], device_ids=([2,2,2]T(0,2,1)) {'c'}", STRIDED),
    ("replica_groups=mesh['}{'=4,'='=2] {'='}", PAIRS),
    ("replica_groups=mesh['}{'=4,'='=2] {'}{':(2)2}", STRIDED),
    ("replica_groups=mesh['x,y'=4,'b'=2] {'x,y':(2)2}", STRIDED),
    ("replica_groups=mesh['(a'=4,')'=2], device_ids=([2,2,2]T(0,2,1)) {')'}", STRIDED),
    ("replica_groups=mesh['a'b'=4,'c'=2] {'c'}", PAIRS),
    ("replica_groups=mesh['a\\'b'=4,'c'=2] {'a\\'b':(2)2}", STRIDED),
    ("replica_groups=mesh['a'=4,'b'=4,'c'=2] {'a'=4,'b':(2)2}", STRIDED),
    ("replica_groups=mesh['a'=1,'b'=4,'c'=2] {'a'=1,'b':(2)2}", STRIDED),
]


@pytest.mark.parametrize(("text", "groups"), GROUPS)
def test_forms_of_replica_groups(text, groups):
    (found,) = collectives_in(f"{START}all-reduce{SHAPED}{text}, to_apply=%add\n", 8)
    assert found.kind == "all_reduce"
    assert sorted(found.groups) == sorted(groups)


def test_permutes_and_asynchronous_pairs():
    text = """
  ROOT %p = (f32[4]{0}, f32[4]{0}) collective-permute-start(%x), channel_id=1, source_target_pairs={{0,1},{1,0},{2,2}}
  %d = f32[4]{0} collective-permute-done(%p)
  %a = (f32[2]{0}, f32[2]{0}) all-to-all(%x, %y), channel_id=2, replica_groups={{0,1}}
  %n = f32[4]{0} add(%all-reduce.1, %x)
"""
    assert list(collectives_in(text, 2)) == [
        HloCollective("collective_permute", ((0, 1), (1, 0))),
        HloCollective("all_to_all", ((0, 1),)),
    ]


MODULE = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
    %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64,
      replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
      : (tensor<4xf32>) -> tensor<8xf32>
    %1 = "stablehlo.all_reduce"(%0) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids}
      : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}"""
GATHER = f"{START}all-gather{SHAPED}replica_groups={{{{0,1}},{{2,3}}}}\n"
REDUCE = f"{START}all-reduce{SHAPED}replica_groups={{{{2,0}},{{1,3}}}}\n"


def test_emitted():
    assert emitted(parse_module(MODULE)) == [
        HloCollective("all_gather", ((0, 1), (2, 3))),
        HloCollective("all_reduce", ((0, 2), (1, 3))),
    ]


RULE = [
    ("the same", GATHER + REDUCE, 0),
    ("one dropped", REDUCE, 0),
    ("a reduction scattered", REDUCE.replace("all-reduce", "reduce-scatter"), 0),
    ("one twice", GATHER + GATHER, 1),
    ("another kind", REDUCE.replace("all-reduce", "all-to-all"), 1),
    ("other devices", REDUCE.replace("{2,0},{1,3}", "{0,1},{2,3}"), 1),
    ("another order of a gather", GATHER.replace("{0,1}", "{1,0}"), 1),
]


@pytest.mark.parametrize(("what", "text", "added"), RULE, ids=[row[0] for row in RULE])
def test_rule(what, text, added):
    assert len(added_by_xla(text, parse_module(MODULE))) == added
