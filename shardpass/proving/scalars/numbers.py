"""The arithmetic of several prime fields at once.

exp is a power g**x, where g has order q modulo p, and q is the next prime of ``PRIMES``: exp(a) * exp(b) is then
exp(a + b). So each value is a tuple of numbers, one for each prime that is needed. Example: exp(exp(x)) needs three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import shake_128
from itertools import pairwise

from shardpass.proving.scalars.table import TERM

# each but the last is k * q + 1 for the next prime q
PRIMES = (
    108928469039795453416187772334198185704968488161,
    680802931498721583851173577088738660656053051,
    4538686209991477225674490513924924404373687,
    19396094914493492417412352623610788052879,
    2**127 - 1,
)
Numbers = tuple[int, ...]  # modulo each of the primes


class Field:
    """The numbers modulo ``PRIMES``, or modulo the first of them where there are no ``powers``.

    ``spend``: what each power costs.
    """

    def __init__(self, powers: bool, spend: Callable[[int], None]) -> None:
        self._spend = spend
        self.primes = PRIMES if powers else PRIMES[:1]
        self.zero, self.one = self.number(0), self.number(1)
        self._roots = [pow(3, (p - 1) // q, p) for p, q in pairwise(self.primes)]

    def hashed(self, *name: object) -> Numbers:
        """Return random numbers for the function ``name``."""
        data = shake_128(repr(name).encode()).digest(32 * len(self.primes))
        return tuple(int.from_bytes(data[32 * k : 32 * k + 32], "big") % p for k, p in enumerate(self.primes))

    def number(self, numerator: int, denominator: int = 1) -> Numbers:
        if denominator == 1:
            return tuple(numerator % p for p in self.primes)
        return tuple(numerator * pow(denominator, -1, p) % p for p in self.primes)

    def add(self, values: Iterable[Numbers]) -> Numbers:
        columns = zip(self.zero, *values, strict=True)
        return tuple(sum(column) % p for column, p in zip(columns, self.primes, strict=True))

    def times(self, x: Numbers, y: Numbers) -> Numbers:
        return tuple(a * b % p for a, b, p in zip(x, y, self.primes, strict=True))

    def less(self, x: Numbers, y: Numbers) -> Numbers:
        """Return x - y."""
        return tuple((a - b) % p for a, b, p in zip(x, y, self.primes, strict=True))

    def power(self, x: Numbers) -> Numbers:
        """Return exp(x)."""
        if x == self.zero:
            return self.one
        self._spend(16 * TERM)
        powers = [pow(g, e, p) for g, e, p in zip(self._roots, x[1:], self.primes, strict=False)]
        return (*powers, self.hashed("exponential", x[0])[-1])

    def inverse(self, x: Numbers) -> Numbers:
        """Return 1 / x of a number that is not 0."""
        return tuple(pow(a, -1, p) for a, p in zip(x, self.primes, strict=True))
