"""Small networks in ONNX as exporters write them, at sizes of a few elements: a ResNet, a BERT and a Llama."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F = np.float32


@dataclass
class Network:
    """A graph that grows node by node. ``shardings``: over the axes data and model."""

    seed: int = 0
    opset: int = 17
    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    shardings: dict[str, str] = field(default_factory=dict)

    def op(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; returns the name of its output, or the names."""
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op.lower()}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, name: str, *shape: int, sharding: str = "", scale: float = 0.3, shift: float = 0.0) -> str:
        rng = np.random.default_rng([self.seed, len(self.weights)])
        self.weights[name] = (rng.uniform(-scale, scale, shape) + shift).astype(F)
        if sharding:
            self.shardings[name] = sharding
        return name

    def constant(self, value: Any, kind: Any = np.int64) -> str:
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(value, kind)
        return name

    def proto(self, inputs: Mapping[str, tuple[int, Sequence[Any]]], output: str, shape: Sequence[Any]) -> Any:
        """The model, of an IR version without annotations."""
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()],
        )
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", self.opset)])


def resnet() -> tuple[Any, dict[str, str], dict[str, np.ndarray]]:
    """A stem, two residual blocks, of which the second halves the picture, and a classifier."""
    net = Network(seed=1, opset=11)
    net.shardings["image"] = 'P("data")'

    def convolution(x: str, name: str, into: int, out: int, size: int, stride: int = 1) -> str:
        kernel = net.weight(f"{name}.conv", out, into, size, size, sharding='P("model")')
        y = net.op("Conv", x, kernel, strides=[stride] * 2, pads=[size // 2] * 4)
        parts = [net.weight(f"{name}.{part}", out, shift=1.0) for part in ("scale", "bias", "mean", "variance")]
        return net.op("BatchNormalization", y, *parts)

    def block(x: str, name: str, into: int, out: int, stride: int) -> str:
        y = net.op("Relu", convolution(x, f"{name}.a", into, out, 3, stride))
        y = convolution(y, f"{name}.b", out, out, 3)
        skip = x if stride == 1 and into == out else convolution(x, f"{name}.skip", into, out, 1, stride)
        return net.op("Relu", net.op("Add", y, skip))

    x = net.op("Relu", convolution("image", "stem", 3, 8, 3))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = block(block(x, "one", 8, 8, 1), "two", 8, 16, 2)
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    y = net.op("Gemm", x, net.weight("fc.w", 10, 16), net.weight("fc.b", 10), transB=1)
    image = np.random.default_rng(0).uniform(-1, 1, (4, 3, 12, 12)).astype(F)
    return (
        net.proto({"image": (TensorProto.FLOAT, ["batch", 3, 12, 12])}, y, ["batch", 10]),
        net.shardings,
        {"image": image},
    )


def _norm(net: Network, x: str, name: str, width: int) -> str:
    return net.op("LayerNormalization", x, net.weight(f"{name}.g", width, shift=1.0), net.weight(f"{name}.b", width))


def bert() -> tuple[Any, dict[str, str], dict[str, np.ndarray]]:
    """Two encoder layers of 4 heads, with the reshapes to shapes that an exporter computes, and an attention mask."""
    net = Network(seed=2)
    net.shardings |= {"ids": 'P("data")', "mask": 'P("data")'}
    width, heads, inner, words = 16, 4, 32, 20
    x = net.op("Gather", net.weight("embedding", words, width, scale=1.0), "ids")
    x = _norm(net, x, "first", width)
    shape = net.op("Shape", x)
    sizes = [net.op("Gather", shape, net.constant(k)) for k in (0, 1)]
    sizes = [net.op("Unsqueeze", size, net.constant([0])) for size in sizes]
    split = net.op("Concat", *sizes, net.constant([heads, width // heads]), axis=0)
    joined = net.op("Concat", *sizes, net.constant([width]), axis=0)
    hidden = net.op("Cast", "mask", to=TensorProto.FLOAT)
    hidden = net.op("Unsqueeze", hidden, net.constant([1, 2]))
    hidden = net.op("Sub", net.constant(1.0, F), hidden)
    hidden = net.op("Mul", hidden, net.constant(-1e4, F))
    for layer in range(2):

        def linear(x: str, name: str, into: int, out: int, sharding: str, layer: int = layer) -> str:
            weight = net.weight(f"{layer}.{name}.w", into, out, sharding=sharding)
            return net.op("Add", net.op("MatMul", x, weight), net.weight(f"{layer}.{name}.b", out))

        def by_head(x: str, name: str, layer: int = layer) -> str:
            y = linear(x, name, width, width, 'P(None, "model")', layer)
            return net.op("Transpose", net.op("Reshape", y, split), perm=[0, 2, 1, 3])

        q, k, v = (by_head(x, name) for name in "qkv")
        scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = net.op("Add", net.op("Div", scores, net.constant((width / heads) ** 0.5, F)), hidden)
        heads_out = net.op("Transpose", net.op("MatMul", net.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        out = linear(net.op("Reshape", heads_out, joined), "o", width, width, 'P("model")')
        x = _norm(net, net.op("Add", x, out), f"{layer}.n1", width)
        y = linear(x, "up", width, inner, 'P(None, "model")')
        half = net.op("Mul", y, net.constant(0.5, F))  # Gelu, as older exporters write it
        erf = net.op("Erf", net.op("Div", y, net.constant(2**0.5, F)))
        y = net.op("Mul", half, net.op("Add", erf, net.constant(1.0, F)))
        x = _norm(net, net.op("Add", x, linear(y, "down", inner, width, 'P("model")')), f"{layer}.n2", width)
    rng = np.random.default_rng(0)
    values = {"ids": rng.integers(0, words, (4, 6)), "mask": rng.integers(0, 2, (4, 6)) | (np.arange(6) == 0)}
    kinds = {name: (TensorProto.INT64, ["batch", 6]) for name in values}
    return net.proto(kinds, x, ["batch", 6, width]), net.shardings, values


def llama() -> tuple[Any, dict[str, str], dict[str, np.ndarray]]:
    """Two decoder layers: RMSNormalization, RotaryEmbedding, causal Attention with shared heads of keys, and SwiGLU."""
    net = Network(seed=3, opset=23)
    net.shardings["ids"] = 'P("data")'
    width, heads, shared, head, inner, words, tokens = 32, 8, 4, 4, 32, 20, 6
    angles = np.outer(np.arange(tokens), 1.0 / 100.0 ** (np.arange(head // 2) / (head // 2)))
    cosine, sine = net.constant(np.cos(angles), F), net.constant(np.sin(angles), F)
    places = net.op("Expand", net.constant([list(range(tokens))]), net.constant([4, tokens]))
    x = net.op("Gather", net.weight("embedding", words, width, scale=1.0), "ids")
    for layer in range(2):

        def linear(x: str, name: str, into: int, out: int, sharding: str, layer: int = layer) -> str:
            return net.op("MatMul", x, net.weight(f"{layer}.{name}", into, out, sharding=sharding))

        h = net.op("RMSNormalization", x, net.weight(f"{layer}.n1", width, shift=1.0))
        q = linear(h, "q", width, heads * head, 'P(None, "model")')
        k, v = (linear(h, name, width, shared * head, 'P(None, "model")') for name in "kv")
        q = net.op("RotaryEmbedding", q, cosine, sine, places, num_heads=heads)
        k = net.op("RotaryEmbedding", k, cosine, sine, places, num_heads=shared)
        a = net.op("Attention", q, k, v, is_causal=1, q_num_heads=heads, kv_num_heads=shared)
        x = net.op("Add", x, linear(a, "o", heads * head, width, 'P("model")'))
        h = net.op("RMSNormalization", x, net.weight(f"{layer}.n2", width, shift=1.0))
        gate = linear(h, "gate", width, inner, 'P(None, "model")')
        gate = net.op("Mul", gate, net.op("Sigmoid", gate))
        up = linear(h, "up", width, inner, 'P(None, "model")')
        x = net.op("Add", x, linear(net.op("Mul", gate, up), "down", inner, width, 'P("model")'))
    x = net.op("RMSNormalization", x, net.weight("last", width, shift=1.0))
    y = net.op("MatMul", x, net.weight("head", width, words))
    ids = np.random.default_rng(0).integers(0, words, (4, tokens))
    return (
        net.proto({"ids": (TensorProto.INT64, ["batch", tokens])}, y, ["batch", tokens, words]),
        net.shardings,
        {"ids": ids},
    )
