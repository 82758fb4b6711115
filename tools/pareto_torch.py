#!/usr/bin/env python3
"""Peak memory against step time of one model: pt.compile beside the other ways people use, as an SVG picture.

    pareto_torch.py --model gpt2_bf16                                 runs tools/bench_torch_budget_gpu.py on this GPU, then draws
    pareto_torch.py --model gpt2_bf16 build/…/bench.jsonl -o a.svg    draws what was measured before
    pareto_torch.py --docs build/…/bench.jsonl                        takes rows over into docs/pytorch_h200.jsonl; writes picture and tables of docs/pytorch.md
    pareto_torch.py --docs                                            writes them anew;  --check  fails where they are not those of the rows

Prints the points, and for each of PyTorch's whether one of ours is as low and as fast.
"""
import argparse
import datetime
import html
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = "compile,at7000,at5200,split,chunker,budget0.7,budget0.5,budget0.3,budget0.1,eager,checkpoint,checkpoint_offload,save_on_cpu,stash,offload"
# What a mode is drawn as: (words, colour). Ours are joined by a line, so are PyTorch's budgets.
KINDS = {"ours": ("pt.compile", "#0b6e4f"), "split": ("pt.compile, loss in parts", "#3ca370"), "step": ("pt.compile, step in backward", "#7bc96f"),
         "compile": ("torch.compile", "#c1440e"), "budget": ("activation_memory_budget", "#e08e45"), "chunker": ("torch.compile, auto_chunker", "#a63c06"), "eager": ("eager", "#777777"),
         "checkpoint": ("checkpoint each block", "#5b5ea6"), "checkpoint_offload": ("checkpoint, inputs on the host", "#9b6fc1"),
         "save_on_cpu": ("save_on_cpu", "#b0b0b0"), "stash": ("copying stream, nothing ahead", "#8c8c8c"), "offload": ("pt.offload_activations", "#2a9d8f")}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 860, 460, 70, 40, 30, 60


def kind_of(mode):
    if mode in KINDS:
        return mode
    return "ours" if mode.startswith(("ours", "at")) else "budget" if mode.startswith("budget") else "chunker" if mode.startswith("chunker") else None


def read(paths, model):
    points = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line) if line.startswith("{") else {}
                if row.get("model") == model and "ms" in row and "+" not in row["mode"] and kind_of(row["mode"]):
                    points[row["mode"]] = (row["peak_mib"], row["ms"], kind_of(row["mode"]))
    return points


