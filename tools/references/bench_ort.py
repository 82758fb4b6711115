#!/usr/bin/env python3
"""Times one inference of built-in models, written as ONNX, and of .onnx files, in onnxruntime and here, two threads each.

  python3 tools/references/bench_ort.py build/release/plimsoll [model | file.onnx ...]

Needs onnxruntime and numpy. Runs alternate; the figure is the median of 15 after 3 to warm up."""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

MODELS = {"resnet50": [], "mobilenet": [], "bert": ["--seq", "128"], "gpt2": ["--seq", "128"]}
RUNS, WARM = 15, 3


def theirs(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = 2, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feeds = {v.name: np.ones(v.shape, np.int64 if "int" in v.type else np.float32) for v in session.get_inputs()}
    times = []
    for _ in range(RUNS + WARM):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return statistics.median(times[WARM:])


def ours(program, path):
    text = subprocess.run([program, "run", path, "--steps", str(RUNS + WARM), "--threads", "2", "--json"], check=True, capture_output=True).stdout
    return statistics.median(json.loads(text)["step_seconds"][WARM:])


def main():
    program = sys.argv[1]
    print(f"{'model':24}{'onnxruntime':>14}{'plimsoll':>14}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for model in sys.argv[2:] or MODELS:
            path = pathlib.Path(model)
            if path.suffix != ".onnx":
                path = pathlib.Path(folder) / f"{model}.onnx"
                subprocess.run([program, "graph", model, "--infer", "--batch", "1", *MODELS.get(model, []), "-o", path], check=True)
            a, b = theirs(path), ours(program, path)
            print(f"{path.stem:24}{a * 1e3:11.1f} ms{b * 1e3:11.1f} ms{b / a:8.2f}", flush=True)


if __name__ == "__main__":
    main()
