#!/usr/bin/env python3
"""Peak bytes and step time on one GPU: torch.compile, its activation_memory_budget, and pt.compile at byte budgets.

    bench_torch_budget_gpu.py                              every model, one JSON line a row, also in $OUT/bench.jsonl
    bench_torch_budget_gpu.py --models gpt2_bf16 --seconds 300 --modes compile,ours,budget0.5
    bench_torch_budget_gpu.py --rows gpt2_bf16:ours llama1b_bf16:step
    bench_torch_budget_gpu.py --smoke                      tiny models on the CPU: does the script itself run?

A row is a model in a mode, and a process of its own. First all of them compile, some beside one another; then nothing compiles, and one
after the other measures a round of steps, all rows in every round: neither another's compilation nor a change of the clock falls on one row alone.
The learning rate is 0: loss and norm of the gradients must agree between modes. Modes, in the order in which they are started:
    ours          pt.compile at the model's bar (BARS); where it does not fit, at the smallest budget that works
    compile       torch.compile as it is
    budget0.5     torch.compile with torch._functorch.config.activation_memory_budget = 0.5
    chunker       torch.compile with Inductor's auto_chunker, which computes a loss over logits in parts; chunker0.5 under that budget too
    inductor_offload   torch.compile with enable_activation_offloading: all that is saved and has 8 MiB waits in host memory (PyTorch marks
                  it as "testing purpose"); inductor_offload128 from 128 MiB on
    at7000        pt.compile at 7,000 MiB; any number
    host4500      pt.compile at 4,500 MiB with offload=True: values may wait in host memory; any number, and hostsplit4000 with the loss in parts
    step          ours with the optimizer's step inside the backward pass (step_in_backward), at STEP_BARS
    split         ours with the loss over the vocabulary in 8 parts (pt.linear_cross_entropy), at SPLIT_BARS; split2000 at 2,000 MiB
    ours+adamw    and any other mode: fused AdamW instead of SGD; its state is added to the budget
    ours+adamw_offload   its state in host memory (pt.offload_optimizer)
    checkpoint    eager, every block recomputed;  eager
    save_on_cpu   eager, torch.autograd.graph.save_on_cpu(pin_memory=True);  offload  with pt.offload_activations() instead
    stash         eager, as torchtune does: a copying stream, fresh pinned memory, nothing fetched ahead
    checkpoint_offload   every block recomputed, its input in host memory, as Hugging Face's trainers do
"""
import argparse
import contextlib
import fcntl
import gc
import json
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
# MiB and milliseconds that ours is held against: below what PyTorch reaches at any budget (H200, PyTorch 2.11).
BARS = {"gpt2_bf16": (5200, 42), "bert_bf16": (3400, 36.5), "llama1b_bf16": (4370, 55), "resnet50_bf16": (3600, 47),
        "gpt2_tf32": (5000, 108), "resnet50_tf32": (5800, 80)}
SPLIT_BARS = {"gpt2_tf32": 4500, "gpt2_bf16": 4500, "bert_bf16": 3000, "llama1b_bf16": 4300}
STEP_BARS = {"llama1b_bf16": 2700}
MODES = "ours,compile,split,step,budget0.5,budget0.3,budget0.1,budget0.7,budget0.9,checkpoint,eager"
ROUNDS, STEPS = 5, 10  # fifty steps and more: what grows from step to step is seen
MIB = 2**20


