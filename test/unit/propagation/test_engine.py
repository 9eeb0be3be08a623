"""The propagation engine on values and steps alone, without MLIR."""

from __future__ import annotations

from itertools import permutations

import pytest

from shardpass.ops.splits.factors import DimAxes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.propagation.engine import Propagation, Step, Value, tie
from shardpass.sharding import Mesh

X, Y, Z = 0, 1, 2
MESH = prime_mesh(Mesh((("x", 2), ("y", 2), ("z", 3))))


def value(shape: tuple[int, ...], dims: DimAxes | None = None, size: int = 100, **more: object) -> Value:
    """``dims`` given: the user's word."""
    known = Value(shape, size, dims or ((),) * len(shape), **more)  # type: ignore[arg-type]
    known.fixed = dims is not None
    return known


def engine(*values: Value, mesh: PrimeMesh = MESH) -> Propagation:
    made = Propagation(mesh)
    for known in values:
        made.add_value(known)
    return made


def matmul(m: int, k: int, n: int) -> Rule:
    build = RuleBuilder([2, 2], [2])
    i, c, j = build.factor(m), build.factor(k, Kind.REDUCTION), build.factor(n)
    for index, dims in enumerate(((i, c), (c, j))):
        for dim, factor in enumerate(dims):
            build.operand(index, dim, factor)
    build.result(0, 0, i)
    build.result(0, 1, j)
    return build.build(Priority.CONTRACTION, "add")


def test_a_chain_carries_a_split_to_both_ends() -> None:
    run = engine(*[value((8,)) for _ in range(3)], value((8,), ((X,),)), *[value((8,)) for _ in range(3)])
    for left in range(6):
        run.add(Step(tie((8,)), (left, left + 1)))
    run.run()
    assert [v.dims for v in run.values] == [((X,),)] * 7
    assert run.conflicts == {}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_the_steps_does_not_matter(order: tuple[int, ...]) -> None:
    run = engine(value((8, 4), ((X,), ())), value((8, 4)), value((8, 4)), value((8, 4), ((), (Y,))))
    steps = [Step(tie((8, 4)), (i, i + 1)) for i in range(3)]
    for index in order:
        run.add(steps[index])
    run.run()
    assert run.values[1].dims == run.values[2].dims == ((X,), (Y,))


def test_a_longer_split_that_continues_a_shorter_one_wins() -> None:
    run = engine(value((8,), ((X,),), 1000), value((8,), ((X, Y),), 1), value((8,)))
    build = RuleBuilder([1, 1], [1])
    factor = build.factor(8)
    for index in (0, 1):
        build.operand(index, 0, factor)
    build.result(0, 0, factor)
    run.add(Step(build.build(), (0, 1, 2), "add"))
    run.run()
    assert run.values[2].dims == ((X, Y),)
    assert run.conflicts == {}


def test_a_conflict_goes_to_the_greater_number_of_bytes_and_is_recorded() -> None:
    run = engine(value((8,), ((X,),), 64), value((8,), ((Y,),), 640), value((8,), size=1))
    build = RuleBuilder([1, 1], [1])
    factor = build.factor(8)
    for index in (0, 1):
        build.operand(index, 0, factor)
    build.result(0, 0, factor)
    run.add(Step(build.build(), (0, 1, 2), "add"))
    run.run()
    assert run.values[2].dims == ((Y,),)
    (conflict,) = run.conflicts.values()
    assert (conflict.chosen, conflict.refused) == ((Y,), (X,))
    assert conflict.chosen_bytes > conflict.refused_bytes >= 64


def test_two_factors_that_want_one_sub_axis_the_heavier_has_it() -> None:
    """Rows of the left and columns of the right operand are both over x; the result can have x once."""
    run = engine(value((8, 4), ((X,), ()), 10), value((4, 8), ((), (X,)), 1000), value((8, 8)))
    run.add(Step(matmul(8, 4, 8), (0, 1, 2)))
    run.run()
    assert run.values[2].dims == ((), (X,))


def routed(groups: int, tokens: int, experts: int, width: int) -> Rule:
    """gtm,gte->gem: what each token holds, to its expert."""
    build = RuleBuilder([3, 3], [3])
    g, t, e, m = build.factor(groups), build.factor(tokens, Kind.REDUCTION), build.factor(experts), build.factor(width)
    for dim, (left, right, out) in enumerate(((g, g, g), (t, t, e), (m, e, m))):
        build.operand(0, dim, left)
        build.operand(1, dim, right)
        build.result(0, dim, out)
    return build.build(Priority.CONTRACTION, "add")


@pytest.mark.parametrize(("received", "chosen"), [(150, ((X,), (), ())), (450, ((), (), (X,)))])
def test_an_exchange_is_cheaper_than_a_gather(received: int, chosen: DimAxes) -> None:
    """Groups are split over x where tokens are, experts where they are sent; who is sent where can be split either way.

    By groups, half of each device's half of what is received changes places: 150 / 4 or 450 / 4 bytes. By experts, the
    other half of the tokens is gathered: 50 bytes.
    """
    tokens, sent = value((4, 4, 4), ((X,), (), ()), 100), value((4, 4, 4), ((), (X,), ()), received)
    run = engine(tokens, value((4, 4, 4)), sent)
    run.add(Step(routed(4, 4, 4, 4), (0, 1, 2)))
    run.run()
    assert run.values[1].dims == chosen


