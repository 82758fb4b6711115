#!/usr/bin/env python3
"""Writes small weight files with the packages that own their formats, for the tests of store/.

    weight_files.py FOLDER

  types.safetensors   every type that numpy has, by `safetensors`
  model.pt            by torch.save: strided, tied, nested and empty tensors, a parameter
  blocks.gguf         by `gguf`: each kind of block that is decoded; blocks.npz has what they decode to
  nf4.npz             by `bitsandbytes`, where it is installed: values, and what NF4 makes of them
"""
import collections
import pathlib
import sys

import gguf
import numpy as np
import safetensors.numpy
import torch


def save_types(path):
    kinds = ["?", "u1", "i1", "i2", "u2", "f2", "i4", "u4", "f4", "f8", "i8", "u8", "c8"]
    tensors = {f"{kind}.{i}": np.arange(6).reshape(2, 3).astype(kind) for i in (1, 0) for kind in kinds}
    tensors["empty"] = np.zeros((0, 4), "f4")
    tensors["scalar"] = np.array(7, "i4")
    tensors['odd "name"\n\\'] = np.ones(3, "f4")
    safetensors.numpy.save_file(tensors, path, {"format": "pt"})


def save_torch(path):
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    state = collections.OrderedDict()
    state["plain"] = base.clone()
    state["transposed"] = base.t()
    state["part"] = base[1:3, 2:5]
    state["tied"] = state["plain"]
    state["half"] = base.to(torch.bfloat16)
    state["bytes"] = torch.arange(5, dtype=torch.uint8)
    state["empty"] = torch.zeros(0, 3)
    state["scalar"] = torch.tensor(2.5, dtype=torch.float64)
    state["eight"] = base.to(torch.float8_e4m3fn)
    state._metadata = {"version": 1}
    torch.save({"model": state, "list": [torch.nn.Parameter(base[0].clone())], "epoch": 3, "rate": 0.1, "args": collections.Counter(a=1)}, path)


def save_blocks(folder):
    random = np.random.default_rng(1)
    values = (random.standard_normal((2, 256)) * 0.02).astype(np.float32)
    writer = gguf.GGUFWriter(folder / "blocks.gguf", "test")
    writer.add_array("words", ["a", "b"])
    writer.add_array("numbers", [1, 2, 3])
    writer.add_float32("rate", 0.5)
    decoded = {"values": values}
    writer.add_tensor("plain", values)
    for kind in ("F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"):
        quantized = gguf.quantize(values, gguf.GGMLQuantizationType[kind])
        writer.add_tensor(kind, quantized, raw_dtype=gguf.GGMLQuantizationType[kind])
        decoded[kind] = gguf.dequantize(quantized, gguf.GGMLQuantizationType[kind]).astype(np.float32)
        if kind in ("Q8_0", "Q4_0"):
            decoded[kind + ".bytes"] = quantized
    # It cannot quantize these: any bytes are blocks, with scales that are small numbers.
    for kind, size, halves in (("Q4_K", 144, (0, 2)), ("Q5_K", 176, (0, 2)), ("Q6_K", 210, (208,))):
        blocks = random.integers(0, 256, (2, size), dtype=np.uint8)
        for at in halves:
            blocks[:, at:at + 2] = (random.random(2) * 0.01).astype(np.float16).view(np.uint8).reshape(2, 2)
        writer.add_tensor(kind, blocks, raw_dtype=gguf.GGMLQuantizationType[kind])
        decoded[kind] = gguf.dequantize(blocks, gguf.GGMLQuantizationType[kind]).astype(np.float32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    np.savez(folder / "blocks.npz", **decoded)


def save_nf4(path):
    import bitsandbytes.functional as functional
    values = torch.tensor(np.random.default_rng(2).standard_normal(64 * 8) * 0.02, dtype=torch.float32)
    packed, state = functional.quantize_4bit(values, blocksize=64, quant_type="nf4")
    back = functional.dequantize_4bit(packed, state)
    np.savez(path, values=values.numpy(), packed=packed.numpy().reshape(-1), largest=state.absmax.float().numpy(), decoded=back.numpy())


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    save_types(folder / "types.safetensors")
    save_torch(folder / "model.pt")
    save_blocks(folder)
    try:
        save_nf4(folder / "nf4.npz")
    except ImportError as missing:
        print(f"nf4.npz is not written: {missing}")


if __name__ == "__main__":
    main()
