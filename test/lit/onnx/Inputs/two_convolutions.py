"""Writes a model of two convolutions, at the opset and with the weights of many a stored one, to the path given."""

import sys

import numpy as np
import onnx
from onnx import numpy_helper

model = onnx.parser.parse_model("""<ir_version: 6, opset_import: ["" : 11]>
two (float[N, 3, 8, 8] x) => (float[N, 8, 1, 1] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w1)
    b = Relu (a)
    c = Conv <pads = [1, 1, 1, 1]> (b, w2)
    d = Add (b, c)
    y = GlobalAveragePool (d)
}""")
rng = np.random.default_rng(0)
for name, channels in (("w1", 3), ("w2", 8)):
    weight = rng.normal(0, 0.3, (8, channels, 3, 3)).astype("f")
    model.graph.initializer.append(numpy_helper.from_array(weight, name))
onnx.save(model, sys.argv[1])
