#!/usr/bin/env python3
"""Training steps on a GPU, PyTorch's in each of its modes, and with --plimsoll ours beside them in the same run: time and peak memory.

    python tools/bench_torch_gpu.py [WORK ...] [--amp] [--plimsoll build/release/plimsoll [--within 0.97]] [--rounds 2] [--json]

Fused AdamW, fp32 weights, TF32 products (with --amp: bf16 autocast), no dropout, tied heads, scaled_dot_product_attention, the loss inside what is
compiled. A mode has a process of its own, which measures plain steps and then, as the mode `… graph`, the whole step replayed as one CUDA graph. Peak is
torch.cuda.max_memory_allocated of settled steps, of a graph while it is captured (weights, gradients and moments included, the context not); time is their median. With --plimsoll the
modes and `plimsoll run` take turns for so many rounds: the ratios are our median over the least of PyTorch's medians, and our bytes over its lowest
peak, each on its own. With --within ours also runs under a budget of that part of PyTorch's lowest peak, as a row of its own. Compiled modes are compiled side by side first, into Inductor's own cache, so that the timed processes find everything
compiled. Needs a GPU and a Python with torch; torchvision for resnet101 and transformers for whisper-small.
"""
import argparse
import concurrent.futures
import json
import statistics
import subprocess
import sys
import time

import bench_torch

WORKS = {"alexnet": ("alexnet", 128, None), "resnet50-32": ("resnet50", 32, None), "resnet50": ("resnet50", 256, None), "resnet101": ("resnet101", 32, None),
         "gpt2": ("gpt2", 8, 1024), "gpt2-16": ("gpt2", 16, 1024), "bert": ("bert", 16, 512), "whisper-small": ("whisper-small", 16, 224)}
IMAGES = ("alexnet", "resnet50", "resnet101")
OURS, WITHIN = "plimsoll", "plimsoll within"
COMPILERS = 6  # processes that compile side by side


def modes_of(work):
    layouts = ["", " channels-last"] if WORKS[work][0] in IMAGES else [""]
    return [how + layout for how in ("eager", "compiled") for layout in layouts]


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    config = WhisperConfig(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072,
                           decoder_ffn_dim=3072, dropout=0, attention_dropout=0, activation_dropout=0, use_cache=False)
    config._attn_implementation = "sdpa"
    return WhisperForConditionalGeneration(config)


def parts_of(torch, work):
    """The model, its inputs, and the logits as a function of both."""
    name, batch, length = WORKS[work]
    if name in IMAGES:
        if name == "resnet101":
            import torchvision
            model = torchvision.models.resnet101()
        else:
            model = getattr(bench_torch, name)(torch)
        return model, [torch.randn(batch, 3, 224, 224)], torch.randint(0, 1000, (batch,)), lambda x: model(x)
    words = torch.randint(0, 30000, (batch, length))
    if name == "whisper-small":
        model = whisper()
        return model, [torch.randn(batch, 80, 3000), words], words.flatten(), lambda x, ids: model(input_features=x, decoder_input_ids=ids).logits
    model = bench_torch.transformer(torch, name)
    return model, [words], words.flatten(), lambda ids: model(ids)


