#!/usr/bin/env python3
"""Times training steps of Plimsoll against PyTorch on the CPU, in one run.

    python tools/bench_torch.py [--plimsoll build/release/plimsoll] [--threads N] [--rounds N]
                                [--models resnet50,alexnet,gpt2,bert] [--no-compile]

Both train the same architecture at the same size with SGD in fp32 on random data, with the same number of
threads. The rivals take turns, round after round, because a busy neighbour can double every time
on a shared machine; what counts is the fastest step of each over all rounds. Peak bytes are weights,
gradients and activations: Plimsoll's own count, and for PyTorch the most bytes of tensors alive at once.

Needs a Python with torch; nothing else here does.
"""
import argparse
import json
import os
import subprocess
import sys
import time

SIZES = {
    "resnet50": {"batch": 8, "image": 224, "bar": 1.0},
    "alexnet": {"batch": 32, "image": 224, "bar": 1.0},
    "gpt2": {"batch": 1, "seq": 256, "bar": 0.85},
    "bert": {"batch": 2, "seq": 128, "bar": 0.85},
}


def resnet50(torch):
    nn, F = torch.nn, torch.nn.functional

    class Bottleneck(nn.Module):
        def __init__(self, channels, width, stride):
            super().__init__()
            out = 4 * width
            self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
            self.shortcut = None
            if stride != 1 or channels != out:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            h = F.relu(self.bn1(self.conv1(x)), inplace=True)
            h = F.relu(self.bn2(self.conv2(h)), inplace=True)
            h = self.bn3(self.conv3(h))
            h += x if self.shortcut is None else self.shortcut(x)
            return F.relu(h, inplace=True)

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def alexnet(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(True), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(True), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(True),
        nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(True),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(True), nn.MaxPool2d(3, 2), nn.Flatten(),
        nn.Linear(9216, 4096), nn.ReLU(True), nn.Linear(4096, 4096), nn.ReLU(True), nn.Linear(4096, 1000))


