"""Random ops that read and write elements at places given by data: dynamic slices, gather, scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tools.fuzz.maker import LARGEST, Emitter, Maker, Unsuited
from tools.stablehlo_text import array, body, fits, literal
from tools.values import Fact, Type


def _index(make: Maker, element: str) -> int:
    """A scalar index: out of range at times, as it is clamped then."""
    at = make.find(lambda f: f.type == Type((), element) and f.exact)
    if at is not None and make.rng.random() < 0.4:
        return at
    return make.constant(element, str(make.rng.randint(-1, 9)), bound=9)


def dynamic_slice(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    fact, rng = make.facts[at], make.rng
    shape = tuple(n if n == 0 or rng.random() < 0.5 else rng.randint(1, n) for n in fact.type.shape)
    element = rng.choice(("i32", "i64"))
    indices = [_index(make, element) for _ in shape]
    result = replace(fact, type=Type(shape, fact.type.element))
    make.add("stablehlo.dynamic_slice", [at, *indices], [result], f"slice_sizes = {array(shape)}")


def dynamic_update_slice(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    fact = make.facts[at]

    def inside(other: Fact) -> bool:
        a, b = fact.type, other.type
        return (
            a.element == b.element
            and len(a.shape) == len(b.shape)
            and all(m <= n for n, m in zip(a.shape, b.shape, strict=True))
        )

    update = make.pick(inside)
    other = make.facts[update]
    element = make.rng.choice(("i32", "i64"))
    indices = [_index(make, element) for _ in fact.type.shape]
    result = Fact(fact.type, max(fact.bound, other.bound), fact.exact and other.exact)
    make.add("stablehlo.dynamic_update_slice", [at, update, *indices], [result])


# ---------------------------------------------------------------- places


def _places(make: Maker, shape: tuple[int, ...]) -> int:
    """Indices, of which some are out of bounds: a value there is, or new ones."""
    at = make.find(lambda f: f.type == Type(shape, "i32") and f.exact)
    if at is not None and make.rng.random() < 0.7:
        return at
    if make.rng.random() < 0.5 and prod(shape) < 64:

        def nested(dims: tuple[int, ...]) -> str:
            if not dims:
                return str(make.rng.randint(-2, 9))
            return "[" + ", ".join(nested(dims[1:]) for _ in range(dims[0])) + "]"

        return make.constant("i32", nested(shape), shape, bound=9)
    return make.counted(shape, "i32")


def _numbers(name: str, rows: dict[str, Sequence[int]], vector: int) -> str:
    said = [f"{key} = [{', '.join(map(str, dims))}]" for key, dims in rows.items() if dims]
    return f"#stablehlo.{name}<{', '.join([*said, f'index_vector_dim = {vector}'])}>"


class _Form:
    """How a gather or scatter looks at a table of ``shape``: which dimensions are indexed, and what windows are.

    Rows of indices have ``rows`` dimensions of which the first are batches where the table has such; ``vector`` is
    where the dimension lies that holds the indices of one window, past the rows where there is none.
    """

    def __init__(self, make: Maker, shape: tuple[int, ...]) -> None:
        rng, rank = make.rng, len(shape)
        dims = list(range(rank))
        self.batch = [0] if rank > 1 and shape[0] and rng.random() < 0.25 else []
        free = [d for d in dims if d not in self.batch]
        self.indexed = rng.sample(free, rng.randint(1, len(free)))
        self.sizes = [
            1 if d in self.batch else rng.randint(1, shape[d]) if d in self.indexed and shape[d] else shape[d]
            for d in dims
        ]
        self.gone = [d for d in self.indexed if shape[d] and rng.random() < 0.7]
        for d in self.gone:
            self.sizes[d] = 1
        self.gone.sort()
        window = [self.sizes[d] for d in dims if d not in self.gone and d not in self.batch]
        self.rows = [
            *(shape[d] for d in self.batch),
            *(rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.choice((1, 1, 2)))),
        ]
        scalar = len(self.indexed) == 1 and rng.random() < 0.5
        self.vector = len(self.rows) if scalar or rng.random() < 0.7 else rng.randint(len(self.batch), len(self.rows))
        self.indices = list(self.rows)
        if not scalar:
            self.indices.insert(self.vector, len(self.indexed))
        total = len(self.rows) + len(window)
        self.offsets = sorted(rng.sample(range(total), len(window)))
        if rng.random() < 0.5:
            self.offsets = list(range(len(self.rows), total))
        left, right = iter(window), iter(self.rows)
        self.result = tuple(next(left) if d in self.offsets else next(right) for d in range(total))

    @property
    def fine(self) -> bool:
        return prod(self.result) <= LARGEST and len(self.result) < 6

    @property
    def batch_places(self) -> list[int]:
        return [0] if self.batch else []


def gather(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0 and f.type.count > 0)
    table, form = make.facts[at], _Form(make, make.facts[at].type.shape)
    if not form.fine:
        raise Unsuited
    numbers = _numbers(
        "gather",
        {"offset_dims": form.offsets, "collapsed_slice_dims": form.gone, "operand_batching_dims": form.batch,
         "start_indices_batching_dims": form.batch_places, "start_index_map": form.indexed},
        form.vector,
    )  # fmt: skip
    places = _places(make, tuple(form.indices))
    result = replace(table, type=Type(form.result, table.type.element))
    attributes = f"dimension_numbers = {numbers}, slice_sizes = {array(form.sizes)}"
    make.add("stablehlo.gather", [at, places], [result], attributes)


def take(make: Maker) -> None:
    """Rows of a table by index, as an embedding does; indices out of range are clamped."""
    at = make.find(lambda f: len(f.type.shape) == 2 and f.type.count > 0)
    rows = make.find(lambda f: len(f.type.shape) == 1 and f.type.element == "i32" and f.exact)
    if at is None or rows is None:
        raise Unsuited
    table, index = make.facts[at], make.facts[rows]
    shape = (*index.type.shape, table.type.shape[1])
    result = [replace(table, type=Type(shape, table.type.element))]
    numbers = _numbers("gather", {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0]}, 1)
    sizes = f"slice_sizes = array<i64: 1, {table.type.shape[1]}>, indices_are_sorted = false"
    make.add("stablehlo.gather", [at, rows], result, f"dimension_numbers = {numbers}, {sizes}")


def index_select(make: Maker) -> None:
    """torch_index_select: slices by index along a dimension, for each batch its own."""
    at = make.pick(lambda f: len(f.type.shape) > 0 and f.type.count > 0)
    table, rng = make.facts[at], make.rng
    shape = table.type.shape
    dim = rng.randrange(len(shape))
    batch = rng.randint(0, min(1, dim))
    more = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 2))]
    places = make.clamped(_places(make, (*shape[:batch], *more)), 0, shape[dim] - 1)
    target = (*shape[:dim], *more, *shape[dim + 1 :])
    if prod(target) > LARGEST:
        raise Unsuited
    result = replace(table, type=Type(target, table.type.element))
    attributes = f"dim = {dim} : i64, batch_dims = {batch} : i64"
    make.add("stablehlo.torch_index_select", [at, places], [result], attributes)


def scatter(make: Maker) -> None:
    """Windows joined to a table; windows that are not all inside are dropped."""
    at = make.pick(
        lambda f: len(f.type.shape) > 0 and f.type.count > 0 and f.type.element in ("i32", "f32", "f64", "ui8")
    )
    table, form = make.facts[at], _Form(make, make.facts[at].type.shape)
    if not form.fine:
        raise Unsuited
    numbers = _numbers(
        "scatter",
        {"update_window_dims": form.offsets, "inserted_window_dims": form.gone, "input_batching_dims": form.batch,
         "scatter_indices_batching_dims": form.batch_places, "scatter_dims_to_operand_dims": form.indexed},
        form.vector,
    )  # fmt: skip
    element = table.type.element
    updates = make.find(lambda f: f.type == Type(form.result, element))
    updates = make.counted(form.result, element) if updates is None else updates
    more = make.facts[updates]
    op = make.rng.choice(("add", "add", "maximum", "minimum", "multiply"))
    bound = table.bound + more.bound * max(1, more.type.count) if op == "add" else max(table.bound, more.bound)
    if op == "multiply" and element in ("f32", "f64"):
        op = "minimum"
    if not fits(element, bound):
        raise Unsuited
    places = _places(make, tuple(form.indices))
    result = Fact(table.type, bound, table.exact and more.exact)
    attributes = f"scatter_dimension_numbers = {numbers}"
    make.add("stablehlo.scatter", [at, places, updates], [result], attributes, body(element, op))


def put(make: Maker) -> None:
    """Rows put into a table at places that are all different (``x.at[i].set``); some lie outside and are dropped."""
    at = make.pick(lambda f: len(f.type.shape) == 2 and f.type.count > 0 and f.type.element in ("i32", "f32", "i1"))
    table, rng = make.facts[at], make.rng
    t = table.type
    count = rng.randint(1, t.shape[0] + 1)
    rows = rng.sample(range(-1, t.shape[0] + 1), count)
    places = make.constant("i32", str(rows), (count,), bound=16)
    updates = make.find(lambda f: f.type == Type((count, t.shape[1]), t.element))
    if updates is None:
        one = make.constant(t.element, literal(t.element, 1), (count, t.shape[1]), bound=1)
        updates = one
    more = make.facts[updates]
    numbers = _numbers(
        "scatter", {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}, 1
    )
    s = f"tensor<{t.element}>"
    region = f"{{ ^bb0(%p: {s}, %q: {s}): stablehlo.return %q : {s} }}"
    result = Fact(t, max(table.bound, more.bound), table.exact and more.exact)
    attributes = f"scatter_dimension_numbers = {numbers}, unique_indices = true"
    make.add("stablehlo.scatter", [at, places, updates], [result], attributes, region)


EMITTERS: dict[Emitter, int] = {
    dynamic_slice: 3, dynamic_update_slice: 3, gather: 4, take: 3, index_select: 1, scatter: 4, put: 2,
}  # fmt: skip
