"""Compile for CPUs, TPUs and GPUs without having the devices: target descriptions, topologies and versions."""
