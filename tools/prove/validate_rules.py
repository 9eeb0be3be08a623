"""Proves the rules of ops by brute force.

    python -m tools.prove.validate_rules [--family shape] [--quick] [--reference]

For each sample of tools/prove/rule_samples, two questions are asked:

*Is every split that the rule claims right?* (tools/prove/claimed_splits.py) Each factor of the rule alone, and each
pair of factors, on 2, 3 and 4 devices: the one-op program is partitioned with that very split of its operands and
results, run by XLA with rubbish in the padding, and compared with the op on one device. Where they differ, the rule
is *incorrect*. Ops that share a rule and have no rewrite of their own are proved in full once for each set of shapes,
the others of them by two splits. An op that is written out in other ops before propagation has no rule of its own: it
runs with each dimension of each operand and result split, and with the same dimension of all of them.

*Does the rule claim every split that is right?* (tools/prove/unclaimed_splits.py) On one axis of 2 devices, every way
to give each operand and result one dimension (or none, or a partial result) is tried with the op at local shapes, in
StableHLO's reference interpreter. A way that gives the right tiles without any communication, and that no factor of
the rule stands for, is *missing*. ``REASONS`` says why some are.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA warns at every compilation

import numpy as np

from shardpass.cost.collective import KINDS
from shardpass.ops.families.elementwise import MHLO
from shardpass.ops.registry import find, table
from shardpass.runtime import compile_single
from tools.prove.claimed_splits import prove, prove_written_out
from tools.prove.findings import Findings, rule_of
from tools.prove.rule_samples.families import FAMILIES, samples
from tools.prove.rule_samples.sample import Sample
from tools.prove.unclaimed_splits import search

SHARED = 4  # ops that have one rule
SOME, EVERY = 2, 10**6  # splits of a sample

# Why a right split is not claimed: (op, part of the sample's note, part of the description) -> the reason.
REASONS: dict[tuple[str, str, str], str] = {
    ("stablehlo.reduce", "subtract", "partial add"): "a reducer that is not associative is left alone; this one is a "
    "sum in disguise, of one start only",
    ("stablehlo.get_dimension_size", "", "partial add"): "the whole size is known: nothing needs to be added",
}

# Ops that can be split and have no sample: the reason.
NOT_SAMPLED = {
    **dict.fromkeys(
        KINDS,
        "in manual regions alone; tools/fuzz/generators/manual_regions.py makes these, with free axes that split them",
    ),
    **dict.fromkeys(MHLO, "pointwise, as the op of the same name in CHLO; copy as negate"),
    "mhlo.ragged_dot": "XLA does not run it, so there is nothing to compare with",
    "chlo.ragged_dot": "XLA does not run it on CPU, so there is nothing to compare with",
    "rng": "other numbers each time; no dimension is split",
    "uniform_quantize": "JAX's context has no quantized types",
    "uniform_dequantize": "JAX's context has no quantized types",
}


def without_samples() -> list[str]:
    """Ops of the registry that are split or written out, and are neither in a sample nor excused."""
    done = {sample.op for sample in samples()}
    done |= {name if "." in name else f"stablehlo.{name}" for name in NOT_SAMPLED}
    return sorted(name for name, entry in table().items() if entry.family != "replicated" and name not in done)


def reason_for(sample: Sample, missing: str) -> str:
    for (op, note, part), reason in REASONS.items():
        if op == sample.op and note in sample.note and part in missing:
            return reason
    return ""


def validate(sample: Sample, *, reference: bool = False, limit: int = EVERY) -> Findings:
    """All that can be found about the rule for ``sample``."""
    found = Findings(sample)
    rule = rule_of(sample)
    whole = [np.asarray(x) for x in compile_single(sample.text())(*sample.arrays())]
    if rule is not None:
        prove(sample, rule, whole, found, reference, limit)
    entry = find(sample.op)
    if entry is not None and entry.expand is not None:
        prove_written_out(sample, whole, found, reference, limit)
    elif sample.interpreted:
        search(sample, rule, whole, found)
    return found


def depths(chosen: Sequence[Sample]) -> Iterator[tuple[Sample, int]]:
    """Each sample with how many splits of it to run: few where a rule of the same kind and shapes comes before."""
    sharing = Counter((entry.read, entry.expand) for entry in table().values())
    seen: set[Any] = set()
    for sample in chosen:
        entry = find(sample.op)
        assert entry is not None
        kind = (entry.read, entry.expand)
        key = (*kind, tuple(t.shape for t in (*sample.operands, *sample.results)))
        known = sharing[kind] >= SHARED and key in seen
        yield sample, SOME if known else EVERY
        seen.add(key)


def quick_samples(family: str | None = None) -> list[Sample]:
    """A few of each family, or of one, each op once."""
    out: list[Sample] = []
    for name, make in FAMILIES.items():
        if family not in (None, name):
            continue
        seen: set[str] = set()
        for sample in make():
            if sample.op not in seen and (name != "elementwise" or len(seen) < 6):
                seen.add(sample.op)
                out.append(sample)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=list(FAMILIES), help="only this family")
    parser.add_argument("--op", help="only ops whose name holds this")
    parser.add_argument("--quick", action="store_true", help="each op once, few splits")
    parser.add_argument("--reference", action="store_true", help="one split of each sample in the interpreter too")
    args = parser.parse_args()
    import jax
    from rich.console import Console
    from rich.progress import track

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 12)
    chosen = quick_samples(args.family) if args.quick else samples(args.family)
    chosen = [s for s in chosen if not args.op or args.op in s.op]
    console = Console(stderr=True)
    totals = {"runs": 0, "unsaid": 0, "incorrect": 0, "missing": 0, "reasons": 0}
    try:
        for sample, most in track(depths(chosen), "samples", len(chosen), console=console, transient=True):
            found = validate(sample, reference=args.reference, limit=min(most, 6 if args.quick else EVERY))
            if not console.is_terminal:
                console.print(f"{sample.op}: {found.runs} splits", highlight=False)
            totals["runs"] += found.runs
            totals["unsaid"] += found.unsaid
            for line in found.incorrect:
                totals["incorrect"] += 1
                console.print(f"incorrect: {sample.name}\n    {line}", markup=False, highlight=False, soft_wrap=True)
            for line in found.missing:
                why = reason_for(sample, line)
                totals["reasons" if why else "missing"] += 1
                if not why:
                    console.print(f"missing: {sample.name}\n    {line}", markup=False, highlight=False, soft_wrap=True)
    except KeyboardInterrupt:
        console.print("stopped")
    print(
        f"{len(chosen)} samples, {totals['runs']} splits run, {totals['unsaid']} cannot be said; "
        f"{totals['incorrect']} incorrect, {totals['missing']} missing, {totals['reasons']} missing for a reason"
    )
    return 1 if totals["incorrect"] or totals["missing"] else 0


if __name__ == "__main__":
    sys.exit(main())
