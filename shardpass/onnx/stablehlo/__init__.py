"""From an ONNX model to StableHLO: the bridge, and what stands on it. This package needs JAX; checking does not."""
