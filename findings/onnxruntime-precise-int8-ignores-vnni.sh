#!/bin/bash
# Does onnxruntime's option session.x64quantprecision cost anything where the processor has VNNI?
#
# Packages:  onnxruntime 1.31.1, onnx 1.22.0, numpy 2.4.6; Linux, a processor with AVX512-VNNI.
# Guess:     no. The option prevents saturated 16-bit sums of int8 products, and VNNI sums in 32 bits, so onnxruntime would
#            check the processor and change nothing.
# Behaviour: it turns signed weights into unsigned ones on every x86 processor, for which the kernels of VNNI are not used. So
#            a product takes half as long again or more, and not one value differs.
# Output:    the same values with and without the option: True
#            with the option it takes more than 1.3 times as long
# Matters:   who sets it for the sake of processors without VNNI, and ships one program for all, gives away the speed for which
#            a model was quantized: an encoder of MiniLM's size read 58 documents a second in place of 100.

set -euo pipefail

if ! grep -qm1 avx512_vnni /proc/cpuinfo; then
  echo "this processor has no AVX512-VNNI, so there is nothing to see here"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.22.0 numpy==2.4.6
cd "$folder"
cat > try.py << 'END'
import sys
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

draw = np.random.default_rng(0)
weights = draw.integers(-127, 128, (384, 1536)).astype(np.int8)
nodes = [
    helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
    helper.make_node("MatMulInteger", ["q", "weights", "zero"], ["whole"]),
    helper.make_node("Cast", ["whole"], ["y"], to=TensorProto.FLOAT),
]
shapes = [("x", [128, 384]), ("y", [128, 1536])]
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes)
graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weights, "weights")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
sessions = {}
for value in "01":
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", value)
    sessions[value] = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
values = {"x": draw.normal(size=(128, 384)).astype(np.float32)}
same = np.array_equal(*(session.run(None, values)[0] for session in sessions.values()))
best = dict.fromkeys(sessions, np.inf)
for _ in range(200):
    for value, session in sessions.items():
        start = time.process_time()
        session.run(None, values)
        best[value] = min(best[value], time.process_time() - start)
ratio = best["1"] / best["0"]
print(f"the same values with and without the option: {same}")
print(f"with the option it takes {'more' if ratio > 1.3 else 'less'} than 1.3 times as long")
print(f"({ratio:.1f} times on this processor)", file=sys.stderr)
sys.exit(0 if same and ratio > 1.3 else "the behaviour has changed")
END
"$folder/venv/bin/python" try.py
