"""Relations over devices: expected labels worked out by hand on the mesh x=2, y=2."""

import numpy as np
import pytest

from shardpass.replication.agreement import Agreements

X, Y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])  # coordinates of devices 0 to 3


@pytest.fixture
def relations() -> Agreements:
    return Agreements(4)


def test_labels_count_from_the_first_device(relations: Agreements) -> None:
    assert relations.of(np.array([7, 3, 7, 9])).labels.tolist() == [0, 1, 0, 2]


def test_equal_relations_are_one_object(relations: Agreements) -> None:
    assert relations.of(X) is relations.of(1 - X)
    assert relations.of(np.stack([X, Y], 1)) is relations.nowhere
    assert relations.of(np.zeros((4, 3))) is relations.everywhere
    assert relations.of(np.zeros((1, 3))) is relations.everywhere


def test_devices_agree_on_all_where_they_agree_on_each(relations: Agreements) -> None:
    by_x, by_y = relations.of(X), relations.of(Y)
    assert relations.all_of([by_x, by_y]) is relations.nowhere
    assert relations.all_of([by_x, relations.everywhere]) is by_x
    assert relations.all_of([]) is relations.everywhere


@pytest.mark.parametrize(
    ("rows", "placed", "labels"),
    [
        ([[0, 1], [0, 1], [2, 3], [2, 3]], False, [0, 0, 1, 1]),  # groups along y of a value that varies over both
        ([[0, 1], [0, 1], [2, 3], [2, 3]], True, [0, 1, 2, 3]),
        ([[0, 1], [1, 0], [2, 3], [3, 2]], False, [0, 1, 2, 3]),  # the same devices in another order
        ([[1], [0], [3], [2]], False, [0, 1, 2, 3]),
        ([[-1], [0], [-1], [0]], False, [0, 1, 0, 1]),  # two without a sender, two with one sender
    ],
)
def test_what_rows_of_senders_bring(relations: Agreements, rows: list, placed: bool, labels: list) -> None:
    found = relations.of_rows(relations.nowhere, np.array(rows), placed=placed)
    assert found.labels.tolist() == labels


def test_groups_along_an_axis_that_the_value_does_not_vary_over_change_nothing(relations: Agreements) -> None:
    by_x = relations.of(X)
    assert relations.of_rows(by_x, np.array([[0, 1], [0, 1], [2, 3], [2, 3]])) is by_x
    assert relations.of_rows(by_x, np.array([[0, 2], [1, 3], [0, 2], [1, 3]])) is relations.everywhere


def test_a_choice_looks_only_at_what_is_chosen(relations: Agreements) -> None:
    # devices 0 and 1 take the first value, on which they agree; 2 and 3 the second, on which they do not
    found = relations.chosen(X, [relations.of(X), relations.nowhere])
    assert found.labels.tolist() == [0, 0, 1, 2]
