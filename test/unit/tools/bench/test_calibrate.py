"""Calibration: a fit that finds what made the numbers, samples counted by hand, and a tiny run from end to end."""

import json
import subprocess

import numpy as np
import pytest

from shardpass.cost.profiles import find_profile, from_json
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.program.local_work import LocalWork
from tools.bench.calibrate import CHAIN, RUNS, Fit, Sample, errors, fit, profile_json, samples
from tools.processes import environment, module_command

CALIBRATE = module_command("tools.bench.calibrate")


def made(collectives, received, copied):
    return Sample("", "", (), collectives, received, LocalWork(copied))


GRID = [made(c, r, k) for c, r, k in [(0, 0, 10**6), (0, 0, 10**4), (1, 10**5, 0), (8, 10**6, 0), (1, 10**7, 10**6)]]


def test_a_fit_finds_what_made_the_numbers():
    truth = Fit(call=3e-4, latency=2e-5, received=1e-9, copied=4e-10)
    seconds = [3e-4 + 2e-5 * s.collectives + 1e-9 * s.received + 4e-10 * s.work.bytes for s in GRID]
    found = fit(GRID, seconds)
    np.testing.assert_allclose(
        [found.call, found.latency, found.received, found.copied],
        [truth.call, truth.latency, truth.received, truth.copied],
        rtol=1e-6,
    )
    assert max(errors(found, GRID, seconds)) == pytest.approx(1)


def test_nothing_costs_less_than_nothing():
    """Collectives that seem to make a call faster are free."""
    seconds = [3e-4 - 1e-5 * s.collectives + 1e-9 * s.received + 4e-10 * s.work.bytes for s in GRID]
    found = fit(GRID, seconds)
    assert found.latency == 0
    assert min(found.call, found.received, found.copied) > 0


def test_joining_in_runs_is_counted_as_runs():
    """Tiles of 64 KiB, runs of 252 bytes: 63 columns of 260 rows go in 4 pieces of 65 rows, and as many come."""
    by_name = {sample.name: sample for sample in samples(4, [1 << 16])}
    tile = 260 * 63
    cut = LocalWork(4 * tile, 0, tile, 0)
    assert by_name["joined in runs of 252 bytes"].work == cut.plus(LocalWork(4 * tile, 4 * 65, 0, 0))
    assert by_name["joined one by one of 252 bytes"].work == cut.plus(LocalWork(4 * tile, 0, tile, tile))


def test_an_error_says_how_many_times_off():
    assert errors(Fit(2.0, 0, 0, 0), [made(0, 0, 0)] * 2, [1.0, 4.0]) == [2.0, 2.0]


def test_the_profile_is_one_that_planners_read():
    profile = from_json(profile_json(Fit(1.0, 2e-5, 1e-9, 0.0), "mine", "", [2.0, 8.0]), "")
    assert (profile.name, profile.latency, profile.bandwidth) == ("mine", 2e-5, pytest.approx(1e9))
    assert profile.copies > 1e14
    assert profile_json(Fit(1.0, 0, 0, 0), "", "", [2.0, 8.0])["fit"]["error_geometric_mean"] == pytest.approx(4)


def test_samples_are_counted_as_their_collectives_are():
    """On 4 devices, tiles of 4 KiB: 32 rows of 32 floats."""
    by_name = {sample.name: sample for sample in samples(4, [4096])}
    tile = 4096
    joined = {f"joined {how} of {run} bytes" for how in ("in runs", "one by one") for run in RUNS}
    assert joined < set(by_name)
    want = {
        "transpose": (0, 0, tile),
        "all_gather of 2": (1, tile, 0),
        "all_gather of 4": (1, 3 * tile, 0),
        "all_to_all of 2": (1, tile // 2, 2 * tile),  # pieces cut, and joined
        "all_to_all of 4": (1, 3 * tile // 4, 2 * tile),
        "1 collective_permute": (1, tile, 0),
        f"{CHAIN} collective_permute": (CHAIN, CHAIN * tile, 0),
    }
    found = {name: (s.collectives, s.received, s.work.bytes) for name, s in by_name.items() if name not in joined}
    assert found == want
    for name, sample in by_name.items():
        first = name.split()[0].replace("joined", "all_to_all")
        kind = first if first.startswith("all") else "collective_permute"
        assert sample.module.count(f"stablehlo.{kind}") == sample.collectives


def test_a_tiny_run(tmp_path):
    file = tmp_path / "tiny.json"
    command = [*CALIBRATE, "--devices", "2", "--sizes", "1KiB,8KiB", "--repeats", "1"]
    done = subprocess.run([*command, "-o", str(file)], capture_output=True, text=True, timeout=300, env=environment())
    assert done.returncode == 0, done.stderr
    assert "geometric mean" in done.stderr
    assert json.loads(file.read_text())["fit"]["samples"] == 2 * (5 + 2 * len(RUNS))
    profile = find_profile(str(file))
    assert profile.bandwidth > 0
    plan = plan_redistribution((8, 8), "f32", "{devices=[2,1]<=[2]}", "{devices=[1,2]<=[2]}", machine=str(file))
    assert plan.profile == "calibrated"


@pytest.mark.parametrize("bad", [["--devices", "3"], ["--sizes", "much"], ["--sizes", "none"], ["--repeats", "0"]])
def test_bad_usage_is_said(bad):
    done = subprocess.run([*CALIBRATE, *bad], capture_output=True, text=True, env=environment())
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
