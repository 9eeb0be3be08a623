"""A program as input for counting memory: blocks of steps over buffers, and the client that runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

END = -1  # the op of what a block returns

Buffer = int


@dataclass(frozen=True, slots=True)
class Client:
    """The behaviour in which XLA's clients differ.

    Attributes:
        late: large values are made late.
        longest: elements that a reduction joins in the fusion that makes them.
        recomputes: each of several readers computes an elementwise value again, an expensive one too.
        orders: products want their operands' dimensions in one order (``cost.copies``); kernels of GPUs take any.
    """

    late: bool
    longest: int | None
    recomputes: bool
    orders: bool


OTHERS = Client(late=True, longest=None, recomputes=True, orders=False)
CPU = Client(late=False, longest=32, recomputes=False, orders=True)


def client_of(machine: str) -> Client:
    """Return the client that compiles for the machine of this name."""
    return CPU if machine == "cpu" else OTHERS


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a block of a program. ``op``: the number of the op; ``name``: as in ``cost.fusion``; ``scratch``: bytes
    of temporary buffers.

    Values that its ``blocks`` use from outside are read too, even if absent from ``reads``.
    """

    op: int
    name: str
    makes: tuple[Buffer, ...]
    reads: tuple[Buffer, ...]
    scratch: int = 0
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Steps in order. For a loop, ``arguments`` and ``returned`` correspond to the carried values."""

    arguments: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    returned: tuple[Buffer, ...]

    def every_step(self) -> Iterator[Step]:
        """Yield the steps, and after each those inside of it."""
        for step in self.steps:
            yield step
            for inner in step.blocks:
                yield from inner.every_step()

    def outside(self) -> list[Buffer]:
        """List the buffers that the block uses and does not make."""
        made, used = set(self.arguments), dict.fromkeys(self.returned)
        for step in self.steps:
            made.update(step.makes)
            used.update(dict.fromkeys(step.reads))
            for inner in step.blocks:
                used.update(dict.fromkeys(inner.outside()))
        return [buffer for buffer in used if buffer not in made]
