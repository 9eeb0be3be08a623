"""A sample for the rule prover: a program of one op, with the data that it runs on.

Operands are ``%a0``, ``%a1``, ... of ``main``; further operands (initial values) are made by the text in ``before``.
``data`` gives an operand values of its own where small random integers will not do (indices).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tools.values import FLOATS, Array, Fact, Type, numbers


@dataclass(frozen=True, slots=True)
class Sample:
    """``text`` is the op without its results and types: ``"stablehlo.add"(%a0, %a1) {..}``."""

    op: str
    operands: tuple[Type, ...]
    results: tuple[Type, ...]
    attributes: str = ""
    regions: str = ""
    before: str = ""
    more: tuple[str, ...] = ()  # operands made in ``before``: (%init)
    more_types: tuple[str, ...] = ()
    data: dict[int, Any] = field(default_factory=dict, hash=False)
    note: str = ""
    interpreted: bool = True  # StableHLO's reference interpreter knows it

    @property
    def name(self) -> str:
        takes = ", ".join(map(str, self.operands))
        return " ".join(part for part in (f"{self.op}({takes})", self.attributes, self.note) if part)

    def text(self, operands: tuple[str, ...] = (), results: tuple[str, ...] = (), devices: int = 1) -> str:
        """The module; ``operands`` and ``results`` are mhlo shardings, "" for none."""
        said = [f' {{mhlo.sharding = "{s}"}}' if s else "" for s in operands] or [""] * len(self.operands)
        given = [f' {{mhlo.sharding = "{s}"}}' if s else "" for s in results] or [""] * len(self.results)
        takes = ", ".join(f"%a{i}: {t}{s}" for i, (t, s) in enumerate(zip(self.operands, said, strict=True)))
        gives = ", ".join(f"{t}{s}" for t, s in zip(self.results, given, strict=True))
        count = len(self.results)
        names = [f"%r#{i}" for i in range(count)] if count > 1 else ["%r"]
        types = ", ".join(map(str, self.results))
        inputs = ", ".join([*(f"%a{i}" for i in range(len(self.operands))), *self.more])
        kinds = ", ".join([*map(str, self.operands), *self.more_types])
        inner = f" ({self.regions})" if self.regions else ""
        return (
            f"module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"  func.func @main({takes}) -> ({gives}) {{\n    {self.before}\n"
            f'    %r{f":{count}" if count > 1 else ""} = "{self.op}"({inputs}){inner} {{{self.attributes}}} : '
            f"({kinds}) -> ({types})\n    return {', '.join(names)} : {types}\n  }}\n}}\n"
        )

    def arrays(self) -> list[Array]:
        generator = np.random.default_rng(7)
        return [
            np.asarray(self.data[i]) if i in self.data else numbers(generator, Fact(t))
            for i, t in enumerate(self.operands)
        ]


EVEN, ODD = (4, 6), (5, 3)


def is_float(sample: Sample) -> bool:
    """Whether results may differ in the last digits."""
    return any(t.element in FLOATS or t.element.startswith("complex") for t in sample.results)
