"""Infer layouts by shardpass's own propagation, for ops without rules in the documents.

The program with all values as results is propagated, and the sharding of each result is that of the value.
"""

from __future__ import annotations

from typing import Any

from shardpass.ir.annotations import SHARDING, Signature, main_of, text
from shardpass.ir.context import parse_module
from shardpass.onnx.layout import Layout, layout_of
from shardpass.onnx.model import Configuration, Model
from shardpass.onnx.stablehlo.bridge import program_of_all_values
from shardpass.pipeline.run import run_in_place
from shardpass.sharding import Sharding, parse_sharding
from shardpass.sharding.notations.onnx_sharding import spec_of_sharding


def propagated(model: Model, configuration: Configuration) -> dict[str, Layout]:
    """Return the layout of each value that a node computes, for one configuration.

    Raises ShardpassError: SP706 as ``to_stablehlo``.
    """
    program = program_of_all_values(model, configuration.name)
    module = parse_module(program.text, model.place.file or "model.onnx")
    with module.context:
        run_in_place(module, "propagate")
        results = Signature(main_of(module)).results
        ranks = [kind.rank for kind in main_of(module).attributes["function_type"].value.results]
    layouts = {}
    for name, attributes, rank in zip(program.outputs, results, ranks, strict=True):
        layout = _layout(attributes.get(SHARDING), rank, configuration.num_devices)
        if layout is not None:
            layouts[name] = layout
    return layouts


def _layout(attribute: Any, rank: int, num_devices: int) -> Layout | None:
    sharding = Sharding.replicated() if attribute is None else parse_sharding(text(attribute))
    if not isinstance(sharding, Sharding):
        return None
    return layout_of(spec_of_sharding(sharding, rank, num_devices), rank)
