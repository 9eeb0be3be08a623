"""Bounds of which arithmetic knows the value."""

import pytest
from support.machines import switched

from shardpass import plan_redistribution


def test_the_last_bytes_into_a_host_come_to_each_receiver():
    """40 MB from a host of 8 to another: cards of 50 GB/s and 15 us, 10 us inside.

    What comes in the last 10 us before the cards' latency is not passed on: all 8 cards bring the same 0.5 MB. The
    rest comes over 8 cards in T - 25 us.
    """
    plan = plan_redistribution(
        (40_000_000,), "i8", "{replicated}", "{replicated}",
        source_devices=range(8), target_devices=range(8, 16), machine="h100",
    )  # fmt: skip
    assert plan.bound_seconds == pytest.approx(25e-6 + (40e6 - 0.5e6) / 400e9)
    assert plan.seconds >= plan.bound_seconds


def test_at_first_only_holders_send():
    """60 bytes at one a second from 2 devices to 6: in the first second at most 2 of the 6 ports receive."""
    plan = plan_redistribution(
        (60,), "i8", "{replicated}", "{replicated}", source_devices=range(2), target_devices=range(2, 8),
        machine=switched("slow", 1.0, 1.0, 1.0),
    )  # fmt: skip
    assert plan.bound_seconds == pytest.approx(60 + 1 + 4 / 6)
    assert plan.seconds >= plan.bound_seconds
