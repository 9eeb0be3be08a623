"""The models of test/integration/models on Auto axes and on Explicit axes: whether the plans are one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import shardpass
from shardpass.advise.repair.errors import read
from shardpass.advise.repair.repair import repairs
from shardpass.diagnostics import collect

AXES = ("x", "y", "z")
Plan = Counter[tuple[str, str, int, int]]


@dataclass(frozen=True)
class To:
    """Gives a value a sharding: ``to(value, "x", None)``."""

    mesh: Mesh

    def __call__(self, value: Any, *spec: Any) -> Any:
        sharding = NamedSharding(self.mesh, PartitionSpec(*spec))
        if self.mesh.axis_types[0] == AxisType.Auto:
            return jax.lax.with_sharding_constraint(value, sharding)
        return jax.reshard(value, sharding)


def mesh_of(shape: tuple[int, ...], kind: AxisType) -> Mesh:
    devices = np.array(jax.devices("cpu")[: int(np.prod(shape))]).reshape(shape)
    return Mesh(devices, AXES[: len(shape)], axis_types=(kind,) * len(shape))


@contextmanager
def form(program: Any, kind: AxisType) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The function of a model over axes of that kind, and the types of its arguments; the mesh is in use inside."""
    mesh = mesh_of(program.mesh, kind)
    to = To(mesh)
    with jax.set_mesh(mesh):
        case = program.build(to)
        shapes = _with_specs(lambda leaf, spec: _typed(mesh, leaf, spec), case.arguments, case.specs)

        def typed(*arguments: Any) -> Any:
            results = case.function(*arguments)
            return _with_specs(lambda leaf, spec: leaf if spec is None else to(leaf, *spec), results, case.out_specs)

        yield typed, shapes


def lowered(program: Any, kind: AxisType) -> str:
    """The text of a model over axes of that kind. Raises what JAX raises."""
    with form(program, kind) as (function, shapes):
        text: str = jax.jit(function, keep_unused=True).lower(*shapes).as_text(debug_info=True)
    return text


def plan_of(text: str, effort: int) -> tuple[Plan, int]:
    """The collectives of a program, and the bytes that a device receives in one run."""
    with collect():
        report = shardpass.explain(text, machine="ideal", effort=effort)
    rows = ((row.kind, str(row.axes), int(row.bytes_received), int(row.times)) for row in report.rows)
    return Counter(rows), report.total_bytes_received


def _typed(mesh: Mesh, leaf: Any, spec: PartitionSpec | None) -> Any:
    sharding = NamedSharding(mesh, PartitionSpec() if spec is None else spec)
    return jax.ShapeDtypeStruct(np.shape(leaf), np.asarray(leaf).dtype, sharding=sharding)


def _with_specs(function: Any, tree: Any, specs: Any) -> Any:
    """``function`` of each leaf and its spec, where a spec or None may stand for a subtree."""

    def leaf(value: Any) -> bool:
        return value is None or isinstance(value, PartitionSpec)

    return jax.tree.map(
        lambda spec, below: jax.tree.map(lambda one: function(one, spec), below), specs, tree, is_leaf=leaf
    )


# ---------------------------------------------------------------- outcomes

SAME, FEWER, MORE, REFUSED, REPAIRED = "same", "fewer bytes", "more bytes", "refused", "repaired"
OTHER = "same bytes"  # in other collectives
# Models that receive more because JAX gives a type to a value that Auto axes leave open: an array of 12 rows that is
# padded to 14 is split into 7 and 7, so that its slices are rows of two devices.
TYPED = frozenset({"wave_3d"})


@dataclass(frozen=True)
class Outcome:
    """Of one model. ``verdict``: the plan over Explicit axes beside that over Auto ones. ``reason``: of a refusal."""

    name: str
    verdict: str
    auto: int
    explicit: int
    reason: str = ""

    def __str__(self) -> str:
        figures = "" if self.verdict in (SAME, REFUSED) else f" ({self.explicit} beside {self.auto})"
        return f"{self.name:32} {self.verdict}{figures} {self.reason}".rstrip()


def outcome(program: Any, effort: int, repair: bool = False) -> Outcome:
    plan, auto = plan_of(lowered(program, AxisType.Auto), effort)
    try:
        text = lowered(program, AxisType.Explicit)
    except Exception as error:  # whatever JAX or a library raises on explicit axes
        if repair:
            return _repaired(program, auto, error)
        return Outcome(program.name, REFUSED, auto, 0, _reason(error))
    other, explicit = plan_of(text, effort)
    verdict = SAME if plan == other else OTHER if explicit == auto else FEWER if explicit < auto else MORE
    return Outcome(program.name, verdict, auto, explicit)


def _repaired(program: Any, auto: int, error: Exception) -> Outcome:
    """The model with the cheapest edits that ``shardpass.suggest`` prints for it."""
    try:
        with form(program, AxisType.Explicit) as (function, shapes):
            answer = repairs(function, shapes, {}, error, "ideal")
    except shardpass.ShardpassError:
        answer = None
    if answer is None:
        return Outcome(program.name, REFUSED, auto, 0, _reason(error))
    best = next((one for one in answer.alternatives if not one.arguments), answer.alternatives[0])
    return Outcome(program.name, REPAIRED, auto, best.bytes, f"{len(best.edits)} edits, {answer.traces} traces")


def _reason(error: Exception) -> str:
    clash = read(error)
    if clash is None:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return f"{Path(clash.place.file).name}:{clash.place.line} {clash.name}: {clash.text[:160]}"
