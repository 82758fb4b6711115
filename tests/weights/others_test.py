#!/usr/bin/env python3
"""Every form and format of weights beside the package that owns it: safetensors, gguf, bitsandbytes, PyTorch, numpy.

    others_test.py PLIMSOLL FOLDER

The program converts, the packages convert the same values, and both must agree: bit by bit where the form leaves no
choice, else in what the packages decode. Also the table of hostile safetensors files, asked again of the installed
package. The files in src/plimsoll/store/testdata/ say the same of the versions that wrote them, without the packages.
"""
import pathlib
import subprocess
import sys
import unittest

import numpy as np
import safetensors
import torch
from safetensors.torch import load_file, save_file

PROGRAM, FOLDER = (pathlib.Path(text).resolve() for text in sys.argv[1:3])
VERDICTS = pathlib.Path(__file__).resolve().parents[2] / "src/plimsoll/store/testdata/safetensors_verdicts.txt"


def plimsoll(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def weights(rows=192, columns=1024, seed=1):
    """Rows of different size, as trained layers have them, with zeros and a row of nothing else; whole rows in a chunk."""
    random = np.random.default_rng(seed)
    values = (random.standard_normal((rows, columns)) * random.uniform(0.001, 0.1, (rows, 1))).astype(np.float32)
    values[3, ::7] = 0
    values[5] = 0
    return values


def row_scales(values, top):
    """Of each row what makes its largest value `top`, and back. By numpy: torch divides by multiplying with 1 / x."""
    largest = np.abs(values).max(1, keepdims=True)
    inverse = np.divide(np.float32(top), largest, out=np.zeros_like(largest), where=largest > 0)
    return largest / np.float32(top), inverse


def through(form, values):
    """What the form makes of fp32 values, and the .plim file's bytes of its only tensor."""
    save_file({"w": torch.from_numpy(values)}, FOLDER / "in.safetensors")
    plimsoll("weights", "in.safetensors", "-o", "coded.plim", "--form", form)
    plimsoll("weights", "coded.plim", "-o", "back.safetensors")
    return load_file(FOLDER / "back.safetensors")["w"].numpy(), (FOLDER / "coded.plim").read_bytes()[4096:]


class Forms(unittest.TestCase):
    def test_two_bytes_as_torch_rounds(self):
        values = weights()
        values[0, :8] = [65504, 65519, 6e-8, 2e-8, -0.0, 1e-45, 1 / 3, -1 / 3]
        for form, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
            got, _ = through(form, values)
            self.assertTrue(np.array_equal(got.view(np.uint32), torch.from_numpy(values).to(dtype).float().numpy().view(np.uint32)), form)

    def test_fp8_as_torch_rounds(self):
        values = weights()
        got, _ = through("fp8", values)
        scale, inverse = row_scales(values, 448)
        codes = torch.from_numpy(values * inverse).clamp(-448, 448).to(torch.float8_e4m3fn)
        self.assertTrue(np.array_equal(got, codes.float().numpy() * scale))

    def test_int8_as_torch_rounds(self):
        values = weights()
        got, _ = through("int8", values)
        scale, inverse = row_scales(values, 127)
        codes = torch.round(torch.from_numpy(values * inverse)).to(torch.int8)
        self.assertTrue(np.array_equal(got, codes.float().numpy() * scale))

    def test_blocks_of_gguf_byte_by_byte(self):
        import gguf
        values = weights()
        for form, kind in (("q8_0", gguf.GGMLQuantizationType.Q8_0), ("q4_0", gguf.GGMLQuantizationType.Q4_0)):
            got, stored = through(form, values)
            wanted = gguf.quantize(values, kind)
            self.assertEqual(stored[:wanted.size], wanted.tobytes(), form)
            self.assertTrue(np.array_equal(got, gguf.dequantize(wanted, kind)), form)

    def test_q4_k_decodes_there_to_the_same(self):
        import gguf
        values = weights()
        got, stored = through("q4_k", values)
        blocks = np.frombuffer(stored[:values.size // 256 * 144], np.uint8).reshape(values.shape[0], -1)
        theirs = gguf.dequantize(blocks, gguf.GGMLQuantizationType.Q4_K)
        # d * scale and m * offset are rounded before the product in one and behind it in the other
        self.assertLess(np.abs(got - theirs).max(), 1e-6 * np.abs(values).max())
        self.assertLess(np.sqrt(((got - values) ** 2).sum() / (values ** 2).sum()), 0.09)

    def test_nf4_of_bitsandbytes(self):
        import bitsandbytes.functional as functional
        values = weights()
        got, _ = through("nf4", values)
        packed, state = functional.quantize_4bit(torch.from_numpy(values), blocksize=64, quant_type="nf4")
        theirs = functional.dequantize_4bit(packed, state).numpy()
        self.assertTrue(np.array_equal(got, theirs))

    def test_sparse_forms_hold_what_torch_prunes(self):
        values = weights()
        keep = torch.from_numpy(values).reshape(-1, 4).abs().topk(2, dim=1).indices
        mask = torch.zeros(values.size // 4, 4).scatter_(1, keep, 1).reshape(values.shape)
        got, _ = through("2:4", values)
        kept = (torch.from_numpy(values) * mask).to(torch.float16).float().numpy()
        self.assertLess(np.abs(got - kept).max(), 1e-3 * np.abs(values).max())
        self.assertTrue(((got.reshape(-1, 4) != 0).sum(1) <= 2).all())
        for form in ("coo", "csr", "bitmask", "archive", "raw"):
            pruned = values * (np.random.default_rng(2).random(values.shape) < 0.05)
            got, _ = through(form, pruned.astype(np.float32))
            self.assertTrue(np.array_equal(got.view(np.uint32), pruned.astype(np.float32).view(np.uint32)), form)


class Formats(unittest.TestCase):
    def test_lossless_conversions_of_every_type_of_torch(self):
        tensors = {}
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
                      torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
            size = torch.empty(0, dtype=dtype).element_size()
            raw = torch.randint(0, 2 if dtype == torch.bool else 256, (301 * 17 * size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
            tensors[str(dtype)] = raw.view(dtype).reshape(301, 17)
        save_file(tensors, FOLDER / "types.safetensors")
        torch.save(tensors, FOLDER / "types.pt")
        for source in ("types.safetensors", "types.pt"):
            for form in ("raw", "archive", "auto"):
                plimsoll("weights", source, "-o", "types.plim", "--form", form)
                plimsoll("weights", "types.plim", "-o", "types.back.safetensors")
                back = load_file(FOLDER / "types.back.safetensors")
                self.assertEqual(set(back), set(tensors))
                for name, tensor in tensors.items():
                    self.assertTrue(torch.equal(back[name].view(torch.uint8), tensor.view(torch.uint8)), (source, form, name))

    def test_storages_of_torch_however_they_lie(self):
        base = torch.arange(6 * 4 * 5, dtype=torch.float32).reshape(6, 4, 5)
        shared = torch.nn.Linear(5, 7)
        tensors = {"whole": base, "turned": base.permute(2, 0, 1), "every second": base[::2, 1:, ::3], "behind": base[4:],
                   "broadcast": base[:1, :1, :].expand(6, 4, 5), "tied": base, "scalar": base[3, 3, 3], "empty": base[:0],
                   "layer": shared.weight.detach(), "again": shared.weight.detach()}
        torch.save(tensors, FOLDER / "strided.pt")
        plimsoll("weights", "strided.pt", "-o", "strided.safetensors")
        back = load_file(FOLDER / "strided.safetensors")
        self.assertEqual(set(back), set(tensors))
        for name, tensor in tensors.items():
            self.assertEqual(back[name].shape, tensor.shape, name)
            self.assertTrue(torch.equal(back[name], tensor), name)

    def test_numpy_reads_what_is_written(self):
        values = weights()
        save_file({"w": torch.from_numpy(values), "n": torch.arange(5)}, FOLDER / "n.safetensors")
        plimsoll("weights", "n.safetensors", "-o", "n.npz")
        with np.load(FOLDER / "n.npz") as arrays:
            self.assertTrue(np.array_equal(arrays["w"], values))
            self.assertTrue(np.array_equal(arrays["n"], np.arange(5)))

    def test_verdicts_are_those_of_the_installed_safetensors(self):
        counted = 0
        for line in VERDICTS.read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("#"):
                continue
            name, verdict, content = (line.split("\t") + [""])[:3]
            try:
                safetensors.deserialize(bytes.fromhex(content))
                theirs = "accept"
            except Exception:  # each kind of damage has an exception of its own
                theirs = "refuse"
            self.assertEqual(verdict, theirs, name)
            (FOLDER / "hostile.safetensors").write_bytes(bytes.fromhex(content))
            done = subprocess.run([PROGRAM, "weights", "hostile.safetensors", "--json"], cwd=FOLDER, capture_output=True, check=False)
            self.assertEqual(done.returncode, 0 if theirs == "accept" else 3, (name, done.stderr))
            counted += 1
        self.assertGreaterEqual(counted, 60)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1])
