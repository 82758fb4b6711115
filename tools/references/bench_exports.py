#!/usr/bin/env python3
"""Ten models that others wrote, exported from PyTorch at their real sizes: a training step and an inference of each, beside PyTorch's and
onnxruntime's, on the CPU, in one run.

  python3 tools/references/bench_exports.py build/release/plimsoll [--models convnext_tiny,...] [--rounds N] [--threads N]
      [--folder DIR] [--batch N] [--no-compile] [--no-estimates] [--no-rivals] [--only train|infer] [--json] [--markdown]

Needs torch, timm, transformers, onnx and onnxruntime. Weights are random, drawn so that no two tensors are equal (exporters store equal
ones once, and one tensor trains as one weight). Files are exported into --folder (kept there: the next run reuses them), with an open
batch, for training as docs/onnx.md says; constants are not folded, which would store a second, transposed copy of tied weights.

  time       ours over the fastest rival. For training the rivals are PyTorch's modes: eager, channels_last (images) and compiled. For
             inference these and onnxruntime. Rivals take turns, round after round, because a neighbour can double every time on a
             shared machine; the figure is the ratio of the fastest steps of all rounds, beside it the ratios of single rounds.
  memory     our peak bytes over the lowest of PyTorch's modes: weights, gradients and activations; for PyTorch the most bytes of
             tensors alive at once. Its libraries' scratch is not counted, ours is. Where the plan that keeps everything needs more
             than the lowest mode, ours runs with that as its --budget, in the times too (marked `b`).
  estimate   the seconds that `plan` predicts over the median of its steps here, minus one: with the profile that ships
             (--device cpu), and with the operators timed first (--device measured).

Training is SGD in fp32 with cross-entropy on random data, nothing dropped at random. The exit status is 0 whatever the figures; a model that fails has a row that
says why, and then it is 1."""
import argparse
import dataclasses
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import traceback
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from bench_torch import most_allocated  # noqa: E402

warnings.filterwarnings("ignore")
BARS = {"time": 1.1, "memory": 1.0, "estimate": 0.25, "measured": 0.10}


@dataclasses.dataclass
class Case:
    name: str
    make: object  # () -> model
    train_batch: int
    infer_batch: int = 1
    seq: int = 0  # of tokens; 0: images of 224 x 224
    vocabulary: int = 0
    two_inputs: bool = False

    def inputs(self, batch):
        import torch
        if not self.seq:
            return [torch.randn(batch, 3, 224, 224)]
        draw = lambda: torch.randint(3, self.vocabulary, (batch, self.seq))
        return [draw(), draw()] if self.two_inputs else [draw()]

    def names(self):
        return ["input_ids", "decoder_input_ids"][:2 if self.two_inputs else 1] if self.seq else ["image"]

    def sizes(self, batch):
        return ["--batch", str(batch)] + (["--seq", str(self.seq)] if self.seq else [])


def image_model(name):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, drop_rate=0.0, drop_path_rate=0.0)
    return make


def logits_of(model, names, masked=False):
    import torch

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            # Without a mask transformers looks for packed sequences, with an operator that ONNX does not have.
            mask = {"attention_mask": torch.ones_like(inputs[0])} if masked else {}
            return self.model(**dict(zip(names, inputs)), **mask).logits
    return Logits()


def llama():
    import transformers
    config = transformers.LlamaConfig(vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=12,
                                      num_key_value_heads=12, max_position_embeddings=1024, use_cache=False)
    return logits_of(transformers.LlamaForCausalLM(config), ["input_ids"], masked=True)


def t5_small():
    import transformers
    config = transformers.T5Config(vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, dropout_rate=0.0, use_cache=False)
    return logits_of(transformers.T5ForConditionalGeneration(config), ["input_ids", "decoder_input_ids"])


CASES = [
    Case("convnext_tiny", image_model("convnext_tiny"), 8),
    Case("vit_base_patch16_224", image_model("vit_base_patch16_224"), 4),
    Case("swin_tiny", image_model("swin_tiny_patch4_window7_224"), 8),
    Case("efficientnet_b0", image_model("efficientnet_b0"), 8),
    Case("mobilenetv3_large", image_model("mobilenetv3_large_100"), 8),
    Case("regnety_016", image_model("regnety_016"), 8),
    Case("mixer_b16", image_model("mixer_b16_224"), 4),
    Case("deit_small", image_model("deit_small_patch16_224"), 8),
    Case("llama_6x768", llama, 2, seq=256, vocabulary=32000),
    Case("t5_small", t5_small, 4, seq=128, vocabulary=32128, two_inputs=True),
]


def build(case):
    import torch
    torch.manual_seed(0)
    model = case.make()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim <= 1 or weight.numel() < 65536:
                weight.add_(1e-3 * torch.randn_like(weight))
    return model


