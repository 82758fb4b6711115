#!/usr/bin/env python3
"""Peak memory and time of a training step of PyTorch on a GPU, in each of its modes: what README's table of bytes compares with.

    python tools/bench_torch_gpu.py [MODEL ...] [--json]

Fused AdamW, fp32 weights, TF32 products, no dropout, tied heads, scaled_dot_product_attention, the loss inside what is compiled. A mode has a
process of its own. Peak is torch.cuda.max_memory_allocated of eight settled steps (weights, gradients and moments included); time is their median.
Needs a GPU and a Python with torch; torchvision for resnet101 and transformers for whisper-small.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import bench_torch

SIZES = {"alexnet": (128, None), "resnet50": (32, None), "resnet50-256": (256, None), "resnet101": (32, None), "gpt2": (8, 1024), "bert": (16, 512), "whisper-small": (16, 224)}
IMAGES = ("alexnet", "resnet50", "resnet50-256", "resnet101")


def modes_of(name):
    return ["eager", "compiled"] + (["eager channels-last", "compiled channels-last"] if name in IMAGES else [])


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    config = WhisperConfig(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072,
                           decoder_ffn_dim=3072, dropout=0, attention_dropout=0, activation_dropout=0, use_cache=False)
    config._attn_implementation = "sdpa"
    return WhisperForConditionalGeneration(config)


def parts_of(torch, name):
    """The model, its inputs, and the logits as a function of both."""
    batch, length = SIZES[name]
    if name in IMAGES:
        if name == "resnet101":
            import torchvision
            model = torchvision.models.resnet101()
        else:
            model = getattr(bench_torch, name.removesuffix("-256"))(torch)
        return model, [torch.randn(batch, 3, 224, 224)], torch.randint(0, 1000, (batch,)), lambda x: model(x)
    words = torch.randint(0, 30000, (batch, length))
    if name == "whisper-small":
        model = whisper()
        return model, [torch.randn(batch, 80, 3000), words], words.flatten(), lambda x, ids: model(input_features=x, decoder_input_ids=ids).logits
    model = bench_torch.transformer(torch, name)
    return model, [words], words.flatten(), lambda ids: model(ids)


def measure(name, mode):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    model, inputs, labels, logits = parts_of(torch, name)
    layout = torch.channels_last if "channels-last" in mode else torch.contiguous_format
    model.to("cuda", memory_format=layout).train()
    inputs = [x.to("cuda", memory_format=layout) if x.dim() == 4 else x.to("cuda") for x in inputs]
    labels = labels.to("cuda")

    def loss(*x):
        return torch.nn.functional.cross_entropy(logits(*x).reshape(len(labels), -1), labels)

    call = torch.compile(loss) if "compiled" in mode else loss
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        call(*inputs).backward()
        optimizer.step()
        torch.cuda.synchronize()

    for _ in range(4):
        step()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(8):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return {"peak_mib": torch.cuda.max_memory_allocated() / 2**20, "milliseconds": 1e3 * statistics.median(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--mode", help="this one, in this process")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.mode:
        print(json.dumps(measure(options.models[0], options.mode)))
        return
    answer = {}
    for name in options.models or SIZES:
        for mode in modes_of(name):
            done = subprocess.run([sys.executable, __file__, name, "--mode", mode], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{name}, {mode}: {done.stderr[-600:]}")
            answer.setdefault(name, {})[mode] = figures = json.loads(done.stdout.splitlines()[-1])
            if not options.json:
                print(f"{name:14} {mode:24} {figures['milliseconds']:9.1f} ms {figures['peak_mib']:9.0f} MiB", flush=True)
    if options.json:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
