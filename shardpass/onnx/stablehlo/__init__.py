"""Convert ONNX models to StableHLO. This package needs JAX; checking does not."""
