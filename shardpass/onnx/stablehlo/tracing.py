"""Trace a graph of a model on JAX values, node by node, including function bodies and branches.

State: the values by name. NumPy arrays are constants, which are folded while the program is built; lists are sequences.
A branch or loop sees the values of the graph around it; the body of a function sees its inputs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_onnx import NO_BRIDGE, OTHER_DOMAIN
from shardpass.onnx.groups import plain_op
from shardpass.onnx.kernels import CONTROL_KERNELS, KERNELS, Unsupported
from shardpass.onnx.model import Model, Node, node_of
from shardpass.onnx.stablehlo.functions import Body, body_of, local_body

OWN_DOMAINS = ("", "ai.onnx")
SCOPE = "onnx_node_"  # the name of a node's scope, which becomes the place of its ops
Values = dict[str, Any]
Place = Callable[[Node, str, Any], Any]  # a node, the name of one of its tensors, its value -> the value as placed


@dataclass(frozen=True, slots=True)
class Tracer:
    """Traces graphs. ``placed``: gives an input or output the sharding of a node's spec."""

    model: Model
    placed: Place
    functions: Mapping[tuple[str, str], Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, placed: Place) -> Tracer:
        return cls(model, placed, {(one.domain, one.name): one for one in model.proto.functions})

    def main(self, known: Values) -> None:
        """Compute the model's nodes from ``known``, and add their outputs.

        Raises ShardpassError SP706.
        """
        for node in self.model.nodes:
            if node.op == "Constant" and node.outputs[0] in known:  # a weight
                continue
            with jax.named_scope(f"{SCOPE}{node.number}"):
                try:
                    self._run(node, known, self.model.opset)
                except Unsupported as why:
                    raise NO_BRIDGE.error(self.model.place, node=node, op=node.op, reason=str(why)) from None
                except (TypeError, ValueError, IndexError, KeyError) as error:  # shapes, types or attributes do not fit
                    reason = (str(error).splitlines() or [type(error).__name__])[0]
                    raise NO_BRIDGE.error(self.model.place, node=node, op=node.op, reason=reason) from None

    def _run(self, node: Node, known: Values, opset: int) -> None:
        if absent := [name for name in node.inputs if name and name not in known]:
            raise Unsupported(f"no graph input, weight or earlier node makes its input '{absent[0]}'")
        inputs = [self.placed(node, name, known[name]) if name else None for name in node.inputs]
        results = self._results(node, inputs, known, opset)
        for name, value in zip(node.outputs, results, strict=False):
            if name and value is not None:
                known[name] = self.placed(node, name, value)

    def _results(self, node: Node, inputs: Sequence[Any], known: Values, opset: int) -> Sequence[Any]:
        own = node.domain in OWN_DOMAINS
        if own and node.op in CONTROL_KERNELS:
            return CONTROL_KERNELS[node.op](node, inputs, partial(self._graph, node, known, opset))
        if own and node.op in KERNELS:
            return _computed(node, inputs)
        if (node.domain, node.op) in self.functions:
            return self._body(local_body(self.functions[node.domain, node.op], node), inputs)
        body = body_of(node, opset, inputs)
        if body is None and not own:
            raise _other_domain(self.model, node)
        if body is None:
            raise Unsupported("it has no kernel, and ONNX defines it by no other ops")
        return self._body(body, inputs)

    def _body(self, body: Body, inputs: Sequence[Any]) -> list[Any]:
        """Compute the results of a function; an input omitted by the node is None inside."""
        known: Values = dict.fromkeys(body.inputs)
        known.update(zip(body.inputs, inputs, strict=False))
        opset = next((body.opsets[domain] for domain in OWN_DOMAINS if domain in body.opsets), self.model.opset)
        for node in body.nodes:
            self._run(node, known, opset)
        return [known.get(name) for name in body.outputs]  # a body may leave out what its node does not ask for

    def _graph(self, node: Node, outer: Values, opset: int, proto: Any, inputs: Sequence[Any]) -> list[Any]:
        """Compute the results of a subgraph of ``node`` for the given inputs."""
        from onnx import numpy_helper

        known = {**outer, **{tensor.name: numpy_helper.to_array(tensor) for tensor in proto.initializer}}
        known.update(zip((info.name for info in proto.input), inputs, strict=True))
        for inner in proto.node:
            self._run(node_of(node.number, inner), known, opset)
        return [known[info.name] for info in proto.output]


def _computed(node: Node, inputs: Sequence[Any]) -> Sequence[Any]:
    """Compute the outputs of a kernel: constants if all inputs are, or if the kernel only reads shapes."""
    kernel = KERNELS[node.op]
    if node.op == "ConstantOfShape":  # folds by itself what is small
        return kernel(node, inputs)
    if node.op in ("Shape", "Size") or all(value is None or isinstance(value, np.ndarray) for value in inputs):
        with jax.ensure_compile_time_eval():
            return tuple(_folded(value) for value in kernel(node, inputs))
    return kernel(node, inputs)


def _folded(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, jax.Array | np.generic | np.ndarray) else value


def _other_domain(model: Model, node: Node) -> ShardpassError:
    plain = plain_op(node.op, node.domain)
    hint = (
        f"write it as {plain} with its specs in device_configurations, and the shapes of whole tensors"
        if plain
        else "define it as a function of the model, in ONNX's own ops"
    )
    return OTHER_DOMAIN.error(model.place, node=node, op=node.op, domain=node.domain, hint=hint)