def captured(torch, step):
    """The step as one CUDA graph. It must have run on a stream of its own before, as it does here."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def measure(work, mode, amp, steps):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    model, inputs, labels, logits = parts_of(torch, work)
    layout = torch.channels_last if "channels-last" in mode else torch.contiguous_format
    model.to("cuda", memory_format=layout).train()
    inputs = [x.to("cuda", memory_format=layout) if x.dim() == 4 else x.to("cuda") for x in inputs]
    labels = labels.to("cuda")

    def loss(*x):
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            return torch.nn.functional.cross_entropy(logits(*x).reshape(len(labels), -1), labels)

    call = torch.compile(loss) if "compiled" in mode else loss
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True, capturable=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        call(*inputs).backward()
        optimizer.step()

    answer = {mode: timed(torch, step, steps)}
    try:
        torch.cuda.reset_peak_memory_stats()
        replay = captured(torch, step)
        # Replaying allocates nothing: what a step holds is what capturing it took.
        peak = torch.cuda.max_memory_allocated() / 2**20
        answer[f"{mode} graph"] = dict(timed(torch, replay, steps), peak_mib=peak)
    except Exception as problem:  # the plain steps were measured all the same
        answer[f"{mode} graph"] = {"error": str(problem).splitlines()[0]}
    return answer


def timed(torch, step, steps):
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return {"peak_mib": torch.cuda.max_memory_allocated() / 2**20, "milliseconds": 1e3 * statistics.median(times)}


def in_a_process(work, mode, options):
    command = [sys.executable, __file__, work, "--mode", mode, "--steps", str(options.steps)] + ["--amp"] * options.amp
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {mode: {"error": (done.stderr.strip().splitlines() or ["no answer"])[-1]}}
    return json.loads(done.stdout.splitlines()[-1])


def ours(work, options, budget=None):
    name, batch, length = WORKS[work]
    command = [options.plimsoll, "run", name, "--batch", str(batch), "--device", "cuda", "--steps", str(options.steps + 2), "--json"]
    command += ["--seq", str(length)] * (length is not None and name != "whisper-small") + (["--amp", "bf16"] if options.amp else ["--tf32"])
    command += ["--budget", str(budget)] * (budget is not None)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout} {done.stderr[-600:]}")
    answer = json.loads(done.stdout)
    return {OURS if budget is None else WITHIN: {"peak_mib": answer["peak_bytes"] / 2**20, "milliseconds": 1e3 * statistics.median(answer["step_seconds"][2:])}}


def wanted(work, options):
    return [mode for mode in modes_of(work) if not options.modes or mode in options.modes.split(",")]


def row_of(work, options):
    """Per mode the peak, and the median of every round; ours under the name plimsoll."""
    row = {}
    for _ in range(options.rounds):
        for one in ([ours(work, options)] if options.plimsoll else []) + [in_a_process(work, mode, options) for mode in wanted(work, options)]:
            for mode, figures in one.items():
                known = row.setdefault(mode, {"milliseconds": []})
                known["milliseconds"] += [figures.pop("milliseconds")] if "milliseconds" in figures else []
                known.update(figures)
    rivals = rivals_in(row)
    if options.plimsoll and options.within and rivals:
        for mode, figures in ours(work, options, int(options.within * 2**20 * min(rival["peak_mib"] for rival in rivals))).items():
            row[mode] = dict(figures, milliseconds=[figures["milliseconds"]])
    return row


def rivals_in(row):
    return [figures for mode, figures in row.items() if mode not in (OURS, WITHIN) and figures["milliseconds"]]


def summary(row):
    """Our time and bytes over the best of PyTorch's modes, each on its own, for each of our rows."""
    rivals = rivals_in(row)
    if not rivals:
        return {}
    time, peak = (min(of) for of in zip(*((statistics.median(rival["milliseconds"]), rival["peak_mib"]) for rival in rivals)))
    return {mode: {"time": statistics.median(row[mode]["milliseconds"]) / time, "bytes": row[mode]["peak_mib"] / peak} for mode in (OURS, WITHIN) if mode in row}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("works", nargs="*", metavar="WORK", help=" ".join(WORKS))
    parser.add_argument("--amp", action="store_true", help="bf16 autocast")
    parser.add_argument("--plimsoll", help="our program, measured in the same run")
    parser.add_argument("--within", type=float, help="ours also within this part of PyTorch's lowest peak")
    parser.add_argument("--modes", help="only these of PyTorch's, by commas")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--mode", help=argparse.SUPPRESS)  # this one, in this process
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.mode:
        print(json.dumps(measure(options.works[0], options.mode, options.amp, options.steps)))
        return
    works = options.works or list(WORKS)
    unknown = [work for work in works if work not in WORKS]
    if unknown:
        parser.error(f"no work {unknown[0]}; there are {', '.join(WORKS)}")
    with concurrent.futures.ThreadPoolExecutor(COMPILERS) as pool:
        compiled = [(work, mode) for work in works for mode in wanted(work, options) if mode.startswith("compiled")]
        list(pool.map(lambda pair: in_a_process(*pair, options), compiled))
    answer = {}
    for work in works:
        row = row_of(work, options)
        answer[work] = {"modes": row, "ratios": summary(row)}
        if options.json:
            continue
        for mode, figures in row.items():
            said = figures.get("error") or f"{statistics.median(figures['milliseconds']):9.2f} ms {figures['peak_mib']:9.0f} MiB"
            print(f"{work:14} {mode:32} {said}", flush=True)
        for mode, ratios in answer[work]["ratios"].items():
            print(f"{work:14} {mode} over PyTorch's best: {ratios['time']:.3f} of the time, {ratios['bytes']:.3f} of the bytes", flush=True)
    if options.json:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
