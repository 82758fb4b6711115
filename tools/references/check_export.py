#!/usr/bin/env python3
"""Writes built-in models as ONNX and lets others look at them: onnx.checker, and onnxruntime against our own run.

  python3 tools/references/check_export.py build/release/plimsoll [model ...]

Needs onnx, onnxruntime, numpy. Exit status 1 when a file is invalid or results differ by more than 1e-3 of the largest output."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

MODELS = {
    "mlp": ["--batch", "4"], "alexnet": ["--batch", "1"], "resnet50": ["--batch", "1", "--image", "64"],
    "mobilenet": ["--batch", "1", "--image", "64"], "gpt2": ["--batch", "1", "--seq", "16", "--layers", "2"],
    "bert": ["--batch", "1", "--seq", "16", "--layers", "2"], "unet": ["--batch", "1", "--image", "64"],
}


def check(program, model, options, folder):
    path = folder / f"{model}.onnx"
    subprocess.run([program, "graph", model, "--infer", *options, "-o", path], check=True)
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(1)
    feeds = {}
    for value in session.get_inputs():
        integer = "int" in value.type
        feeds[value.name] = random.integers(0, 2, value.shape) if integer else random.standard_normal(value.shape).astype(np.float32)
    np.savez(folder / "in.npz", **feeds)
    subprocess.run([program, "run", path, "--inputs", folder / "in.npz", "--outputs", folder / "out.npz"], check=True, stdout=subprocess.DEVNULL)
    ours = np.load(folder / "out.npz")
    worst = 0.0
    for value, theirs in zip(session.get_outputs(), session.run(None, feeds)):
        worst = max(worst, float(np.max(np.abs(ours[value.name] - theirs)) / np.max(np.abs(theirs))))
    print(f"{model}: valid, {path.stat().st_size} bytes, differs from onnxruntime by {worst:.1e} of the largest output")
    return worst < 1e-3


def main():
    program = sys.argv[1]
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for model in sys.argv[2:] or MODELS:
            try:
                good = check(program, model, MODELS.get(model, []), pathlib.Path(folder)) and good
            except Exception as problem:
                print(f"{model}: {type(problem).__name__}: {str(problem)[:300]}")
                good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
