"""One clock: whoever says how long a program takes says the same, communication beside what is computed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import shardpass
from shardpass.advise.suggest.suggest import suggest_module
from shardpass.cost.collective import Axis, Collective
from shardpass.cost.machine import Work, find_machine
from shardpass.diagnostics import collect
from shardpass.pipeline.plan import plan_module
from tools.processes import environment, module_command

HEAD = "module attributes {mhlo.num_partitions = 4 : i32} {\n  func.func @main"
ROWS, COLUMNS, WHOLE = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{replicated}"
MACHINES = ("ideal", "h100", "pod", "v5p")


def array(kind: str, sharding: str) -> str:
    return f'{kind} {{mhlo.sharding = "{sharding}"}}'


A = "tensor<256x64xf32>"
X, W, Y = "tensor<32x4096xf32>", "tensor<4096x32xf32>", "tensor<32x32xf32>"
PROGRAMS = {
    "summed": f"""{HEAD}(%x: {array(X, COLUMNS)}, %w: {array(W, ROWS)}) -> ({array(Y, WHOLE)}) {{
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({X}, {W}) -> {Y}
    return %0 : {Y}
  }}
}}""",
    "exchanged": f"""{HEAD}(%x: {array(A, ROWS)}) -> ({array(A, COLUMNS)}) {{
    %0 = stablehlo.tanh %x : {A}
    return %0 : {A}
  }}
}}""",
    "alone": f"""{HEAD}(%x: {array(A, ROWS)}) -> ({array(A, ROWS)}) {{
    %0 = stablehlo.tanh %x : {A}
    return %0 : {A}
  }}
}}""",
    "looped": f"""{HEAD}(%x: {array(A, ROWS)}) -> ({array(A, COLUMNS)}) {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, {A}
      cond {{
        %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %n = stablehlo.add %i, %one : tensor<i32>
        %t = stablehlo.tanh %a : {A}
        stablehlo.return %n, %t : tensor<i32>, {A}
      }}
    return %0#1 : {A}
  }}
}}""",
}


def by_hand(machine: str) -> tuple[float, float]:
    """Of "summed": an all_reduce of 32x32, and products of 32x1024 by 1024x32 that read and write f32."""
    on = find_machine(machine)
    summed = on.seconds(Collective("all_reduce", (Axis(4),), 4 * 32 * 32))
    product = Work(2 * 32 * 1024 * 32, "f32", 4 * (2 * 32 * 1024 + 32 * 32), 1)
    return summed, on.seconds(product)


@pytest.mark.parametrize("machine", ["ideal", "h100", "v5p"])
def test_a_step_is_its_collectives_and_its_work(machine: str) -> None:
    report = shardpass.explain(PROGRAMS["summed"], machine=machine)
    communication, compute = by_hand(machine)
    assert report.seconds == pytest.approx(communication)
    assert report.compute_seconds == pytest.approx(compute)
    assert report.step_seconds == pytest.approx(communication + compute)
    assert report.bound_by == ("communication" if communication > compute else "compute")


@pytest.mark.parametrize("effort", [0, 1])
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_explain_its_json_and_the_plan_agree_to_the_digit(name: str, machine: str, effort: int) -> None:
    with collect():
        report = shardpass.explain(PROGRAMS[name], machine=machine, effort=effort)
        told = json.loads(report.json())
        figures = [(report.seconds, report.compute_seconds, report.step_seconds)]
        figures += [(told["seconds"], told["compute_seconds"], told["step_seconds"])]
        plans = [report.plan, plan_module(PROGRAMS[name], machine=machine)] if effort else [report.plan]
        figures += [(plan.seconds(), plan.compute_seconds(), plan.step_seconds()) for plan in plans]
    assert len(set(figures)) == 1
    assert sum(one["seconds"] for one in told["compute"]) == pytest.approx(figures[0][1])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_before_an_advice_it_takes_what_explain_says(name: str, machine: str) -> None:
    with collect():
        report = shardpass.explain(PROGRAMS[name], machine=machine)
        found = json.loads(suggest_module(PROGRAMS[name], machine=machine).json())["before"]
    assert [found[one] for one in ("bytes", "compute_seconds", "seconds")] == [
        report.total_bytes_received,
        report.compute_seconds,
        report.step_seconds,
    ]


EXAMPLES = Path(shardpass.__file__).parents[1] / "examples"


@pytest.mark.parametrize("machine", ["h100", "v5p"])
def test_what_is_explained_is_built(machine: str) -> None:
    """Where later passes join collectives they take less than the plan's, and the same bytes; not more."""
    text = (EXAMPLES / "transformer_block.sdy.mlir").read_text()
    with collect():
        report = shardpass.explain(text, machine=machine)
        built = shardpass.explain(str(shardpass.run_pipeline(text, f"partition{{machine={machine}}}")))
        advice = suggest_module(text, machine=machine)
    assert (report.seconds, report.total_bytes_received) == (built.seconds, built.total_bytes_received)
    assert report.plan is not None
    assert report.seconds <= report.plan.seconds()
    assert report.plan.machine.name == machine
    assert (built.compute, built.step_seconds, built.bound_by) == (None, None, None)
    assert advice.figures_before.seconds == report.step_seconds


def test_run_says_what_explain_says(tmp_path: Path) -> None:
    path = tmp_path / "summed.mlir"
    path.write_text(PROGRAMS["summed"])
    run = (*module_command("shardpass"), "run", str(path), "partition", "--machine", "pod", "--interpreter", "--json")
    found = json.loads(subprocess.run(run, capture_output=True, env=environment(), check=True).stdout)
    with collect():
        report = shardpass.explain(PROGRAMS["summed"], machine="pod")
    names = ("seconds", "compute_seconds", "step_seconds", "bound_by")
    assert [found[name] for name in names] == [getattr(report, name) for name in names]


def test_copies_of_a_redistribution_are_computed() -> None:
    """An all_to_all with its blocks cut and joined: the plan's time is the collective's and that of the copies."""
    report = shardpass.explain(PROGRAMS["exchanged"], machine="h100")
    on = find_machine("h100")
    exchange = on.seconds(Collective("all_to_all", (Axis(4),), 4 * 64 * 64))
    assert report.seconds == pytest.approx(exchange)
    tanh = on.seconds(Work(64 * 64, "f32", 2 * 4 * 64 * 64))
    plan = shardpass.plan_redistribution((256, 64), "f32", ROWS, COLUMNS, machine="h100")
    assert plan.seconds - exchange > 0
    assert report.compute_seconds == pytest.approx(tanh + plan.seconds - exchange)


def lines(found: Any) -> list[str]:
    return [line for line in str(found).splitlines() if "bounds a step" in line]


def test_the_text_says_what_bounds_a_step() -> None:
    with collect():
        alone, summed = (shardpass.explain(PROGRAMS[name], machine="h100") for name in ("alone", "summed"))
    assert len(lines(alone)) == len(lines(summed)) == 1
    assert "compute bounds a step" in lines(alone)[0]
    assert "communication bounds a step" in lines(summed)[0]