def test_a_partial_sum_is_summed_twice_over() -> None:
    """x is on the contracting dimension of one operand, on the columns of the other; the sums would be large."""
    run = engine(value((4, 8), ((), (X,)), 10), value((8, 8), ((), (X,)), 12), value((4, 8), size=500))
    run.add(Step(matmul(4, 8, 8), (0, 1, 2)))
    run.run()
    assert run.values[2].dims == ((), (X,))


def test_what_the_user_fixed_never_changes() -> None:
    run = engine(value((8,), ((),)), value((8,), ((X,),)), value((8,)))
    run.add(Step(tie((8,)), (0, 1)))
    run.add(Step(tie((8,)), (0, 2)))
    run.run()
    assert run.values[0].dims == ((),)
    # and it is a wall: what is behind it is not reached
    assert run.values[2].dims == ((),)


def test_open_dimensions_of_a_fixed_value_are_split_further() -> None:
    opened = value((8, 8), ((X,), ()), open_dims=frozenset({1}))
    run = engine(opened, value((8, 8), ((X, Y), (Z,))))
    run.add(Step(tie((8, 8)), (0, 1)))
    run.run()
    assert run.values[0].dims == ((X,), (Z,))


def test_a_value_is_not_split_into_more_parts_than_it_has_elements() -> None:
    run = engine(value((3,), ((X, Y),)), value((3,)), value((0,), ((X,),)), value((0,)))
    run.add(Step(tie((3,)), (0, 1)))
    run.add(Step(tie((0,)), (2, 3)))
    run.run()
    assert run.values[1].dims == ((X,),)
    assert run.values[3].dims == ((),)


def test_what_the_outside_sees_is_split_evenly_alone() -> None:
    run = engine(value((6,), ((X, Y),)), value((6,), divisible_only=True), value((6,)))
    run.add(Step(tie((6,)), (0, 1)))
    run.add(Step(tie((6,)), (0, 2)))
    run.run()
    assert run.values[1].dims == ((X,),)
    assert run.values[2].dims == ((X, Y),)


def test_contractions_wait_for_what_passes_through() -> None:
    """The contraction would give its result rows over x; the elementwise chain's columns over x come first."""
    run = engine(value((8, 4), ((X,), ())), value((4, 8)), value((8, 8)), value((8, 8), ((), (X,)), 1))
    run.add(Step(matmul(8, 4, 8), (0, 1, 2)))
    run.add(Step(tie((8, 8)), (2, 3)))
    run.run()
    assert run.values[2].dims == ((), (X,))


def test_expansions_decide_last() -> None:
    """A broadcast's made dimension takes what the program computes on, and never decides for it."""
    build = RuleBuilder([1], [2])
    made, kept = build.factor(8), build.factor(4)
    build.result(0, 0, made)
    build.result(0, 1, kept)
    build.operand(0, 0, kept)
    broadcast = build.build(Priority.EXPANSION)
    run = engine(value((4,)), value((8, 4)), value((8, 4), ((X,), (Y,))))
    run.add(Step(broadcast, (0, 1)))
    run.add(Step(tie((8, 4)), (1, 2)))
    run.run()
    assert run.values[1].dims == ((X,), (Y,))
    assert run.values[0].dims == ((Y,),)


def test_priorities_of_the_user_are_taken_in_turn() -> None:
    """The split of priority 1 comes when that of priority 0 has gone as far as it can."""
    later = value((8, 8), ((), ()), by_priority={1: {0: (X,)}})
    run = engine(later, value((8, 8), ((), (X,))), value((8, 8)))
    build = RuleBuilder([2, 2], [2])
    for dim in (0, 1):
        factor = build.factor(8)
        build.operand(0, dim, factor)
        build.operand(1, dim, factor)
        build.result(0, dim, factor)
    run.add(Step(build.build(), (0, 1, 2)))
    run.run()
    assert run.values[0].dims == ((X,), ())
    assert run.values[2].dims == ((), (X,))


def test_a_circle_of_values_comes_to_rest() -> None:
    """A carried value of a loop: each ties to the next, the last to the first."""
    run = engine(*[value((4, 4)) for _ in range(4)], value((4, 4), ((Y,), (X,))))
    for i in range(4):
        run.add(Step(tie((4, 4)), (i, (i + 1) % 4)))
    run.add(Step(tie((4, 4)), (4, 2)))
    run.run()
    assert all(v.dims == ((Y,), (X,)) for v in run.values)


def test_barred_axes_split_nothing_further() -> None:
    """The value between takes x and leaves y, which its neighbour on the other side then never sees."""
    run = engine(value((8, 4), ((X,), (Y,))), value((8, 4), replicated_axes=frozenset({Y})), value((8, 4)))
    for left in (0, 1):
        run.add(Step(tie((8, 4)), (left, left + 1)))
    run.run()
    assert [v.dims for v in run.values] == [((X,), (Y,)), ((X,), ()), ((X,), ())]


@pytest.mark.parametrize("still", [frozenset(), frozenset({0}), frozenset({1}), frozenset({0, 1})])
@pytest.mark.parametrize("given", [0, 1])
def test_a_step_leaves_the_values_alone_that_it_must_not_change(still: frozenset[int], given: int) -> None:
    values = [value((8,)), value((8,))]
    values[given].dims = ((X,),)
    run = engine(*values)
    run.add(Step(tie((8,)), (0, 1), frozen=still))
    run.run()
    other = ((),) if 1 - given in still else ((X,),)
    assert run.values[given].dims == ((X,),)
    assert run.values[1 - given].dims == other
