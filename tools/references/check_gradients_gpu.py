#!/usr/bin/env python3
"""Gradients of built-in models on a card, beside PyTorch's on the same card, from the same weights and data.

  python3 tools/references/check_gradients_gpu.py build/release/plimsoll [MODEL ...] [--device cuda] [--amp] [--small]

Needs torch and numpy. The program makes the weights (`--save`) and takes one step of SGD at a large rate; what it changed, divided by the
rate, is the gradient. PyTorch computes the network from the same arrays, written out below by their names.

fp32: the loss must agree to 1e-5 of itself, and the cosine of every gradient with PyTorch's must be 0.9999. Batch norms of untrained networks make
gradients that no fp32 computes so well: where the cosine is less, ours must be no further from PyTorch's fp64 than 1.25 times the further of PyTorch's
fp32 in its two memory formats.
With --amp the program computes in bf16, PyTorch under autocast in two ways (its two memory formats for images, its two kinds of attention for words): over
three batches together no gradient may be further from PyTorch's fp32 than 1.25 times the further of those two, beside what storing it in bf16 rounds off (the
optimizer here reads gradients in bf16, PyTorch's in fp32), and the losses no further than twice.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

RATE = 1e4
LOSS, COSINE, SPREAD = 1e-5, 0.9999, 1.25
ROUNDING = 2.0**-9  # of a number that is stored in bf16: at most half a unit in the last of 8 bits
# options of the program; --small is for trying the script out without a card
MODELS = {
    "alexnet": (dict(batch=16), dict(batch=2, image=95, width=8, classes=10)),
    "resnet50": (dict(batch=16), dict(batch=4, image=64, width=8, classes=10)),
    "resnet101": (dict(batch=8), dict(batch=4, image=64, width=8, classes=10)),
    "gpt2": (dict(batch=4, seq=512, layers=4), dict(batch=2, seq=32, layers=2, width=128, heads=2, vocab=97)),
    "bert": (dict(batch=4, seq=512, layers=4), dict(batch=2, seq=32, layers=2, width=128, heads=2, vocab=97)),
    "whisper-small": (dict(batch=2, seq=64, layers=3), dict(batch=2, seq=16, frames=64, layers=2, width=128, heads=2, vocab=97)),
}
DEFAULTS = dict(image=224, classes=1000, frames=3000)
VOCABULARY = {"gpt2": 50257, "bert": 30522, "whisper-small": 51865}
STAGES = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}


def alexnet(w, inputs):
    x = inputs["images"]
    for at, stride, pad, pools in ((0, 4, 2, True), (3, 1, 2, True), (6, 1, 1, False), (8, 1, 1, False), (10, 1, 1, True)):
        x = F.relu(F.conv2d(x, w[f"features.{at}.weight"], w[f"features.{at}.bias"], stride, pad))
        x = F.max_pool2d(x, 3, 2) if pools else x
    x = F.adaptive_avg_pool2d(x, 6).flatten(1)
    for at in (1, 4):
        x = F.relu(F.linear(x, w[f"classifier.{at}.weight"], w[f"classifier.{at}.bias"]))
    return F.linear(x, w["classifier.6.weight"], w["classifier.6.bias"])


def resnet(w, inputs, stages):
    norm = lambda x, name: F.batch_norm(x, None, None, w[f"{name}.weight"], w[f"{name}.bias"], True)
    x = F.max_pool2d(F.relu(norm(F.conv2d(inputs["images"], w["conv1.weight"], None, 2, 3), "bn1")), 3, 2, 1)
    for stage, blocks in enumerate(stages):
        for block in range(blocks):
            name, stride = f"layer{stage + 1}.{block}", 2 if stage > 0 and block == 0 else 1
            y = F.relu(norm(F.conv2d(x, w[f"{name}.conv1.weight"]), f"{name}.bn1"))
            y = F.relu(norm(F.conv2d(y, w[f"{name}.conv2.weight"], None, stride, 1), f"{name}.bn2"))
            y = norm(F.conv2d(y, w[f"{name}.conv3.weight"]), f"{name}.bn3")
            if block == 0:
                x = norm(F.conv2d(x, w[f"{name}.downsample.0.weight"], None, stride), f"{name}.downsample.1")
            x = F.relu(x + y)
    return F.linear(x.mean((2, 3)), w["fc.weight"], w["fc.bias"])


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def attend(q, k, v, heads, causal):
    y = F.scaled_dot_product_attention(*(heads_of(x, heads) for x in (q, k, v)), is_causal=causal)
    return y.transpose(1, 2).flatten(2)


def layer_norm(w, x, name, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps)


def linear(w, x, name):
    return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def gpt2(w, inputs, heads):
    ids = inputs["input_ids"]
    product = lambda x, name: x @ w[f"{name}.weight"].to(x.dtype) + w[f"{name}.bias"].to(x.dtype) if x.dtype != torch.float32 else F.linear(
        x, w[f"{name}.weight"].t(), w[f"{name}.bias"])
    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][: ids.shape[1]]
    for i in range(1 + max(int(name.split(".")[2]) for name in w if name.startswith("transformer.h."))):
        name = f"transformer.h.{i}"
        q, k, v = product(layer_norm(w, x, f"{name}.ln_1"), f"{name}.attn.c_attn").chunk(3, -1)
        x = x + product(attend(q, k, v, heads, True), f"{name}.attn.c_proj")
        y = F.gelu(product(layer_norm(w, x, f"{name}.ln_2"), f"{name}.mlp.c_fc"), approximate="tanh")
        x = x + product(y, f"{name}.mlp.c_proj")
    return F.linear(layer_norm(w, x, "transformer.ln_f"), w["transformer.wte.weight"])


def bert(w, inputs, heads):
    ids, at = inputs["input_ids"], "bert.embeddings"
    x = w[f"{at}.word_embeddings.weight"][ids] + w[f"{at}.position_embeddings.weight"][: ids.shape[1]] + w[f"{at}.token_type_embeddings.weight"][
        inputs["token_type_ids"]]
    x = layer_norm(w, x, f"{at}.LayerNorm", 1e-12)
    for i in range(1 + max(int(name.split(".")[3]) for name in w if name.startswith("bert.encoder.layer."))):
        name = f"bert.encoder.layer.{i}"
        y = attend(*(linear(w, x, f"{name}.attention.self.{part}") for part in ("query", "key", "value")), heads, False)
        x = layer_norm(w, x + linear(w, y, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm", 1e-12)
        y = linear(w, F.gelu(linear(w, x, f"{name}.intermediate.dense")), f"{name}.output.dense")
        x = layer_norm(w, x + y, f"{name}.output.LayerNorm", 1e-12)
    x = layer_norm(w, F.gelu(linear(w, x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm", 1e-12)
    return F.linear(x, w["bert.embeddings.word_embeddings.weight"], w["cls.predictions.bias"])


def whisper(w, inputs, heads):
    def block(x, name, memory):
        def attention(x, keys, part, causal):
            q, k, v = linear(w, x, f"{part}.q_proj"), linear(w, keys, f"{part}.k_proj"), linear(w, keys, f"{part}.v_proj")
            return linear(w, attend(q, k, v, heads, causal), f"{part}.out_proj")

        y = layer_norm(w, x, f"{name}.self_attn_layer_norm")
        x = x + attention(y, y, f"{name}.self_attn", memory is not None)
        if memory is not None:
            x = x + attention(layer_norm(w, x, f"{name}.encoder_attn_layer_norm"), memory, f"{name}.encoder_attn", False)
        return x + linear(w, F.gelu(linear(w, layer_norm(w, x, f"{name}.final_layer_norm"), f"{name}.fc1")), f"{name}.fc2")

    layers = 1 + max(int(name.split(".")[3]) for name in w if name.startswith("model.encoder.layers."))
    x = inputs["input_features"]
    for i in (1, 2):
        x = F.gelu(F.conv1d(x, w[f"model.encoder.conv{i}.weight"], w[f"model.encoder.conv{i}.bias"], i, 1))
    x = x.transpose(1, 2) + w["model.encoder.embed_positions.weight"]
    for i in range(layers):
        x = block(x, f"model.encoder.layers.{i}", None)
    memory = layer_norm(w, x, "model.encoder.layer_norm")
    ids = inputs["decoder_input_ids"]
    x = w["model.decoder.embed_tokens.weight"][ids] + w["model.decoder.embed_positions.weight"][: ids.shape[1]]
    for i in range(layers):
        x = block(x, f"model.decoder.layers.{i}", memory)
    return F.linear(layer_norm(w, x, "model.decoder.layer_norm"), w["model.decoder.embed_tokens.weight"])


def network_of(model, options):
    if model == "alexnet":
        return alexnet
    if model in STAGES:
        return lambda w, inputs: resnet(w, inputs, STAGES[model])
    heads = options.get("heads", 12)
    return lambda w, inputs: {"gpt2": gpt2, "bert": bert, "whisper-small": whisper}[model](w, inputs, heads)


def data_of(model, options, seed=1):
    random, o = np.random.default_rng(seed), dict(DEFAULTS, **options)
    batch, words = o["batch"], o.get("vocab", VOCABULARY.get(model))
    tokens = lambda bound: random.integers(0, bound, (batch, o["seq"]))
    floats = lambda *shape: random.standard_normal(shape).astype(np.float32)
    if model == "gpt2":
        return {"input_ids": tokens(words), "labels": tokens(words)}
    if model == "bert":
        return {"input_ids": tokens(words), "token_type_ids": tokens(2), "labels": tokens(words)}
    if model == "whisper-small":
        return {"input_features": floats(batch, 80, o["frames"]), "decoder_input_ids": tokens(words), "labels": tokens(words)}
    return {"images": floats(batch, 3, o["image"], o["image"]), "labels": random.integers(0, o["classes"], (batch,))}


class Program:
    def __init__(self, path, folder, device):
        self.path, self.folder, self.device = pathlib.Path(path).resolve(), folder, device

    def run(self, model, options, *more):
        sizes = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        how = [] if model.startswith("resnet") else ["--dropout", "0"]
        command = [self.path, "run", model, *sizes, *how, "--device", self.device, "--optimizer", "sgd", "--steps", "1", "--json", *more]
        done = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{model}: {done.stderr.strip()[-400:]}")
        return json.loads(done.stdout)

    def weights(self, model, options):
        self.run(model, options, "--lr", "1e-30", "--save", "start.npz")
        with np.load(self.folder / "start.npz") as arrays:
            return {name: arrays[name].copy() for name in arrays.files}

    def gradients(self, model, options, start, data, *more):
        np.savez(self.folder / "data.npz", **data)
        report = self.run(model, options, "--resume", "start.npz", "--data", "data.npz", "--lr", str(RATE), "--save", "end.npz", *more)
        with np.load(self.folder / "end.npz") as end:
            return report["losses"][0], {name: (start[name].astype(np.float64) - end[name]) / RATE for name in start if start[name].dtype == np.float32}


def torch_gradients(model, options, start, data, device, autocast=False, other=False, dtype=torch.float32):
    place = "cuda" if device.startswith("cuda") else "cpu"
    last = other and "images" in data
    put = lambda x: x.to(place, memory_format=torch.channels_last) if last and x.dim() == 4 else x.to(place)
    w = {name: put(torch.from_numpy(array).to(dtype)).requires_grad_() for name, array in start.items() if array.dtype == np.float32}
    inputs = {name: put(torch.from_numpy(array).to(dtype) if array.dtype == np.float32 else torch.from_numpy(array)) for name, array in data.items()}
    backends = torch.nn.attention.SDPBackend
    kinds = [backends.MATH] if other or not autocast else [backends.FLASH_ATTENTION, backends.CUDNN_ATTENTION, backends.EFFICIENT_ATTENTION, backends.MATH]
    with torch.nn.attention.sdpa_kernel(kinds), torch.autocast(place, torch.bfloat16, enabled=autocast):
        logits = network_of(model, options)(w, inputs)
        loss = F.cross_entropy(logits.to(dtype).reshape(-1, logits.shape[-1]), inputs["labels"].reshape(-1))
    loss.backward()
    return loss.item(), {name: x.grad.double().cpu().numpy() for name, x in w.items() if x.grad is not None}


def cosine(a, b):
    return float(np.vdot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-300))


def distance(a, b):
    return float(np.linalg.norm(a - b) / (np.linalg.norm(b) + 1e-300))


def check(program, model, options, amp):
    start, data = program.weights(model, options), data_of(model, options)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    wide_loss, wide = torch_gradients(model, options, start, data, program.device)
    total = np.sqrt(sum(np.linalg.norm(g) ** 2 for g in wide.values()))
    # a bias in front of a batch norm, a key's bias: zero in theory, and what is computed is noise
    names = [name for name in wide if np.linalg.norm(wide[name]) > 1e-6 * total]
    if not amp:
        loss, ours = program.gradients(model, options, start, data)
        worst = min((cosine(ours[name], wide[name]), name) for name in names)
        rough = [name for name in names if cosine(ours[name], wide[name]) < COSINE]
        further = 0.0
        if rough:
            exact = torch_gradients(model, options, start, data, program.device, dtype=torch.float64)[1]
            last = torch_gradients(model, options, start, data, program.device, other=True)[1]
            theirs = {name: max(distance(wide[name], exact[name]), distance(last[name], exact[name])) for name in rough}
            further = max(distance(ours[name], exact[name]) / theirs[name] for name in rough)
        error = abs(loss - wide_loss) / abs(wide_loss)
        good = error <= LOSS and further <= SPREAD
        print(f"{model:14} fp32  loss {loss:.7f}, PyTorch {wide_loss:.7f} ({error:.1e}); {len(names)} of {len(wide)} gradients, least cosine {worst[0]:.7f} ({worst[1]})"
              + (f"; {len(rough)} below {COSINE}, at most {further:.2f} times as far from fp64 as PyTorch's" if rough else "") + f"  {'ok' if good else 'WRONG'}", flush=True)
        return good
    error, spread, seeds = 0.0, 0.0, (1, 2, 3)
    # squares of distances over all batches: of ours, and of PyTorch in each of its ways; and of the gradients themselves
    squares = {kind: dict.fromkeys(names, 0.0) for kind in ("ours", "first", "second", "all")}
    for seed in seeds:
        batch = data_of(model, options, seed)
        loss, gradients = program.gradients(model, options, start, batch, "--amp", "bf16")
        exact_loss, exact = (wide_loss, wide) if seed == 1 else torch_gradients(model, options, start, batch, program.device)
        theirs = [torch_gradients(model, options, start, batch, program.device, True, other) for other in (False, True)]
        error += abs(loss - exact_loss) / abs(exact_loss) / len(seeds)
        spread += max(abs(one - exact_loss) for one, _ in theirs) / abs(exact_loss) / len(seeds)
        for name in names:
            squares["all"][name] += np.linalg.norm(exact[name]) ** 2
            for kind, of in (("ours", gradients), ("first", theirs[0][1]), ("second", theirs[1][1])):
                squares[kind][name] += np.linalg.norm(of[name] - exact[name]) ** 2
    off = lambda kind, name: float(np.sqrt(squares[kind][name] / squares["all"][name]))
    further = {name: max(off("first", name), off("second", name)) for name in names}
    mine = {name: off("ours", name) for name in names}
    ratios = sorted(((mine[name] / further[name], name) for name in names), reverse=True)
    worst = ratios[0]
    allowed = lambda name: SPREAD * further[name] + ROUNDING
    beyond = [name for name in names if mine[name] > allowed(name)]
    good = not beyond and error <= max(2 * spread, 1e-4)
    mean = lambda of: float(np.mean([of(name) for name in names]))
    for ratio, name in ratios[:5] if not good else []:
        print(f"    {name}: {mine[name]:.2e}, PyTorch's {further[name]:.2e} ({ratio:.2f} times)")
    print(f"{model:14} bf16  losses off by {error:.1e} (PyTorch {spread:.1e}); gradients off by {mean(mine.get):.2e} on average (PyTorch "
          f"{mean(further.get):.2e}), {len(beyond)} beyond, the worst {worst[0]:.2f} times PyTorch's ({worst[1]})  {'ok' if good else 'WRONG'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    good = True
    for model in options.models or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            program = Program(options.program, pathlib.Path(folder), options.device)
            try:
                good &= check(program, model, MODELS[model][options.small], options.amp)
            except RuntimeError as wrong:
                print(f"{model:14} {wrong}", flush=True)
                good = False
    sys.exit(not good)


if __name__ == "__main__":
    main()
