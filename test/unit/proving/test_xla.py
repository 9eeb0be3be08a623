"""HLO after SPMD partitioning, as XLA dumps it; what is changed in it is found.

The text is XLA's (jaxlib 0.10.2) of PRODUCT below, without its metadata. That each change changes results follows from
NumPy: the sum of some devices alone, and columns of another device.
"""

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.proving.rules.collectives import groups_over_axes
from shardpass.proving.xla import from_hlo, is_hlo, partitioned_by_xla

PRODUCT = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x6xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
                  %y: tensor<6x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{replicated}"}, tensor<8x6xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.tanh %x : tensor<8x6xf32>
    return %0, %1 : tensor<8x4xf32>, tensor<8x6xf32>
  }
}
"""
HLO = """HloModule main, entry_computation_layout={(f32[8,2]{1,0}, f32[2,4]{1,0})->(f32[8,4]{1,0}, f32[8,6]{1,0})}, num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

ENTRY %main (x: f32[8,2], y: f32[2,4]) -> (f32[8,4], f32[8,6]) {
  %zero = f32[] constant(0)
  %six = s32[] constant(6)
  %starts = s32[4]{0} constant({0, 2, 4, 6})
  %id = u32[] partition-id()
  %one = s32[1]{0} dynamic-slice(%starts, %id), dynamic_slice_sizes={1}
  %start = s32[] reshape(%one)
  %x = f32[8,2]{1,0} parameter(0), sharding={devices=[1,4]<=[4]}
  %columns = s32[8,2]{1,0} iota(), iota_dimension=1
  %start.x = s32[8,2]{1,0} broadcast(%start), dimensions={}
  %at.x = s32[8,2]{1,0} add(%columns, %start.x)
  %six.x = s32[8,2]{1,0} broadcast(%six), dimensions={}
  %in.x = pred[8,2]{1,0} compare(%at.x, %six.x), direction=LT
  %zero.x = f32[8,2]{1,0} broadcast(%zero), dimensions={}
  %own.x = f32[8,2]{1,0} select(%in.x, %x, %zero.x)
  %y = f32[2,4]{1,0} parameter(1), sharding={devices=[4,1]<=[4]}
  %rows = s32[2,4]{1,0} iota(), iota_dimension=0
  %start.y = s32[2,4]{1,0} broadcast(%start), dimensions={}
  %at.y = s32[2,4]{1,0} add(%rows, %start.y)
  %six.y = s32[2,4]{1,0} broadcast(%six), dimensions={}
  %in.y = pred[2,4]{1,0} compare(%at.y, %six.y), direction=LT
  %zero.y = f32[2,4]{1,0} broadcast(%zero), dimensions={}
  %own.y = f32[2,4]{1,0} select(%in.y, %y, %zero.y)
  %dot = f32[8,4]{1,0} dot(%own.x, %own.y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %total = f32[8,4]{1,0} all-reduce(%dot), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%sum
  %tanh = f32[8,2]{1,0} tanh(%x)
  %all = f32[8,8]{1,0} all-gather(%tanh), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={1}, use_global_device_ids=true
  %cut = f32[8,6]{1,0} slice(%all), slice={[0:8], [0:6]}
  ROOT %both = (f32[8,4]{1,0}, f32[8,6]{1,0}) tuple(%total, %cut)
}
"""  # noqa: E501
CHANGES = {
    "the sum is of two devices": ("=1, replica_groups={{0,1,2,3}}", "=1, replica_groups={{0,1},{2,3}}"),
    "the columns in another order": ("=2, replica_groups={{0,1,2,3}}", "=2, replica_groups={{1,0,2,3}}"),
    "a mask that is one too wide": ("%six = s32[] constant(6)", "%six = s32[] constant(7)"),
    "another shard of the table of offsets": ("constant({0, 2, 4, 6})", "constant({0, 2, 6, 4})"),
}  # fmt: skip


def test_xla_s_program_is_proved():
    whole = parse_module(PRODUCT)
    assert is_hlo(HLO)
    verdict = prove(whole, from_hlo(HLO, whole), refute=False)
    assert verdict.proved, str(verdict)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_program_is_not_proved(change):
    old, new = CHANGES[change]
    assert old in HLO
    whole = parse_module(PRODUCT)
    assert not prove(whole, from_hlo(HLO.replace(old, new), whole), refute=False).proved


def test_groups_over_axes_of_a_mesh():
    """Axes b, or a and b, of devices [[0, 1], [2, 3]]; and of [[0, 2], [1, 3]]."""
    said = "#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [{}]>"
    one, other = ('#stablehlo.axis_ref<name = "a">', '#stablehlo.axis_ref<name = "b">')
    for ids, axes, wanted in (
        ("", other, [[0, 1], [2, 3]]),
        ("", one, [[0, 2], [1, 3]]),
        ("", f"{one}, {other}", [[0, 1, 2, 3]]),
        ("", f"{other}, {one}", [[0, 2, 1, 3]]),
        (", device_ids=[0, 2, 1, 3]", other, [[0, 2], [1, 3]]),
    ):
        module = parse_module(f'module {{ sdy.mesh @mesh = <["a"=2, "b"=2]{ids}> }}')
        assert groups_over_axes(module.body.operations[0], said.format(axes)).tolist() == wanted


@pytest.mark.parametrize(("axes", "proved"), [("'b','a'", True), ("'a','b'", False)])
def test_the_order_of_devices_in_a_mesh_of_hlo_counts(axes, proved):
    """Devices [[0, 2], [1, 3]], with b as the first axis 0, 1, 2, 3; XLA's translation to StableHLO drops the ids."""
    groups = f"=2, replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {{{axes}}}"
    text = HLO.replace("=2, replica_groups={{0,1,2,3}}", groups)
    assert text != HLO
    whole = parse_module(PRODUCT)
    assert prove(whole, from_hlo(text, whole), refute=False).proved is proved


@pytest.mark.parametrize("groups", ["mesh['a'=2,'b'=4] {'a','b'}", "mesh['a'=2,'b'=2] {'c'}"])
def test_groups_without_a_reading_are_an_error(groups):
    whole = parse_module(PRODUCT)
    text = HLO.replace("=2, replica_groups={{0,1,2,3}}", f"=2, replica_groups={groups}")
    with pytest.raises(ShardpassError, match="SP952"):
        from_hlo(text, whole)


@pytest.mark.parametrize(("note", "proved"), [('xla_shape = "f32[4]{0}"', True), ('how = "f32[4]{0}"', False)])
def test_layouts_of_hlo_change_no_result(note, proved):
    """Layouts are annotations; an attribute that nothing is known of may be anything."""
    whole = "module { func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  OP  return %0 : tensor<4xf32>\n} }"
    plain, noted = (
        whole.replace("OP", f"%0 = stablehlo.tanh %x {attributes} : tensor<4xf32>\n")
        for attributes in ("", f"{{{note}, result_layout = dense<0> : tensor<1xindex>}}")
    )
    manual = 'tensor<4xf32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<4xf32>, shardpass.sharding = "{replicated}"}'  # noqa: E501
    local = noted.replace("(%x: tensor<4xf32>) -> tensor<4xf32>", f"(%x: {manual}) -> ({manual})")
    local = local.replace("module {", "module attributes {mhlo.num_partitions = 2 : i32} {")
    assert prove(plain, local, refute=False).proved is proved


def test_what_cannot_be_read():
    whole = parse_module(PRODUCT)
    with pytest.raises(ShardpassError, match="SP952"):
        from_hlo("HloModule nothing, ENTRY {", whole)
    rows = '(tensor<8x4xf32> {mhlo.sharding = "{replicated}"}, tensor<8x6xf32> {mhlo.sharding = "{replicated}"})'
    bare = PRODUCT.replace(rows, "(tensor<8x4xf32>, tensor<8x6xf32>)")
    other = HLO.replace("f32[8,6]", "f32[8,5]").replace("[0:8], [0:6]", "[0:8], [0:5]")
    with pytest.raises(ShardpassError, match=r"result 1 .*SP953"):
        from_hlo(other, parse_module(bare))


def test_the_program_that_xla_makes():
    whole = parse_module(PRODUCT)
    verdict = prove(whole, partitioned_by_xla(whole), refute=False)
    assert verdict.proved, str(verdict)
