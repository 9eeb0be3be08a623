"""shardpass's decisions, written into the whole program as sharding constraints for XLA's own partitioner."""
