#!/usr/bin/env python3
"""Which roundings of a bf16 step move its gradients? bert and whisper on the CPU, with what may stay in fp32 one by one.

  python3 tools/references/narrow_streams.py build/release/plimsoll [bert] [whisper-small]

Needs torch and numpy. `all bf16` rounds as our graphs do that narrow everything behind the weights; `autocast` is PyTorch's, the further of its two kinds of
attention. For each of ours: by how much gradients are off from fp32 on average, how many are beyond the bar of check_gradients_gpu.py, and the worst. What
may stay in fp32: rows of embedding tables (`embedding`), sums before a norm (`sums`), gradients along the residual connections (`gradients`), or all that runs
along them (`stream`, as under autocast)."""
import argparse
import pathlib
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

import check_gradients_gpu as checks

NARROW = torch.bfloat16
SIZES = {"bert": dict(batch=4, seq=128, layers=4, width=256, heads=4, vocab=2000),
         "whisper-small": dict(batch=2, seq=64, frames=400, layers=3, width=256, heads=4, vocab=2000)}
VARIANTS = (set(), {"embedding"}, {"sums"}, {"sums", "gradients"}, {"embedding", "sums"}, {"embedding", "gradients", "sums"}, {"stream"}, {"embedding", "stream"})


class Rounded:
    """The operators of a network in bf16, weights in fp32, but for what is wide."""

    def __init__(self, w, wide):
        self.w, self.wide = w, wide

    def table(self, name):
        return self.w[name] if "embedding" in self.wide else self.w[name].to(NARROW)

    def linear(self, x, name):
        bias = self.w.get(f"{name}.bias")
        return F.linear(x.to(NARROW), self.w[f"{name}.weight"].to(NARROW), None if bias is None else bias.to(NARROW))

    def along(self, x):
        """A value along the residual connections: rounded, unless the stream is wide; its gradient too, unless gradients are."""
        if "stream" in self.wide:
            return x.float()
        if "gradients" in self.wide:
            return x.float() + (x.to(NARROW).float() - x.float()).detach()
        return x.to(NARROW)

    def add(self, a, b):
        if not self.wide & {"sums", "stream", "gradients"}:
            return a + b
        y = a.float() + b.float()
        if not self.wide & {"stream", "gradients"} and y.requires_grad:
            y.register_hook(lambda g: g.to(NARROW).float())
        return y

    def norm(self, x, name, eps=1e-5):
        return self.along(F.layer_norm(x.float(), x.shape[-1:], self.w[f"{name}.weight"], self.w[f"{name}.bias"], eps))


