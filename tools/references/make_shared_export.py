#!/usr/bin/env python3
"""A small model as PyTorch's older exporter writes it, and how PyTorch trains it: tests/running/shared.onnx, shared.npz.

    python3 tools/references/make_shared_export.py        a Python with torch and onnx

Biases begin as zeros and gains as ones, as in a fresh model, so the exporter stores one of each for all layers and
tells them apart by Identity nodes. The frequencies of its positions are a buffer. shared.npz has the inputs of one
batch, the losses of five steps of SGD with --lr 0.5, and how many parameters the model has.
"""
import pathlib

import numpy
import torch

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/running"
WIDTH, TOKENS, LENGTH = 8, 20, 6


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH)
        for layer in (self.up, self.down):
            torch.nn.init.zeros_(layer.bias)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(TOKENS, WIDTH)
        self.register_buffer("inv_freq", 10 ** -torch.linspace(0, 2, WIDTH))
        self.blocks = torch.nn.Sequential(*(Block() for _ in range(3)))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, TOKENS)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], dtype=torch.float32)
        x = self.tokens(ids) + torch.cos(positions[:, None] * self.inv_freq)
        return self.head(self.norm(self.blocks(x)))


def main():
    torch.manual_seed(1)
    model = Model()
    ids = torch.randint(0, TOKENS, (2, LENGTH))
    labels = torch.randint(0, TOKENS, (2, LENGTH))
    torch.onnx.export(model.eval(), (ids,), FOLDER / "shared.onnx", input_names=["ids"], output_names=["logits"], dynamo=False, dynamic_axes={"ids": {0: "batch"}})
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    parameters = sum(parameter.numel() for parameter in model.parameters())
    numpy.savez(FOLDER / "shared.npz", ids=ids.numpy(), labels=labels.numpy(), losses=numpy.array(losses), parameters=numpy.array([parameters]))
    print(losses, parameters, len(list(model.parameters())))


if __name__ == "__main__":
    main()
