#!/usr/bin/env python3
"""Writes tests/running/drop_path.onnx: residual layers that a training step leaves out at random, example by example, as timm's models do it
(drop path). PyTorch's exporter writes RandomUniformLike, Less, Cast, Div and Mul for each.

  python3 tools/references/make_drop_path_export.py

Needs torch and onnx."""
import pathlib
import warnings

import torch

warnings.filterwarnings("ignore")


class DropPath(torch.nn.Module):
    def __init__(self, ratio):
        super().__init__()
        self.keep = 1 - ratio

    def forward(self, x):
        drawn = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(self.keep)
        return x * drawn.div_(self.keep)


class Network(torch.nn.Module):
    def __init__(self, layers=4, width=48):
        super().__init__()
        self.first = torch.nn.Linear(16, width)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(layers))
        self.drop = DropPath(0.4)
        self.last = torch.nn.Linear(width, 10)

    def forward(self, x):
        x = self.first(x)
        for norm, layer in zip(self.norms, self.layers):
            x = x + self.drop(torch.nn.functional.gelu(layer(norm(x))))
        return self.last(x)


def main():
    torch.manual_seed(0)
    model = Network()
    with torch.no_grad():
        for weight in model.parameters():  # no two are equal, or the exporter stores them once
            weight.add_(1e-3 * torch.randn_like(weight))
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/running/drop_path.onnx"
    torch.onnx.export(model.train(), (torch.randn(8, 16),), str(path), input_names=["x"], output_names=["logits"], dynamic_axes={"x": {0: "batch"}},
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17, dynamo=False)


if __name__ == "__main__":
    main()
