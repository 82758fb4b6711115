#!/usr/bin/env python3
"""Writes models as ONNX and lets others look at them: onnx.checker, and onnxruntime against our own run of the model
that was written.

  python3 tools/references/check_export.py build/release/plimsoll [model | file.onnx ...]

Without names: every built-in model (small where it has sizes), and the exports and light models of tests/onnx, which go
in and out again. Needs onnx, onnxruntime, numpy: exit status 1 without them and when a file is invalid or results differ by
more than 1e-3 of the largest output."""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as missing:
    sys.exit(f"{missing}: tools/install_python.sh FOLDER makes a Python that has it")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = {"batch": 2, "image": 64, "seq": 16, "frames": 64, "layers": 2, "depth": 50, "width": None}
# Its logits are 7e9 and equal but for rounding: the softmax of noise.
ILL_CONDITIONED = {"light_squeezenet.onnx"}
SIZES = {"mlp": {"image": 28}, "alexnet": {"image": 224}, "lstm": {"width": 64}, "exp-example": {"width": 8}}


def sizes_of(model):
    wanted = {**SMALL, **SIZES.get(model["name"], {})}
    options = []
    for name in model["options"]:
        if wanted.get(name) is not None:
            options += [f"--{name}", str(wanted[name])]
    return options


def feeds_for(session):
    random = np.random.default_rng(1)
    feeds = {}
    for value in session.get_inputs():
        if "bool" in value.type:
            feeds[value.name] = random.integers(0, 2, value.shape) > 0
        elif "int" in value.type:
            feeds[value.name] = random.integers(0, 2, value.shape).astype(value.type[7:-1])
        else:
            feeds[value.name] = random.standard_normal(value.shape).astype(np.float32)
    return feeds


def recorded(path):
    """The inputs an export was recorded with: random ones may mean nothing to it."""
    arrays = path.with_name(path.name.split(".")[0] + ".npz") if path.suffix == ".onnx" else path
    if not arrays.is_file():
        return None
    with np.load(arrays) as file:
        return {name[3:]: file[name] for name in file if name.startswith("in.")}


def open_sizes(path):
    """Sizes for a file's open dimensions: those of the arrays it was recorded with."""
    arrays, sizes = recorded(path) or {}, {}
    for value in onnx.load(path).graph.input if path.suffix == ".onnx" else []:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param and value.name in arrays:
                sizes[dim.dim_param] = arrays[value.name].shape[axis]
    return [word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")]


def check(program, model, options, folder):
    path = folder / "written.onnx"
    subprocess.run([program, "graph", model, "--infer", *options, "-o", path], check=True, capture_output=True, text=True)
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    wanted = {value.name for value in session.get_inputs()}
    feeds = recorded(pathlib.Path(model)) or feeds_for(session)
    feeds = {name: array for name, array in feeds.items() if name in wanted}
    np.savez(folder / "in.npz", **feeds)
    subprocess.run([program, "run", model, "--infer", *options, "--inputs", folder / "in.npz", "--outputs", folder / "out.npz"],
                   check=True, capture_output=True, text=True)
    ours = np.load(folder / "out.npz")
    worst = 0.0
    for value, theirs in zip(session.get_outputs(), session.run(None, feeds)):
        if not np.issubdtype(theirs.dtype, np.floating):
            worst = max(worst, float(np.any(ours[value.name] != theirs)))
            continue
        worst = max(worst, float(np.max(np.abs(ours[value.name] - theirs)) / max(np.max(np.abs(theirs)), 1e-30)))
    print(f"{pathlib.Path(model).name}: valid, {path.stat().st_size} bytes, differs by {worst:.1e} of the largest output", flush=True)
    return worst < 1e-3


def main():
    program = sys.argv[1]
    listed = json.loads(subprocess.run([program, "models", "--json"], check=True, capture_output=True, text=True).stdout)
    built_in = {model["name"]: sizes_of(model) for model in listed["models"]}
    files = [str(path) for kind in ("exports", "light") for path in sorted((ROOT / "tests/onnx" / kind).glob("*.onnx"))
             if path.name not in ILL_CONDITIONED]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for model in sys.argv[2:] or [*built_in, *files]:
            try:
                options = built_in[model] if model in built_in else open_sizes(pathlib.Path(model))
                good = check(program, model, options, pathlib.Path(folder))
            except subprocess.CalledProcessError as problem:
                print(f"{model}: {problem.stderr.strip()}", flush=True)
                good = False
            except Exception as problem:
                print(f"{model}: {type(problem).__name__}: {str(problem)[:300]}", flush=True)
                good = False
            bad += not good
    print(f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
