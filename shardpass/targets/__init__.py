"""The compilers of CPUs, TPUs and GPUs, without the devices: descriptions, topologies, versions."""