def export(case, folder, training):
    """The path of the file, written unless it is there."""
    import torch
    path = folder / f"{case.name}.{'train' if training else 'infer'}.onnx"
    if path.exists():
        return path
    model = build(case).train(training)
    mode = torch.onnx.TrainingMode
    axes = {name: {0: "batch", **({1: "seq"} if case.seq else {})} for name in case.names()}
    begun = path.with_suffix(".part")
    torch.onnx.export(model, tuple(case.inputs(2)), str(begun), input_names=case.names(), output_names=["logits"], dynamic_axes=axes,
                      training=mode.TRAINING if training else mode.EVAL, do_constant_folding=False, opset_version=17, dynamo=False)
    begun.rename(path)
    return path


class Torch:
    """One mode of PyTorch; steps on demand, so that rivals can take turns."""

    def __init__(self, case, mode, training):
        import torch
        self.torch, self.training = torch, training
        self.model = build(case).train(training)
        self.x = case.inputs(case.train_batch if training else case.infer_batch)
        with torch.no_grad():
            classes = self.model(*self.x).shape
        self.y = torch.randint(0, classes[-1], (classes.numel() // classes[-1],))
        if mode == "channels_last":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = [x.to(memory_format=torch.channels_last) for x in self.x]
        self.call = torch.compile(self.model) if mode == "compiled" else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-3)

    def step(self):
        torch = self.torch
        begin = time.perf_counter()
        if self.training:
            self.optimizer.zero_grad(set_to_none=True)
            logits = self.call(*self.x)
            torch.nn.functional.cross_entropy(logits.reshape(len(self.y), -1), self.y).backward()
            self.optimizer.step()
        else:
            with torch.inference_mode():
                self.call(*self.x)
        return time.perf_counter() - begin

    def peak_bytes(self):
        """The most bytes of tensors alive at once during one step, weights and inputs included."""
        self.optimizer.zero_grad(set_to_none=True)
        peak = most_allocated(self.torch, self.step)
        held = [*self.model.parameters(), *self.model.buffers(), *self.x]
        return peak + sum(t.numel() * t.element_size() for t in held)


class OnnxRuntime:
    def __init__(self, case, path, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        # Threads that wait by spinning would take the cores from the rival whose turn it is.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.feeds = {name: x.numpy() for name, x in zip(case.names(), case.inputs(case.infer_batch))}

    def step(self):
        begin = time.perf_counter()
        self.session.run(None, self.feeds)
        return time.perf_counter() - begin


def ask(command):
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {out.returncode}: {out.stderr.strip() or out.stdout.strip()}")
    return json.loads(out.stdout)


class Plimsoll:
    def __init__(self, options, case, path, training):
        batch = case.train_batch if training else case.infer_batch
        self.program, self.turn = options.program, 3 if training else 6
        self.model = [path, *(["--train", "--loss", "cross-entropy", "--optimizer", "sgd"] if training else ["--infer"]), *case.sizes(batch)]
        self.threads = ["--threads", str(options.threads)]
        self.budget = []

    def run(self):
        """The steps of a turn, and the peak."""
        report = ask([self.program, "run", *self.model, *self.threads, *self.budget, "--random", "--steps", str(self.turn), "--json"])
        return report["step_seconds"][1:], report["peak_bytes"]

    def runs(self):
        """Whether the budget can be held."""
        try:
            return bool(self.run())
        except RuntimeError as error:
            if "exit code 4" not in str(error):
                raise
            return False

    def predicted(self, device):
        """Of the plan that runs: the one that recomputes nothing where there is no budget."""
        plan = [self.program, "plan", *self.model, *self.threads, *(self.budget or ["--budget", "100%"]), "--device", device, "--json"]
        return ask(plan)["predicted_seconds" if self.budget else "keep_all_seconds"]


def estimates(ours, steps):
    """What `plan` predicts over the median of the steps, minus one."""
    return {key: ours.predicted(device) / statistics.median(steps) - 1
            for key, device in (("estimate_error", "cpu"), ("measured_error", "measured"))}


def measure(options, case, training):
    modes = ["eager"] + ([] if case.seq else ["channels_last"]) + ([] if options.no_compile else ["compiled"])
    path = export(case, options.folder, training)
    ours = Plimsoll(options, case, path, training)
    row = {"model": case.name, "kind": "train" if training else "infer", "batch": case.train_batch if training else case.infer_batch}
    if options.no_rivals:
        return row | estimates(ours, [seconds for _ in range(options.rounds) for seconds in ours.run()[0]])
    rounds = {mode: [] for mode in [*modes, *([] if training else ["onnxruntime"]), "plimsoll"]}
    _, kept = ours.run()
    rivals, peaks, steps = {}, {}, []
    for mode in modes:
        rivals[mode] = Torch(case, mode, training)
        for _ in range(2):
            rivals[mode].step()
        peaks[mode] = rivals[mode].peak_bytes()
    if kept > min(peaks.values()):
        ours.budget = ["--budget", str(min(peaks.values()))]
        if not ours.runs():
            ours.budget = []
    if not training:
        rivals["onnxruntime"] = OnnxRuntime(case, path, options.threads)
        rivals["onnxruntime"].step()
    for turn in range(options.rounds):
        for mode, rival in rivals.items():
            rounds[mode].append(min(rival.step() for _ in range(2 if training else 5)))
        seconds, peaks["plimsoll"] = ours.run()
        rounds["plimsoll"].append(min(seconds))
        steps += seconds
    del rivals
    gc.collect()
    best = {mode: min(times) for mode, times in rounds.items()}
    fastest = min((seconds, mode) for mode, seconds in best.items() if mode != "plimsoll")
    lowest = min((peak, mode) for mode, peak in peaks.items() if mode != "plimsoll")
    by_round = [mine / min(theirs) for mine, *theirs in zip(rounds["plimsoll"], *(t for m, t in rounds.items() if m != "plimsoll"))]
    row |= {"seconds": rounds, "peak_bytes": peaks, "fastest": fastest[1], "lowest": lowest[1], "time_ratio": best["plimsoll"] / fastest[0],
            "time_ratios": by_round, "memory_ratio": peaks["plimsoll"] / lowest[0], "kept_bytes": kept, "budgeted": bool(ours.budget)}
    return row if options.no_estimates else row | estimates(ours, steps)


HEAD = ("model", "step", "PyTorch's best", "onnxruntime", "here", "time", "rounds", "PyTorch's memory", "here", "memory", "estimate", "measured")


def cells(row):
    best = {mode: 1e3 * min(times) for mode, times in row["seconds"].items()}
    torch_best = min((ms, mode) for mode, ms in best.items() if mode not in ("plimsoll", "onnxruntime"))
    mib = {mode: peak / 2**20 for mode, peak in row["peak_bytes"].items()}
    mark = lambda text, good: text + ("" if good else " !")
    return (row["model"], f"{row['kind']} {row['batch']}", f"{torch_best[0]:,.1f} ms {torch_best[1]}",
            f"{best['onnxruntime']:,.1f} ms" if "onnxruntime" in best else "–", f"{best['plimsoll']:,.1f} ms" + (" b" if row["budgeted"] else ""),
            mark(f"{row['time_ratio']:.2f}", row["time_ratio"] <= BARS["time"]), f"{min(row['time_ratios']):.2f}–{max(row['time_ratios']):.2f}",
            f"{mib[row['lowest']]:,.0f} MiB {row['lowest']}", f"{mib['plimsoll']:,.0f} MiB",
            mark(f"{row['memory_ratio']:.2f}", row["memory_ratio"] <= BARS["memory"]),
            *(mark(f"{100 * row[key]:+.0f} %", abs(row[key]) <= BARS[bar]) if key in row else "–"
              for key, bar in (("estimate_error", "estimate"), ("measured_error", "measured"))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--models", default=",".join(case.name for case in CASES))
    parser.add_argument("--only", choices=["train", "infer"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "plimsoll" / "exports", help="where exports are kept")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out (it takes minutes a model)")
    parser.add_argument("--batch", type=int, help="of the training steps, instead of each model's own")
    parser.add_argument("--no-rivals", action="store_true", help="the estimates alone, as --json: PyTorch is needed only to export")
    parser.add_argument("--no-estimates", action="store_true", help="leave the estimates out: the profile that ships is of two cores")
    parser.add_argument("--export-only", action="store_true", help="write the files and stop")
    parser.add_argument("--json", action="store_true", help="one row a line, with the seconds of every round")
    parser.add_argument("--markdown", action="store_true", help="rows of a table")
    options = parser.parse_args()
    options.json |= options.no_rivals
    try:
        import onnxruntime  # noqa: F401
        import timm  # noqa: F401
        import torch
        import transformers  # noqa: F401
    except ImportError as missing:
        sys.exit(f"bench_exports: {missing}; set PYTHON to one with torch, timm, transformers, onnx and onnxruntime")
    torch.set_num_threads(options.threads)
    options.folder.mkdir(parents=True, exist_ok=True)
    wanted, failed = options.models.split(","), 0
    unknown = set(wanted) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"bench_exports: no model {', '.join(sorted(unknown))}; there are {', '.join(case.name for case in CASES)}")
    for case in CASES:
        case.train_batch = options.batch or case.train_batch
    joint = " | " if options.markdown else "  "
    if not options.json and not options.export_only:
        print(joint.join(HEAD))
    for case in CASES:
        for training in (True, False):
            if case.name not in wanted or options.only == ("infer" if training else "train"):
                continue
            try:
                if options.export_only:
                    print(export(case, options.folder, training), flush=True)
                    continue
                row = measure(options, case, training)
                print(json.dumps(row) if options.json else joint.join(cells(row)), flush=True)
            except Exception as error:  # a model that fails is a row, not the end
                failed += 1
                why = str(error).strip().splitlines()[-1:] or [type(error).__name__]
                print(f"{case.name} {'train' if training else 'infer'}: {why[0]}", flush=True)
                if os.environ.get("PLIMSOLL_TRACEBACK"):
                    traceback.print_exc()
            gc.collect()
            torch.compiler.reset()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
