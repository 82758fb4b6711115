#!/usr/bin/env python3
"""Writes the node tests of the installed onnx package as files, laid out as Debian's libonnx-testdata has them.

  python3 tools/references/onnx_node_cases.py build/onnx-cases
  PLIMSOLL_ONNX_CASES=build/onnx-cases ctest --test-dir build/release -R model.slow

Cases with element types that neither numpy nor we have (strings, complex numbers, sequences) are left out, and counted."""
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")
EXOTIC = {onnx.TensorProto.STRING, onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128}


def plain(value_info):
    return value_info.type.HasField("tensor_type") and value_info.type.tensor_type.elem_type not in EXOTIC


def write(folder, stem, values, infos):
    for index, (value, info) in enumerate(zip(values, infos)):
        tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value), info.name)
        tensor.name = info.name
        (folder / f"{stem}_{index}.pb").write_bytes(tensor.SerializeToString())


def main():
    root = pathlib.Path(sys.argv[1]) / "node"
    written = left_out = 0
    for case in collect_testcases(None):
        graph = case.model.graph
        if not all(map(plain, list(graph.input) + list(graph.output))) or not case.data_sets:
            left_out += 1
            continue
        folder = root / case.name
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        try:
            inputs, outputs = case.data_sets[0]
            write(data, "input", inputs, graph.input)
            write(data, "output", outputs, graph.output)
            (folder / "model.onnx").write_bytes(case.model.SerializeToString())
            written += 1
        except Exception as problem:
            print(f"{case.name}: {type(problem).__name__}: {str(problem)[:100]}")
            left_out += 1
    print(f"onnx {onnx.__version__}: {written} cases written, {left_out} left out")


if __name__ == "__main__":
    main()
