#!/usr/bin/env python3
"""Runs built-in models on checkpoints that transformers and torchvision wrote, and compares the outputs.

    check_checkpoints.py PLIMSOLL FOLDER

Small random models of each family are saved as people save them (save_pretrained, torch.save, an inner
model without its prefix, a wrapped one, bf16), run here by `plimsoll run --infer --weights`, and compared
with what PyTorch computes. Also through .plim files, lossless ones bit by bit.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
import torchvision
import transformers
from safetensors.torch import save_file

PROGRAM, FOLDER = (pathlib.Path(text).resolve() for text in sys.argv[1:3])


def plimsoll(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done


def run(model, options, weights, inputs):
    np.savez(FOLDER / "in.npz", **inputs)
    done = plimsoll("run", model, "--infer", *options, "--weights", weights, "--inputs", "in.npz", "--outputs", "out.npz", "--threads", 1)
    with np.load(FOLDER / "out.npz") as arrays:
        return arrays[arrays.files[0]].copy(), done.stderr


def check(title, model, options, weights, inputs, expected, tolerance=2e-4):
    out, said = run(model, options, weights, inputs)
    error = float(np.abs(out.reshape(expected.shape) - expected).max() / np.abs(expected).max())
    quiet = not said.strip()
    print(f"{title:44} error {error:.1e}  {'ok' if error <= tolerance and quiet else 'WRONG'} {said.strip()}")
    return error <= tolerance and quiet, out


def compressed(title, model, options, weights, inputs, exact):
    """The same run from a lossless .plim file has the same bits; q8_0 is near."""
    plimsoll("weights", weights, "-o", "c.plim", "--form", "archive")
    same = np.array_equal(run(model, options, "c.plim", inputs)[0], exact)
    told = json.loads(plimsoll("weights", weights, "-o", "q.plim", "--form", "q8_0", "--json").stdout)
    near = run(model, options, "q.plim", inputs)[0]
    error = float(np.abs(near - exact).max() / np.abs(exact).max())
    print(f"{title:44} archive {'same bits' if same else 'WRONG'}; q8_0 in {told['stored_bytes'] / told['bytes']:.3f}, outputs differ by {error:.1e}")
    return same and error < 0.05


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    good = []

    config = transformers.GPT2Config(n_layer=2, n_embd=128, n_head=2, vocab_size=500)
    gpt2 = transformers.GPT2LMHeadModel(config).eval()
    for parameter in gpt2.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    options = ["--layers", 2, "--width", 128, "--heads", 2, "--vocab", 500, "--batch", 2, "--seq", 16]
    ids = random.integers(0, 500, (2, 16))
    expected = gpt2(torch.tensor(ids)).logits.detach().numpy()
    inputs = {"input_ids": ids}
    gpt2.save_pretrained(FOLDER / "gpt2")
    ok, out = check("gpt2, save_pretrained", "gpt2", options, "gpt2/model.safetensors", inputs, expected)
    good += [ok, compressed("gpt2", "gpt2", options, "gpt2/model.safetensors", inputs, out)]
    gpt2.transformer.save_pretrained(FOLDER / "inner")
    good.append(check("gpt2, inner model without 'transformer.'", "gpt2", options, "inner/model.safetensors", inputs, expected)[0])
    torch.save({"model": {"module." + name: tensor for name, tensor in gpt2.state_dict().items()}, "epoch": 3}, FOLDER / "wrapped.pt")
    good.append(check("gpt2, torch.save of a wrapped model", "gpt2", options, "wrapped.pt", inputs, expected)[0])
    save_file({name: tensor.to(torch.bfloat16).clone() for name, tensor in gpt2.state_dict().items()}, FOLDER / "bf16.safetensors")
    good.append(check("gpt2, bf16", "gpt2", options, "bf16.safetensors", inputs, expected, 0.05)[0])

    config = transformers.BertConfig(num_hidden_layers=2, hidden_size=128, num_attention_heads=2, intermediate_size=512, vocab_size=500)
    bert = transformers.BertForMaskedLM(config).eval()
    for name, parameter in bert.named_parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    kinds = random.integers(0, 2, (2, 16))
    expected = bert(torch.tensor(ids), token_type_ids=torch.tensor(kinds)).logits.detach().numpy()
    bert.save_pretrained(FOLDER / "bert")
    good.append(check("bert, save_pretrained", "bert", options, "bert/model.safetensors", {"input_ids": ids, "token_type_ids": kinds}, expected)[0])

    config = transformers.WhisperConfig(encoder_layers=2, decoder_layers=2, d_model=128, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=512,
                                        decoder_ffn_dim=512, vocab_size=500, max_source_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    whisper = transformers.WhisperForConditionalGeneration(config).eval()
    for parameter in whisper.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    features = random.standard_normal((2, 80, 64)).astype(np.float32)
    expected = whisper(torch.tensor(features), decoder_input_ids=torch.tensor(ids)).logits.detach().numpy()
    whisper.save_pretrained(FOLDER / "whisper")
    good.append(check("whisper, save_pretrained", "whisper-small", [*options, "--frames", 64], "whisper/model.safetensors", {"input_features": features, "decoder_input_ids": ids}, expected)[0])

    resnet = torchvision.models.resnet18().eval()
    images = random.standard_normal((2, 3, 64, 64)).astype(np.float32)
    expected = resnet(torch.tensor(images)).detach().numpy()
    torch.save(resnet.state_dict(), FOLDER / "resnet18.pth")
    good.append(check("resnet18, torch.save", "resnet18", ["--batch", 2, "--image", 64], "resnet18.pth", {"images": images}, expected)[0])
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
