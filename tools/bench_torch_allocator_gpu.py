#!/usr/bin/env python3
"""Time and reserved memory of three changing workloads on PyTorch's two allocators and on ours, on one GPU.

    bench_torch_allocator_gpu.py                                 three workloads, native, expandable and plimsoll
    bench_torch_allocator_gpu.py --works t5 --rounds 9 --steps 40
    bench_torch_allocator_gpu.py --smoke                         tiny ones on the CPU: does the script itself run?

    images    ResNet-50, batch and size of the images change from step to step
    t5        an encoder and a decoder of T5-base's size, both lengths change
    streams   images are made on a stream of their own and handed over with record_stream, sizes change

A row is a workload on an allocator, and a process of its own. First all of them start; then one after the other runs a round of steps, in turns.
The first round begins with nothing cached, as a program does, and meets every size anew; it is told apart from the later ones, which go on
with what the ones before left.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WORKS, ALLOCATORS = ["images", "t5", "streams"], ["native", "expandable", "plimsoll"]


class Worker:
    """The child: a model, its batches, and rounds of steps whenever the parent says so."""

    def __init__(self, work, allocator, steps, tiny):
        if allocator == "expandable":
            os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        import torch
        self.torch, self.work, self.tiny, self.device, self.steps = torch, work, tiny, "cpu" if tiny else "cuda", steps
        if allocator == "plimsoll" and not tiny:
            sys.path.insert(0, os.path.join(HERE, "..", "torch"))
            import plimsoll_torch
            plimsoll_torch.use_allocator()
        torch.manual_seed(3)
        torch.set_float32_matmul_precision("high")
        with torch.device(self.device):
            self.model = self.sequence() if work == "t5" else self.images()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.batches = [tuple(t if tiny else t.pin_memory() for t in batch) for batch in self.make_batches()]
        self.stream = None if tiny else torch.cuda.Stream()
        for batch in self.batches[:2]:
            self.step(*batch)
        self.rest()

    def images(self):
        import torchvision
        return torchvision.models.resnet18() if self.tiny else torchvision.models.resnet50()

    def sequence(self):
        nn = self.torch.nn
        width, layers = (32, 1) if self.tiny else (768, 12)

        class Sequence(nn.Module):
            def __init__(self):
                super().__init__()
                self.words = nn.Embedding(32128, width)
                self.net = nn.Transformer(width, 4 if width < 100 else 12, layers, layers, 4 * width, dropout=0.1, batch_first=True, norm_first=True)

            def forward(self, source, target):
                hidden = self.net(self.words(source), self.words(target), tgt_is_causal=True, tgt_mask=self.net.generate_square_subsequent_mask(target.shape[1], device=target.device))
                return hidden @ self.words.weight.t()
        return Sequence()

    def make_batches(self):
        torch = self.torch
        generator = torch.Generator().manual_seed(7)
        draw = lambda low, high: int(torch.randint(low, high + 1, (1,), generator=generator))
        words = lambda *shape: torch.randint(32128, shape, generator=generator)
        for _ in range(self.steps):
            if self.work == "t5":
                batch, source, target = (2, draw(8, 16), draw(8, 16)) if self.tiny else (draw(4, 12), draw(64, 512), draw(32, 256))
                yield words(batch, source), words(batch, target)
            else:
                batch, size = (2, 32) if self.tiny else (draw(16, 48), 32 * draw(4, 8))
                yield torch.randn(batch, 3, size, size, generator=generator), torch.randint(1000, (batch,), generator=generator)

    def made_beside(self, x):
        """The batch, augmented on a stream of its own."""
        torch = self.torch
        with torch.cuda.stream(self.stream) if self.stream else torch.no_grad():
            x = x.to(self.device, non_blocking=True)
            x = (x + 0.1 * torch.randn_like(x)).flip(-1)
            x = (x - x.mean((2, 3), keepdim=True)) / x.std((2, 3), keepdim=True)
        if self.stream:
            now = torch.cuda.current_stream()
            now.wait_stream(self.stream)
            x.record_stream(now)
        return x

    def step(self, x, y):
        torch, loss = self.torch, self.torch.nn.functional.cross_entropy
        self.optimizer.zero_grad(set_to_none=True)
        x = self.made_beside(x) if self.work == "streams" else x.to(self.device, non_blocking=True)
        y = y.to(self.device, non_blocking=True)
        found = loss(self.model(x, y).flatten(0, 1), y.flatten()) if self.work == "t5" else loss(self.model(x), y)
        found.backward()
        self.optimizer.step()
        return found.detach()

    def rest(self):
        """Gives back what is cached, so that the first round begins as a program does."""
        self.optimizer.zero_grad(set_to_none=True)
        if not self.tiny:
            self.torch.cuda.synchronize()
            self.torch.cuda.empty_cache()

    def round(self):
        cuda = None if self.tiny else self.torch.cuda
        before = cuda.memory_stats() if cuda else {}
        if cuda:
            cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        losses = [self.step(*batch) for batch in self.batches]
        if cuda:
            cuda.synchronize()
        seconds = time.perf_counter() - begin
        stats = cuda.memory_stats() if cuda else {}
        grown = lambda key: stats.get(key, 0) - before.get(key, 0)
        return dict(seconds=seconds, allocated=stats.get("allocated_bytes.all.peak", 0), reserved=stats.get("reserved_bytes.all.peak", 0),
                    device_allocations=grown("num_device_alloc"), moved=grown("plimsoll.slabs_remapped"), loss=float(losses[-1]))

    def serve(self):
        print("ready", flush=True)
        for _ in sys.stdin:
            print(json.dumps(self.round()), flush=True)


def measure(given):
    rows = {(w, a): subprocess.Popen([sys.executable, os.path.abspath(__file__), "--child", w, a, "--steps", str(given.steps)] + ["--smoke"] * given.smoke,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for w in given.works for a in given.allocators}
    end, results = time.time() + given.seconds, {row: [] for row in rows}
    try:
        ready = {row: child for row, child in rows.items() if child.stdout.readline().strip() == "ready"}
        for turn in range(given.rounds):
            for row, child in ready.items():
                if time.time() > end:
                    return results
                child.stdin.write("round\n")
                child.stdin.flush()
                line = child.stdout.readline()
                if line:
                    results[row].append(json.loads(line))
    finally:
        for child in rows.values():
            child.kill()
            child.wait()
    return results


def table(given, results):
    """Of each row: seconds of the first round and of later ones (the median), and their share of what the faster of PyTorch's two takes."""
    print(f"{'work':9s}{'allocator':12s}{'first s':>9s}{'share':>8s}{'later s':>9s}{'share':>8s}{'allocated':>11s}{'reserved':>10s}{'over':>8s}{'calls':>7s}{'moved':>7s}  loss")
    for work in given.works:
        rounds = {a: results[work, a] for a in given.allocators if results[work, a]}
        first = {a: r[0]["seconds"] for a, r in rounds.items()}
        later = {a: statistics.median(x["seconds"] for x in r[1:] or r) for a, r in rounds.items()}
        least = lambda times: min((t for a, t in times.items() if a != "plimsoll"), default=float("nan"))
        for a, r in rounds.items():
            last, over = r[-1], max(x["reserved"] / max(1, x["allocated"]) for x in r) - 1
            print(f"{work:9s}{a:12s}{first[a]:9.3f}{first[a] / least(first):8.3f}{later[a]:9.3f}{later[a] / least(later):8.3f}"
                  f"{last['allocated'] / 2**20:11.0f}{last['reserved'] / 2**20:10.0f}{over:+8.2%}{sum(x['device_allocations'] for x in r):7d}{sum(x['moved'] for x in r):7d}  {last['loss']:.5f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--works", nargs="*", default=WORKS, choices=WORKS)
    parser.add_argument("--allocators", nargs="*", default=ALLOCATORS, choices=ALLOCATORS)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=300, help="no new round after them")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--json", help="a file for every round")
    parser.add_argument("--child", nargs=2, metavar=("WORK", "ALLOCATOR"))
    args = parser.parse_args()
    if args.child:
        Worker(*args.child, args.steps, args.smoke).serve()
    else:
        found = measure(args)
        table(args, found)
        if args.json:
            with open(args.json, "w", encoding="utf-8") as out:
                for (name, allocator), rounds in found.items():
                    out.write(json.dumps(dict(work=name, allocator=allocator, rounds=rounds)) + "\n")
