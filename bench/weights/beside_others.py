#!/usr/bin/env python3
"""Weights at rest beside the packages that people use for them, in one run on one machine.

    python3 bench/weights/beside_others.py [--bin build/release/bin] [FILE.safetensors]

Needs PyTorch, safetensors, zipnn, gguf and bitsandbytes. Without a file, 256 MiB of normal bf16 weights.
Every figure is the best of five; GB/s count decoded bytes; one thread except where a package starts more.
"""
import argparse
import re
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

torch.set_num_threads(1)


def best(work, rounds=5):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def table(program, *arguments):
    """The rows of one of our programs: first word -> numbers."""
    text = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    rows = {}
    for line in text.splitlines():
        words = line.split()
        name = re.match(r"\s+([a-z0-9:_O-]+(?: [a-zA-Z_]+)?)\s+[0-9]", line)
        if name:
            rows[name.group(1)] = [float(w) for w in re.findall(r"[0-9.]+", line[name.end() - 1:])]
        elif words:
            rows.setdefault("lines", []).append(line)
    return rows


def loading(file, bin_dir):
    size = file.stat().st_size
    load_file(file)  # warm
    theirs = best(lambda: load_file(file))
    into = {k: torch.empty_like(v) for k, v in load_file(file).items()}

    def copy_out():
        for name, tensor in load_file(file).items():
            into[name].copy_(tensor)

    copied = best(copy_out)
    ours = table(bin_dir / "weight_loading_bench", str(file))
    read = ours["warm read"][0] / 1e3
    print(f"warm load of {size / 1e6:.0f} MB into memory")
    print(f"  safetensors load_file          {1e3 * theirs:8.1f} ms (lazy where it maps)")
    print(f"  safetensors, copied out        {1e3 * copied:8.1f} ms")
    print(f"  ours, read into place          {1e3 * read:8.1f} ms   {copied / read:.2f} x")


def lossless(file, bin_dir):
    from zipnn import ZipNN

    tensors = load_file(file)
    raw = packed = 0
    seconds = 0.0
    for tensor in tensors.values():
        if tensor.dtype != torch.bfloat16 or tensor.numel() < 1 << 16:
            continue
        data = tensor.contiguous().view(torch.uint8).numpy().tobytes()
        zipper = ZipNN(input_format="byte", bytearray_dtype="bfloat16", threads=1)
        coded = bytes(zipper.compress(bytearray(data)))
        seconds += best(lambda: ZipNN(input_format="byte", bytearray_dtype="bfloat16", threads=1).decompress(bytearray(coded)))
        raw += len(data)
        packed += len(coded)
    ours = table(bin_dir / "weights_bench", str(file))
    print("lossless bf16: share of the size, decoding")
    print(f"  ZipNN            {packed / raw:.4f} {raw / seconds / 1e9:8.2f} GB/s")
    for form in ("archive", "bf16-lossless"):
        share, _, decode, copy = ours[form][:4]
        print(f"  ours, {form:<13}{share:.4f} {decode:8.2f} GB/s   {decode / (raw / seconds / 1e9):.1f} x ZipNN, "
              f"{decode / copy:.2f} x memcpy")


def quantized(bin_dir):
    import gguf

    values = (0.02 * np.random.default_rng(1).standard_normal((4096, 4096))).astype(np.float32)
    ours = table(bin_dir / "weights_bench")
    print("dequantizing 64 MiB of fp32")
    for form, kind in (("q8_0", gguf.GGMLQuantizationType.Q8_0), ("q4_0", gguf.GGMLQuantizationType.Q4_0)):
        coded = gguf.quants.quantize(values, kind)
        seconds = best(lambda: gguf.quants.dequantize(coded, kind), 3)
        _, _, decode, copy = ours[form][:4]
        theirs = values.nbytes / seconds / 1e9
        print(f"  {form}: gguf (numpy) {theirs:6.2f} GB/s, ours {decode:6.2f} GB/s   {decode / theirs:.1f} x, "
              f"{decode / copy:.2f} x memcpy")
    try:
        import bitsandbytes.functional as bnb

        tensor = torch.from_numpy(values)
        coded, state = bnb.quantize_4bit(tensor, blocksize=64, quant_type="nf4")
        seconds = best(lambda: bnb.dequantize_4bit(coded, state), 3)
        _, _, decode, copy = ours["nf4"][:4]
        theirs = values.nbytes / seconds / 1e9
        print(f"  nf4: bitsandbytes (cpu) {theirs:6.2f} GB/s, ours {decode:6.2f} GB/s   {decode / theirs:.1f} x")
    except Exception as why:  # a build without CPU kernels
        print(f"  nf4: bitsandbytes cannot here ({why})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"))
    parser.add_argument("file", nargs="?", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        file = arguments.file
        if file is None:
            file = Path(folder) / "normal.safetensors"
            generator = torch.Generator().manual_seed(1)
            save_file({f"layer.{i}.weight": (0.02 * torch.randn(4096, 4096, generator=generator)).to(torch.bfloat16)
                       for i in range(8)}, file)
        loading(file, arguments.bin)
        lossless(file, arguments.bin)
        quantized(arguments.bin)


if __name__ == "__main__":
    main()
