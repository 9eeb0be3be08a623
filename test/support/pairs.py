"""Pairs of a whole program and a program of one device, written out in text, and what both compute when run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.ir.context import parse_module
from shardpass.proving.refuting import on_one_device
from shardpass.runtime import interpret
from shardpass.runtime.partitioned_signature import read_signature

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


@dataclass(frozen=True)
class Side:
    """An argument or a result: its types on one device and in the whole program, and its sharding."""

    tile: str
    whole: str
    sharding: str = "{replicated}"

    @property
    def row(self) -> str:
        text = f'shardpass.global_type = tensor<{self.whole}>, shardpass.sharding = "{self.sharding}"'
        return f'{{mhlo.sharding = "{{manual}}", {text}}}'


def same(kind: str) -> Side:
    """A side that each device has whole."""
    return Side(kind, kind)


@dataclass(frozen=True)
class Pair:
    """Two programs of arguments %x, %y, %z, each of which returns %r."""

    arguments: Sequence[Side]
    result: Side
    whole_body: str
    local_body: str
    devices: int = 2

    @property
    def whole(self) -> str:
        given = ", ".join(f"%{k}: tensor<{side.whole}>" for k, side in zip("xyz", self.arguments, strict=False))
        kind = f"tensor<{self.result.whole}>"
        return f"func.func @main({given}) -> {kind} {{\n{self.whole_body}\n  return %r : {kind}\n}}"

    @property
    def local(self) -> str:
        sides = zip("xyz", self.arguments, strict=False)
        given = ", ".join(f"%{k}: tensor<{side.tile}> {side.row}" for k, side in sides)
        kind = f"tensor<{self.result.tile}>"
        return (
            f"module attributes {{mhlo.num_partitions = {self.devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"func.func @main({given}) -> ({kind} {self.result.row}) {{\n"
            f"{self.local_body}\n  return %r : {kind}\n}}\n}}"
        )

    def run(self, *arrays: Any) -> tuple[Any, Any]:
        """What the whole program and the devices compute of ``arrays``, by StableHLO's reference interpreter."""
        one = on_one_device(parse_module(self.whole), read_signature(parse_module(self.local)))
        assert one is not None
        (wanted,), (made,) = (interpret(module, *arrays, isolated=False) for module in (one, self.local))
        return wanted, made


def equal_bits(one: Any, other: Any) -> bool:
    """Whether two arrays are the same, 0 and -0 being two numbers and all NaN one."""
    if one.dtype.kind in "iub" or one.dtype.name.startswith(("int", "uint")):
        return bool((one == other).all())
    parts = [(one.real, other.real), (one.imag, other.imag)] if one.dtype.kind == "c" else [(one, other)]
    return all(_equal_floats(*(np.asarray(part, np.float64) for part in pair)) for pair in parts)


def _equal_floats(x: Any, y: Any) -> bool:
    both = np.isnan(x) & np.isnan(y)
    return bool((both | ((x == y) & (np.signbit(x) == np.signbit(y)))).all())


def summed(name: str, operand: str, kind: str, op: str = "add", devices: int = 2) -> str:
    """An all_reduce of all devices."""
    element = kind.split("x")[-1]
    return f"""  %{name} = "stablehlo.all_reduce"(%{operand}) <{{{CHANNEL}, use_global_device_ids,
    replica_groups = dense<[{list(range(devices))}]> : tensor<1x{devices}xi64>}}> ({{
    ^bb0(%{name}_a: tensor<{element}>, %{name}_b: tensor<{element}>):
      %{name}_s = stablehlo.{op} %{name}_a, %{name}_b : tensor<{element}>
      stablehlo.return %{name}_s : tensor<{element}>
    }}) : (tensor<{kind}>) -> tensor<{kind}>"""


def reduced(name: str, operand: str, kind: str, to: str, init: str, op: str = "add", dims: str = "0") -> str:
    """A reduction of an array of type ``kind`` to one of type ``to``."""
    element = kind.split("x")[-1]
    return f"""  %{name}_i = stablehlo.constant dense<{init}> : tensor<{element}>
  %{name} = stablehlo.reduce(%{operand} init: %{name}_i) applies stablehlo.{op} across dimensions = [{dims}]
    : (tensor<{kind}>, tensor<{element}>) -> tensor<{to}>"""


def constant(name: str, value: str, kind: str) -> str:
    return f"  %{name} = stablehlo.constant dense<{value}> : tensor<{kind}>"


def gather(name: str, operand: str, indices: str, operand_kind: str, indices_kind: str, to: str) -> str:
    """The elements of a vector at ``indices``."""
    return f"""  %{name} = "stablehlo.gather"(%{operand}, %{indices}) <{{
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1>}}> : (tensor<{operand_kind}>, tensor<{indices_kind}>) -> tensor<{to}>"""


def scatter(
    name: str, operand: str, indices: str, updates: str, kinds: tuple[str, str, str], op: str = "add",
) -> str:  # fmt: skip
    """Updates added to the elements of a vector at ``indices``; ``kinds``: of the operand, the indices, the updates."""
    element = kinds[0].split("x")[-1]
    return f"""  %{name} = "stablehlo.scatter"(%{operand}, %{indices}, %{updates}) <{{scatter_dimension_numbers =
    #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%{name}_a: tensor<{element}>, %{name}_b: tensor<{element}>):
      %{name}_s = stablehlo.{op} %{name}_a, %{name}_b : tensor<{element}>
      stablehlo.return %{name}_s : tensor<{element}>
    }}) : ({", ".join(f"tensor<{kind}>" for kind in kinds)}) -> tensor<{kinds[0]}>"""
