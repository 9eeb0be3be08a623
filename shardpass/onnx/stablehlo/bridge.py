"""Convert an ONNX model to StableHLO with the same shardings, so that shardpass partitions and runs it.

    program = shardpass.onnx.to_stablehlo(model)
    module = shardpass.run_pipeline(program.text, "partition")
    outputs = shardpass.compile(module)(*program.arguments({"x": x}))

The graph is traced node by node with the kernels of ``kernels``. The arguments of main are the graph's inputs, then its
weights (initializers, and large Constants, that are no small integers: those are axes, shapes and bounds). Each spec
that a node gives for an input or output becomes a constraint (``custom_call @Sharding``) of that value at that node;
values without a spec are left to propagation. Values that follow from constants alone are computed while building, so a
Reshape may take its shape from Shape, Gather and Concat. The place of an op is its node: line 3 of the model is the
third node.

Raises: SP706 for an op without a kernel, a shape that is not static, or a spec that XLA's notation cannot express.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError, report
from shardpass.diagnostics.table_onnx import CONFIGURATION, NO_BRIDGE, SOME_DEVICES
from shardpass.ir.annotations import (
    CONSTRAINT,
    SHARDING,
    Signature,
    main_of,
    make_custom_call,
    set_mesh,
    set_num_devices,
)
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import every_op, operation
from shardpass.onnx.kernels import MOST_FOLDED, READ_INPUTS
from shardpass.onnx.model import Configuration, Model, Node
from shardpass.onnx.stablehlo.tracing import SCOPE, Tracer
from shardpass.onnx.stablehlo.widening import is_uneven, whole, widened
from shardpass.sharding.notations.onnx_sharding import sharding_of_spec
from shardpass.sharding.notations.onnx_spec import ShardingSpec

SMALL = 64  # elements of an initializer of integers that counts as a constant

_constraint = Primitive("onnx_sharding_spec")
_constraint.def_abstract_eval(lambda value, *, sharding: value)


def _lower(context: Any, value: Any, *, sharding: str) -> list[Any]:
    return [make_custom_call(CONSTRAINT, value, value.type, {SHARDING: ir.StringAttr.get(sharding)})]


mlir.register_lowering(_constraint, _lower)


@dataclass(frozen=True, slots=True)
class Program:
    """A model as StableHLO. ``text``: the module. ``inputs``: the names of main's first arguments. ``weights``: the
    others, in order.
    """

    text: str
    inputs: tuple[str, ...]
    weights: Mapping[str, Any]
    outputs: tuple[str, ...]

    def known(self) -> dict[int, Any]:
        """Return the values of main's arguments that are weights, by number."""
        return dict(enumerate(self.weights.values(), len(self.inputs)))

    def arguments(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Return the arguments of main, for values of the graph's inputs by name."""
        return [*(np.asarray(inputs[name]) for name in self.inputs), *self.weights.values()]


def to_stablehlo(model: Model, configuration: str | None = None) -> Program:
    """Convert ``model`` for one of its configurations, the first by default."""
    outputs = tuple(info.name for info in model.proto.graph.output)
    return _program(model, configuration, outputs)


def program_of_all_values(model: Model, configuration: str | None = None) -> Program:
    """Convert ``model`` with all non-constant arrays computed by nodes as results."""
    return _program(model, configuration, None)


def _program(model: Model, configuration: str | None, wanted: tuple[str, ...] | None) -> Program:
    chosen = _configuration(model, configuration)
    weights, constants = _initializers(model)
    inputs = tuple(t.name for t in model.proto.graph.input if t.name not in weights and t.name not in constants)
    outputs: list[str] = []

    def placed(node: Node, name: str, value: Any) -> Any:
        if chosen is None or not node.annotations or not isinstance(value, jax.Array):
            return value
        sharding = _annotated(model, node, chosen, name, np.ndim(value))
        return value if sharding is None else _constraint.bind(value, sharding=sharding)

    with jax.enable_x64(True):
        arguments = [_abstract(model, name) for name in inputs]
        arguments += [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in weights.values()]

        def main(*values: Any) -> list[Any]:
            known = {**constants, **dict(zip((*inputs, *weights), values, strict=True))}
            Tracer.of(model, placed).main(known)
            outputs[:] = _made(model, known) if wanted is None else wanted
            return [_output(model, name, known) for name in outputs]

        text = jax.jit(main, keep_unused=True).lower(*arguments).as_text(debug_info=True)
    module = parse_module(_with_names(text, (*inputs, *weights)), model.place.file or "model.onnx")
    with module.context:
        set_num_devices(module, chosen.num_devices if chosen else 1)
        if chosen is not None and chosen == model.configurations[0]:
            if model.mesh is not None:
                set_mesh(module, model.mesh)
            _split_arguments(module, model, chosen, (*inputs, *weights))
        _name_places(module, model)
    return Program(module.operation.get_asm(enable_debug_info=True), inputs, weights, tuple(outputs))


def _with_names(text: str, names: Sequence[str]) -> str:
    """Rename the program's arguments as in the model; JAX calls them values[0], values[1] and so on."""

    def named(match: re.Match[str]) -> str:
        name = names[int(match[1])]
        return f'loc("{name}")' if re.fullmatch(r"[\w./:-]+", name, re.ASCII) else match[0]

    return re.sub(r'loc\("values\[(\d+)\]"\)', named, text)


def _made(model: Model, known: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys(name for node in model.nodes for name in node.outputs)
    return [name for name in names if isinstance(known.get(name), jax.Array)]


def _name_places(module: Any, model: Model) -> None:
    """Set the location of each op to its ONNX node, identified by the name of its JAX scope."""
    places = [
        ir.Location.name(str(node), ir.Location.file(model.place.file or "model.onnx", node.number + 1, 1))
        for node in model.nodes
    ]
    for op in map(operation, every_op(module.operation)):
        match = re.search(rf"{SCOPE}(\d+)", str(op.location))
        if match is not None:
            op.location = places[int(match[1])]


def _configuration(model: Model, name: str | None) -> Configuration | None:
    for one in model.configurations:
        if name is None or one.name == name:
            return one
    if name is None:
        return None
    known = ", ".join(f"'{one.name}'" for one in model.configurations) or "none"
    raise CONFIGURATION.error(model.place, where="model", reason=f"there is no configuration '{name}'", known=known)


def _initializers(model: Model) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate weights from constants that define shapes and axes."""
    from onnx import numpy_helper

    weights: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    read = {node.inputs[k] for node in model.nodes for k in READ_INPUTS.get(node.op, ()) if k < len(node.inputs)}
    for name, tensor in (*((one.name, one) for one in model.proto.graph.initializer), *_large_constants(model)):
        if tensor.external_data:
            reason = f"the weight '{name}' is in another file"
            raise NO_BRIDGE.error(model.place, node="model", op="it", reason=reason)
        value = numpy_helper.to_array(tensor)
        is_small = value.size <= SMALL and value.dtype.kind in "iub"
        (constants if is_small or value.ndim == 0 or name in read else weights)[name] = value
    return weights, constants


def _large_constants(model: Model) -> Iterator[tuple[str, Any]]:
    """Return the values of Constant nodes in which some exporters keep weights."""
    for node in model.nodes:
        value = node.attributes.get("value") if node.op == "Constant" else None
        if value is not None and math.prod(value.dims) > MOST_FOLDED:
            yield node.outputs[0], value


def _abstract(model: Model, name: str) -> Any:
    from onnx import helper

    info = next(t for t in model.proto.graph.input if t.name == name)
    sizes = model.tensor(name).sizes
    if sizes is None or min(sizes, default=0) < 0 or not info.type.HasField("tensor_type"):
        raise NO_BRIDGE.error(
            model.place, node=f"graph input '{name}'", op="it", reason="its shape is not a list of sizes"
        )
    kind = info.type.tensor_type.elem_type
    try:
        return jax.ShapeDtypeStruct(sizes, helper.tensor_dtype_to_np_dtype(kind))
    except (KeyError, TypeError, ValueError):
        reason = f"its element type, number {kind}, is none of NumPy's"
        raise NO_BRIDGE.error(model.place, node=f"graph input '{name}'", op="it", reason=reason) from None


def _output(model: Model, name: str, known: Mapping[str, Any]) -> Any:
    reason = "no graph input, weight or node makes it"
    if name in known:
        value = known[name]
        if isinstance(value, jax.Array | np.ndarray):
            return value
        reason = "it is a sequence or an optional value"
    raise NO_BRIDGE.error(model.place, node=f"graph output '{name}'", op="it", reason=reason)


def _annotated(model: Model, node: Node, configuration: Configuration, name: str, rank: int) -> str | None:
    """Return a node's annotation of one of its tensors, in XLA's notation."""
    for annotation in node.annotations:
        if annotation.configuration != configuration.name:
            continue
        for spec in annotation.specs:
            if spec.tensor_name == name:
                return _written(model, node, configuration, spec, rank)
    return None


def _written(model: Model, node: Node | str, configuration: Configuration, spec: ShardingSpec, rank: int) -> str:
    """Format a spec in XLA's notation; a spec with only some of the devices is widened to all, with a remark."""
    count, name = configuration.num_devices, spec.tensor_name
    if is_uneven(spec, count):
        wider = widened(spec, count)
        named = len({device for group in spec.holders() for device in group})
        what = "the others hold copies of its shards" if wider else "each device holds all of the tensor"
        report(SOME_DEVICES.at(model.place, node=node, tensor=name, named=named, count=count, what=what))
        spec = wider or whole(spec, count)
    try:
        return str(sharding_of_spec(spec, rank, count))
    except ShardpassError as error:
        reason = f"the spec of '{name}': {error.diagnostics[0].message}"
        raise NO_BRIDGE.error(model.place, node=node, op="the node", reason=reason) from None


def _split_arguments(module: Any, model: Model, configuration: Configuration, names: Sequence[str]) -> None:
    """Give the arguments of main the shardings from beside the model."""
    signature = Signature(main_of(module))
    for name, attributes in zip(names, signature.arguments, strict=True):
        if name in model.given:
            rank = len(model.tensor(name).shape or ())
            text = _written(model, f"input '{name}'", configuration, model.given[name], rank)
            attributes[SHARDING] = ir.StringAttr.get(text)
    signature.write()
