"""Measure the machine that JAX has here, and write its file (``shardpass calibrate``).

samples        small programs, and what is known of each: collectives, bytes received, local work
measure        their times
fit            the rates under which the cost model comes closest to the times
work           the bandwidth of memory and the flops of element types
machine_file   the machine as TOML
calibrate      all of it
"""
