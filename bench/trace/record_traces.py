"""Allocation traces of real PyTorch training steps, without a GPU and without arithmetic.

    python bench/trace/record_traces.py FOLDER [NAME ...]      # needs torch, torchvision and transformers
    plimsoll replay FOLDER/NAME.jsonl.gz

Models run on fake tensors; every storage that appears is an allocation, and its end is the free. A name
that ends in +ws gets up to two temporaries of a size drawn from the shapes at every convolution, as a
library's workspace would be.
"""
import gc
import gzip
import random
import sys
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


class Recorder(TorchDispatchMode):
    def __init__(self, workspaces):
        super().__init__()
        self.workspaces = workspaces
        self.lines, self.count, self.known = [], 0, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in tree_flatten(out)[0]:
            if isinstance(tensor, torch.Tensor):
                self.see(tensor.untyped_storage())
        if self.workspaces and "convolution" in function.__name__:
            draw = random.Random(str(tuple(args[0].shape) + tuple(args[1].shape)) + function.__name__)
            for _ in range(draw.randrange(0, 3)):
                size = int(2 ** draw.uniform(9, 26.5))
                self.free(self.allocate(size), size)
        return out

    def see(self, storage):
        key, size = storage._cdata, storage.size()
        if key in self.known or size == 0:
            return
        address = self.allocate(size)

        def gone(_):
            self.known.pop(key, None)
            self.free(address, size)
        self.known[key] = weakref.ref(storage, gone)

    def allocate(self, size):
        self.count += 1
        self.put("allocation", self.count << 9, size)
        return self.count << 9

    def free(self, address, size):
        self.put("free", address, size)

    def put(self, kind, address, size):
        self.lines.append(f'{{"kind":"{kind}","start":{1000 * len(self.lines)},"bytes":{size},"address":{address}}}')


def train(make, loss_of, steps, optimizer=torch.optim.AdamW, **settings):
    model = make().train()
    update = optimizer(model.parameters(), lr=1e-3, foreach=True, **settings)
    for step in range(steps):
        loss = loss_of(model, step)
        update.zero_grad()
        loss.backward()
        update.step()
        del loss


def at(value, step):
    return value(step) if callable(value) else value


def vision(name, batch, image=224, steps=3, **settings):
    import torchvision
    plain = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}

    def loss_of(model, step):
        count, side = at(batch, step), at(image, step)
        labels = torch.empty(count, dtype=torch.long)
        return torch.nn.functional.cross_entropy(model(torch.empty(count, 3, side, side)), labels)
    train(lambda: getattr(torchvision.models, name)(weights=None, **plain), loss_of, steps, **settings)


def text(kind, head, batch, length, steps=3, **sizes):
    import transformers
    config = getattr(transformers, kind + "Config")(attn_implementation="eager", **sizes)

    def loss_of(model, step):
        ids = torch.empty(at(batch, step), at(length, step), dtype=torch.long)
        return model(input_ids=ids, labels=ids).loss
    train(lambda: getattr(transformers, kind + head)(config), loss_of, steps)


def drawn(low, high, unit, seed):
    draw = random.Random(seed)
    values = [draw.randrange(low, high + 1, unit) for _ in range(4000)]
    return lambda step: values[step]


JOBS = {
    "resnet18": lambda: vision("resnet18", 64),
    "resnet101": lambda: vision("resnet101", 32),
    "resnet50_b64_sgd": lambda: vision("resnet50", 64, optimizer=torch.optim.SGD, momentum=0.9),
    "resnet50_b24_176": lambda: vision("resnet50", 24, 176),
    "resnet50_long": lambda: vision("resnet50", 32, steps=12),
    "resnet50_sizes": lambda: vision("resnet50", drawn(8, 40, 1, 3), drawn(160, 256, 32, 4), steps=25),
    "alexnet_long": lambda: vision("alexnet", 128, steps=20),
    "densenet121": lambda: vision("densenet121", 32),
    "vgg16": lambda: vision("vgg16_bn", 32),
    "mobilenet_v2": lambda: vision("mobilenet_v2", 96),
    "efficientnet_b0": lambda: vision("efficientnet_b0", 64),
    "googlenet": lambda: vision("googlenet", 64),
    "gpt2_medium": lambda: text("GPT2", "LMHeadModel", 4, 512, n_embd=1024, n_layer=24, n_head=16),
    "gpt2_lengths": lambda: text("GPT2", "LMHeadModel", drawn(2, 8, 1, 5), drawn(100, 1000, 1, 6), steps=30),
    "bert_lengths": lambda: text("Bert", "ForMaskedLM", 16, drawn(40, 500, 1, 7), steps=40),
}


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(JOBS)
    for name in names:
        with FakeTensorMode(allow_non_fake_inputs=True), Recorder(name.endswith("+ws")) as recorder:
            JOBS[name.removesuffix("+ws")]()
            gc.collect()
        with gzip.open(f"{folder}/{name}.jsonl.gz", "wt") as out:
            out.write('{"plimsoll_trace":1,"source":"pytorch"}\n' + "\n".join(recorder.lines) + "\n")
        print(name, len(recorder.lines), "events", flush=True)


main()
