"""The good inputs that ``doors`` starts from, by kind: a folder with one file each, made anew for each run.

    python -m tools.fuzz.door_inputs FOLDER

Texts are the examples, the lit tests and what JAX lowers some programs to; every other form is made from what JAX
lowered. JAX starts threads, so this is a process of its own: the one that forks cases has none.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shardpass.cost.machine import FOLDER
from tools.processes import ROOT

KINDS = ("text", "bytecode", "portable", "export", "hlo", "proto", "machine", "onnx")
LINES = 120  # of a text: a case is there to be read
_NO_MODULE = re.compile(r"^// (?:RUN|CHECK|TEST).*$", re.MULTILINE)


def read(folder: Path) -> Mapping[str, list[bytes]]:
    """What ``main`` wrote, in the order of the names."""
    return {kind: [path.read_bytes() for path in sorted((folder / kind).iterdir())] for kind in KINDS}


def texts() -> Iterator[tuple[str, str]]:
    """(name, MLIR text) of the examples and of each part of each lit test."""
    paths = [*sorted((ROOT / "examples").glob("*.mlir")), *sorted((ROOT / "test" / "lit").rglob("*.mlir"))]
    for path in paths:
        for number, part in enumerate(path.read_text().split("\n// -----\n")):
            text = _NO_MODULE.sub("", part).strip() + "\n"
            if "func.func" in text and text.count("\n") <= LINES:
                yield f"{path.relative_to(ROOT).with_suffix('')}-{number}".replace("/", "."), text


def programs() -> Mapping[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]]:
    """name -> (a function, the shapes of its arguments); each argument is split in its first dimension."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def looped(x: Any, w: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=3)

    def branched(x: Any) -> Any:
        chosen = lax.cond(x[0, 0] > 0, lambda v: v * 2, lambda v: -v, x)
        return lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + 1), (0, chosen))

    def indexed(x: Any, y: Any) -> Any:
        at = jnp.argsort(y[:, 0])
        return x[at].at[at[:2]].add(1.0), jnp.sort(y, axis=0), lax.dynamic_update_slice(x, y[:1, :4], (2, 0))

    def windows(x: Any, k: Any) -> Any:
        kept = lax.conv_general_dilated(x[None, None], k[None, None], (1, 1), "SAME")
        return kept, lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID"), jnp.fft.fft(x)

    def numbers(x: Any) -> Any:
        key = jax.random.key(0)
        return jax.random.normal(key, x.shape) + jnp.cumsum(x, axis=0), x.astype(jnp.bfloat16), jnp.argmax(x, axis=1)

    eight = ((8, 8), (8, 8))
    return {
        "product": (lambda a, b: (a @ b.T, (a * b).mean()), eight),
        "looped": (looped, eight),
        "branched": (branched, eight[:1]),
        "indexed": (indexed, eight),
        "windows": (windows, ((8, 8), (4, 4))),
        "numbers": (numbers, eight[:1]),
        "gradient": (jax.grad(lambda w, x: jnp.square(jax.nn.relu(x @ w)).sum()), eight),
    }


def lowered() -> Iterator[tuple[str, Any, Any]]:
    """(name, Lowered, Exported) of each program, with Shardy's annotations and with GSPMD's."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
    split = NamedSharding(mesh, PartitionSpec("x", "y"))
    for name, (function, shapes) in programs().items():
        arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        for shardy in (True, False):
            jax.config.update("jax_use_shardy_partitioner", shardy)
            made = jax.jit(function, in_shardings=(split,) * len(shapes))
            yield f"{name}-{'sdy' if shardy else 'gspmd'}", made.lower(*arguments), export.export(made)(*arguments)


def forms(low: Any, exported: Any) -> Mapping[str, bytes]:
    """The same program in each form that a door reads."""
    from shardpass.ir.context import make_context, parse_module
    from shardpass.ir.jax_private import hlo_text_to_proto, mlir_to_hlo_text

    text = low.as_text(debug_info=True)
    module = parse_module(text, "program.mlir", make_context())
    code = io.BytesIO()
    module.operation.write_bytecode(code)
    hlo = mlir_to_hlo_text(code.getvalue())
    return {
        "text": text.encode(),
        "bytecode": code.getvalue(),
        "portable": exported.mlir_module_serialized,
        "export": exported.serialize(),
        "hlo": hlo.encode(),
        "proto": hlo_text_to_proto(hlo),
    }


def machines() -> Iterator[tuple[str, bytes]]:
    for name in ("cpu", "h100", "v5p"):
        yield name, (FOLDER / f"{name}.toml").read_bytes()


def models() -> Iterator[tuple[str, bytes]]:
    """ONNX models; none where the package onnx is absent."""
    try:
        from onnx import TensorProto, helper
    except ImportError:
        return
    from shardpass.sharding.notations.onnx_proto import to_proto
    from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding

    rows = ShardingSpec((0, 1, 2, 3), dims=(ShardedDim(0, (SimpleSharding(4),)),))
    whole = ShardingSpec((-1,), {-1: (0, 1, 2, 3)})
    chains = {
        "elementwise": [("Relu", "x", "a"), ("Exp", "a", "y")],
        "products": [("MatMul", "x w", "a"), ("Add", "a b", "c"), ("Softmax", "c", "y")],
        "shapes": [("Transpose", "x", "a"), ("ReduceSum", "a", "c"), ("Identity", "c", "y")],
    }
    for name, nodes in chains.items():
        made = []
        for number, (op, read_, written) in enumerate(nodes):
            node = helper.make_node(op, read_.split(), [written], name=f"n{number}")
            said = node.device_configurations.add(configuration_id="cfg")
            for tensor, spec in ((read_.split()[0], rows), *((w, whole) for w in read_.split()[1:])):
                to_proto(replace(spec, tensor_name=tensor), said.sharding_spec.add())
            made.append(node)
        shapes = {"x": [8, 16], "w": [16, 32], "b": [32]}
        read_names = {word for _, words, _ in nodes for word in words.split()} & shapes.keys()
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shapes[n]) for n in sorted(read_names)]
        graph = helper.make_graph(made, name, inputs, [helper.make_empty_tensor_value_info("y")])
        model = helper.make_model(graph, ir_version=11, opset_imports=[helper.make_opsetid("", 21)])
        model.configuration.add(name="cfg", num_devices=4)
        yield name, model.SerializeToString(deterministic=True)


def write(folder: Path) -> None:
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 4)
    for kind in KINDS:
        (folder / kind).mkdir()
    for name, text in texts():
        (folder / "text" / name).write_text(text)
    for name, low, exported in lowered():
        for kind, data in forms(low, exported).items():
            (folder / kind / f"jax-{name}").write_bytes(data)
    for kind, made in (("machine", machines()), ("onnx", models())):
        for name, data in made:
            (folder / kind / name).write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="an empty folder")
    write(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
