"""Propagation beside Shardy's: what is compared, and how cases are read."""

from tools.prove.shardy_propagation import Case, cases, examine

ADD = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @other = <["c"=8]>
func.func @add(%x: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}},
               %y: tensor<8x8xf32>{y}) -> tensor<8x8xf32> {{
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}
"""


def test_values_that_both_split_alike():
    """The second argument, the sum and the result take the split of the first, which the user fixed."""
    outcome = examine(Case("f", "add", ADD.format(y="")), 0)
    assert (outcome.alike, outcome.apart, outcome.refused) == (3, (), "")


def test_a_conflict_within_a_factor():
    """Shardy leaves the sum whole, as the operands agree on nothing."""
    fixed = ' {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}'
    outcome = examine(Case("f", "add", ADD.format(y=fixed)), 0)
    assert outcome.alike == 0
    assert [name.split()[0] for name, _, _ in outcome.apart] == ["result", "stablehlo.add"]


def test_cases_are_the_functions_of_each_section(tmp_path):
    folder = tmp_path / "shardy/dialect/sdy/transforms/propagation/test"
    folder.mkdir(parents=True)
    (folder / "some.mlir").write_text(f"// RUN: sdy_opt\n{ADD.format(y='')}// -----\n{ADD.format(y='')}")
    (folder / "op_sharding_rule_registry.mlir").write_text(ADD.format(y=""))
    assert [(case.file, case.function) for case in cases(tmp_path)] == [("some.mlir", "add")] * 2
