"""Small training loops, the same under any allocator. Prints one JSON line.

    python workloads.py plimsoll|native|expandable gpt2|resnet50|varlen [steps]
"""
import json
import os
import sys
import time

which, work = sys.argv[1], sys.argv[2]
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 5
if which == "expandable":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
import torch.nn as nn
import torch.nn.functional as F

if which == "plimsoll":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import plimsoll_torch
    plimsoll_torch.use_allocator()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        mask = torch.full((t, t), float("-inf"), device=x.device).triu(1)
        scores = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5 + mask
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, vocabulary=50257, longest=1024):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        outside = 4 * width
        self.path = nn.Sequential(
            nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.skip = nn.Identity() if inside == outside and stride == 1 else nn.Sequential(
            nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        return F.relu(self.path(x) + self.skip(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            layers.append(Bottleneck(inside, width, stride if index == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def batches():
    generator = torch.Generator().manual_seed(7)
    for step in range(steps):
        if work == "resnet50":
            yield torch.randn(32, 3, 224, 224, generator=generator), torch.randint(1000, (32,), generator=generator)
        else:
            batch, length = (8, 1024)
            if work == "varlen":
                batch = int(torch.randint(4, 13, (1,), generator=generator))
                length = int(torch.randint(200, 1025, (1,), generator=generator))
            ids = torch.randint(50257, (batch, length + 1), generator=generator)
            yield ids[:, :-1].clamp(max=50256), ids[:, 1:]


torch.manual_seed(3)
if work != "varlen":
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
prepared = list(batches())
model = (resnet50() if work == "resnet50" else Gpt()).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
losses = []
torch.cuda.synchronize()
start = time.perf_counter()
for x, y in prepared:
    optimizer.zero_grad(set_to_none=True)
    out = model(x.cuda(non_blocking=True))
    loss = F.cross_entropy(out.flatten(0, -2), y.cuda(non_blocking=True).flatten())
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
torch.cuda.synchronize()
seconds = time.perf_counter() - start
stats = torch.cuda.memory_stats()
print(json.dumps({"allocator": which, "work": work, "seconds": seconds,
                  "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(),
                  "remapped": stats.get("plimsoll.slabs_remapped"), "device": stats.get("num_device_alloc"),
                  "losses": [loss.item() for loss in losses]}))
