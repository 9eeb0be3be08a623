"""Equinox's notebook on parallelism over 8 devices, as a script."""

import parallelism  # noqa: F401  it trains as it is imported
