"""The environment in which tools/run_distributed.py starts each process of a program."""

from __future__ import annotations

ADDRESS = "JAX_COORDINATOR_ADDRESS"  # where process 0 listens, host:port
COUNT = "SHARDPASS_PROCESSES"
INDEX = "SHARDPASS_PROCESS"  # which of them this is, from 0
