"""Calibration: a fit that finds what made the numbers, samples counted by hand, and a tiny run from end to end."""

import datetime
import math
import signal
import subprocess
import tomllib

import numpy as np
import pytest

import shardpass
from shardpass.calibrating import work
from shardpass.calibrating.calibrate import machine_of
from shardpass.calibrating.fit import Fit, errors, fit
from shardpass.calibrating.machine_file import machine_toml
from shardpass.calibrating.measure import measure
from shardpass.calibrating.samples import CHAIN, RUNS, Sample, groups_of, samples
from shardpass.cli.shardpass import main
from shardpass.cost.chosen import chosen
from shardpass.cost.collective import Axis, Collective
from shardpass.cost.links import Switch
from shardpass.cost.machine import Machine, Source, Work, from_table
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.program.local_work import LocalWork
from tools.processes import environment, module_command

CALIBRATE = [*module_command("shardpass"), "calibrate"]
BROADCASTS = {"collective_broadcast of 2", "collective_broadcast of 4"}


def made(collectives, received, copied, reduced=0):
    return Sample("", "", (), collectives, received, LocalWork(copied), reduced=reduced)


GRID = [made(c, r, k) for c, r, k in [(0, 0, 10**6), (0, 0, 10**4), (1, 10**5, 0), (8, 10**6, 0), (1, 10**7, 10**6)]]
GRID += [made(1, 0, 0, reduced=r) for r in (10**5, 10**7)]


def taken(sample, call=3e-4, latency=2e-5):
    """By the formula of ``fit``: 1 GB/s received, 4 in sums, 2.5 through memory."""
    local = 1e-9 * sample.received + 0.25e-9 * sample.reduced + 4e-10 * sample.work.bytes
    return call + latency * sample.collectives + local


@pytest.mark.parametrize("known", [None, 4e-10])
def test_a_fit_finds_what_made_the_numbers(known):
    seconds = [taken(sample) for sample in GRID]
    found = fit(GRID, seconds, known)
    np.testing.assert_allclose(
        [found.call, found.latency, found.received, found.reduced, found.copied],
        [3e-4, 2e-5, 1e-9, 0.25e-9, 4e-10],
        rtol=1e-6,
    )
    assert max(errors(found, GRID, seconds)) == pytest.approx(1)


def test_nothing_costs_less_than_nothing():
    """Collectives that seem to make a call faster are free."""
    seconds = [taken(sample, latency=-1e-5) for sample in GRID]
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
    assert errors(Fit(2.0, 0, 0, 0, 0), [made(0, 0, 0)] * 2, [1.0, 4.0]) == [2.0, 2.0]


def test_the_machine_is_that_of_the_fit():
    fitted = Fit(1.0, 2e-5, 1e-9, 0.25e-9, 4e-10)
    machine = machine_of("mine", "hand", 8, fitted, {"f32": 1e10}, {})
    axes = (Axis(8),)
    assert machine.seconds(Collective("all_gather", axes, 8000)) == pytest.approx(2e-5 + 7000e-9)
    assert machine.seconds(Collective("all_reduce", axes, 8000)) == pytest.approx(2e-5 + 14000 * 0.25e-9)
    assert machine.seconds(Work(0, "f32", 1e6)) == pytest.approx(4e-4)
    assert machine.sources[0].where.startswith("hand, on 8 devices of cpu")
    free = machine_of("free", "", 2, Fit(1.0, 0, 0, 0, 0), {"f32": 1e10}, {}).links[0]
    assert (free.latency, free.bandwidth) == (0.0, pytest.approx(1e15))


def test_a_file_says_what_the_machine_is(tmp_path):
    machine = Machine(
        'a "lab"\n',
        "",
        math.inf,
        1.25e12,
        {"f32": 1e13, "bf16": 2e13},
        (Switch(4, 1e-6, 1e11), Switch(None, 2.5e-5, 1e10, 1.5e10)),
        {"runs": 5e7, "cuts_by_slices": True, "floats_as_bits": False},
        (Source("all", "here", datetime.date(2026, 11, 25)),),
    )
    text = machine_toml(machine, "two\nlines")
    assert from_table(tomllib.loads(text)) == machine
    assert text.startswith("# two\n# lines\nname = ")
    file = tmp_path / "lab.toml"
    file.write_text(text)
    assert chosen(file) == machine


