"""project and unproject: the two directions between a tensor's dimensions and an op's factors."""

from __future__ import annotations

from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st
from support import daily

from shardpass.ops.splits.factors import DimAxes, Kind, Rule, RuleBuilder, project, unproject, used_axes

SIZES = (2, 2, 3, 2)  # of the mesh's prime sub-axes


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """One operand, one result; a dimension of one factor, or of two or three."""
    build = RuleBuilder([3], [2])
    factors = [build.factor(draw(st.sampled_from((1, 2, 3, 4, 5, 6, 8, 12)))) for _ in range(5)]
    cuts = sorted(draw(st.lists(st.integers(0, 5), min_size=2, max_size=2)))
    for dim, (start, stop) in enumerate(zip((0, *cuts), (*cuts, 5), strict=True)):
        build.operand(0, dim, *factors[start:stop])
    middle = draw(st.integers(0, 5))
    build.result(0, 0, *factors[:middle])
    build.result(0, 1, *factors[middle:])
    return build.build()


def shape_of(rule: Rule, side: int) -> tuple[int, ...]:
    return tuple(prod(rule.factors[f].size for f in factors) for factors in (rule.operands[0], rule.results[0])[side])


@st.composite
def splits(draw: st.DrawFn, rank: int) -> DimAxes:
    """Some of the sub-axes, in any order, shared out over the dimensions."""
    axes = draw(st.permutations(range(len(SIZES))))[: draw(st.integers(0, len(SIZES)))]
    dims: list[tuple[int, ...]] = [()] * rank
    for axis in axes:
        dim = draw(st.integers(0, rank - 1))
        dims[dim] += (axis,)
    return tuple(dims)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rule, int, DimAxes]:
    rule, side = draw(rules()), draw(st.integers(0, 1))
    return rule, side, draw(splits((3, 2)[side]))


def map_of(rule: Rule, side: int) -> tuple[tuple[int, ...], ...]:
    return (rule.operands[0], rule.results[0])[side]


@settings(max_examples=daily.scaled(300), deadline=None)
@given(cases())
def test_what_comes_back_is_the_beginning_of_what_was_said(case: tuple[Rule, int, DimAxes]) -> None:
    rule, side, dims = case
    shape, dim_map = shape_of(rule, side), map_of(rule, side)
    factors = project(rule, dim_map, shape, dims, SIZES)
    back = unproject(rule, dim_map, shape, factors, SIZES)
    for said, kept in zip(dims, back, strict=True):
        assert said[: len(kept)] == kept


@settings(max_examples=daily.scaled(300), deadline=None)
@given(cases())
def test_going_round_again_changes_nothing(case: tuple[Rule, int, DimAxes]) -> None:
    rule, side, dims = case
    shape, dim_map = shape_of(rule, side), map_of(rule, side)
    once = unproject(rule, dim_map, shape, project(rule, dim_map, shape, dims, SIZES), SIZES)
    twice = unproject(rule, dim_map, shape, project(rule, dim_map, shape, once, SIZES), SIZES)
    assert twice == once


@settings(max_examples=daily.scaled(300), deadline=None)
@given(cases())
def test_no_sub_axis_stands_twice_in_one_tensor(case: tuple[Rule, int, DimAxes]) -> None:
    rule, side, dims = case
    factors = project(rule, map_of(rule, side), shape_of(rule, side), dims, SIZES)
    for other in (0, 1):
        said = unproject(rule, map_of(rule, other), shape_of(rule, other), factors, SIZES)
        assert len(used_axes(said)) == sum(map(len, said))


@settings(max_examples=daily.scaled(300), deadline=None)
@given(cases())
def test_dimensions_of_several_factors_are_split_evenly_and_in_order(case: tuple[Rule, int, DimAxes]) -> None:
    """A later factor is split only where those before it are split to the end."""
    rule, side, dims = case
    shape, dim_map = shape_of(rule, side), map_of(rule, side)
    factors = project(rule, dim_map, shape, dims, SIZES)
    said = unproject(rule, dim_map, shape, factors, SIZES)
    for several, size, axes in zip(dim_map, shape, said, strict=True):
        if len(several) < 2:
            continue
        assert size % prod(SIZES[a] for a in axes) == 0
        left = [rule.factors[f].size // prod(SIZES[a] for a in factors.get(f, ())) for f in several]
        started = [i for i, f in enumerate(several) if factors.get(f)]
        assert all(left[i] == 1 for i in range(max(started, default=0)))


def test_a_dimension_that_is_one_whole_factor_may_be_split_unevenly() -> None:
    build = RuleBuilder([1], [1])
    factor = build.factor(5)
    build.operand(0, 0, factor)
    build.result(0, 0, factor)
    rule = build.build()
    assert project(rule, rule.operands[0], (5,), ((0, 2),), SIZES) == {factor: (0, 2)}
    assert unproject(rule, rule.results[0], (5,), {factor: (0, 2)}, SIZES) == ((0, 2),)


def test_an_elastic_factor_is_split_unevenly_in_dimensions_of_any_size() -> None:
    build = RuleBuilder([1], [1])
    factor = build.factor(8, elastic=True)
    build.operand(0, 0, factor)
    build.result(0, 0, factor)
    rule = build.build()
    assert project(rule, rule.operands[0], (9,), ((2,),), SIZES) == {factor: (2,)}
    assert unproject(rule, rule.results[0], (7,), {factor: (2,)}, SIZES) == ((2,),)


def test_a_factor_that_is_only_the_major_part_takes_what_divides_it() -> None:
    """A dimension of 12 is the factors 4, 3: sub-axes 2, 2 fill the first, then 3 goes to the second; 2, 3 cannot."""
    build = RuleBuilder([1], [2])
    major, minor = build.factor(4), build.factor(3)
    build.operand(0, 0, major, minor)
    build.result(0, 0, major)
    build.result(0, 1, minor)
    rule = build.build()
    dim_map = rule.operands[0]
    assert project(rule, dim_map, (12,), ((0, 1, 2),), SIZES) == {major: (0, 1), minor: (2,)}
    assert project(rule, dim_map, (12,), ((0, 2, 1),), SIZES) == {major: (0,)}
    assert project(rule, dim_map, (12,), ((2,),), SIZES) == {}
    assert unproject(rule, rule.results[0], (4, 3), {major: (0, 1), minor: (2,)}, SIZES) == ((0, 1), (2,))


def test_the_builder_writes_down_what_it_is_told() -> None:
    build = RuleBuilder([2, 1], [1])
    row, column = build.factor(3), build.factor(4, Kind.REDUCTION)
    build.operand(0, 0, row)
    build.operand(0, 1, column)
    build.operand(1, 0, column)
    build.result(0, 0, row)
    rule = build.build(combiner="add")
    assert rule.operands == (((row,), (column,)), ((column,),))
    assert rule.results == (((row,),),)
    assert [f.kind for f in rule.factors] == [Kind.PARALLEL, Kind.REDUCTION]
    assert rule.combiner == "add"
