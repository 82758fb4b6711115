#!/usr/bin/env python3
"""Prints the reference numbers of src/plimsoll/ops/nn_operators_test.cpp, computed by PyTorch in fp64.

    python tools/references/nn_operators.py        (needs torch; the tests do not)

Inputs are waves, sin(1.3 i + phase), which both sides can make; a result is committed as two weighted
sums, which no plausible mistake leaves unchanged.
"""
import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def wave(shape, phase):
    count = math.prod(shape)
    return torch.tensor([math.sin(1.3 * i + phase) for i in range(count)]).reshape(shape)


def show(name, *results):
    for i, result in enumerate(results):
        flat = result.detach().reshape(-1)
        sums = [float((flat * wave(flat.shape, phase)).sum()) for phase in (0.1, 2.3)]
        print(f"{name}[{i}] {list(result.shape)}: {sums[0]:.15g}, {sums[1]:.15g}")


def with_gradients(name, function, inputs):
    """Results, then the gradients of every input for waves as adjoints of the first result."""
    inputs = [x.requires_grad_() for x in inputs]
    y = function(*inputs)
    show(name, y)
    show(name + " gradients", *torch.autograd.grad(y, inputs, wave(y.shape, 0.7)))


def products():
    with_gradients("conv2d", lambda x, w, b: F.conv2d(F.pad(x, (1, 2, 0, 1)), w, b, stride=(2, 1), dilation=(1, 2), groups=2),
                   [wave((2, 4, 6, 7), 0.0), wave((6, 2, 3, 2), 0.5), wave((6,), 1.0)])
    with_gradients("conv1d", lambda x, w: F.conv1d(x, w, stride=2, padding=1), [wave((2, 3, 9), 0.0), wave((4, 3, 3), 0.5)])
    with_gradients("conv3d", lambda x, w: F.conv3d(x, w, padding=1), [wave((1, 2, 3, 4, 3), 0.0), wave((2, 2, 2, 3, 2), 0.5)])
    with_gradients("conv_transpose", lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(2, 3), padding=1, output_padding=(1, 0), groups=2),
                   [wave((2, 4, 3, 4), 0.0), wave((4, 3, 3, 2), 0.5), wave((6,), 1.0)])
    with_gradients("matmul", torch.matmul, [wave((3, 1, 2, 4), 0.0), wave((5, 4, 3), 0.5)])
    with_gradients("linear", F.linear, [wave((2, 3, 4), 0.0), wave((5, 4), 0.5), wave((5,), 1.0)])


def attention():
    def run(q, k, v, heads, kv_heads, causal, mask):
        batch, rows, columns = q.shape[0], q.shape[1], k.shape[1]
        split = lambda x, h: x.reshape(batch, x.shape[1], h, -1).transpose(1, 2)
        q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
        k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores + mask
        if causal:
            hidden = torch.ones(rows, columns, dtype=torch.bool).triu(columns - rows + 1)
            scores = scores.masked_fill(hidden, -math.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, rows, -1)

    inputs = lambda: [wave((2, 3, 8), 0.0), wave((2, 5, 4), 0.5), wave((2, 5, 6), 1.0)]
    mask = wave((2, 1, 3, 5), 0.2)
    with_gradients("attention", lambda q, k, v: run(q, k, v, 4, 2, False, None), inputs())
    with_gradients("attention causal masked", lambda q, k, v: run(q, k, v, 4, 2, True, mask), inputs())
    with_gradients("attention_qkv causal", lambda x: run(*x.chunk(3, -1), 2, 2, True, None), [wave((2, 4, 12), 0.0)])


def norms():
    x = lambda: wave((3, 4, 2, 3), 0.0)
    gamma, beta = (lambda: wave((4,), 0.5)), (lambda: wave((4,), 1.0))
    with_gradients("batch_norm", lambda x, g, b: F.batch_norm(x, None, None, g, b, True, 0.1, 1e-3), [x(), gamma(), beta()])
    with_gradients("batch_norm relu", lambda x, g, b: F.batch_norm(x, None, None, g, b, True, 0.1, 1e-3).relu(), [x(), gamma(), beta()])
    mean, var = wave((4,), 0.3), wave((4,), 0.4) + 2
    show("batch_norm_inference", F.batch_norm(x(), mean, var, gamma(), beta(), False, 0.1, 1e-3))
    F.batch_norm(x(), mean, var, gamma(), beta(), True, 0.1, 1e-3)
    show("batch_norm_update", mean, var)
    with_gradients("layer_norm", lambda x, g, b: F.layer_norm(x, (2, 3), g, b, 1e-3), [x(), wave((2, 3), 0.5), wave((2, 3), 1.0)])
    with_gradients("rms_norm", lambda x, g: x * (x.square().mean((2, 3), keepdim=True) + 1e-3).rsqrt() * g, [x(), wave((2, 3), 0.5)])
    with_gradients("group_norm", lambda x, g, b: F.group_norm(x, 2, g, b, 1e-3), [x(), gamma(), beta()])
    with_gradients("lrn", lambda x: F.local_response_norm(x, 3, 0.5, 0.75, 2.0), [x()])
    with_gradients("softmax", lambda x: x.softmax(1), [x()])
    with_gradients("log_softmax", lambda x: x.log_softmax(1), [x()])
    labels = torch.tensor([2, -100, 0, 4])
    with_gradients("cross_entropy", lambda x: F.cross_entropy(x, labels), [wave((4, 5), 0.0)])


def pools():
    x = lambda: wave((2, 3, 7, 6), 0.0)
    with_gradients("max_pool", lambda x: F.max_pool2d(x, (3, 2), (2, 2), (1, 0), (2, 1), True), [x()])
    with_gradients("avg_pool", lambda x: F.avg_pool2d(x, (3, 2), (2, 3), (1, 1), True, False), [x()])
    with_gradients("avg_pool padded", lambda x: F.avg_pool2d(x, (3, 2), (2, 3), (1, 1), True, True), [x()])


def updates():
    makers = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        "adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.01),
    }
    for name, make in makers.items():
        w = wave((6,), 0.0).requires_grad_()
        optimizer = make([w])
        for step in range(3):
            w.grad = 0.5 * wave((6,), 1.0 + step)
            optimizer.step()
        show(name, w)


def recurrent():
    x, h, c = wave((2, 3), 0.0), wave((2, 4), 0.5), wave((2, 4), 1.0)
    for name, cell, gates in (("lstm", torch.nn.LSTMCell(3, 4), 4), ("gru", torch.nn.GRUCell(3, 4), 3)):
        with torch.no_grad():
            cell.weight_ih.copy_(wave((gates * 4, 3), 0.1))
            cell.weight_hh.copy_(wave((gates * 4, 4), 0.2))
            cell.bias_ih.copy_(wave((gates * 4,), 0.3))
            cell.bias_hh.copy_(wave((gates * 4,), 0.4))
        show(name, *(cell(x, (h, c)) if name == "lstm" else [cell(x, h)]))


for family in (products, attention, norms, pools, updates, recurrent):
    family()
