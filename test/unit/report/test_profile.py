"""Measured times: profiles of programs that run here, held to the other trace that JAX writes; and joins by hand."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from support.schedules import LOOP, explained, explained_hlo

import shardpass
from shardpass.cli.explain import main
from shardpass.diagnostics import ShardpassError
from shardpass.report.explanation import Explanation
from shardpass.report.profile import Event, Share, join
from shardpass.report.text import show_seconds
from shardpass.report.xplane import read_xplane


@pytest.fixture(scope="module")
def ran(tmp_path_factory: Any) -> tuple[Any, Any, tuple[Any, ...], Path]:
    """A function of two layers in a scan with its gradient, compiled, its arguments, and the profile of three runs."""
    mesh = Mesh(np.array(jax.devices("cpu")[:8]).reshape(4, 2), ("data", "model"))

    def layer(x: Any, p: Any) -> tuple[Any, None]:
        return x + jnp.tanh(x @ p["up"]) @ p["down"], None

    def loss(p: Any, x: Any) -> Any:
        return jnp.mean(jax.lax.scan(layer, x, p)[0] ** 2)

    shapes = {"up": ((2, 16, 32), P(None, None, "model")), "down": ((2, 32, 16), P(None, "model"))}
    p = {name: jax.device_put(jnp.ones(shape), NamedSharding(mesh, spec)) for name, (shape, spec) in shapes.items()}
    x = jax.device_put(jnp.ones((64, 16)), NamedSharding(mesh, P("data")))
    step = jax.jit(jax.grad(loss))
    compiled = step.lower(p, x).compile()
    jax.block_until_ready(compiled(p, x))
    folder = tmp_path_factory.mktemp("profile")
    with jax.profiler.trace(str(folder)):
        for _ in range(3):
            jax.block_until_ready(compiled(p, x))
    return step, compiled, (p, x), folder


def means(folder: Path) -> dict[str, float]:
    """By the name of an op, the mean seconds of its events, from the Chrome trace beside the xplane."""
    (file,) = folder.rglob("*.trace.json.gz")
    found = defaultdict(list)
    for event in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]:
        if (name := event.get("args", {}).get("hlo_op")) is not None:
            found[name].append(event["dur"] * 1e-6)
    return {name: sum(some) / len(some) for name, some in found.items()}


def test_collectives_take_what_the_other_trace_says(ran: Any) -> None:
    """The time of all rows is that of the collectives' events by their trips, of every collective."""
    _, compiled, _, folder = ran
    report = shardpass.explain(compiled, machine="cpu", profile_dir=folder)
    assert report.measured is not None
    assert report.measured.joined == len(report.rows) > 2
    took = means(folder)
    names = {name: took[name] for name in took if name.startswith(("all-", "reduce-scatter", "collective-"))}
    trips = {name: 2 if f"%{name} = " in compiled.as_text().split("ENTRY")[0] else 1 for name in names}
    assert {2} <= set(trips.values())
    assert report.measured.total == pytest.approx(sum(trips[name] * names[name] for name in names), rel=1e-3)


def test_a_report_that_compiles_anew_is_joined_too(ran: Any, capsys: Any) -> None:
    """At least 95% of the collectives; what is printed and what JSON has is the same."""
    step, _, arguments, folder = ran
    report = shardpass.explain(step, *arguments, machine="cpu", partitioner="xla", profile_dir=str(folder))
    assert report.measured is not None
    assert report.measured.joined >= 0.95 * len(report.rows)
    facts = json.loads(report.json())
    known = [one["measured_seconds"] for one in facts["collectives"]]
    assert sum(filter(None, known)) == pytest.approx(facts["measured"]["seconds"])
    total = show_seconds(report.measured.total)
    assert f"measured: {total} in a run" in str(report)


def test_the_command_reads_a_profile(ran: Any, tmp_path: Path, capsys: Any) -> None:
    _, compiled, _, folder = ran
    path = tmp_path / "step.hlo"
    path.write_text(compiled.as_text())
    assert main([str(path), "--profile-dir", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["measured"]["joined"] == len(facts["collectives"])
    assert main([str(path), "--profile-dir", str(tmp_path)]) == 1
    assert "SP629" in capsys.readouterr().err


# ---------------------------------------------------------------- by hand


def test_a_pair_takes_the_start_and_the_done() -> None:
    """Means over devices and runs: 2 and 3 seconds; of two rows with a quarter and the rest, each three times."""
    events = [Event("ag", "m", 1.0), Event("ag", "m", 3.0), Event("done", "m", 3.0), Event("ag", "other", 99.0)]
    rows = [Share(("ag", "done"), 3, 0.25), Share(("ag", "done"), 3, 0.75), Share(("lost",), 1, 1.0)]
    found = join(iter(events), "m", rows, "f")
    assert found.seconds == (3 * 5 * 0.25, 3 * 5 * 0.75, None)
    assert (found.joined, found.total) == (2, 15)


def test_events_without_a_module_are_of_any() -> None:
    assert join(iter([Event("ag", "", 1.0)]), "m", [Share(("ag",), 1, 1.0)], "f").seconds == (1.0,)


def refused(report: Explanation, folder: Any) -> str:
    from shardpass.advise.suggest.explain import measured

    with pytest.raises(ShardpassError) as error:
        measured(report, folder)
    return error.value.code


def test_what_is_no_profile_of_the_program_is_refused(ran: Any, tmp_path: Path) -> None:
    broken = tmp_path / "a.xplane.pb"
    broken.write_bytes(b"\xff\xff\xff\xff not a profile")
    assert refused(explained_hlo(), tmp_path / "none") == "SP629"
    assert refused(explained_hlo(), broken) == "SP629"
    assert refused(explained_hlo(), ran[3]) == "SP630"
    assert refused(explained(LOOP), ran[3]) == "SP631"
    assert refused(explained_hlo(), 7) == "SP140"
    assert explained_hlo() == replace(explained_hlo(), measured=None)


def test_a_torn_profile_is_refused_or_read_as_far_as_it_goes(ran: Any) -> None:
    """Cut anywhere: the first events, or a ValueError, and nothing else. What follows the last event is no event."""
    (file,) = ran[3].rglob("*.xplane.pb")
    data = file.read_bytes()
    whole = list(read_xplane(data))
    assert len(whole) > 100
    for cut in range(1, len(data), len(data) // 20):
        with contextlib.suppress(ValueError):
            events = list(read_xplane(data[:cut]))
            assert events == whole[: len(events)]
            assert len(events) < len(whole) or cut > len(data) // 2


def test_a_plane_of_a_tpu_calls_events_by_the_text_of_the_op() -> None:
    """By hand: an event of two picoseconds, called "%ag.1 = f32[8]{0} all-gather(...)", on /device:TPU:0."""

    def field(number: int, body: bytes) -> bytes:
        return bytes([number << 3 | 2, len(body)]) + body

    def number(place: int, value: int) -> bytes:
        return bytes([place << 3, value])

    name = b"%ag.1 = f32[8]{0} all-gather(f32[1]{0} %p)"
    known = field(4, number(1, 7) + field(2, number(1, 7) + field(2, name)))
    line = field(3, field(4, number(1, 7) + number(3, 2)))
    (event,) = read_xplane(field(1, field(2, b"/device:TPU:0") + known + line))
    assert (event.plane, event.name, event.seconds) == ("/device:TPU:0", name.decode(), 2e-12)
