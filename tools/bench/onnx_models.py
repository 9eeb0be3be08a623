#!/usr/bin/env python
"""ONNX's own models through shardpass: how many become StableHLO and compute the outputs that ONNX stores for them.

    python -m tools.bench.onnx_models                   all: stored models, networks for images, tests of single ops
    python -m tools.bench.onnx_models --kind stored     one kind: stored, light, node
    python -m tools.bench.onnx_models --only conv       those whose name holds "conv"
    python -m tools.bench.onnx_models --write docs      also write docs/reference/onnx_coverage.md

Each model is converted, compiled by XLA for one device and run on the stored inputs. The tests of single ops pass
shapes and axes as inputs of the model; these become constants, since StableHLO needs them so (``shardpass-check
--constant``). Tests whose inputs are text, sequences or optional values are counted apart.

Exit status 1 where an output is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.onnx import read_model, to_stablehlo
from shardpass.onnx.kernels import READ_INPUTS
from shardpass.runtime import compile_single
from tools.bench.onnx_cases import Case, light_cases, node_cases, stored_cases

KINDS = {"stored": stored_cases, "light": light_cases, "node": node_cases}
PAGE = Path("docs/reference/onnx_coverage.md")


@dataclass(frozen=True, slots=True)
class Row:
    """One case. ``verdict``: right, wrong, refused, or text where an input is no array of numbers."""

    kind: str
    name: str
    ops: str
    verdict: str
    reason: str = ""
    bound: tuple[str, ...] = ()  # inputs that became constants


def run_case(case: Case) -> Row:
    """What becomes of one model, on all of its data sets."""
    if not case.is_numeric:
        return Row(case.kind, case.name, case.ops, "text", "an input is text, a sequence or an optional value")
    row = _tried(case, _read_inputs(case.proto))
    data_dependent = "must be constant" in row.reason or "depends on data" in row.reason
    if row.verdict == "refused" and data_dependent and (small := _small_inputs(case)):
        return _tried(case, small)
    return row


def _tried(case: Case, constant: set[str]) -> Row:
    """The row of a case whose inputs of the names ``constant`` become constants."""
    facts = case.kind, case.name, case.ops
    bound: tuple[str, ...] = ()
    for inputs, outputs in case.sets:
        values = dict(zip(input_names(case.proto), inputs, strict=False))
        constants = {name: value for name, value in values.items() if name in constant}
        bound = tuple(constants)
        try:
            dims = dims_of(case.proto, values)
            model = read_model(case.proto.SerializeToString(), case.name, dims=dims, constants=constants)
            program = to_stablehlo(model)
            results = compile_single(program.text)(*program.arguments(values))
        except ShardpassError as error:
            return Row(*facts, "refused", error.diagnostics[0].message, bound)
        if reason := difference(results, outputs, case.rtol, case.atol):
            return Row(*facts, "wrong", reason, bound)
    return Row(*facts, "right", "", bound)


def input_names(proto: Any) -> list[str]:
    """The inputs that are no weights."""
    own = {tensor.name for tensor in proto.graph.initializer}
    return [info.name for info in proto.graph.input if info.name not in own]


def dims_of(proto: Any, values: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of symbolic dimensions, as the values of the inputs have them."""
    return {
        dim.dim_param: int(size)
        for info in proto.graph.input
        if info.name in values
        for dim, size in zip(info.type.tensor_type.shape.dim, np.shape(values[info.name]), strict=False)
        if dim.dim_param
    }


def _read_inputs(proto: Any) -> set[str]:
    """The inputs that some op reads a shape, axes or bounds from."""
    return {
        node.input[k]
        for node in proto.graph.node
        for k in READ_INPUTS.get(node.op_type, ())
        if k < len(node.input) and node.input[k]
    }


def _small_inputs(case: Case) -> set[str]:
    """Inputs that shapes may be computed from: numbers, and short lists of integers."""
    values = zip(input_names(case.proto), case.sets[0][0], strict=False)
    return {
        name
        for name, value in values
        if np.ndim(value) == 0 or (np.ndim(value) == 1 and np.size(value) <= 16 and value.dtype.kind in "iu")
    }


