"""Sums by device, against a dictionary of devices."""

from hypothesis import given
from hypothesis import strategies as st

from shardpass.by_device import most_received


def test_the_greatest_sum_is_not_the_sum_of_the_greatest():
    """Device 0 sends 1 KiB to 1, then to 2; each receives one of the two. Device 2 receives 8 bytes more with all."""
    assert most_received([(1024, (1,)), (1024, (2,))]) == 1024
    assert most_received([(1024, (1,)), (1024, (2,)), (8, None)]) == 1032
    assert most_received([(1024, (1, 2)), (1024, (2, 5))]) == 2048
    assert most_received([]) == 0


@given(st.lists(st.tuples(st.integers(0, 1 << 70), st.none() | st.sets(st.integers(0, 6)))))
def test_sums_by_device(parts):
    devices = {d: sum(size for size, to in parts if to is None or d in to) for d in range(8)}
    assert most_received((size, None if to is None else tuple(to)) for size, to in parts) == max(devices.values())