def transformer(torch, name):
    nn, F = torch.nn, torch.nn.functional
    is_gpt, width, heads = name == "gpt2", 768, 12

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            if is_gpt:
                self.qkv = nn.Linear(width, 3 * width)
            else:
                self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
            self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x):
            batch, length, _ = x.shape
            parts = self.qkv(x).split(width, -1) if is_gpt else (self.q(x), self.k(x), self.v(x))
            q, k, v = (p.view(batch, length, heads, width // heads).transpose(1, 2) for p in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=is_gpt)
            return self.out(y.transpose(1, 2).reshape(batch, length, width))

        def feed(self, x):
            return self.down(F.gelu(self.up(x), approximate="tanh" if is_gpt else "none"))

        def forward(self, x):
            if is_gpt:
                x = x + self.attend(self.ln1(x))
                return x + self.feed(self.ln2(x))
            x = self.ln1(x + self.attend(x))
            return self.ln2(x + self.feed(x))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(50257 if is_gpt else 30522, width)
            self.places = nn.Embedding(1024 if is_gpt else 512, width)
            self.blocks = nn.ModuleList([Block() for _ in range(12)])
            self.norm = nn.LayerNorm(width)
            if not is_gpt:
                self.kinds, self.embed_norm = nn.Embedding(2, width), nn.LayerNorm(width)
                self.head, self.bias = nn.Linear(width, width), nn.Parameter(torch.zeros(30522))

        def forward(self, ids):
            x = self.words(ids) + self.places.weight[: ids.shape[1]]
            if not is_gpt:
                x = self.embed_norm(x + self.kinds(torch.zeros_like(ids)))
            for block in self.blocks:
                x = block(x)
            if is_gpt:
                return F.linear(self.norm(x), self.words.weight)
            return F.linear(self.norm(F.gelu(self.head(x))), self.words.weight, self.bias)

    return Transformer()


def most_allocated(torch, step):
    """The most bytes that one step had allocated at once."""
    with torch.profiler.profile(profile_memory=True) as profile:
        step()
    alive = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            alive += event.nbytes()
            peak = max(peak, alive)
    return peak


class TorchRival:
    """One mode of PyTorch; steps on demand, so that rivals can take turns."""

    def __init__(self, torch, name, mode):
        self.torch, self.mode = torch, mode
        sizes = SIZES[name]
        torch.manual_seed(0)
        if "image" in sizes:
            self.model = {"resnet50": resnet50, "alexnet": alexnet}[name](torch)
            self.x = torch.randn(sizes["batch"], 3, sizes["image"], sizes["image"])
            self.y = torch.randint(0, 1000, (sizes["batch"],))
        else:
            self.model = transformer(torch, name)
            vocabulary = 50257 if name == "gpt2" else 30522
            self.x = torch.randint(0, vocabulary, (sizes["batch"], sizes["seq"]))
            self.y = torch.randint(0, vocabulary, (sizes["batch"] * sizes["seq"],))
        if mode == "channels_last":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
        self.step_model = torch.compile(self.model) if mode == "compiled" else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-3)

    def step(self):
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        logits = self.step_model(self.x)
        self.torch.nn.functional.cross_entropy(logits.reshape(len(self.y), -1), self.y).backward()
        self.optimizer.step()
        return 1e3 * (time.perf_counter() - begin)

    def peak_mib(self):
        """The most bytes of tensors alive at once during one step."""
        peak = most_allocated(self.torch, self.step)
        weights = sum(p.numel() * p.element_size() for p in self.model.parameters())
        return (peak + weights) / 2**20


def plimsoll_round(program, name, threads, steps):
    sizes = [w for key in ("batch", "image", "seq") if key in SIZES[name] for w in (f"--{key}", str(SIZES[name][key]))]
    command = [program, "run", name, *sizes, "--optimizer", "sgd", "--dropout", "0", "--steps", str(steps),
               "--threads", str(threads), "--json"]
    if name == "resnet50":
        command = [w for i, w in enumerate(command) if w != "--dropout" and command[i - 1] != "--dropout"]
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {out.returncode}\n{out.stderr}")
    return json.loads(out.stdout)


def measure(torch, options, name):
    modes = ["eager"] + (["channels_last"] if "image" in SIZES[name] else []) + ([] if options.no_compile else ["compiled"])
    rounds = {mode: [] for mode in [*modes, "plimsoll"]}  # the fastest step of each turn
    rivals = {mode: TorchRival(torch, name, mode) for mode in modes}
    for mode, rival in rivals.items():
        rival.step()
    peaks = {mode: rival.peak_mib() for mode, rival in rivals.items()}
    for _ in range(options.rounds):
        for mode, rival in rivals.items():
            rounds[mode].append(min(rival.step() for _ in range(2)))
        report = plimsoll_round(options.plimsoll, name, options.threads, 3)
        rounds["plimsoll"].append(1e3 * min(report["step_seconds"][1:]))
        peaks["plimsoll"] = report["peak_bytes"] / 2**20
    return rounds, peaks


def ratios(rounds):
    """Round by round: ours against the fastest rival of the same round."""
    rivals = [times for mode, times in rounds.items() if mode != "plimsoll"]
    return [ours / min(theirs) for ours, *theirs in zip(rounds["plimsoll"], *rivals)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plimsoll", default="build/release/plimsoll")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=",".join(SIZES))
    parser.add_argument("--json", action="store_true", help="one JSON object: by model, milliseconds of every round and peaks in MiB")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out (it takes a minute a model)")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("bench_torch: this Python has no torch; make a virtual environment with it and set PYTHON")
    torch.set_num_threads(options.threads)
    answer = {}
    if not options.json:
        print(f"{'model':10} {'rival':14} {'step ms':>9} {'peak MiB':>9} {'ratio':>6}  bar, ratios of single rounds")
    for name in options.models.split(","):
        rounds, peaks = measure(torch, options, name)
        answer[name] = {"milliseconds": rounds, "peak_mib": peaks, "ratios": ratios(rounds)}
        if options.json:
            continue
        best = {mode: min(times) for mode, times in rounds.items()}
        fastest = min(ms for mode, ms in best.items() if mode != "plimsoll")
        for mode, ms in best.items():
            spread = f"{min(ratios(rounds)):.2f} to {max(ratios(rounds)):.2f}"
            ratio = f"{best['plimsoll'] / fastest:6.2f}  <= {SIZES[name]['bar']}, {spread}" if mode == "plimsoll" else ""
            print(f"{name:10} {mode:14} {ms:9.1f} {peaks[mode]:9.1f} {ratio}", flush=True)
    if options.json:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
