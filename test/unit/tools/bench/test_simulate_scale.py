"""Scale on paper: the sample is what it says, rows agree with the plans that anyone can ask for, ratios by hand."""

import json
import math
import subprocess

import numpy as np
import pytest

from shardpass.cost.chosen import chosen
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.problem.checks import make_problem
from tools.bench.simulate_scale import HOST, TILE, WAYS, Row, Way, plan_by, priced, sample, summary
from tools.processes import environment, module_command
from tools.prove.numpy_programs import evaluate

SCALE = module_command("tools.bench.simulate_scale")
POD = chosen("pod")


def test_the_sample_depends_on_the_seed_alone():
    one, again, other = (list(map(str, sample(64, seed, 5))) for seed in (0, 0, 1))
    assert one == again != other


@pytest.mark.parametrize("devices", [16, 64, 512])
def test_problems_are_on_hosts_and_of_the_size_they_say(devices):
    for problem in sample(devices, 3, 12):
        assert problem.lower_bound_bytes > 0
        tiles = [4 * math.prod(side.tile) for side in (problem.source, problem.target)]
        assert TILE[0] / 4 <= max(tiles) <= TILE[1] * 4
        for side in (problem.source.sharding, problem.target.sharding):
            assert side.mesh.devices.shape[-1] == HOST
            assert (side.mesh.devices.reshape(-1, HOST) // HOST == np.arange(devices // HOST)[:, None]).all()


def test_rows_are_what_plans_say():
    for problem in sample(16, 1, 6):
        row = priced(problem, POD, 16)
        sides = problem.source.sharding, problem.target.sharding
        for way in ("best", "rink"):
            plan = plan_redistribution(problem.shape, "f32", *sides, planner=way, num_devices=16, machine="pod")
            found = row.ways[way]
            assert (found.seconds, found.received, found.peak) == (
                plan.seconds,
                plan.bytes_received,
                plan.peak_live_bytes,
            )
        assert row.bound <= min(way.received for way in row.ways.values())
        assert row.ways["best"].seconds <= row.ways["rink"].seconds * (1 + 1e-9)


def test_gather_is_a_gather_and_right():
    """On arrays of a few elements: NumPy's model of the program against slicing the whole array."""
    for problem in sample(16, 2, 6):
        sides = problem.source.sharding, problem.target.sharding
        counts = [s.tile_counts(len(problem.shape)) for s in sides]
        shape = tuple(math.lcm(*pair) for pair in zip(*counts, strict=True))
        plan = plan_by("gather", make_problem(shape, "f32", *sides, 16), POD)
        assert {step.kind for step in plan.steps} <= {"all_gather", "dynamic_slice"} or plan.planner == "best"
        whole = np.arange(math.prod(shape)).reshape(shape)
        tiles = []
        for sharding, tile in zip(sides, (plan.source_tile, plan.target_tile), strict=True):
            bases = sharding.tile_offsets(shape, 16)
            tiles.append([whole[tuple(slice(b, b + n) for b, n in zip(base, tile, strict=True))] for base in bases])
        for got, want in zip(evaluate(plan.program, tiles[0]), tiles[1], strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_summary_is_of_medians_and_geometric_means():
    rows = [
        Row(64, "", 10, {"best": Way(1.0, 10, 7, 1, 0.5), "rink": Way(2.0, 20, 8, 2, 0.1)}),
        Row(64, "", 10, {"best": Way(3.0, 30, 9, 3, 0.7), "rink": Way(24.0, 80, 8, 2, 0.3)}),
    ]
    best, rink = summary(rows, "best"), summary(rows, "rink")
    assert (best["seconds"], best["received"], best["peak"], best["collectives"]) == (2.0, 20, 8, 2)
    assert (best["planning"], best["planning_worst"]) == (pytest.approx(0.6), 0.7)
    assert rink["seconds_to_best"] == pytest.approx(4)  # of 2 and 8
    assert rink["received_to_bound"] == pytest.approx(4)  # of 2 and 8
    assert best["seconds_to_best"] == 1


def test_the_command(tmp_path):
    file = tmp_path / "scale.json"
    command = [*SCALE, "--devices", "16,32", "--problems", "2", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    assert done.returncode == 0, done.stderr
    assert "modelled on profile pod" in done.stdout
    found = json.loads(file.read_text())
    assert [row["devices"] for row in found["rows"]] == [16, 16, 32, 32]
    assert set(found["summary"]["32"]) == set(WAYS)


@pytest.mark.parametrize(
    "bad",
    [["--devices", "12"], ["--devices", "8"], ["--devices", "many"], ["--problems", "0"], ["--profile", "abacus"]],
)
def test_bad_usage_is_said(bad):
    done = subprocess.run([*SCALE, *bad], capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