def difference(results: Sequence[Any], expected: Sequence[Any], rtol: float, atol: float) -> str:
    """How the results differ from those expected, as ONNX's own runner compares them; "" if they do not."""
    if len(results) != len(expected):
        return f"{len(results)} outputs, and {len(expected)} expected"
    for k, (result, want) in enumerate(zip(results, expected, strict=True)):
        have, want = np.asarray(result), np.asarray(want)
        if have.shape != want.shape or have.dtype != want.dtype:
            return f"output {k} is {have.dtype}{list(have.shape)}, and {want.dtype}{list(want.shape)} expected"
        if have.dtype.name == "bfloat16":  # two units of its last place, as ONNX's runner has it
            rtol = max(rtol, 2**-6)
        if have.dtype.kind not in "biuc":
            have, want = have.astype(np.float64), want.astype(np.float64)
        if not np.allclose(have, want, rtol, atol, equal_nan=True):
            worst = np.max(np.abs(have.astype(np.float64) - want.astype(np.float64)), initial=0)
            return f"output {k} differs by up to {worst:.3g}"
    return ""


def rows_of(kinds: Sequence[str], only: str) -> Iterator[Row]:
    """The rows of the cases whose name holds ``only``, as they are run."""
    for kind in kinds:
        for case in KINDS[kind]():
            if only in case.name:
                yield run_case(case)


def summary(rows: Sequence[Row]) -> list[str]:
    """For each kind: how many are right, wrong and refused, of those with numeric inputs."""
    lines = []
    for kind in dict.fromkeys(row.kind if row.kind in KINDS else "stored" for row in rows):
        own = [row for row in rows if (row.kind if row.kind in KINDS else "stored") == kind]
        count = Counter(row.verdict for row in own)
        numeric = len(own) - count["text"]
        accepted = count["right"] + count["wrong"]
        share = f"{accepted} of {numeric} accepted ({100 * accepted / max(1, numeric):.1f}%), {count['wrong']} wrong"
        bound = sum(row.verdict == "right" and bool(row.bound) for row in own)
        lines.append(
            f"{kind}: {share}; {bound} of these with inputs that became constants; {count['text']} more have inputs "
            "that are no arrays of numbers"
        )
    return lines


def page(rows: Sequence[Row]) -> str:
    """The page of what is refused, by op."""
    lines = [
        "# ONNX's own models",
        "",
        "Made by `python -m tools.bench.onnx_models --write docs`: how many of the models and tests in the package",
        "onnx become StableHLO, and compute the outputs that ONNX stores for them.",
        "",
        *(f"- {line}" for line in summary(rows)),
        "",
        "## What is refused, and why",
        "",
        "| models of | count | reason |",
        "|---|---|---|",
    ]
    refused: dict[tuple[str, str], int] = Counter(
        (row.ops, _short(row.reason)) for row in rows if row.verdict == "refused"
    )
    for (ops, reason), count in sorted(refused.items()):
        lines.append(f"| {ops} | {count} | {reason.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def _short(reason: str) -> str:
    """A reason without the name of the node."""
    _, _, tail = reason.partition("cannot be converted to StableHLO: ")
    return (tail or reason)[:160]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=tuple(KINDS), action="append", help="may be given several times")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name holds TEXT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows")
    parser.add_argument("--write", choices=("docs",), help=f"write {PAGE}")
    args = parser.parse_args(argv)
    rows = []
    for row in rows_of(args.kind or tuple(KINDS), args.only):
        rows.append(row)
        if row.verdict in ("wrong", "refused"):
            print(f"{row.verdict:8} {row.name} ({row.ops}): {row.reason}", flush=True)
    print("\n".join(summary(rows)))
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if args.write:
        PAGE.write_text(page(rows))
    return int(any(row.verdict == "wrong" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
