"""Limit the bytes that a cheaper plan may receive and store in addition to those of propagation.

Problem: a small program's time is the starts of its collectives. One all_gather of a batch may then replace five
all_reduces of its gradients: 280 us saved in the model, for a copy of the batch on every device. Starts are the least
certain numbers of a machine, and memory is what users run out of.

1. A plan that receives more bytes or stores more, and less of neither, saves more than ``MATERIAL`` of the time,
   overlapped or not. Where most of the saving is starts of collectives, less of one does not excuse more of the other.
2. Where most of the saving is starts of collectives, temporaries are at most ``MOST`` times those of propagation alone.
3. A plan that stores more than ``MUCH`` times as much as that of propagation alone saves more than ``MATERIAL``, and
   the report of it says how much it stores.
4. A plan fits into the memory of a device where that of propagation alone does, also with what it fetches ahead.
5. A plan that was sought because the fastest stores too much is faster than that of propagation alone also when small
   collectives are joined, as ``passes.join`` does after the decision: a start that goes anyway is no saving. Where such
   a plan receives more, none of its own are joined, as the order of its ops may not permit that.

Example on 8 devices, with starts of 70 us: 20 steps of gradient descent on rows of 64 KiB in all. Gathering the rows
saves 19 starts, and temporaries grow from 4 to 70 KiB: refused by the second rule.

Complexity: O(steps) for each figure of a plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from shardpass.cost.blocks import client_of
from shardpass.cost.material import MATERIAL, MOST, MUCH
from shardpass.planning.plan.joining import join_groups, most_joined
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.alive import made_by_op
from shardpass.program.program import Block
from shardpass.redistribute.terms.limit import show_bytes

ALONE, LEAST_SUM = "propagation alone", "the plan of the least sum"


@dataclass(frozen=True)
class Trade:
    """What a plan spends beyond another: ``received`` and ``stored`` are bytes, ``saved`` the part of the seconds;
    ``latency``: whether most of these are starts of collectives; ``than``: the other plan.
    """

    received: int
    stored: int
    saved: float
    latency: bool
    than: str = ALONE

    @classmethod
    def between(cls, plain: ProgramPlan, plan: ProgramPlan, than: str = ALONE) -> Trade | None:
        """Return the trade from ``plain`` to ``plan``; None if ``plan`` neither receives nor stores more."""
        received = max(0, plan.bytes_received - plain.bytes_received)
        stored = max(0, plan.stored - plain.stored, plan.alive.peak - plain.alive.peak)
        before = plain.makespan
        if not before or not (received or stored):
            return None
        return cls(received, stored, 1 - plan.makespan / before, saves_starts(plain, plan), than)

    def as_dict(self) -> dict[str, object]:
        """Return the fields for JSON; ``text`` is for readers."""
        return {"text": str(self), **asdict(self)}

    def __str__(self) -> str:
        what = (("receives", self.received), ("stores", self.stored))
        spent = " and ".join(f"{verb} {show_bytes(size)}" for verb, size in what if size)
        by = "; latency decided" if self.latency else ""
        return f"the plan {spent} more than {self.than}, and saves {self.saved:.0%} of its time{by}"


def refused(plain: ProgramPlan, plan: ProgramPlan) -> bool:
    """Return whether to reject ``plan``, which is cheaper than ``plain``, in favor of ``plain``.

    That is so if the time it saves does not justify the memory and the traffic that it adds (rules 1 to 3 of the
    module), or if it does not fit into a device's memory while ``plain`` does.
    """
    sizes = (plan.alive.peak, plain.alive.peak), (plan.stored, plain.stored)
    if any(size > plan.machine.memory >= before for size, before in sizes):
        return True
    saves = plan.makespan <= plain.makespan * (1 - MATERIAL) or plan.price <= plain.price * (1 - MATERIAL)
    if not saves and spends_memory(plain, plan):
        return True
    more = plan.bytes_received - plain.bytes_received, plan.stored - plain.stored
    greedy, spends = is_heavy(plain, plan), max(more) > 0 and not saves
    starts = (greedy or (spends and min(more) < 0)) and saves_starts(plain, plan)
    return (starts and greedy) or (spends and (starts or min(more) >= 0))


def is_heavy(plain: ProgramPlan, plan: ProgramPlan) -> bool:
    """Return whether ``plan`` has more than ``MOST`` times as many bytes of temporaries as ``plain``."""
    return plan.alive.temporaries > MOST * plain.alive.temporaries


def is_small(plan: ProgramPlan) -> bool:
    """Return whether starts of collectives are more than ``MATERIAL`` of the time of ``plan``."""
    return plan.price - plan.price_without_starts > MATERIAL * plan.price


def heaviest(plain: ProgramPlan, plan: ProgramPlan) -> set[int]:
    """Return the ops (by number) that make more of what is alive at the peak of ``plan`` than they make in ``plain``:
    of the largest, as many as make up the temporaries that are too many.
    """
    before, now = (made_by_op(one.body, one.program, client_of(one.machine.name), one.machine) for one in (plain, plan))
    alive, more = dict(plan.alive.alive), dict[int, int]()
    for op, made in now.items():
        more[op] = sum(alive.get(buffer, 0) for buffer in made) - sum(before.get(op, {}).values())
    left, out = plan.alive.temporaries - MOST * plain.alive.temporaries, set[int]()
    for op in sorted(more, key=lambda op: -more[op]):
        if left <= 0 or more[op] <= 0:
            break
        left -= more[op]
        out.add(op)
    return out


def spends_memory(plain: ProgramPlan, plan: ProgramPlan) -> bool:
    """Return whether ``plan`` stores more than ``MUCH`` times as much as ``plain``, with what it fetches ahead or
    without.
    """
    return plan.stored > MUCH * plain.stored or plan.alive.peak > MUCH * plain.alive.peak


def saves_starts(plain: ProgramPlan, plan: ProgramPlan) -> bool:
    """Return whether most of the seconds that ``plan`` saves are starts of collectives."""
    saved, without = plain.price - plan.price, plain.price_without_starts - plan.price_without_starts
    return saved > 0 and saved - without > without


def saves_when_joined(plain: ProgramPlan, plan: ProgramPlan) -> bool:
    """Return whether ``plan`` is faster than ``plain`` when small collectives are joined: those of both, or those of
    ``plain`` alone where ``plan`` receives more.
    """
    after = plan.makespan if plan.bytes_received > plain.bytes_received else joined_makespan(plan)
    return after < joined_makespan(plain)


def joined_makespan(plan: ProgramPlan) -> float:
    """Return the makespan of ``plan`` without the starts that ``passes.join`` saves, as far as sizes show: in each
    block, collectives of one kind over the same axes. What needs one another is not looked at.
    """
    most, at_once, every = most_joined(plan.alive.temporaries), plan.machine.starting_at_once, plan.collectives
    blocks = {op.number: place for place, block in enumerate(_blocks(plan.program.body)) for op in block.ops}
    keys, sizes = [], []
    for number, sent in enumerate(every):
        parts = 1 if sent.loop else sent.groups.shape[1]
        sizes.append(sent.bytes * parts / max(parts - 1, 1))
        if sent.kind != "all_reduce":
            keys.append((number, (blocks[sent.op.number] if sent.op else 0, sent.kind, sent.axes)))
    groups = join_groups(keys, lambda group, number: sum(sizes[each] for each in (*group, number)) <= most)
    later = [every[number] for group in groups for number in group[1:]]
    return plan.makespan - sum(sent.times * (sent.seconds(plan.machine) - sent.seconds(at_once)) for sent in later)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        for inner in op.blocks:
            yield from _blocks(inner)
