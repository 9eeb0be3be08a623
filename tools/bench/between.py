#!/usr/bin/env python
"""From one set of devices to another: plans beside their bound, other ways, and the optimum of tiny problems.

    python -m tools.bench.between                      300 random problems on three machines, and 100 tiny ones
    python -m tools.bench.between --problems 30 --seed 1000 --json between.json

A problem has 2 to 64 devices on each side, from disjoint to equal sets in any order, one to three dimensions, replicas,
tiles that need not divide, and 32 MiB to 2 GiB of bf16. Makespans are modelled on the ports of a machine. Printed are
makespan over bound (geometric mean, worst), the same of each other way (``between_baselines``), its bytes out of the
busiest sender and its memory over the plan's, and on how many problems another way is faster.

A tiny problem has at most 6 elements, several holders and no receivers in common, on a machine of a byte a second: the
plan's makespan beside the least over every choice of a holder for each element.

Returns 1 where a way is faster than the plan, a tiny plan is not optimal, or the ratio is beyond 1.05 (mean) or 1.3.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shardpass import parse_sharding, plan_redistribution
from shardpass.cost.machine import find_machine, switched
from shardpass.redistribute.between.ports import ports_of
from shardpass.sharding import Sharding
from tools.bench.between_baselines import baselines

MACHINES = ("h100", "ideal", "v5e-slices")
MEAN, WORST = 1.05, 1.3
FLAT = switched("flat", 0.0, 1.0, 1.0)  # a byte a second at each port


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "between", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=300, metavar="N")
    parser.add_argument("--tiny", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", metavar="FILE", help="write a row for each problem")
    args = parser.parse_args(argv)
    rows = [row for number in range(args.seed, args.seed + args.problems) if (row := measure(number))]
    tiny = [optimal(number) for number in range(args.seed, args.seed + args.tiny)]
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    return report(rows, tiny)


def report(rows: Sequence[dict[str, Any]], tiny: Sequence[bool]) -> int:
    bad = not all(tiny)
    if rows:
        ratios = [row["seconds"] / row["bound"] for row in rows]
        mean, worst = _mean(ratios), max(ratios)
        where = rows[ratios.index(worst)]["number"]
        print(f"{len(rows)} problems in {sum(row['processor_seconds'] for row in rows):.1f} s of processor time")
        print(f"{'makespan over bound: plan':28} {mean:.4f}, worst {worst:.3f} (problem {where})")
        for name in rows[0]["ways"]:
            over = [row["ways"][name]["seconds"] / row["bound"] for row in rows]
            sent = _mean([row["ways"][name]["sent"] / row["sent"] for row in rows])
            memory = _mean([row["ways"][name]["memory"] / row["memory"] for row in rows])
            faster = [row["number"] for row in rows if row["ways"][name]["seconds"] < row["seconds"] * (1 - 1e-9)]
            print(
                f"{name:>28} {_mean(over):.3f}, worst {max(over):.1f}; busiest sender {sent:.2f} of the plan's bytes, "
                f"memory {memory:.2f}; faster on {len(faster)}{f' {faster[:9]}' if faster else ''}"
            )
            bad |= bool(faster)
        bad |= mean > MEAN or worst > WORST
    print(f"{sum(tiny)} of {len(tiny)} tiny problems equal the optimum")
    return int(bad)


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


# ---------------------------------------------------------------- random problems


def random_sharding(rng: random.Random, rank: int, devices: int) -> str:
    """The text of a tiled sharding: each prime factor of ``devices`` on a dimension, or on replicas."""
    if devices == 1:
        return "{replicated}"
    counts, left, prime = [1] * (rank + 1), devices, 2
    while left > 1:
        while left % prime:
            prime += 1
        left //= prime
        counts[rng.randrange(rank + 1)] *= prime
    dims = counts if counts[-1] > 1 else counts[:-1]
    order = ",".join(map(str, rng.sample(range(devices), devices))) if rng.random() < 0.3 else ""
    tail = " last_tile_dim_replicate" if counts[-1] > 1 else ""
    return f"{{devices=[{','.join(map(str, dims))}]{order or f'<=[{devices}]'}{tail}}}"


def sizes(rng: random.Random, rank: int) -> tuple[int, ...]:
    """Sizes of an array of 2**24 to 2**30 elements, such as weights have."""
    left, shape = 2 ** rng.uniform(24, 30), []
    for dim in range(rank - 1):
        size = max(1, round(left ** rng.uniform(0.2, 1.6 / (rank - dim))))
        shape.append(size)
        left = max(1.0, left / size)
    return tuple(rng.sample([*shape, max(1, round(left))], rank))


def measure(number: int) -> dict[str, Any] | None:
    """The row of a problem; None where nothing moves."""
    rng = random.Random(number)
    machine = MACHINES[number % 3]
    rank, senders, receivers = rng.randint(1, 3), rng.randint(2, 64), rng.randint(2, 64)
    pool = max(senders, receivers, rng.choice((senders + receivers, 64)))
    shape = sizes(rng, rank)
    whole = rng.random() < 0.5
    lists = []
    for count in (senders, receivers):
        first = rng.randrange(pool - count + 1)
        lists.append(range(first, first + count) if whole else rng.sample(range(pool), count))
    texts = random_sharding(rng, rank, senders), random_sharding(rng, rank, receivers)
    begun = time.process_time()
    plan = plan_redistribution(shape, "bf16", *texts, source_devices=lists[0], target_devices=lists[1], machine=machine)
    spent = time.process_time() - begun
    if not plan.bound_seconds:
        return None
    (array,) = plan.arrays
    ways = baselines(array.source, array.target, 16, ports_of(find_machine(machine)))
    return {
        "number": number,
        "problem": [list(shape), *texts, *map(list, lists), machine],
        "processor_seconds": spent,
        "way": plan.way,
        "seconds": plan.seconds,
        "bound": plan.bound_seconds,
        "sent": max(plan.sent.values()),
        "memory": plan.peak_bytes,
        "ways": {
            name: {"seconds": price.seconds, "sent": price.sent, "memory": price.memory} for name, price in ways.items()
        },
    }


# ---------------------------------------------------------------- tiny problems


def optimal(number: int) -> bool:
    """Whether the plan of a tiny problem has the makespan of the best choice of holders."""
    rng = random.Random(number)
    size, senders, receivers = rng.randint(2, 6), rng.choice((2, 4)), rng.randint(2, 4)
    replicas = rng.choice((2, senders))
    source = f"{{devices=[{senders // replicas},{replicas}]<=[{senders}] last_tile_dim_replicate}}"
    target = f"{{devices=[{receivers}]<=[{receivers}]}}"
    lists = rng.sample(range(8), senders), rng.sample(range(8), receivers)
    plan = plan_redistribution(
        (size,), "i8", source, target, source_devices=lists[0], target_devices=lists[1], machine=FLAT
    )
    return abs(plan.seconds - _enumerated(size, source, target, *lists)) < 1e-9


def _enumerated(size: int, source: str, target: str, senders: Sequence[int], receivers: Sequence[int]) -> int:
    """The busiest port of the best choice: open shops of unit messages need no longer than their busiest port."""
    before, after = (_elements(size, text, ids) for text, ids in ((source, senders), (target, receivers)))
    needs = [(e, device) for device, elements in after.items() for e in elements if e not in before.get(device, ())]
    holders = [[d for d, elements in before.items() if e in elements] for e, _ in needs]
    into: dict[int, int] = defaultdict(int)
    for _, device in needs:
        into[device] += 1
    best = [len(needs)]

    def assign(k: int, sent: dict[int, int]) -> None:
        if max(sent.values(), default=0) >= best[0]:
            return
        if k == len(needs):
            best[0] = max(sent.values(), default=0)
            return
        for device in holders[k]:
            assign(k + 1, {**sent, device: sent.get(device, 0) + 1})

    assign(0, {})
    return max(best[0], max(into.values(), default=0))


def _elements(size: int, text: str, ids: Sequence[int]) -> dict[int, set[int]]:
    sharding = parse_sharding(text)
    assert isinstance(sharding, Sharding)
    (tile,) = sharding.tile_shape((size,))
    starts = sharding.tile_offsets((size,))[:, 0].tolist()
    return {d: set(range(a, min(size, a + tile))) for d, a in zip(ids, starts, strict=True)}


if __name__ == "__main__":
    sys.exit(main())
