"""One machine for a module: an early pass says it, later ones take it, and an option says another."""

import json
import subprocess
from dataclasses import replace

import pytest

import shardpass
from shardpass import run_pipeline
from shardpass.cost.collective import Axis, Collective
from shardpass.cost.machine import FOLDER, find_machine
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.machines import module_machine
from shardpass.pipeline.plan import plan_module
from tools.processes import environment, module_command

# an exchange of a small array: on a machine of much latency one gather and a slice, else two collectives of fewer bytes
MOVED = """
module attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32MACHINE} {
  func.func public @main(%x: tensor<1x16xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.custom_call @shardpass.redistribute(%x) {
      shardpass.from = "{mesh['a'=4,'b'=4], [{'a','b'}, {}]}",
      shardpass.to = "{mesh['a'=4,'b'=4], [{'b'}, {'a'}]}",
      shardpass.global_type = tensor<16x16xf32>} : (tensor<1x16xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
"""
STEP = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<64x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.negate %x : tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }
}
"""


def ran(text, pipeline):
    with collect() as told:
        module = run_pipeline(text, pipeline)
    return module, [one for one in told if one.code.startswith("SP9")]


def test_redistribute_alone_plans_for_the_machine_that_the_text_names():
    by = {
        name: str(ran(MOVED.replace("MACHINE", f', shardpass.machine = "{name}"'), passes)[0])
        for name in ("paper", "ethernet")
        for passes in ("shardpass-redistribute{memory-limit=none}",)
    }
    assert "all_to_all" not in by["ethernet"]  # one gather, and a slice
    assert by["ethernet"].count("stablehlo.all_gather") == 1
    assert by["paper"].replace("paper", "ethernet") != by["ethernet"]
    for name, text in by.items():
        option = f"shardpass-redistribute{{memory-limit=none machine={name}}}"
        assert str(ran(MOVED.replace("MACHINE", ""), option)[0]) == text.replace(f', shardpass.machine = "{name}"', "")


def test_an_option_beats_the_module_with_a_remark():
    named = MOVED.replace("MACHINE", ', shardpass.machine = "paper"')
    module, told = ran(named, "shardpass-redistribute{memory-limit=none machine=ethernet}")
    assert str(module).count("stablehlo.all_gather") == 1
    assert [(one.code, one.severity) for one in told] == [("SP904", "remark")]
    assert "decided for the machine paper, but shardpass-redistribute uses ethernet" in told[0].message


def test_each_pipeline_says_the_machine_on_the_module():
    for pipeline in ("propagate", "check", "partition"):
        module, told = ran(STEP, f"{pipeline}{{machine=v5p}}")
        assert module_machine(module) == "v5p"
        assert told == []
    assert module_machine(ran(STEP, "propagate")[0]) == "ideal"  # of the environment


def test_passes_one_by_one_are_the_pipeline():
    text = STEP
    for step in ("import", "shardpass-propagate{machine=mi300x}", "shardpass-partition", "shardpass-redistribute"):
        text, told = ran(str(text), step)
        assert told == []
    assert module_machine(text) == "mi300x"


def test_a_machine_that_is_none_is_refused_by_option_and_by_attribute():
    for text, pipeline in (
        (STEP, "partition{machine=abacus}"),
        (STEP.replace("4 : i32}", '4 : i32, shardpass.machine = "abacus"}'), "propagate"),
        (MOVED.replace("MACHINE", ', shardpass.machine = "abacus"'), "shardpass-redistribute"),
    ):
        with pytest.raises(ShardpassError) as caught:
            run_pipeline(text, pipeline)
        assert caught.value.code == "SP901"


def test_a_file_is_named_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "lab.toml").write_bytes((FOLDER / "h100.toml").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert module_machine(ran(STEP, "partition{machine=lab.toml}")[0]) == "lab.toml"


def test_a_plan_and_an_executable_know_their_machine():
    lab = replace(find_machine("h100"), name="lab", memory=1e9)
    assert plan_module(STEP, machine=lab).bytes_received == 64 * 16 * 4 * 3 // 4
    with pytest.raises(ShardpassError, match="SP901"):
        plan_module(STEP, machine="abacus")
    module, _ = ran(STEP, "partition{machine=v6e}")
    with collect() as told:
        assert shardpass.compile(module).machine == "v6e"
        assert shardpass.compile(module, machine="v6e").machine == "v6e"
    assert told == []
    with collect() as told:
        assert shardpass.compile(module, machine=lab).machine == "v6e"
    (remark,) = told
    assert remark.code == "SP904"
    assert "decided for the machine v6e, but compile() uses lab@" in remark.message


def test_run_and_explain_have_one_clock(tmp_path):
    whole, tiles = tmp_path / "whole.mlir", tmp_path / "tiles.mlir"
    whole.write_text(STEP)
    tiles.write_text(str(ran(STEP, "partition{machine=v5p}")[0]))
    reports = []
    for words in (
        ("explain", str(whole), "--machine", "v5p"),
        ("explain", str(tiles)),
        ("run", str(tiles), "--interpreter"),
        ("run", str(whole), "partition", "--machine", "v5p", "--interpreter"),
    ):
        done = subprocess.run([*module_command("shardpass"), *words, "--json"], capture_output=True, env=environment())
        reports.append(json.loads(done.stdout))
    (seconds,) = {report["seconds"] for report in reports}
    assert [report.get("profile", report.get("machine")) for report in reports] == ["v5p"] * 4
    exchange = Collective("all_to_all", (Axis(4),), 64 * 16 * 4)
    assert seconds == pytest.approx(find_machine("v5p").seconds(exchange))
