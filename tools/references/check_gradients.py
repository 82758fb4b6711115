#!/usr/bin/env python3
"""Whose gradient is the derivative of an ONNX file? Ours against differences that onnxruntime computes.

  python3 tools/references/check_gradients.py build/release/plimsoll file.onnx ... [--weights 4] [--seed 1]

Needs onnx, onnxruntime and numpy. The loss is the sum of the first output times random numbers. Every weight W is moved
along our gradient, W + e G/|G| and W - e G/|G|, and onnxruntime runs the file at both: the slope must be |G|. For each
file the weights with the largest gradients are checked; inputs come from NAME.npz beside it (`in.<input>`, as
export_onnx.py writes them) or are random.

Exporters store equal tensors once, store tied ones twice and fold what they can, so that gradients of a file may differ
from those of the PyTorch model it was made from. This says who is right about the file: where NAME.npz also has
PyTorch's gradients (`grad.<weight>`, `loss.weight`), those are printed beside it where they differ."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

QUIET = onnxruntime.SessionOptions()
QUIET.log_severity_level, QUIET.intra_op_num_threads = 4, 1
STEPS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)  # of the weight's length, or of a tenth where it is shorter
TOLERANCE = 0.03


def session(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), QUIET, providers=["CPUExecutionProvider"])


def recorded(path):
    arrays = path.parent / f"{path.name.split('.')[0]}.npz"
    return dict(np.load(arrays)) if arrays.exists() else {}


def feeds_of(model, arrays, rng):
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
    feeds = {}
    for value in session(model).get_inputs():
        if f"in.{value.name}" in arrays:
            feeds[value.name] = arrays[f"in.{value.name}"]
            continue
        shape = [size if isinstance(size, int) else 2 for size in value.shape]
        numbers = rng.standard_normal(shape) if value.type == "tensor(float)" else np.ones(shape)
        feeds[value.name] = numbers.astype(kinds[value.type])
    return feeds


def with_loss(model, factors):
    out = model.graph.output[0].name
    model.graph.initializer.append(numpy_helper.from_array(factors, "loss.weight"))
    model.graph.node.append(helper.make_node("Mul", [out, "loss.weight"], ["loss.terms"]))
    model.graph.node.append(helper.make_node("ReduceSum", ["loss.terms"], ["loss"], keepdims=0))
    model.graph.output.append(helper.make_tensor_value_info("loss", onnx.TensorProto.FLOAT, []))
    return out


def our_gradients(program, model, feeds, folder):
    """One step of plain gradient descent at rate 1: what a weight lost is its gradient."""
    onnx.save(model, folder / "loss.onnx")
    np.savez(folder / "data.npz", **feeds)
    done = subprocess.run([program, "run", folder / "loss.onnx", "--train", "--loss", "loss", "--optimizer", "sgd", "--lr", "1", "--weight-decay", "0",
                           "--steps", "1", "--data", folder / "data.npz", "--save", folder / "after.npz", *bound(model, feeds)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    after = np.load(folder / "after.npz")
    before = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return {name: before[name].astype(np.float64) - after[name] for name in after.files if name in before and name != "loss.weight"}


def bound(model, feeds):
    sizes = {}
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param and value.name in feeds:
                sizes[dim.dim_param] = feeds[value.name].shape[axis]
    return [word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")]


def slope(model, name, direction, expected, feeds, out, factors):
    """By central differences; of several steps the one that agrees best: large ones curve, small ones drown in rounding."""
    tensor = next(t for t in model.graph.initializer if t.name == name)
    weight = numpy_helper.to_array(tensor)
    found = []
    for step in STEPS:
        length = step * max(np.linalg.norm(weight), 0.1)
        sums = []
        for sign in (1, -1):
            tensor.CopyFrom(numpy_helper.from_array((weight + sign * length * direction).astype(np.float32), name))
            sums.append((session(model).run([out], feeds)[0].astype(np.float64) * factors).sum())
        found.append((sums[0] - sums[1]) / (2 * length))
    tensor.CopyFrom(numpy_helper.from_array(weight, name))
    return min(found, key=lambda s: abs(s - expected))


def check(program, path, weights, rng, folder):
    model, arrays = onnx.load(path), recorded(path)
    feeds = feeds_of(model, arrays, rng)
    shape = session(model).run([model.graph.output[0].name], feeds)[0].shape
    factors = arrays.get("loss.weight", (rng.standard_normal(shape) / max(1, np.prod(shape))).astype(np.float32))
    out = with_loss(model, factors)
    gradients = our_gradients(program, model, feeds, folder)
    theirs = {name: arrays.get(f"grad.{name}") for name in gradients}
    differ = [n for n, g in gradients.items() if theirs[n] is not None and theirs[n].shape == g.shape
              and np.abs(theirs[n] - g).max() > 2e-3 * np.abs(theirs[n]).max() + 1e-5]
    rest = sorted((n for n in gradients if n not in differ), key=lambda n: -np.linalg.norm(gradients[n]))
    wrong = []
    for name in (differ + rest)[:max(weights, len(differ))]:
        size = np.linalg.norm(gradients[name])
        if size == 0:
            continue
        direction = gradients[name] / size
        measured = slope(model, name, direction, size, feeds, out, factors)
        if abs(measured - size) > TOLERANCE * size:
            wrong.append(f"{name}: file {measured:.4g}, ours {size:.4g}")
        elif name in differ:
            print(f"  {path.name}: {name}: file {measured:.4g}, ours {size:.4g}, PyTorch's {(theirs[name] * direction).sum():.4g}")
    print(f"{path.name}: {len(gradients)} weights, {len(differ)} not as in PyTorch, {'ours are the derivatives' if not wrong else 'DIFFERENT ' + '; '.join(wrong)}", flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--weights", type=int, default=4, help="how many of a file are checked at least")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files:
            try:
                fine &= check(options.program, path, options.weights, np.random.default_rng(options.seed), pathlib.Path(folder))
            except Exception as problem:  # one file that cannot be checked must not hide the others
                fine = False
                print(f"{path.name}: {type(problem).__name__}: {str(problem)[:200]}", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
