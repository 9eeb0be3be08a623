"""Bind symbolic dimensions to sizes, and inputs that define shapes to values, as given by the user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardpass.diagnostics import Place
from shardpass.diagnostics.table_onnx import BAD_BINDING


def bind(onnx: Any, proto: Any, place: Place, dims: Mapping[str, int], constants: Mapping[str, Any]) -> None:
    """Write sizes and constant inputs into the model.

    Raises ShardpassError SP709: a name that the model has not, or a value that does not fit.
    """
    if dims:
        _bind_dims(proto, place, dims)
    for name, value in constants.items():
        _bind_input(onnx, proto, place, name, value)


def _bind_dims(proto: Any, place: Place, dims: Mapping[str, int]) -> None:
    graph = proto.graph
    named = list(_symbolic(graph))
    known = sorted({dim.dim_param for dim in named})
    for name, size in dims.items():
        if name not in known:
            reason = f"no input or output of the model has a dimension '{name}'"
            raise BAD_BINDING.error(place, reason=reason, known=_quoted(known))
        if size < 0:
            raise BAD_BINDING.error(place, reason=f"the dimension '{name}' has size {size}", known=_quoted(known))
    for dim in named:
        if dim.dim_param in dims:
            dim.dim_value = dims[dim.dim_param]
    # sizes that follow from the inputs are inferred anew
    del graph.value_info[:]


def _symbolic(graph: Any) -> Iterator[Any]:
    for info in (*graph.input, *graph.output):
        for dim in info.type.tensor_type.shape.dim:
            if dim.WhichOneof("value") == "dim_param":
                yield dim


def _bind_input(onnx: Any, proto: Any, place: Place, name: str, value: Any) -> None:
    import numpy as np

    graph = proto.graph
    own = {tensor.name for tensor in graph.initializer}
    known = _quoted(sorted(info.name for info in graph.input if info.name not in own))
    at = next((k for k, info in enumerate(graph.input) if info.name == name and name not in own), None)
    if at is None:
        raise BAD_BINDING.error(place, reason=f"the model has no input '{name}'", known=known)
    kind = graph.input[at].type.tensor_type
    try:
        array = np.asarray(value, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"the value of '{name}' does not fit its type: {error}"
        raise BAD_BINDING.error(place, reason=reason, known=known) from None
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    fits = len(sizes) == array.ndim and all(size in (None, mine) for size, mine in zip(sizes, array.shape, strict=True))
    if kind.HasField("shape") and not fits:
        reason = f"the value of '{name}' has the shape {list(array.shape)}, and the input {sizes}"
        raise BAD_BINDING.error(place, reason=reason, known=known)
    del graph.input[at]
    graph.initializer.append(onnx.numpy_helper.from_array(array, name))


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
