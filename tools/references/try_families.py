#!/usr/bin/env python3
"""Exports many model families (families.py) from PyTorch with open dimensions and tries the program on each:

  python3 tools/references/try_families.py build/release/plimsoll [name ...] [--exporters script,dynamo] [--folder DIR]

Each file is run at the sizes it was exported with (2 x 12) and at others (3 x 9), its outputs held to PyTorch's within
1e-4 of the largest; then one step of cross-entropy training is taken and the gradients of weights that kept their values
are held to PyTorch's (2e-3). Tensors an exporter stored apart, or turned, count as one weight. Where outputs differ,
onnxruntime is asked too: a file that neither reads is the exporter's. Needs torch, torchvision, transformers, timm, onnx,
onnxscript, onnxruntime."""
import argparse
import contextlib
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper

from check_gradients import QUIET, bound
from export_onnx import Logits, settle
from families import FAMILIES

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)


@contextlib.contextmanager
def silence():
    """Also for what C++ prints: an exporter that fails prints its whole graph."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def export(model, inputs, axes, path, exporter):
    names, arguments = list(inputs), tuple(inputs.values())
    with silence():
        if exporter == "script":
            torch.onnx.export(model, arguments, str(path), dynamo=False, input_names=names, output_names=["out"], opset_version=17, dynamic_axes=axes)
            return
        shapes = tuple({axis: torch.export.Dim.AUTO for axis in axes[name]} for name in names)
        program = torch.onnx.export(model, arguments, dynamo=True, input_names=names, output_names=["out"], verbose=False,
                                    dynamic_shapes=(shapes,) if isinstance(model, Logits) else shapes)
        onnx.save(program.model_proto, str(path))


def program_says(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=300)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]


def difference(ours, theirs):
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, expected {theirs.shape}"
    apart = np.abs(ours.astype(np.float64) - theirs).max() / max(1e-3, np.abs(theirs).max())
    return None if apart <= 1e-4 else f"differs by {apart:.1e}"


def outputs(program, path, inputs, expected, folder):
    np.savez(folder / "in.npz", **{name: value.numpy() for name, value in inputs.items()})
    wrong = program_says(program, "run", path, "--inputs", folder / "in.npz", "--outputs", folder / "out.npz")
    if wrong is None:
        found = np.load(folder / "out.npz")
        wrong = difference(found[found.files[0]], expected)
    if wrong is None:
        return "same"
    try:
        session = onnxruntime.InferenceSession(str(path), QUIET, providers=["CPUExecutionProvider"])
        other = difference(session.run(None, {value.name: inputs[value.name].numpy() for value in session.get_inputs()})[0], expected)
    except Exception as problem:
        other = f"refuses: {str(problem)[:80]}"
    return f"{'WRONG ' if other is None else 'exporter '}({wrong}; onnxruntime {other or 'agrees with PyTorch'})"


def class_axis(y):
    return 1 if y.dim() >= 4 else y.dim() - 1


def gradient_in_file(weight, before, after):
    """What all copies of a weight lost, also those that stand turned."""
    total = 0
    for name, value in before.items():
        if name not in after:
            continue
        if value.shape == weight.shape and np.array_equal(value, weight):
            total = total + (value.astype(np.float64) - after[name])
        elif value.ndim == 2 and value.T.shape == weight.shape and np.array_equal(value.T, weight):
            total = total + (value.astype(np.float64) - after[name]).T
    return total


def training(program, path, model, inputs, folder):
    y = model(*inputs.values())
    if y.dim() < 2:
        return "no classes"
    axis = class_axis(y)
    labels = torch.randint(0, y.shape[axis], [size for at, size in enumerate(y.shape) if at != axis])
    model.zero_grad()
    torch.nn.functional.cross_entropy(y.movedim(axis, 1), labels).backward()
    file = onnx.load(path)
    before = {t.name: numpy_helper.to_array(t) for t in file.graph.initializer}
    feeds = {name: value.numpy() for name, value in inputs.items()}
    np.savez(folder / "data.npz", labels=labels.numpy(), **feeds)
    wrong = program_says(program, "run", path, "--train", "--loss", "cross-entropy", "--optimizer", "sgd", "--lr", "1", "--weight-decay", "0", "--steps", "1",
                         "--data", folder / "data.npz", "--save", folder / "after.npz", *bound(file, feeds))
    if wrong:
        return f"WRONG ({wrong})"
    after = dict(np.load(folder / "after.npz"))
    compared, apart = 0, []
    for name, parameter in model.named_parameters():
        weight = parameter.detach().numpy()
        if parameter.grad is None or name not in before or name not in after or not np.array_equal(before[name], weight):
            continue
        compared += 1
        theirs = parameter.grad.numpy()
        limit = 2e-3 * np.abs(theirs).max() + 3e-7 * np.abs(weight).max() + 1e-6
        if np.abs(gradient_in_file(weight, before, after) - theirs).max() > limit:
            apart.append(name)
    return f"{compared - len(apart)} of {compared} gradients" + (f", not {', '.join(apart[:3])}" if apart else "")


def try_family(program, name, exporters, folder):
    torch.manual_seed(zlib.crc32(name.encode()) % 2**31)
    model, make, axes = FAMILIES[name]()
    model.eval()
    settle(model)
    first, second = make(2, 12), make(3, 9)
    with torch.no_grad():
        expected = [(first, model(*first.values()).numpy()), (second, model(*second.values()).numpy())]
    for exporter in exporters:
        path = folder / f"{name}.{exporter}.onnx"
        try:
            export(model, first, axes, path, exporter)
        except Exception as problem:
            print(f"{path.stem}: not exported: {type(problem).__name__}: {' '.join(str(problem).split())[:80]}", flush=True)
            continue
        said = [outputs(program, path, inputs, y, folder) for inputs, y in expected]
        step = "not tried" if said[0].startswith("exporter") else training(program, path, model, first, folder)
        print(f"{path.stem}: {said[0]}; at other sizes {said[1]}; training {step}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("names", nargs="*", help="before the options")
    parser.add_argument("--exporters", default="script,dynamo")
    parser.add_argument("--folder", type=pathlib.Path, help="keep the files here")
    options = parser.parse_args()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.names or FAMILIES:
            try:
                try_family(options.program, name, options.exporters.split(","), folder)
            except Exception as problem:  # a family that this version of a library has no more
                print(f"{name}: not made: {type(problem).__name__}: {' '.join(str(problem).split())[:80]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
