#!/usr/bin/env python3
"""Weights at rest beside the packages that people use for them, in one run on one machine.

    python3 bench/weights/beside_others.py [--bin build/release/bin] [--only loading,lossless,quantized,products] [FILE.safetensors ...]

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


def best(work, rounds=5, clock=time.perf_counter):
    times = []
    for _ in range(rounds):
        begin = clock()
        work()
        times.append(clock() - begin)
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


def loading(file, bin_dir, folder):
    size = file.stat().st_size
    load_file(file)  # warm
    theirs = best(lambda: load_file(file))
    # Maps the file; the bytes are in memory of the program's own when they were copied.
    copied = best(lambda: {name: tensor.clone() for name, tensor in load_file(file).items()})
    ours = table(bin_dir / "weight_loading_bench", str(file))
    read = ours["warm fresh"][0] / 1e3
    print(f"warm load of {size / 1e6:.0f} MB into memory")
    print(f"  safetensors load_file          {1e3 * theirs:8.1f} ms (maps; nothing is in memory of its own)")
    print(f"  safetensors, into memory       {1e3 * copied:8.1f} ms")
    print(f"  ours, read into the arena      {1e3 * read:8.1f} ms   {copied / read:.2f} x")
    plim = folder / "raw.plim"
    subprocess.run([bin_dir / ".." / "plimsoll", "weights", file, "-o", plim, "--form", "raw"], check=True, stdout=subprocess.DEVNULL)
    pages = table(bin_dir / "weight_loading_bench", str(plim))
    print(f"  ours, pages of a .plim laid    {pages['warm mapped'][0]:8.1f} ms   {1e3 * copied / pages['warm mapped'][0]:.0f} x; "
          f"mmap of the file, populated: {pages['warm mmap'][0]:.1f} ms")
    for name, rows in (("safetensors", ours), (".plim", pages)):
        print(f"cold, {name}: {rows['cold read'][1]:.2f} GB/s, four O_DIRECT readers {rows['cold O_DIRECT'][1]:.2f} GB/s; "
              f"turn by turn {rows['cold ratio'][0]:.2f} x")


def lossless(file, bin_dir, folder):
    # The matrices of bf16, for both.
    tensors = {name: tensor.contiguous() for name, tensor in load_file(file).items()
               if tensor.dtype == torch.bfloat16 and tensor.numel() >= 1 << 16}
    if not tensors:
        print(f"lossless bf16: {file.name} has no matrix of bf16 with 65,536 values or more")
        return
    from zipnn import ZipNN

    matrices = folder / "matrices.safetensors"
    save_file(tensors, matrices)
    raw = packed = 0
    seconds = 0.0
    for tensor in tensors.values():
        data = tensor.view(torch.uint8).numpy().tobytes()
        zipper = ZipNN(input_format="byte", bytearray_dtype="bfloat16", threads=1)
        coded = bytes(zipper.compress(bytearray(data)))
        seconds += best(lambda: ZipNN(input_format="byte", bytearray_dtype="bfloat16", threads=1).decompress(bytearray(coded)),
                        clock=time.process_time)  # as ours: other work of the machine is no fault of theirs
        raw += len(data)
        packed += len(coded)
    ours = table(bin_dir / "weights_bench", str(matrices), "archive", "bf16-lossless")
    print(f"lossless bf16, {raw / 1e6:.1f} MB of {file.name}: share of the size, decoding")
    print(f"  ZipNN               {packed / raw:.4f} {raw / seconds / 1e9:8.2f} GB/s")
    for form in ("archive", "bf16-lossless"):
        share, _, decode, copy = ours[form][:4]
        print(f"  ours, {form:<14}{share:.4f} {decode:8.2f} GB/s   {decode / (raw / seconds / 1e9):.1f} x ZipNN, "
              f"{decode / copy:.2f} x memcpy")


def quantized(bin_dir):
    import gguf

    values = (0.02 * np.random.default_rng(1).standard_normal((4096, 4096))).astype(np.float32)
    ours = table(bin_dir / "weights_bench", "", "q8_0", "q4_0", "nf4")
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


def products(bin_dir):
    print("one token through 4096 x 4096, one thread: times as fast as fp32")
    text = subprocess.run([bin_dir / "weight_products_bench", "4096", "4096", "1"], check=True, capture_output=True, text=True).stdout
    print("\n".join(line for line in text.splitlines() if not line.startswith("  ") or line.split()[0] in ("form", "fp32", "q8_0", "q4_0", "ternary")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"))
    parser.add_argument("--only", default="loading,lossless,quantized,products")
    parser.add_argument("--keep", type=Path, help="a folder for the files that are made, which stay there")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        files = arguments.files or [(arguments.keep or Path(folder)) / "normal.safetensors"]
        if not files[0].exists() and not arguments.files:
            generator = torch.Generator().manual_seed(1)
            save_file({f"layer.{i}.weight": (0.02 * torch.randn(4096, 4096, generator=generator)).to(torch.bfloat16)
                       for i in range(8)}, files[0])
        parts = arguments.only.split(",")
        for file in files:
            if "loading" in parts:
                loading(file, arguments.bin, Path(folder))
            if "lossless" in parts:
                lossless(file, arguments.bin, Path(folder))
        if "quantized" in parts:
            quantized(arguments.bin)
        if "products" in parts:
            products(arguments.bin)


if __name__ == "__main__":
    main()
