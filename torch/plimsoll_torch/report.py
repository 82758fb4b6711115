"""What was planned, and what was measured beside it: as text, and as one HTML page without anything to load."""
import html

from plimsoll_torch.byte_size import show_bytes

_LONGEST_TABLE = 400


def text(session):
    if not session.plans:
        return "nothing is planned yet: the first call of the model with gradients compiles and plans it"
    planned = session.planned_peak()
    lines = [f"budget    {show_bytes(session.budget):>14}",
             f"planned   {show_bytes(planned):>14}   resident {show_bytes(session.resident)}, optimizer state to come {show_bytes(session.state_to_come)}, "
             f"margin {show_bytes(session.margin)}"]
    if session.measured is not None:
        lines.append(f"measured  {show_bytes(session.measured):>14}   {session.measured / planned - 1:+.1%} beside the plan, planned again {session.replans} times")
    for i, p in enumerate(session.plans):
        slower = p.again_seconds / p.step_seconds if p.step_seconds else 0.0
        lines.append(f"graph {i}: {p.by}; peak {show_bytes(p.peak)} beside what is resident (keeping all {show_bytes(p.keep_all_bytes)}, PyTorch's choice "
                     f"{show_bytes(p.pytorch_bytes)}); {p.kept} values kept ({show_bytes(p.saved_bytes)}), {p.again} recomputed, {p.twice} of them more than once; "
                     f"{f'{p.offloaded} in host memory ({show_bytes(p.offloaded_bytes)}); ' if p.offloaded else ''}"
                     f"{slower:+.1%} time expected; planned in {p.plan_seconds:.1f} s")
        if p.why:
            lines.append(f"  no schedule, only a set of saved values: {p.why}")
    return "\n".join(lines)


def _by_module(tensors):
    """Bytes kept, recomputed and in host memory, seconds, by module in the order of the forward pass."""
    rows = {}
    for one in tensors:
        row = rows.setdefault(one["module"] or "(model)", [0, 0, 0, 0.0])
        row[0 if one["fate"].startswith("kept") else 2 if "host" in one["fate"] else 1] += one["bytes"]
        row[3] += one["seconds"]
    return rows


def _picture(timeline, width=900, height=180):
    if not timeline:
        return ""
    most = max(max(b for b, _ in timeline), 1)
    points = " ".join(f"{i * width / max(1, len(timeline) - 1):.1f},{height - b * height / most:.1f}" for i, (b, _) in enumerate(timeline))
    split = next((i for i, (_, forward) in enumerate(timeline) if not forward), len(timeline))
    x = split * width / max(1, len(timeline) - 1)
    return (f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="live bytes over the tasks of a step">'
            f'<polygon points="0,{height} {points} {width},{height}"/><line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height}"/></svg>'
            f"<p>live bytes beside the resident ones, task by task; most {show_bytes(most)}; the line is where the backward pass begins</p>")


def _table(head, rows):
    cells = lambda tag, row: "".join(f"<{tag}>{html.escape(str(c))}</{tag}>" for c in row)
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>" + "".join(f"<tr>{cells('td', r)}</tr>" for r in rows) + "</tbody></table>"


def page(session):
    parts = [f"<h1>A training step within {show_bytes(session.budget)}</h1>", f"<pre>{html.escape(text(session))}</pre>"]
    for i, p in enumerate(session.plans):
        parts.append(f"<h2>Graph {i}</h2>" + _picture(p.timeline))
        parts.append("<h3>By module</h3>" + _table(
            ("module", "kept", "recomputed", "in host memory", "milliseconds"),
            [(name, show_bytes(kept), show_bytes(again), show_bytes(away), f"{seconds * 1e3:.3f}") for name, (kept, again, away, seconds) in _by_module(p.tensors).items()]))
        largest = sorted(p.tensors, key=lambda one: -one["bytes"])[:_LONGEST_TABLE]
        parts.append("<h3>Tensors that the backward pass needs, largest first</h3>" + _table(
            ("tensor", "module", "shape", "bytes", "", "milliseconds"),
            [(one["name"], one["module"], " × ".join(one["shape"]), show_bytes(one["bytes"]), one["fate"], f"{one['seconds'] * 1e3:.3f}") for one in largest]))
    style = ("body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a2530;background:#fff}"
             "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.15rem .6rem;border-bottom:1px solid #dde3e8}"
             "polygon{fill:#2b6ea6}line{stroke:#c33;stroke-width:2}pre{white-space:pre-wrap}")
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Plimsoll: a training step</title><style>{style}</style></head>'
            f"<body>{''.join(parts)}</body></html>\n")


def write_html(session, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(session))