def ticks(low, high, wanted=6):
    step = next(s for e in range(8) for s in (10**e, 2 * 10**e, 5 * 10**e) if (high - low) / s <= wanted)
    return [t * step for t in range(int(-(-low // step)), int(high // step) + 1)]


def free_place(at, height, width, taken):
    """Left end and base line of a label beside a point, where no other label or point is."""
    places = [(left, base) for down in (4, -10, 18, -24, 32, -38, 46, 60) for left in (at + 10, at - 10 - width) for base in (height + down,)]
    boxes = [(left, base - 11, left + width, base + 3) for left, base in places]
    inside = lambda box: box[0] >= LEFT and box[2] <= WIDTH and box[1] >= TOP - 12
    clear = lambda box: all(box[2] <= t[0] or t[2] <= box[0] or box[3] <= t[1] or t[3] <= box[1] for t in taken)
    best = next((i for i, box in enumerate(boxes) if inside(box) and clear(box)), 0)
    taken.append(boxes[best])
    return places[best]


def draw(points, model, title):
    peaks, times = [p[0] for p in points.values()], [p[1] for p in points.values()]
    top = 1.05 * max(peaks)
    # Times are drawn up to three times the fastest; what is slower stands at the edge with its number.
    most = min(1.06 * max(times), 3.0 * min(times))
    x = lambda peak: LEFT + peak / top * (WIDTH - LEFT - RIGHT)
    y = lambda ms: HEIGHT - BOTTOM - min(ms, most) / most * (HEIGHT - TOP - BOTTOM)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/><text x="{LEFT}" y="22" font-size="15">{html.escape(title)}</text>']
    for t in ticks(0, top):
        out.append(f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>'
                   f'<text x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{t:,}</text>')
    for t in ticks(0, most):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}" stroke="#eee"/>'
                   f'<text x="{LEFT - 8}" y="{y(t) + 4:.1f}" text-anchor="end">{t}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">peak of allocated bytes, MiB</text>'
               f'<text transform="translate(18,{(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">step, ms</text>')
    for kinds in (("ours", "split", "step"), ("compile", "budget")):
        line = sorted((p for p in points.values() if p[2] in kinds), key=lambda p: p[0])
        if len(line) > 1:
            out.append(f'<polyline fill="none" stroke="{KINDS[kinds[0]][1]}" stroke-width="1.5" points="' + " ".join(f"{x(p):.1f},{y(m):.1f}" for p, m, _ in line) + '"/>')
    named, taken = set(), [(x(p) - 6, y(m) - 6, x(p) + 6, y(m) + 6) for p, m, _ in points.values()]
    for mode, (peak, ms, kind) in sorted(points.items(), key=lambda p: p[1]):
        words, colour = KINDS[kind]
        out.append(f'<circle cx="{x(peak):.1f}" cy="{y(ms):.1f}" r="5" fill="{colour}"><title>{html.escape(words)}: {peak:,.0f} MiB, {ms:.1f} ms</title></circle>')
        if kind not in named or ms > most:
            label = words + (f" ({ms:,.0f} ms)" if ms > most else "")
            left, base = free_place(x(peak), y(ms), 6.6 * len(label), taken)
            out.append(f'<text x="{left:.1f}" y="{base:.1f}" fill="{colour}">{html.escape(label)}</text>')
        named.add(kind)
    return "\n".join(out + ["</svg>", ""])


def compare(points):
    ours = [(p, m) for p, m, kind in points.values() if kind in ("ours", "split", "step")]
    for mode, (peak, ms, kind) in sorted(points.items(), key=lambda p: -p[1][0]):
        better = kind not in ("ours", "split", "step") and any(p <= peak and m <= ms for p, m in ours)
        print(f"{KINDS[kind][0]:32s}{mode:20s}{peak:10,.0f} MiB{ms:9.1f} ms{'   ours is as low and as fast' if better else ''}")


DOCS = os.path.join(os.path.dirname(HERE), "docs")
DATA, PAGE, PICTURE = (os.path.join(DOCS, *path) for path in (("pytorch_h200.jsonl",), ("pytorch.md",), ("images", "pareto_gpt2.svg")))
NAMES = {"gpt2_bf16": "GPT-2 bf16, 16 × 1,024", "gpt2_tf32": "GPT-2 TF32, 16 × 1,024", "bert_bf16": "BERT bf16, 32 × 512, dropout",
         "llama1b_bf16": "Llama-like, 1B, bf16, 2 × 2,048", "resnet50_bf16": "ResNet-50 bf16, 256", "resnet50_tf32": "ResNet-50 TF32, 256"}
SAID = {"ours": "", "split": "loss in 8 parts", "step": "`step_in_backward`"}
FACTS = ("model", "mode", "peak_mib", "ms", "ms_min", "ms_max", "budget_mib", "refused_mib", "loss", "gnorm", "steps", "grown_bytes", "compile_s", "measured")


def merge(paths, day):
    """The rows of the page with those of other files in the place of older ones."""
    rows = {}
    for path in [DATA, *paths]:
        if path == DATA and not os.path.exists(DATA):
            continue
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line) if line.startswith("{") else {}
                if "ms" in row:
                    row = {k: row[k] for k in FACTS if row.get(k) is not None}
                    rows[row["model"], row["mode"]] = row if "measured" in row else {**row, "measured": day}
    with open(DATA, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(rows[key]) + "\n" for key in sorted(rows))


def cell(row):
    return "" if row is None else f"{row['peak_mib']:,.0f} MiB, {row['ms']:.1f} ms"


def rows_of_page(rows, optimizer):
    from bench_torch_budget_gpu import BARS, SPLIT_BARS
    bars = lambda model, mode: {"ours": BARS.get(model), "split": (SPLIT_BARS.get(model), None), "step": (2700, None)}[mode]
    lines = ["| model | `torch.compile` | budget | `pt.compile` | slower | bar |", "|---|---|---|---|---|---|"]
    for model in NAMES:
        theirs = rows.get((model, "compile" + optimizer))
        for mode, words in SAID.items():
            ours = rows.get((model, mode + optimizer))
            if ours is None:
                continue
            most, ms = bars(model, mode)
            bar = "" if optimizer else f"{most:,} MiB" + (f", {ms:g} ms" if ms else "")
            slower = f"{ours['ms'] / theirs['ms'] - 1:+.1%}" if theirs else ""
            refused = f" ({ours['refused_mib']:,.0f} refused)" if "refused_mib" in ours else ""
            lines.append(f"| {NAMES[model]}{', ' + words if words else ''} | {cell(theirs)} | {ours['budget_mib']:,.0f} MiB{refused} | {cell(ours)} | {slower} | {bar} |")
    return lines


def rows_of_picture(points):
    ours = [(p, m) for p, m, kind in points.values() if kind in ("ours", "split", "step")]
    lines = ["| way | peak | step | |", "|---|---|---|---|"]
    for mode, (peak, ms, kind) in sorted(points.items(), key=lambda p: -p[1][0]):
        better = kind not in ("ours", "split", "step") and any(p <= peak and m <= ms for p, m in ours)
        words = KINDS[kind][0] + (f" = {mode[6:]}" if kind == "budget" else "")
        lines.append(f"| {words} | {peak:,.0f} MiB | {ms:.1f} ms | {'`pt.compile` is as low and as fast' if better else ''} |")
    return lines


def documents():
    """What the page and the picture must be: path -> text."""
    with open(DATA, encoding="utf-8") as file:
        rows = {(r["model"], r["mode"]): r for r in map(json.loads, file)}
    points = read([DATA], "gpt2_bf16")
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for name, lines in (("sgd", rows_of_page(rows, "")), ("adamw", rows_of_page(rows, "+adamw")), ("ways", rows_of_picture(points))):
        begin, end = f"<!-- {name}: made by tools/pareto_torch.py --docs -->\n", f"<!-- {name} ends -->"
        if begin not in page or end not in page:
            sys.exit(f"pareto_torch: {PAGE} has no lines '{begin.strip()}' and '{end}'")
        page = page[:page.index(begin)] + begin + "\n".join(lines) + "\n" + page[page.index(end):]
    return {PAGE: page, PICTURE: draw(points, "gpt2_bf16", "GPT-2 in bf16, 16 × 1,024, one H200: memory and time of a training step")}


def write_documents(paths, check):
    if paths:
        merge(paths, datetime.date.today().isoformat())
    for path, text in documents().items():
        if check:
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    sys.exit(f"pareto_torch: {path} is not what {DATA} says; run tools/pareto_torch.py --docs")
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2_bf16")
    parser.add_argument("--title")
    parser.add_argument("-o", "--output", default="pareto.svg")
    parser.add_argument("measured", nargs="*", help="bench.jsonl of tools/bench_torch_budget_gpu.py; none: it is run")
    parser.add_argument("--docs", action="store_true", help="write picture and tables of docs/pytorch.md")
    parser.add_argument("--check", action="store_true", help="that they are those of docs/pytorch_h200.jsonl")
    given = parser.parse_args()
    paths = given.measured
    if given.docs or given.check:
        write_documents(paths, given.check)
        return
    if not paths:
        out = os.path.abspath(os.path.splitext(given.output)[0] + "_bench")
        subprocess.run([sys.executable, os.path.join(HERE, "bench_torch_budget_gpu.py"), "--models", given.model, "--modes", MODES, "--seconds", "1500"],
                       env={**os.environ, "OUT": out}, check=True)
        paths = [os.path.join(out, "bench.jsonl")]
    points = read(paths, given.model)
    if len(points) < 2:
        sys.exit(f"pareto_torch: {', '.join(paths)} has {len(points)} measured modes of '{given.model}'; at least two are needed")
    compare(points)
    with open(given.output, "w", encoding="utf-8") as file:
        file.write(draw(points, given.model, given.title or f"{given.model}: memory and time of a training step"))


if __name__ == "__main__":
    main()
