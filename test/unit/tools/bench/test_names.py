"""The tool that holds names of collectives to those of plain JAX, on a text whose answers can be read off."""

from tools.bench.names import Row, apart, is_met, names_of, of_text, summary

HLO = """
FileLocations
1 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=2 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=7 parent_frame_id=1}

ENTRY %main {
  %a = f32[4]{0} all-gather(%p), dimensions={0}, metadata={op_name="jit(f)/dot_general/operand_1" stack_frame_id=1}
  %b = (f32[], f32[2]{0}) all-reduce(%q, %r), metadata={op_name="jit(f)/(jvp()/sum:dot_general)" stack_frame_id=1}
  %c = f32[4]{0} collective-permute(%p), metadata={op_name="jit(f)/mystery" stack_frame_id=2}
  ROOT %d = f32[4]{0} all-gather(%p), metadata={op_name="jit(f)/result_0" stack_frame_id=1}
  %e = f32[4]{0} all-to-all(%p), channel_id=3
  %f = f32[4]{0} add(%p, %p), metadata={op_name="jit(f)/another"}
}
"""
KNOWN = frozenset({"jit(f)/dot_general", "jit(f)/jvp()/sum"})


def test_lines_and_names_are_counted() -> None:
    """%c stands at a place that is not listed and has a strange name, %e has neither name nor place."""
    assert of_text("f", HLO, KNOWN) == Row("f", 5, 3, 3, ["", "jit(f)/mystery"])


def test_each_of_merged_names_must_be_known() -> None:
    assert apart("jit(f)/(jvp()/sum:dot_general)") == ["jit(f)/jvp()/sum", "jit(f)/dot_general"]
    assert apart("jit(f)/jvp()/sum") == ["jit(f)/jvp()/sum"]
    assert apart("jit(f)/(gather/operand_1:mul/operand_0)") == ["jit(f)/gather", "jit(f)/mul"]
    assert apart("jit(f)/(result_0:result_12)") == ["jit(f)", "jit(f)"]
    assert of_text("f", HLO, KNOWN - {"jit(f)/jvp()/sum"}).named == 2
    assert names_of(HLO) >= {"jit(f)/jvp()/sum", "jit(f)/dot_general", "jit(f)/another"}


def test_the_bound_is_of_all_collectives_and_nothing_may_be_left_out() -> None:
    good, bad = Row("good", 99, 99, 99), Row("bad", 1, 0, 1)
    assert is_met([good, bad])
    assert not is_met([good, bad, bad])
    assert not is_met([good, Row("gone", reason="left to XLA")])
    told = summary([good, bad, Row("gone", reason="left to XLA")])
    assert told[0] == "with a line: 99 of 100 collectives (99.0%); less than all in bad"
    assert told[1] == "named: 100 of 100 collectives (100.0%); less than all in none"
    assert told[-1] == "gone: not measured, left to XLA"
