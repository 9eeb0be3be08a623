"""Sums of which devices keep slices, as XLA's CPU compiler leaves them."""

import pytest

from shardpass.hlo.collectives import HloCollectives
from shardpass.hlo.read import read_program
from shardpass.hlo.slices import Slices

SUM = "%sum = f32[8] all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%add"
START = [
    "%id = u32[] partition-id()",
    "%table = s32[4] constant({0, 2, 4, 6})",
    "%at = s32[] dynamic-slice(%table, %id)",
]
TAKEN = """%taken (a: f32[8], b: s32[]) -> f32[2] {
  %a = f32[8] parameter(0)
  %b = s32[] parameter(1)
  ROOT %s = f32[2] dynamic-slice(%a, %b), dynamic_slice_sizes={2}
}
"""


def sliced(*lines: str) -> frozenset[int]:
    body = "\n".join(f"  {line}" for line in (*START, *lines))
    program = read_program(
        f"HloModule m, num_partitions=4\n\n{TAKEN}\nENTRY %main (p: f32[8]) -> f32[2] {{\n{body}\n}}\n"
    )
    (found,) = HloCollectives(program).rows
    return Slices(program).sliced_results(found)


SLICE = "ROOT %s = f32[2] dynamic-slice(%sum, %at), dynamic_slice_sizes={2}"


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ([SUM, SLICE], True),
        ([SUM, "%c = f32[8] copy(%sum)", SLICE.replace("%sum", "%c")], True),
        ([SUM, "ROOT %s = f32[2] fusion(%sum, %at), kind=kLoop, calls=%taken"], True),
        ([SUM, "%zero = s32[] constant(0)", SLICE.replace("%at", "%zero")], False),  # all devices keep the same
        ([SUM, SLICE.replace("f32[2]", "f32[4]")], False),  # half of it, of a group of four
        ([SUM, SLICE.removeprefix("ROOT "), "ROOT %n = f32[8] negate(%sum)"], False),  # used whole too
        ([f"ROOT {SUM}"], False),
        (
            [
                "%pair = (f32[8], f32[8]) all-reduce(%p, %p), replica_groups={{0,1,2,3}}, to_apply=%add",
                "%sum = f32[8] get-tuple-element(%pair), index=0",
                SLICE,
            ],
            True,
        ),
    ],
)
def test_slices(lines: list[str], kept: bool) -> None:
    assert sliced(*lines) == (frozenset({0}) if kept else frozenset())


def test_each_result_of_a_combined_sum_counts_alone() -> None:
    """Result 1 is sliced; result 0 is returned whole."""
    pair = "%pair = (f32[8], f32[8]) all-reduce(%p, %p), replica_groups={{0,1,2,3}}, to_apply=%add"
    first = "%whole = f32[8] get-tuple-element(%pair), index=0"
    second = "%sum = f32[8] get-tuple-element(%pair), index=1"
    assert sliced(pair, first, second, SLICE.removeprefix("ROOT "), "ROOT %n = f32[8] negate(%whole)") == {1}
