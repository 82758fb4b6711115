#!/usr/bin/env python3
"""Makes tests/references/*.json: what PyTorch computes from weights and data that C++ can make too.

    python3 -m venv venv && venv/bin/pip install torch torchvision transformers numpy
    venv/bin/python tools/references/make_references.py [--only NAME]

Weights and data come from deterministic.py, so only numbers are committed. Small networks in fp64: the loss, for
every weight the norm of its gradient and its dot product with a deterministic vector, the loss after five steps
of SGD and of AdamW. Real widths in fp32: the loss of the first step, and the gradients' norms and their dot
products with several vectors.
"""
import argparse
import json
import pathlib

import numpy as np
import torch

import deterministic
import networks

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "references"
STEPS = 5
SGD_RATE = {"resnet50": 0.0001}  # 0.01 for the others
VECTORS = 4  # per gradient, for the fp32 references

IMAGE = dict(batch=4, width=4, classes=10)
SMALL = {
    "mlp": ("mlp", networks.mlp, dict(batch=4, image=8, width=16, layers=2, classes=10)),
    "alexnet": ("alexnet", networks.alexnet, dict(IMAGE, image=95)),
    "resnet18": ("resnet18", networks.resnet, dict(IMAGE, image=32, depth=18)),
    # At 32 x 32 the last batch norms see four numbers, and a change of 1e-15 in the weights grows to 1e-5 in
    # five steps of PyTorch itself. With more numbers and the smaller rate below it stays under 1e-9.
    "resnet50": ("resnet50", networks.resnet, dict(IMAGE, batch=8, image=64, depth=50)),
    "lstm": ("lstm", networks.lstm, dict(batch=3, seq=5, width=8, layers=2, classes=11)),
    "gpt2": ("gpt2", networks.gpt2, dict(batch=2, seq=7, width=16, layers=2, heads=2, vocab=61)),
    "bert": ("bert", networks.bert, dict(batch=2, seq=7, width=16, layers=2, heads=2, vocab=61)),
    "whisper": ("whisper-small", networks.whisper,
                dict(batch=2, seq=5, frames=12, width=16, layers=2, heads=2, vocab=61)),
    "moe": ("moe", networks.moe, dict(batch=2, seq=7, width=16, layers=2, heads=2, vocab=61, experts=3)),
}
REAL = {
    "alexnet": ("alexnet", networks.alexnet, dict(batch=2, image=224, width=64, classes=1000)),
    "resnet18": ("resnet18", networks.resnet, dict(batch=2, image=224, depth=18, width=64, classes=1000)),
    "resnet50": ("resnet50", networks.resnet, dict(batch=2, image=224, depth=50, width=64, classes=1000)),
    "lstm": ("lstm", networks.lstm, dict(batch=4, seq=8, width=1024, layers=4, classes=5000)),
    "gpt2": ("gpt2", networks.gpt2, dict(batch=1, seq=64, width=768, layers=12, heads=12, vocab=50257)),
    "bert": ("bert", networks.bert, dict(batch=1, seq=64, width=768, layers=12, heads=12, vocab=30522)),
    "whisper": ("whisper-small", networks.whisper,
                dict(batch=1, seq=16, frames=200, width=768, layers=12, heads=12, vocab=51865)),
}


def make_inputs(model, o, dtype):
    """The inputs of the zoo's model of this name, in order, and its labels."""
    floats = lambda name, shape: torch.tensor(deterministic.uniform(name, shape), dtype=dtype)
    tokens = lambda name, shape, bound: torch.tensor(deterministic.below(name, shape, bound))
    b = o["batch"]
    if model == "lstm":
        return {"inputs": floats("inputs", (b, o["seq"], 50))}, tokens("labels", (b, o["seq"]), o["classes"])
    if model in ("gpt2", "bert", "whisper-small", "moe"):
        ids = (b, o["seq"])
        labels = tokens("labels", ids, o["vocab"])
        if model in ("gpt2", "moe"):
            return {"input_ids": tokens("input_ids", ids, o["vocab"])}, labels
        if model == "bert":
            return {"input_ids": tokens("input_ids", ids, o["vocab"]),
                    "token_type_ids": tokens("token_type_ids", ids, 2)}, labels
        return {"input_features": floats("input_features", (b, 80, o["frames"])),
                "decoder_input_ids": tokens("decoder_input_ids", ids, o["vocab"])}, labels
    shape = (b, 1 if model == "mlp" else 3, o["image"], o["image"])
    return {"images": floats("images", shape)}, tokens("labels", (b,), o["classes"])


def set_weights(network):
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.tensor(deterministic.weight(name, tuple(parameter.shape))))


def loss_of(network, inputs, labels):
    named = isinstance(network, networks.Logits)
    logits = network(**inputs) if named else network(*inputs.values())
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def gradient_summary(name, gradient, vectors):
    flat = gradient.double().numpy().reshape(-1)
    dots = [float(flat @ deterministic.uniform(f"{name}#{v}", flat.shape)) for v in range(vectors)]
    return {"name": name, "shape": list(gradient.shape), "norm": float(np.linalg.norm(flat)), "dots": dots}


def fill_gradients(network):
    """An expert that no token took has a gradient of zeros; PyTorch would leave its weights out of the step."""
    for parameter in network.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)


def losses_with(optimizer, network, inputs, labels):
    """The loss before each of the steps and after the last."""
    set_weights(network)
    out = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(network, inputs, labels)
        loss.backward()
        fill_gradients(network)
        optimizer.step()
        out.append(loss.item())
    return out + [loss_of(network, inputs, labels).item()]


def reference(model, make, options, dtype, vectors):
    torch.manual_seed(0)
    network = make(options).to(dtype).train()
    inputs, labels = make_inputs(model, options, dtype)
    set_weights(network)
    loss = loss_of(network, inputs, labels)
    loss.backward()
    fill_gradients(network)
    # "depth" chooses the torch network; the zoo has it in the name.
    shown = {k: v for k, v in options.items() if k != "depth"}
    return network, inputs, labels, {
        "schema": 1, "model": model, "dtype": "fp64" if dtype == torch.float64 else "fp32", "options": shown,
        "loss": loss.item(),
        "gradients": [gradient_summary(n, p.grad, vectors) for n, p in network.named_parameters()]}


def write(name, content):
    (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    print(name, content["loss"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="one network by name")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (model, make, options) in SMALL.items():
        if only not in (None, name):
            continue
        network, inputs, labels, out = reference(model, make, options, torch.float64, 1)
        rate = SGD_RATE.get(name, 0.01)
        sgd = torch.optim.SGD(network.parameters(), lr=rate)
        out["sgd"] = {"lr": rate, "losses": losses_with(sgd, network, inputs, labels)}
        adamw = torch.optim.AdamW(network.parameters(), lr=0.001, weight_decay=0.01)
        out["adamw"] = {"lr": 0.001, "weight_decay": 0.01, "losses": losses_with(adamw, network, inputs, labels)}
        write(f"{name}_fp64", out)
    for name, (model, make, options) in REAL.items():
        if only in (None, name):
            write(f"{name}_fp32", reference(model, make, options, torch.float32, VECTORS)[3])


if __name__ == "__main__":
    main()
