"""A small StableHLO program while it is written: values with types, lines of text, and what is said of arguments.

``Draft`` has one method for each op that users write in the small. A method takes names of values, appends a line, and
returns the name of the result. What is said of a value is, for each dimension, the axes that split it, major to minor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from tools.stablehlo_text import array, body, literal
from tools.values import Type

Dims = tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Draft:
    """State: the types of all values by name, arguments and lines in order, and which values an op uses."""

    mesh: tuple[tuple[str, int], ...]
    types: dict[str, Type] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    annotations: dict[str, Dims] = field(default_factory=dict)  # of arguments and results

    def shape(self, value: str) -> tuple[int, ...]:
        return self.types[value].shape

    def argument(self, shape: Sequence[int], element: str = "f32") -> str:
        name = f"%a{len(self.arguments)}"
        self.arguments.append(name)
        self.types[name] = Type(tuple(shape), element)
        return name

    # ---------------------------------------------------------------- ops

    def op(
        self,
        name: str,
        operands: Sequence[str],
        shape: Sequence[int],
        attributes: str = "",
        region: str = "",
        element: str = "f32",
    ) -> str:
        """Appends ``stablehlo.name`` in the generic form."""
        types = ", ".join(str(self.types[value]) for value in operands)
        result = Type(tuple(shape), element)
        parts = [f'"stablehlo.{name}"({", ".join(operands)})']
        parts += [f"({region})"] if region else []
        parts += [f"{{{attributes}}}"] if attributes else []
        return self._line(f"{' '.join(parts)} : ({types}) -> {result}", operands, result)

    def _line(self, text: str, operands: Sequence[str], result: Type) -> str:
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.types[name] = result
        self.used.update(operands)
        return name

    def unary(self, name: str, value: str) -> str:
        return self.op(name, [value], self.shape(value))

    def binary(self, name: str, one: str, other: str) -> str:
        return self.op(name, [one, other], self.shape(one))

    def dot(self, one: str, other: str, contracting: tuple[int, int], batches: int = 0) -> str:
        """A product over one dimension of each; the first ``batches`` dimensions of both belong together."""
        first, second = self.shape(one), self.shape(other)
        left = [n for d, n in enumerate(first) if d != contracting[0] and d >= batches]
        right = [n for d, n in enumerate(second) if d != contracting[1] and d >= batches]
        lead = list(range(batches))
        numbers = (
            f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {lead}, "
            f"rhs_batching_dimensions = {lead}, lhs_contracting_dimensions = [{contracting[0]}], "
            f"rhs_contracting_dimensions = [{contracting[1]}]>"
        )
        return self.op("dot_general", [one, other], [*first[:batches], *left, *right], numbers)

    def transpose(self, value: str, order: Sequence[int]) -> str:
        shape = [self.shape(value)[d] for d in order]
        return self.op("transpose", [value], shape, f"permutation = {array(order)}")

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        return self.op("reshape", [value], shape, element=self.types[value].element)

    def broadcast(self, value: str, dims: Sequence[int], shape: Sequence[int]) -> str:
        """``value`` along the dimensions ``dims`` of ``shape``."""
        return self.op("broadcast_in_dim", [value], shape, f"broadcast_dimensions = {array(dims)}")

    def reduce(self, name: str, value: str, dim: int) -> str:
        zero = self.op("constant", [], [], f"value = dense<{literal('f32', 0)}> : tensor<f32>")
        shape = [n for d, n in enumerate(self.shape(value)) if d != dim]
        return self.op("reduce", [value, zero], shape, f"dimensions = {array([dim])}", body("f32", name))

    def lookup(self, table: str, rows: str) -> str:
        """The rows of a matrix that a vector of numbers names, as ``table[rows]`` is lowered."""
        width, (number,) = self.shape(table)[1], self.shape(rows)
        column = self.reshape(rows, [number, 1])
        numbers = (
            "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
            "start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, "
            f"slice_sizes = {array([1, width])}"
        )
        return self.op("gather", [table, column], [number, width], numbers)

    def constraint(self, value: str, dims: Dims) -> str:
        kind = self.types[value]
        return self._line(f"sdy.sharding_constraint {value} <@mesh, {_said(dims)}> : {kind}", [value], kind)

    # ---------------------------------------------------------------- text

    @property
    def results(self) -> list[str]:
        """The values of ops that no op uses: what the program returns."""
        return [value for value in self.types if value not in self.used and value not in self.arguments]

    def text(self) -> str:
        axes = ", ".join(f'"{name}"={size}' for name, size in self.mesh)
        devices = prod(size for _, size in self.mesh)
        takes = ", ".join(f"{a}: {self.types[a]}{self._attribute(a)}" for a in self.arguments)
        gives = ", ".join(f"{self.types[v]}{self._attribute(v)}" for v in self.results)
        types = ", ".join(str(self.types[v]) for v in self.results)
        return "\n".join(
            [
                f"module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{",
                f"  sdy.mesh @mesh = <[{axes}]>",
                f"  func.func @main({takes}) -> ({gives}) {{",
                *(f"    {line}" for line in self.lines),
                f"    return {', '.join(self.results)} : {types}",
                "  }",
                "}",
                "",
            ]
        )

    def _attribute(self, value: str) -> str:
        dims = self.annotations.get(value)
        return "" if dims is None else f" {{sdy.sharding = #sdy.sharding<@mesh, {_said(dims)}>}}"


def _said(dims: Dims) -> str:
    return "[" + ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in dims) + "]"
