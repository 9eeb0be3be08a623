"""Benchmarks: times and traffic of shardpass beside XLA's partitioner and Shardy's passes."""
