"""Prime factors and divisors of mesh axes and tile counts."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def prime_factors(n: int) -> tuple[int, ...]:
    """Return the prime factors of ``n`` >= 1, ascending."""
    factors = []
    p = 2
    while p * p <= n:
        while n % p == 0:
            factors.append(p)
            n //= p
        p += 1
    if n > 1:
        factors.append(n)
    return tuple(factors)


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """Return the divisors of ``n`` >= 1 that are greater than 1, ascending."""
    return tuple(d for d in range(2, n + 1) if n % d == 0)