def test_a_collective_that_xla_does_not_have_is_left_out():
    """XLA's CPU client has no collective_broadcast; the others do what their names say."""
    found = [sample for sample in samples(4, [1024]) if sample.name.endswith((" of 2", " of 4"))]
    times = dict(zip([sample.name for sample in found], measure(found, 1), strict=True))
    assert {name for name, seconds in times.items() if seconds is None} <= BROADCASTS
    by_name = {sample.name: sample for sample in found}
    x = np.arange(1024, dtype=np.float32)
    groups = x.reshape(2, 2, 256)
    summed = groups.sum(axis=1)
    (all_reduced,) = shardpass.compile(by_name["all_reduce of 2"].module)(x)
    np.testing.assert_array_equal(all_reduced, np.repeat(summed, 2, axis=0).ravel())
    (scattered,) = shardpass.compile(by_name["reduce_scatter of 2"].module)(x)
    np.testing.assert_array_equal(scattered, summed.ravel())


def test_groups_are_of_powers_of_two_and_of_all():
    assert groups_of(2) == [2]
    assert groups_of(8) == [2, 4, 8]
    assert groups_of(6) == [2, 6]


def clocked(monkeypatch, seconds_of):
    """Samples that take what ``seconds_of`` says; their names."""
    seen = []

    def measured(found, repeats, show):
        seen.extend(sample.name for sample in found)
        return [seconds_of(sample) for sample in found]

    monkeypatch.setattr(work, "measure", measured)
    return seen


def test_memory_is_measured_beside_the_time_of_a_call(monkeypatch):
    """A call of 1 ms and 2 GB/s: 1 MiB takes 1 ms more, and so on."""
    seen = clocked(monkeypatch, lambda sample: 1e-3 + sample.traffic / 2e9)
    assert work.memory_bandwidth(2, 1) == pytest.approx(2e9)
    assert seen == [f"a pass over {1 << 20 + 2 * k} bytes" for k in range(4)]  # until one takes 20 ms


def test_flops_are_those_of_large_products(monkeypatch):
    def seconds_of(sample):
        rate = {"f32": 1e12, "bf16": 4e12, "f16": 4e12, "i8": None}[sample.element]
        rows = sample.shape[1]
        return None if rate is None else 1e-4 + 2 * rows**3 / rate

    clocked(monkeypatch, seconds_of)
    assert work.flops(2, 1, 1e-4) == {
        name: pytest.approx(rate) for name, rate in (("f32", 1e12), ("bf16", 4e12), ("f16", 4e12))
    }


def test_samples_are_counted_as_their_collectives_are():
    """On 4 devices, tiles of 4 KiB: 32 rows of 32 floats."""
    by_name = {sample.name: sample for sample in samples(4, [4096])}
    tile = 4096
    sums = {
        "all_reduce of 2": (0, tile),
        "all_reduce of 4": (0, 3 * tile // 2),
        "reduce_scatter of 2": (tile // 2, 0),
        "reduce_scatter of 4": (3 * tile // 4, 0),
        "collective_broadcast of 2": (tile, 0),
        "collective_broadcast of 4": (tile, 0),
    }
    assert {name: (by_name[name].received, by_name[name].reduced) for name in sums} == sums
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
    others = {name: s for name, s in by_name.items() if name not in joined | set(sums)}
    found = {name: (s.collectives, s.received, s.work.bytes) for name, s in others.items()}
    assert found == want
    for name, sample in by_name.items():
        first = name.split()[0].replace("joined", "all_to_all")
        kind = first if first[0] in "ar" or first.endswith("broadcast") else "collective_permute"
        assert sample.module.count(f"stablehlo.{kind}") == sample.collectives


def test_a_tiny_run(tmp_path):
    file = tmp_path / "tiny.toml"
    command = [*CALIBRATE, "--devices", "2", "--sizes", "1KiB,8KiB", "--repeats", "1"]
    done = subprocess.run([*command, "-o", str(file)], capture_output=True, text=True, timeout=300, env=environment())
    assert done.returncode == 0, done.stderr
    assert "in geometric mean" in done.stderr
    machine = chosen(file)
    assert machine.name == "tiny"
    assert set(machine.flops) == {"f32", "bf16", "f16", "i8"}
    assert {source.of for source in machine.sources} == {"all"}
    plan = plan_redistribution((8, 8), "f32", "{devices=[2,1]<=[2]}", "{devices=[1,2]<=[2]}", machine=str(file))
    assert plan.profile == "tiny"


def test_an_interrupt_leaves_no_file(tmp_path):
    """Ctrl-C ends the command as a signal does, with nothing half-written and no traceback."""
    command = [*CALIBRATE, "--devices", "2", "--sizes", "64KiB", "-o", str(tmp_path / "m.toml")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []


BAD = (
    ["--devices", "3"], ["--devices", "0"], ["--sizes", "much"], ["--sizes", "none"], ["--sizes", "8"],
    ["--repeats", "0"], ["--repeats", "many"], ["more"],
)  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=" ".join)
def test_bad_usage_is_told(bad, capsys):
    assert main(["calibrate", *bad]) == 2
    told = capsys.readouterr().err
    assert "error: " in told
    assert "Traceback" not in told
