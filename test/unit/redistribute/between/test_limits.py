"""Limits of memory that leave no room for all arrays at once."""

from shardpass import plan_reshard_tree


def test_arrays_that_do_not_fit_together_move_in_few_rounds():
    """6 arrays: all tiles together take more than the limit, so no plan with messages of single bytes is tried.

    Devices 4 and 5 hold 4 KiB of each source and 12 KiB of each target: 96 KiB, and 90,000 are allowed.
    """
    rows, halves = "{devices=[6,1]<=[6]}", "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
    tree = [((96, 64), "f32", rows, halves)] * 6
    plan = plan_reshard_tree(
        tree, source_devices=range(6), target_devices=range(4, 8), machine="ideal", memory_limit=90_000
    )
    assert len(plan.waves) == 2
    assert plan.peak_bytes <= 90_000
    assert len(plan.rounds) < 200
