"""Which sub-dimensions stand together on an axis of the local array, by hand."""

from types import SimpleNamespace

import pytest

from shardpass.redistribute.candidates.sub_axes.local_layout import isolated, windowable

# sub-dimensions 0 to 2 of one dimension, 3 and 4 of the next
PROBLEM = SimpleNamespace(sub_dims=[SimpleNamespace(dim=d) for d in (0, 0, 0, 1, 1)], sizes=(2, 3, 5, 7, 11))


@pytest.mark.parametrize(
    ("fixed", "runs"),
    [
        ((), ((0, 1, 2), (3, 4))),
        ((0,), ((0, 1, 2), (3, 4))),  # a window of the first of two halves of the dimension
        ((0, 1), ((0, 1, 2), (3, 4))),
        ((0, 1, 2, 3), ((0, 1, 2), (3, 4))),
        ((1,), ((0,), (1,), (2,), (3, 4))),  # a window of every second third
        ((2,), ((0, 1), (2,), (3, 4))),
        ((0, 2), ((0,), (1,), (2,), (3, 4))),
        ((1, 4), ((0,), (1,), (2,), (3,), (4,))),
        ((0, 4), ((0, 1, 2), (3,), (4,))),
    ],
)
def test_a_dimension_stays_whole_where_its_most_major_parts_are_fixed(fixed, runs):
    layout = windowable(PROBLEM, range(5), fixed)
    assert layout.runs == runs
    products = {(0, 1, 2): 30, (3, 4): 77, (0, 1): 6}
    assert layout.shape == tuple(products.get(run) or PROBLEM.sizes[run[0]] for run in runs)


@pytest.mark.parametrize(
    ("local", "chosen", "runs"),
    [
        (range(5), (), ((0, 1, 2), (3, 4))),
        (range(5), (0,), ((0,), (1, 2), (3, 4))),
        (range(5), (1,), ((0,), (1,), (2,), (3, 4))),
        ((0, 2, 3), (), ((0, 2), (3,))),  # the device holds one part of 1 alone
        ((2, 3, 4), (4,), ((2,), (3,), (4,))),
    ],
)
def test_what_is_chosen_has_an_axis_of_its_own(local, chosen, runs):
    assert isolated(PROBLEM, local, chosen).runs == runs