class Row:
    """A model in a mode: its process, and what it said."""

    def __init__(self, model, mode, given, env, out, said):
        self.model, self.mode, self.state = model, mode, "compiling"  # then ready, measuring, ended
        command = [sys.executable, os.path.abspath(__file__), "--child", f"{model}:{mode}"] + (["--smoke"] if given.smoke else [])
        self.log = open(os.path.join(out, f"{model}.{mode}.log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)
        threading.Thread(target=self._listen, args=(said,), daemon=True).start()

    def _listen(self, said):
        for line in self.process.stdout:
            said.put((self, line))
        said.put((self, None))

    def tell(self, word):
        with contextlib.suppress(OSError):
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()


class Parent:
    def __init__(self, given):
        self.given, self.said, self.rows = given, queue.Queue(), []
        self.out = os.environ.get("OUT") or os.path.join(os.path.dirname(HERE), "build", "bench_torch_budget")
        os.makedirs(self.out, exist_ok=True)
        self.end = time.time() + given.seconds
        cache = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"plimsoll_bench_{os.getpid()}")
        self.env = dict(TORCHINDUCTOR_CACHE_DIR=cache, TRITON_CACHE_DIR=os.path.join(cache, "triton"), PLIMSOLL_CACHE=os.path.join(cache, "plimsoll"),
                        TORCHINDUCTOR_COMPILE_THREADS="3", OMP_NUM_THREADS="1")
        self.env.update(os.environ, PYTHONUNBUFFERED="1", PYTORCH_ALLOC_CONF="expandable_segments:True", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
                        BENCH_KERNELS=" ".join(given.kernels), BENCH_LOCK=os.path.join(self.out, "gpu.lock"), BENCH_OUT=self.out)
        self.results, self.sink = [], open(os.path.join(self.out, "bench.jsonl"), "a", encoding="utf-8")

    def hear(self, seconds):
        """One line of some row, or None when the time is over."""
        try:
            row, line = self.said.get(timeout=max(0.01, seconds))
        except queue.Empty:
            return None
        if line is None:
            row.state = "ended"
        elif line.startswith("{"):
            self.record(line)
        elif line.startswith("@"):
            row.state = line[1:].strip()
        return row

    def compile(self, wanted):
        until = self.end - self.given.measuring
        waiting = list(wanted)
        while time.time() < until:
            busy = sum(r.state == "compiling" for r in self.rows)
            while waiting and busy < self.given.at_once:
                self.rows.append(Row(*waiting.pop(0), self.given, self.env, self.out, self.said))
                busy += 1
            if not busy:
                return
            self.hear(until - time.time())
        for row in self.rows:
            if row.state == "compiling":
                self.missing(row.model, row.mode, "not compiled in the time that was given")
                row.end()
        for model, mode in waiting:
            self.missing(model, mode, "not started in the time that was given")

    def record(self, line):
        print(line, end="", flush=True)
        self.sink.write(line)
        self.sink.flush()
        self.results.append(json.loads(line))

    def missing(self, model, mode, why):
        self.record(json.dumps(dict(model=model, mode=mode, error=why)) + "\n")

    def one(self, row, word, until):
        """Tells a row to do something and waits until it has."""
        row.state = word
        row.tell(word)
        while row.state == word and time.time() < until:
            self.hear(until - time.time())
        if row.state == word:
            row.end()

    def measure(self):
        for turn in range(ROUNDS):
            for row in self.rows:
                if row.state == "ready" and (turn < 2 or time.time() < self.end - 10):
                    self.one(row, "measure", self.end - 3)
        for row in self.rows:
            if row.state == "ready":
                self.one(row, "tell", self.end)

    def run(self, wanted):
        try:
            self.compile(wanted)
            self.measure()
        finally:
            for row in self.rows:
                row.end()
            while self.hear(0.3) is not None:
                pass
        with contextlib.suppress(OSError):
            os.remove(self.env["BENCH_LOCK"])
        table(list(dict.fromkeys(model for model, _ in wanted)), self.results)


def wanted_rows(given):
    if given.rows:
        return [tuple(row.split(":")) for row in given.rows]
    has = lambda model, mode: model in {"split": SPLIT_BARS, "step": STEP_BARS}.get(mode.partition("+")[0], BARS)
    return [(model, mode) for mode in given.modes.split(",") for model in given.models if has(model, mode)]


def table(models, rows):
    print(f"\n{'model':15s}{'mode':13s}{'budget':>8s}{'planned':>9s}{'peak MiB':>10s}{'ms':>8s}{'slower':>8s}{'loss':>9s}{'norm':>9s}{'compile s':>10s}")
    for model in models:
        own = [r for r in rows if r["model"] == model]
        base = next((r["ms"] for r in own if r["mode"] == "compile" and "ms" in r), None)
        for r in sorted(own, key=lambda r: -r.get("peak_mib", 0)):
            if "ms" not in r:
                print(f"{model:15s}{r['mode']:13s}  {r.get('error', '')[:140]}")
                continue
            show = lambda key, width, spec: f"{format(r[key], spec) if r.get(key) is not None else '':>{width}s}"
            slower = f"{r['ms'] / base - 1:+.1%}" if base else ""
            print(f"{model:15s}{r['mode']:13s}{show('budget_mib', 8, '.0f')}{show('planned_mib', 9, '.0f')}{show('peak_mib', 10, '.0f')}{show('ms', 8, '.1f')}"
                  f"{slower:>8s}{show('loss', 9, '.4f')}{show('gnorm', 9, '.4f')}{show('compile_s', 10, '.0f')}"
                  f"{'' if r.get('held', True) else '  OVER ITS BUDGET'}")


class Lock:
    """One process at a time on the GPU; may be entered again by who holds it."""

    def __init__(self, path, finish):
        self.file, self.depth, self.finish = open(path, "w", encoding="utf-8"), 0, finish

    @contextlib.contextmanager
    def __call__(self):
        if self.depth == 0:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if self.depth == 0:
                self.finish()
                fcntl.flock(self.file, fcntl.LOCK_UN)


class Child:
    """One row: compiles, then measures a round whenever it is told to."""

    def __init__(self, name, mode, tiny):
        import torch
        sys.path[:0] = [os.path.join(os.path.dirname(HERE), "torch"), HERE]
        import budget_models
        import plimsoll_torch
        from plimsoll_torch import kernel_times
        self.torch, self.pt, self.name, self.mode, self.tiny = torch, plimsoll_torch, name, mode, tiny
        self.device, self.cuda = "cpu" if tiny else "cuda", not tiny
        self.lock = Lock(os.environ["BENCH_LOCK"], torch.cuda.synchronize if self.cuda else lambda: None)
        kernel_times.exclusive = self.lock
        if tiny:
            torch.set_num_threads(1)
        torch.set_float32_matmul_precision("high")
        torch.manual_seed(0)
        make = getattr(budget_models, next(m for m in ("resnet", "gpt2", "bert", "llama") if name.startswith(m)))
        with torch.device(self.device):
            self.model, inputs = make(tiny)
        self.model.train()
        self.x = inputs(self.device)
        self.amp = name.endswith("bf16") and not name.startswith("llama")
        if name.startswith("llama"):
            self.model = self.model.to(torch.bfloat16)
        if name == "resnet50_bf16":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = (self.x[0].to(memory_format=torch.channels_last), self.x[1])
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.0)
        with self.lock():  # cuBLAS takes its workspace now, so that it counts as resident
            for dtype in (torch.float32, torch.bfloat16):
                z = torch.ones(256, 256, device=self.device, dtype=dtype)
                (z @ z).sum().item()
        self.resident = torch.cuda.memory_allocated() if self.cuda else sum(t.nbytes for t in [*self.model.parameters(), *self.model.buffers(), *self.x])
        self.around, self.facts, self.rounds, self.peaks, self.after = contextlib.nullcontext, {}, [], [], []

    def say(self, mode, **facts):
        print(json.dumps(dict(model=self.name, mode=mode, **{k: round(v, 4) if isinstance(v, float) else v for k, v in facts.items()})), flush=True)

    def step(self, function):
        torch = self.torch
        with torch.autocast(self.device, dtype=torch.bfloat16) if self.amp else contextlib.nullcontext(), self.around():
            loss = function(*self.x)
        loss.backward()
        self.opt.step()
        return loss

    def clear(self):
        self.opt.zero_grad(set_to_none=True)

    def check(self, function):
        """Loss and norm of the gradients, equal in every mode."""
        torch = self.torch
        with self.lock():
            for _ in range(2):
                self.clear()
                self.step(function)
            self.clear()
            torch.manual_seed(7)
            loss = self.step(function).item()
            gradients = [p.grad.float().norm() for p in self.model.parameters() if p.grad is not None]
            self.facts.update(loss=loss, gnorm=torch.stack(gradients).norm().item() if gradients else None)
            self.rest()

    def rest(self):
        """Gives back what a row that is not measured need not hold."""
        self.clear()
        if self.cuda:
            self.torch.cuda.synchronize()
            gc.collect()
            self.torch.cuda.empty_cache()

    def round(self, function):
        torch = self.torch
        first = self.timed(function)  # its memory is taken anew
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
        times = [self.timed(function) for _ in range(3 if first > 400 else STEPS)]
        self.peaks.append(torch.cuda.max_memory_allocated() if self.cuda else 0)
        self.after.append(torch.cuda.memory_allocated() if self.cuda else 0)
        self.rounds.append(times)
        self.rest()

    def timed(self, function):
        if not self.cuda:
            begin = time.perf_counter()
            self.step(function)
            self.clear()
            return (time.perf_counter() - begin) * 1e3
        begin, end = self.torch.cuda.Event(enable_timing=True), self.torch.cuda.Event(enable_timing=True)
        begin.record()
        self.step(function)
        self.clear()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def kernels(self, function, steps=3):
        """Microseconds and calls of each kernel of a step, the costliest first; what the step's kernels take in all."""
        torch = self.torch
        kind = torch.profiler.ProfilerActivity.CUDA if self.cuda else torch.profiler.ProfilerActivity.CPU
        with torch.profiler.profile(activities=[kind]) as seen:
            for _ in range(steps):
                self.step(function)
                self.clear()
            if self.cuda:
                torch.cuda.synchronize()
        time = lambda e: getattr(e, "self_device_time_total", 0) if self.cuda else e.self_cpu_time_total
        rows = [(round(time(e) / steps, 1), round(e.count / steps, 1), e.key) for e in seen.key_averages() if time(e)]
        with open(os.path.join(os.environ["BENCH_OUT"], f"{self.name}.{self.mode}.kernels.json"), "w", encoding="utf-8") as file:
            json.dump(dict(total_us=sum(r[0] for r in rows), kernels=sorted(rows, reverse=True)), file, indent=0)

    def tell(self):
        times = min(self.rounds, key=statistics.median)
        peak = max(self.peaks)
        budget = self.facts.get("budget_mib")
        held = {} if budget is None else dict(held=not self.cuda or peak <= budget * MIB)
        self.say(self.mode, peak_mib=peak / MIB, after_mib=self.after[-1] / MIB, grown_bytes=self.after[-1] - self.after[0], ms=statistics.median(times),
                 ms_min=min(times), ms_max=max(times), ms_rounds=[round(statistics.median(t), 2) for t in self.rounds], steps=sum(map(len, self.rounds)), **self.facts, **held)

    def at_peak(self, function, most=40):
        """The largest blocks that are live where most is, with the line of generated code that made them."""
        import linecache
        torch = self.torch
        if not self.cuda:
            return []
        with self.lock():
            torch.cuda.memory._record_memory_history(context="alloc", stacks="python", max_entries=1 << 20)
            self.step(function)
            self.clear()
            torch.cuda.synchronize()
            trace = torch.cuda.memory._snapshot()["device_traces"][0]
            torch.cuda.memory._record_memory_history(enabled=None)
        live, now, best, held = {}, 0, -1, {}
        for event in trace:
            if event["action"] == "alloc":
                live[event["addr"]] = event
                now += event["size"]
                if now > best:
                    best, held = now, dict(live)
            elif event["action"] == "free_completed" and event["addr"] in live:
                now -= live.pop(event["addr"])["size"]

        def tell(event):
            for frame in event.get("frames", []):
                if "torchinductor" in frame["filename"] or "/tmp" in frame["filename"]:
                    return linecache.getline(frame["filename"], frame["line"]).strip()[:160]
            return " < ".join(f"{os.path.basename(f['filename'])}:{f['line']} {f['name']}" for f in event.get("frames", [])[:3])
        return [(round(e["size"] / MIB, 1), tell(e)) for e in sorted(held.values(), key=lambda e: -e["size"])[:most]]

    def dump_graphs(self):
        """The tasks that are planned, as `plimsoll plan --dag` reads them: fixtures for the planner's own tests."""
        import gzip
        from plimsoll_torch import partitioner
        original, path = partitioner.find_schedule, os.path.join(os.environ["BENCH_OUT"], f"{self.name}.{self.mode}.dag.json.gz")

        def find_schedule(graph, budget, **search):
            if not os.path.exists(path):
                over = [graph.overwritten_by(v) for v in graph.values]
                nodes = [dict(name=str(i), seconds=v.seconds, bytes=v.bytes, inputs=[str(k) for k in v.inputs], recompute=v.recompute, keep=v.keep or v.out,
                              **({"scratch": v.scratch} if v.scratch else {}), **({} if k is None else {"in_place": str(k)})) for i, (v, k) in enumerate(zip(graph.values, over))]
                with gzip.open(path, "wt") as file:
                    json.dump({"nodes": nodes, "order": [n["name"] for n in nodes]}, file)
            return original(graph, budget, **search)
        partitioner.find_schedule = find_schedule

    def ours(self, budget, **options):
        torch, pt = self.torch, self.pt
        begun = time.time()
        search = {"deadline": 1.0, "threads": 2 if self.cuda else 1}
        model = pt.compile(self.model, budget, optimizer=self.opt, search=search, **options)
        self.clear()
        try:
            self.step(model)
        except pt.DoesNotFit as problem:
            self.clear()
            self.facts.update(refused_mib=budget / MIB, smallest_mib=problem.smallest_budget / MIB, refused_s=time.time() - begun)
            self.say(self.mode + "_refused", error=str(problem)[:700], at_peak=problem.at_peak, **self.facts)
            budget = int(problem.smallest_budget * 1.005)
            torch._dynamo.reset()
            model = pt.compile(self.model, budget, optimizer=self.opt, search=search, **options)
            self.step(model)
        session = model.plimsoll
        first = session.planned_peak()
        for _ in range(9):  # until a step was measured and nothing was planned again
            self.clear()
            with self.lock() if session.plans else contextlib.nullcontext():
                self.step(model)
            if not self.cuda or session.state == "measured":
                break
        self.clear()
        plan = session.plans[-1]
        self.facts.update(budget_mib=budget / MIB, planned_mib=session.planned_peak() / MIB, first_planned_mib=first / MIB,
                          modelled_mib=plan.modelled_bytes / MIB, code_mib=plan.peak / MIB, audited=plan.audited, resident_mib=session.resident / MIB,
                          margin_mib=session.margin / MIB, replans=session.replans, unseen_mib=sum(session.attempts.unseen.values()) / MIB, by=plan.by, again=plan.again,
                          twice=plan.twice, again_ms=plan.again_seconds * 1e3, planned_ms=plan.step_seconds * 1e3, bound_ms=plan.bound_seconds * 1e3,
                          plan_s=plan.plan_seconds, offloaded=plan.offloaded, offloaded_mib=plan.offloaded_bytes / MIB, saved_mib=plan.saved_bytes / MIB, graphs=len(session.plans), compile_s=time.time() - begun)
        with open(os.path.join(os.environ["BENCH_OUT"], f"{self.name}.{self.mode}.peak.json"), "w", encoding="utf-8") as file:
            json.dump(dict(measured=self.at_peak(model), planned=plan.at_peak, limiting=plan.limiting), file, indent=0)
        return model

    def theirs(self, share):
        import torch._functorch.config as functorch
        functorch.activation_memory_budget = share
        begun = time.time()
        compiled = self.torch.compile(self.model)
        self.clear()
        self.step(compiled)
        self.facts.update(compile_s=time.time() - begun)
        return compiled

    def offload_by_inductor(self, smallest):
        import torch._functorch.config as functorch
        import torch._inductor.config as inductor

        def mark(graph):
            for node in graph.nodes:
                value = node.meta.get("val")
                if node.op == "call_function" and isinstance(value, self.torch.Tensor) and value.numel() * value.element_size() >= smallest:
                    node.meta["should_offload"] = True
        functorch.enable_activation_offloading = functorch.activation_offload_separate_stream = True
        functorch.activation_offload_sink_wait = functorch.activation_reload_prefetch = True
        inductor.joint_custom_post_pass = mark

    def eager(self, mode):
        on_cpu = lambda: self.torch.autograd.graph.save_on_cpu(pin_memory=self.cuda)
        own = lambda **options: lambda: self.pt.offload_activations(devices=(self.device,), **options)
        around = {"save_on_cpu": on_cpu, "checkpoint_offload": on_cpu, "offload": own(), "stash": own(ahead=0, reuse=False)}
        if mode not in (*around, "checkpoint", "eager"):
            raise ValueError(f"mode '{mode}' is none of those at the head of this file")
        self.model.checkpointing, self.around = mode.startswith("checkpoint"), around.get(mode, contextlib.nullcontext)
        return self.model

    def adamw(self, offloaded):
        """Another optimizer; the bytes of its state."""
        self.opt = self.torch.optim.AdamW(self.model.parameters(), lr=0.0, weight_decay=0.0, fused=True)
        if not offloaded:
            return 2 * sum(p.nbytes for p in self.model.parameters())
        from plimsoll_torch import optimizer_offload
        self.pt.offload_optimizer(self.opt, devices=(self.device,))
        return optimizer_offload.of(self.opt).window_bytes()

    def prepare(self):
        mode, _, optimizer = self.mode.partition("+")
        more = self.adamw(optimizer.endswith("_offload")) if optimizer else 0
        budget = lambda bars: more + (bars * MIB if self.cuda else int(self.resident * 2 + 2**20 * 3))
        if mode == "compile":
            return self.theirs(1.0)
        if mode.startswith("budget"):
            return self.theirs(float(mode[6:]))
        if mode.startswith("chunker"):
            import torch._inductor.config as inductor
            inductor.auto_chunker.enable = True
            return self.theirs(float(mode[7:] or 1.0))
        if mode == "ours":
            return self.ours(budget(BARS[self.name][0]))
        if mode.startswith("inductor_offload"):
            self.offload_by_inductor(int(mode[16:] or 8) * MIB if self.cuda else 1)
            return self.theirs(1.0)
        if mode.startswith("host"):
            if mode.startswith("hostsplit"):
                self.model.split_loss = 8
            return self.ours(budget(int(mode.removeprefix("host").removeprefix("split"))), offload=True if self.cuda else "100GiB")
        if mode.startswith("at"):
            return self.ours(budget(int(mode[2:])))
        if mode == "step":
            return self.ours(budget(STEP_BARS[self.name]), step_in_backward=True)
        if mode.startswith("split"):
            self.model.split_loss = 8
            return self.ours(budget(int(mode[5:] or SPLIT_BARS[self.name])))
        return self.eager(mode)

    def serve(self):
        try:
            self.dump_graphs()
            function = self.prepare()
            self.check(function)
            print("@ready", flush=True)
            for line in sys.stdin:
                word = line.strip()
                if word == "tell":
                    self.tell()
                    if self.name in os.environ.get("BENCH_KERNELS", "").split():
                        self.kernels(function)
                    return
                self.round(function)
                print("@ready", flush=True)
        except Exception as problem:
            self.say(self.mode, error=f"{type(problem).__name__}: {str(problem)[:400]}")
            traceback.print_exc()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(BARS))
    parser.add_argument("--modes", default=MODES)
    parser.add_argument("--rows", nargs="*", help="model:mode instead")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--measuring", type=float, default=90, help="of them: for measuring, when nothing compiles")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="rows that compile beside one another")
    parser.add_argument("--kernels", nargs="*", default=[], help="models whose rows write their kernels' times to $OUT/MODEL.MODE.kernels.json")
    parser.add_argument("--child")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.child:
        Child(*args.child.split(":"), args.smoke).serve()
    else:
        Parent(args).run(wanted_rows(args))
