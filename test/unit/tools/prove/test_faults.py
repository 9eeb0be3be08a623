"""Seeded faults: the process that runs them, the ops that they may be named at, the order in which they are drawn."""

from types import SimpleNamespace

import pytest

from shardpass.ir.context import parse_module
from shardpass.ir.written import bytecode
from tools.prove.faults import blamed, by_turns
from tools.prove.observing import Observer
from tools.prove.proof_faults import faults, ops_of

WHOLE = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}"""
HALF = 'mhlo.sharding = "{manual}", shardpass.global_type = tensor<4xf32>, shardpass.sharding = "{devices=[2]<=[2]}"'
ALL = 'mhlo.sharding = "{manual}", shardpass.global_type = tensor<f32>, shardpass.sharding = "{replicated}"'
LOCAL = f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%x: tensor<2xf32> {{{HALF}}}) -> (tensor<f32> {{{ALL}}}) {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.all_reduce"(%0) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : (tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }}
}}"""


@pytest.fixture(scope="module")
def observer():
    observer = Observer()
    yield observer
    observer.close()


def seen(observer, local):
    return observer.observed(*(bytecode(parse_module(text)) for text in (WHOLE, LOCAL, local)))


def test_what_is_seen_of_a_fault(observer):
    assert seen(observer, LOCAL) == (False, False)
    assert seen(observer, LOCAL.replace("stablehlo.add %a, %b", "stablehlo.maximum %a, %b")) == (True, True)


def test_a_program_that_ends_the_process_is_not_run(observer):
    unknown = LOCAL.replace(
        "    return %1", "    %2 = stablehlo.custom_call @nobody(%1) : (tensor<f32>) -> tensor<f32>\n    return %2"
    )
    assert seen(observer, unknown) == (None, False)
    assert seen(observer, LOCAL) == (False, False)  # in the next process


def lines(module, kind):
    found = [blamed(module, fault) for fault in faults(module) if fault.what == kind]
    return [sorted(place.line for place in places) for places in found]


def test_a_fault_is_named_at_its_op_or_at_a_reader():
    module = parse_module(LOCAL)
    text = [line.strip() for line in LOCAL.splitlines()]
    reduce, all_reduce, end = (
        next(n for n, line in enumerate(text, 1) if line.startswith(word)) for word in ("%0 = ", "%1 = ", "return %1")
    )
    assert lines(module, "a collective dropped") == [[all_reduce, end]]
    # the reducers stand in regions of the two ops
    assert lines(module, "wrong reducer") == [[reduce, all_reduce], [all_reduce, end]]
    assert len(ops_of(module)) == 7  # the ops of regions among them


def test_rare_kinds_are_drawn_as_often():
    pairs = [(None, SimpleNamespace(what=kind, number=n)) for kind, count in (("a", 3), ("b", 1)) for n in range(count)]
    assert [(f.what, f.number) for _, f in by_turns(pairs)] == [("a", 0), ("b", 0), ("a", 1), ("a", 2)]