def bert(o, inputs, heads):
    ids, at = inputs["input_ids"], "bert.embeddings"
    x = o.table(f"{at}.word_embeddings.weight")[ids] + o.table(f"{at}.token_type_embeddings.weight")[inputs["token_type_ids"]]
    x = o.norm(x + o.table(f"{at}.position_embeddings.weight")[: ids.shape[1]], f"{at}.LayerNorm", 1e-12)
    for i in range(1 + max(int(name.split(".")[3]) for name in o.w if name.startswith("bert.encoder.layer."))):
        name = f"bert.encoder.layer.{i}"
        y = checks.attend(*(o.linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value")), heads, False)
        x = o.norm(o.add(x, o.linear(y, f"{name}.attention.output.dense")), f"{name}.attention.output.LayerNorm", 1e-12)
        y = o.linear(F.gelu(o.linear(x, f"{name}.intermediate.dense")), f"{name}.output.dense")
        x = o.norm(o.add(x, y), f"{name}.output.LayerNorm", 1e-12)
    x = o.norm(F.gelu(o.linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm", 1e-12)
    return F.linear(x.to(NARROW), o.w["bert.embeddings.word_embeddings.weight"].to(NARROW), o.w["cls.predictions.bias"].to(NARROW))


def whisper(o, inputs, heads):
    def attention(x, keys, part, causal):
        q, k, v = o.linear(x, f"{part}.q_proj"), o.linear(keys, f"{part}.k_proj"), o.linear(keys, f"{part}.v_proj")
        return o.linear(checks.attend(q, k, v, heads, causal), f"{part}.out_proj")

    def block(x, name, memory):
        y = o.norm(x, f"{name}.self_attn_layer_norm")
        x = o.along(o.add(x, attention(y, y, f"{name}.self_attn", memory is not None)))
        if memory is not None:
            x = o.along(o.add(x, attention(o.norm(x, f"{name}.encoder_attn_layer_norm"), memory, f"{name}.encoder_attn", False)))
        return o.along(o.add(x, o.linear(F.gelu(o.linear(o.norm(x, f"{name}.final_layer_norm"), f"{name}.fc1")), f"{name}.fc2")))

    layers = 1 + max(int(name.split(".")[3]) for name in o.w if name.startswith("model.encoder.layers."))
    x = inputs["input_features"].to(NARROW)
    for i in (1, 2):
        x = F.gelu(F.conv1d(x, o.w[f"model.encoder.conv{i}.weight"].to(NARROW), o.w[f"model.encoder.conv{i}.bias"].to(NARROW), i, 1))
    x = o.along(o.add(x.transpose(1, 2), o.w["model.encoder.embed_positions.weight"].to(NARROW)))
    for i in range(layers):
        x = block(x, f"model.encoder.layers.{i}", None)
    memory, ids = o.norm(x, "model.encoder.layer_norm"), inputs["decoder_input_ids"]
    x = o.along(o.table("model.decoder.embed_tokens.weight")[ids] + o.table("model.decoder.embed_positions.weight")[: ids.shape[1]])
    for i in range(layers):
        x = block(x, f"model.decoder.layers.{i}", memory)
    return F.linear(o.norm(x, "model.decoder.layer_norm").to(NARROW), o.w["model.decoder.embed_tokens.weight"].to(NARROW))


def gradients(model, heads, start, data, wide):
    """As an optimizer that reads them in bf16 has them."""
    w = {name: torch.from_numpy(array).requires_grad_() for name, array in start.items() if array.dtype == np.float32}
    inputs = {name: torch.from_numpy(array) for name, array in data.items()}
    logits = {"bert": bert, "whisper-small": whisper}[model](Rounded(w, wide), inputs, heads)
    F.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), inputs["labels"].reshape(-1)).backward()
    return {name: x.grad.to(NARROW).double().numpy() for name, x in w.items() if x.grad is not None}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    for model in options.models or SIZES:
        sizes = SIZES[model]
        with tempfile.TemporaryDirectory() as folder:
            start = checks.Program(options.program, pathlib.Path(folder), "cpu").weights(model, sizes)
        data = checks.data_of(model, sizes)
        exact = checks.torch_gradients(model, sizes, start, data, "cpu")[1]
        total = np.sqrt(sum(np.linalg.norm(g) ** 2 for g in exact.values()))
        names = [name for name in exact if np.linalg.norm(exact[name]) > 1e-6 * total]
        theirs = [checks.torch_gradients(model, sizes, start, data, "cpu", True, other)[1] for other in (False, True)]
        further = {name: max(checks.distance(their[name], exact[name]) for their in theirs) for name in names}
        print(f"{model}: autocast is off by {np.mean(list(further.values())):.2e} on average")
        for wide in VARIANTS:
            ours = gradients(model, sizes["heads"], start, data, wide)
            off = {name: checks.distance(ours[name], exact[name]) for name in names}
            beyond = sum(off[name] > checks.SPREAD * further[name] + checks.ROUNDING for name in names)
            ratio, worst = max((off[name] / further[name], name) for name in names)
            print(f"  {' and '.join(sorted(wide)) + ' fp32' if wide else 'all bf16':36} {np.mean(list(off.values())):.2e}, {beyond:2} beyond, the worst {ratio:.2f} times ({worst})", flush=True)


if __name__ == "__main__":
    main()
