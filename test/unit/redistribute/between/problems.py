"""Random problems between device sets, and their whole arrays."""

import random

import numpy as np

MACHINES = ("h100", "ideal", "v5e-slices")


def sharding(rng, rank, devices):
    """The text of a tiled sharding: each prime factor of ``devices`` on a dimension, or on replicas."""
    if devices == 1:
        return "{replicated}"
    counts, replicas, left, prime = [1] * rank, 1, devices, 2
    while left > 1:
        while left % prime:
            prime += 1
        left //= prime
        dim = rng.randrange(rank + 1)
        if dim == rank:
            replicas *= prime
        else:
            counts[dim] *= prime
    dims = [*counts, replicas] if replicas > 1 else counts
    order = ",".join(map(str, rng.sample(range(devices), devices)))
    tail = " last_tile_dim_replicate" if replicas > 1 else ""
    return f"{{devices=[{','.join(map(str, dims))}]{order}{tail}}}"


def problem(seed, most=12, size=12):
    """Shape, shardings, devices of both sides and a machine."""
    rng = random.Random(seed)
    rank, senders, receivers = rng.randint(1, 3), rng.randint(1, most), rng.randint(1, most)
    pool = rng.choice((senders + receivers, max(senders, receivers), 16))
    ids = range(max(pool, senders, receivers))
    shape = tuple(rng.randint(1, size) for _ in range(rank))
    lists = tuple(tuple(rng.sample(ids, count)) for count in (senders, receivers))
    texts = (sharding(rng, rank, senders), sharding(rng, rank, receivers))
    return shape, *texts, *lists, MACHINES[seed % 3]


def whole(shape):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape)
