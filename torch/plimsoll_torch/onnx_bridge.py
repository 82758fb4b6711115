"""From PyTorch to Plimsoll's own runtime, and the trained weights back.

    pt.export(model, (x, y), "m.onnx")       # training form: batch norm is not folded, weights keep their names
    pt.load_weights(model, "w.npz")          # by name, every one of them, or an error that says which do not agree
"""
import contextlib

import torch


def export(model, example, path, **options):
    """Writes the model as ONNX in the form that Plimsoll trains: initialisers are named as the state dictionary names them."""
    example = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    names = {n for n, _ in model.named_parameters()} | {n for n, _ in model.named_buffers()}
    held, model._compiled_call_impl = getattr(model, "_compiled_call_impl", None), None
    was_training = model.training
    try:
        model.train()
        torch.onnx.export(model, example, path, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, dynamo=False, **options)
    finally:
        model.train(was_training)
        model._compiled_call_impl = held
    with contextlib.suppress(ImportError):  # where the onnx package is there, the names are checked
        import onnx
        written = {i.name for i in onnx.load(path, load_external_data=False).graph.initializer}
        lost = {n for n, p in model.named_parameters() if n not in written}
        tied = {n for n, p in model.named_parameters(remove_duplicate=False)} - {n for n, _ in model.named_parameters()}
        if lost - tied:
            raise RuntimeError(f"export: {path} does not have the parameters {sorted(lost - tied)[:5]} by their names ({len(names)} expected)")
    return path


def load_weights(model, path, strict=True):
    """Copies the arrays of an .npz file into parameters and buffers of the same names; the names that were set."""
    import numpy
    with numpy.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    missing, unknown = sorted(set(own) - set(arrays)), sorted(set(arrays) - set(own))
    if strict and (missing or unknown):
        raise ValueError(f"load_weights: {path} has no {missing[:5]} ({len(missing)} in all) and has {unknown[:5]} ({len(unknown)}) that the model "
                         "does not; pass strict=False to load what agrees")
    loaded = sorted(set(own) & set(arrays))
    for name in loaded:
        if tuple(arrays[name].shape) != tuple(own[name].shape):
            raise ValueError(f"load_weights: '{name}' is {tuple(arrays[name].shape)} in {path}, {tuple(own[name].shape)} in the model")
    with torch.no_grad():
        for name in loaded:
            own[name].copy_(torch.from_numpy(arrays[name].copy()))
    return loaded
