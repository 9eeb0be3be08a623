"""``shardpass pin``: the module on stdout, the constraints on stderr."""

import json

import pytest

from shardpass.cli import pin
from shardpass.ir.context import parse_module

# gathering w receives 7/8 of 512 B, gathering x 7/8 of 16 KiB
SHARDY = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%x: tensor<256x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
      %w: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}) -> tensor<256x8xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x16xf32>, tensor<16x8xf32>) -> tensor<256x8xf32>
    return %0 : tensor<256x8xf32>
  }
}
"""  # noqa: E501  IR is not wrapped
GSPMD = SHARDY.replace('  sdy.mesh @mesh = <["data"=8]>\n', "")
for said, text in (('[{"data"}, {}]', "{devices=[8,1]<=[8]}"), ('[{}, {"data"}]', "{devices=[1,8]<=[8]}")):
    GSPMD = GSPMD.replace(f"sdy.sharding = #sdy.sharding<@mesh, {said}>", f'mhlo.sharding = "{text}"')


@pytest.mark.parametrize(
    ("program", "whole", "rows"),
    [
        (SHARDY, "sdy.sharding_constraint %arg1 <@mesh, [{}, {}]>", '<@mesh, [{"data"}, {}]> : tensor<256x8xf32>'),
        (GSPMD, '@Sharding(%arg1) {mhlo.sharding = "{replicated}"}', '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'),
    ],
    ids=["shardy", "gspmd"],
)  # fmt: skip
def test_constraints_are_in_the_notation_of_the_module(tmp_path, capsys, program, whole, rows):
    path, out = tmp_path / "step.mlir", tmp_path / "pinned.mlir"
    path.write_text(program)
    assert pin.main([str(path), "--no-verify", "-o", str(out)]) == 0
    assert whole in out.read_text()
    assert rows in out.read_text()
    assert parse_module(out.read_text()).operation.verify()
    said = capsys.readouterr()
    assert not said.out
    assert "P()" in said.err
    axis = "data" if program is SHARDY else "axis_0"
    assert f"P('{axis}', None)" in said.err


def test_json(tmp_path, capsys):
    path = tmp_path / "step.mlir"
    path.write_text(SHARDY)
    assert pin.main([str(path), "--no-verify", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["axes"] == "data=8"
    assert found["before"] is None
    assert len(found["constraints"]) == 2


@pytest.mark.parametrize("trials", ["0", "-1", "many", ""])
def test_a_number_that_is_none_is_bad_usage(capsys, trials):
    assert pin.main(["x.mlir", "--trials", trials]) == 2
    assert "give an integer from 1 to" in capsys.readouterr().err


def test_a_module_that_does_not_parse_is_an_error(tmp_path, capsys):
    path = tmp_path / "bad.mlir"
    path.write_text("module {")
    assert pin.main([str(path)]) == 1
    assert "Traceback" not in capsys.readouterr().err
