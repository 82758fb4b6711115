#!/usr/bin/env python3
"""Peak bytes and step time on one GPU: torch.compile, its activation_memory_budget, and pt.compile at byte budgets.

    bench_torch_budget_gpu.py                              every model, one JSON line a mode, also in $OUT/bench.jsonl
    bench_torch_budget_gpu.py --models gpt2_bf16 --seconds 300 --modes compile,ours,budget0.5
    bench_torch_budget_gpu.py --smoke                      tiny models on the CPU: does the script itself run?

A process for each model, two at a time, so that one compiles while the other runs; what is timed on the GPU takes one lock, so that nothing else runs then.
The learning rate is 0: loss and norm of the gradients must agree between modes. Modes, in the order in which they are run:
    ours          pt.compile at the model's bar (BARS); where it does not fit, at the smallest budget that works
    compile       torch.compile as it is
    ours60        pt.compile at 60 % of the bytes between resident and compile's peak; any number
    budget0.5     torch.compile with torch._functorch.config.activation_memory_budget = 0.5
    step          ours with the optimizer's step inside the backward pass (step_in_backward), at STEP_BARS
    ours+adamw    and any other mode: fused AdamW instead of SGD; its state is added to the budget
    ours+adamw_offload   its state in host memory (pt.offload_optimizer)
    split         ours with the loss over the vocabulary in 8 parts (pt.linear_cross_entropy), at SPLIT_BARS
    at7000        pt.compile at 7,000 MiB; any number
    checkpoint    eager, every block recomputed;  eager
    save_on_cpu   eager, torch.autograd.graph.save_on_cpu(pin_memory=True)
    checkpoint_offload   every block recomputed, its input in host memory, as Hugging Face's trainers do
"""
import argparse
import contextlib
import fcntl
import gc
import json
import os
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
MODES = "ours,compile,ours60,budget0.5,budget0.3,budget0.1,budget0.7,budget0.9,checkpoint,eager"
MIB = 2**20


def parent(given):
    out = os.environ.get("OUT") or os.path.join(os.path.dirname(HERE), "build", "bench_torch_budget")
    os.makedirs(out, exist_ok=True)
    cache = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"plimsoll_bench_{os.getpid()}")
    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache, TRITON_CACHE_DIR=os.path.join(cache, "triton"), PYTHONUNBUFFERED="1",
               PLIMSOLL_CACHE=os.path.join(cache, "plimsoll"), TORCHINDUCTOR_COMPILE_THREADS="6", OMP_NUM_THREADS="2",
               PYTORCH_ALLOC_CONF="expandable_segments:True", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True", BENCH_END=str(time.time() + given.seconds - 5),
               BENCH_LOCK=os.path.join(out, "gpu.lock"), BENCH_OUT=out)
    rows, guard = [], threading.Lock()
    sink = open(os.path.join(out, "bench.jsonl"), "a", encoding="utf-8")

    def read(process):
        for line in process.stdout:
            if line.startswith("{"):
                with guard:
                    print(line, end="", flush=True)
                    sink.write(line)
                    sink.flush()
                    with contextlib.suppress(ValueError):
                        rows.append(json.loads(line))
    end = time.time() + given.seconds

    def run(waiting):
        while waiting and time.time() < end - 20:
            model = waiting.pop(0)
            command = [sys.executable, os.path.abspath(__file__), "--child", model, "--modes", given.modes] + (["--smoke"] if given.smoke else [])
            with open(os.path.join(out, f"{model}.log"), "w", encoding="utf-8") as log:
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env)
                reader = threading.Thread(target=read, args=(process,), daemon=True)
                reader.start()
                try:
                    process.wait(max(0.1, end - time.time()))
                except subprocess.TimeoutExpired:
                    process.kill()
                reader.join(2)
    waiting = list(given.models)
    runners = [threading.Thread(target=run, args=(waiting,)) for _ in range(given.at_once)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    with contextlib.suppress(OSError):
        os.remove(env["BENCH_LOCK"])
    table(given.models, rows)


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
    def __init__(self, name, tiny):
        import torch
        sys.path[:0] = [os.path.join(os.path.dirname(HERE), "torch"), HERE]
        import budget_models
        import plimsoll_torch
        from plimsoll_torch import kernel_times
        self.torch, self.pt, self.name, self.tiny = torch, plimsoll_torch, name, tiny
        self.device, self.end = "cpu" if tiny else "cuda", float(os.environ["BENCH_END"])
        self.cuda = not tiny
        self.lock = Lock(os.environ["BENCH_LOCK"], torch.cuda.synchronize if self.cuda else lambda: None)
        kernel_times.exclusive = self.lock
        if tiny:
            torch.set_num_threads(1)
        torch.set_float32_matmul_precision("high")
        torch._dynamo.config.cache_size_limit = 64
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
        self.base, self.around = None, contextlib.nullcontext

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

    def measured(self, function, steps=10, warm=2):
        torch = self.torch
        with self.lock():
            self.clear()
            for _ in range(warm):
                self.step(function)
                self.clear()
            torch.manual_seed(7)
            loss = self.step(function).item()
            gradients = [p.grad.float().norm() for p in self.model.parameters() if p.grad is not None]
            norm = torch.stack(gradients).norm().item() if gradients else None
            self.clear()
            if self.cuda:
                torch.cuda.synchronize()
                gc.collect()
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            # Other processes compile, and sometimes run a step, beside this one: the best of three rows.
            rows = 3 if self.cuda else 1
            if self.timed(function) > 250:  # what is so slow is not worth the minutes
                rows, steps = 1, 3
            times = min(([self.timed(function) for _ in range(steps)] for _ in range(rows)), key=statistics.median)
            peak = torch.cuda.max_memory_allocated() if self.cuda else 0
            after = torch.cuda.memory_allocated() if self.cuda else 0
            if self.cuda:
                torch.cuda.empty_cache()
        return dict(peak_mib=peak / MIB, after_mib=after / MIB, ms=statistics.median(times), ms_min=min(times), ms_max=max(times), loss=loss, gnorm=norm)

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
        original, path = partitioner.find_schedule, os.path.join(os.environ["BENCH_OUT"], f"{self.name}.dag.json.gz")

        def find_schedule(graph, budget, **search):
            if not os.path.exists(path):
                over = [graph.overwritten_by(v) for v in graph.values]
                nodes = [dict(name=str(i), seconds=v.seconds, bytes=v.bytes, inputs=[str(k) for k in v.inputs], recompute=v.recompute, keep=v.keep or v.out,
                              **({} if k is None else {"in_place": str(k)})) for i, (v, k) in enumerate(zip(graph.values, over))]
                with gzip.open(path, "wt") as file:
                    json.dump({"nodes": nodes, "order": [n["name"] for n in nodes]}, file)
            return original(graph, budget, **search)
        partitioner.find_schedule = find_schedule

    @contextlib.contextmanager
    def adamw(self, offloaded):
        """Another optimizer, whose state goes with it."""
        plain, self.opt = self.opt, self.torch.optim.AdamW(self.model.parameters(), lr=0.0, weight_decay=0.0, fused=True)
        state = 2 * sum(p.nbytes for p in self.model.parameters())
        if offloaded:
            from plimsoll_torch import optimizer_offload
            self.pt.offload_optimizer(self.opt, devices=(self.device,))
            state = optimizer_offload.of(self.opt).window_bytes()
        try:
            yield state
        finally:
            self.opt = plain
            gc.collect()

    def ours(self, mode, budget, **options):
        torch, pt = self.torch, self.pt
        begun = time.time()
        torch._dynamo.reset()
        facts = {}
        try:
            model = pt.compile(self.model, budget, optimizer=self.opt, search={"deadline": 2.0, "threads": 4 if self.cuda else 1}, **options)
            self.clear()
            try:
                self.step(model)
            except pt.DoesNotFit as problem:
                self.opt.zero_grad()
                facts = dict(refused_mib=budget / MIB, smallest_mib=problem.smallest_budget / MIB)
                self.say(mode + "_refused", error=str(problem)[:700], at_peak=problem.at_peak, **facts)
                budget = int(problem.smallest_budget * 1.005)
                model = pt.compile(self.model, budget, optimizer=self.opt, search={"deadline": 2.0, "threads": 4 if self.cuda else 1}, **options)
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
            took = time.time() - begun
            result = self.measured(model)
            plan = session.plans[-1]
            held = not self.cuda or result["peak_mib"] * MIB <= budget
            self.say(mode, **result, **facts, budget_mib=budget / MIB, planned_mib=session.planned_peak() / MIB, first_planned_mib=first / MIB, held=held,
                     modelled_mib=plan.modelled_bytes / MIB, code_mib=plan.peak / MIB, audited=plan.audited, resident_mib=session.resident / MIB,
                     margin_mib=session.margin / MIB, replans=session.replans, unseen_mib=sum(session.unseen.values()) / MIB, by=plan.by, again=plan.again,
                     twice=plan.twice, again_ms=plan.again_seconds * 1e3, planned_ms=plan.step_seconds * 1e3, bound_ms=plan.bound_seconds * 1e3,
                     plan_s=plan.plan_seconds, saved_mib=plan.saved_bytes / MIB, graphs=len(session.plans), compile_s=took)
            with open(os.path.join(os.environ["BENCH_OUT"], f"{self.name}.{mode}.peak.json"), "w", encoding="utf-8") as file:
                json.dump(dict(measured=self.at_peak(model), planned=plan.at_peak, limiting=plan.limiting), file, indent=0)
        finally:
            self.model._compiled_call_impl = None

    def theirs(self, mode, share):
        import torch._functorch.config as functorch
        begun = time.time()
        self.torch._dynamo.reset()
        with functorch.patch(activation_memory_budget=share):
            compiled = self.torch.compile(self.model)
            self.clear()
            self.step(compiled)
            self.clear()
            took = time.time() - begun
            result = self.measured(compiled)
        if mode == "compile":
            self.base = result["peak_mib"] * MIB
        self.say(mode, **result, compile_s=took)

    def run(self, mode, more=0):
        if "+adamw" in mode:
            with self.adamw(mode.endswith("_offload")) as state:
                self.named = mode
                self.run(mode.partition("+")[0], state)
            return
        self.named = self.named if more else mode
        if mode == "compile":
            self.theirs(self.named, 1.0)
        elif mode.startswith("budget"):
            self.theirs(self.named, float(mode[6:]))
        elif mode == "ours":
            self.ours(self.named, more + (BARS[self.name][0] * MIB if self.cuda else int(self.resident * 2 + 2**20 * 3)))
        elif mode == "step":
            if self.name in STEP_BARS:
                self.ours(self.named, more + (STEP_BARS[self.name] * MIB if self.cuda else int(self.resident * 1.5 + 2**20 * 3)), step_in_backward=True)
        elif mode == "split":
            if self.name not in SPLIT_BARS:
                return
            self.model.split_loss = 8
            try:
                self.ours(self.named, SPLIT_BARS[self.name] * MIB if self.cuda else int(self.resident * 2 + 2**20 * 3))
            finally:
                self.model.split_loss = 0
        elif mode.startswith("ours"):
            top = self.base if self.base else 4 * self.resident + 2**23
            self.ours(self.named, int(self.resident + (top - self.resident) * int(mode[4:]) / 100))
        elif mode.startswith("at"):
            self.ours(self.named, more + int(mode[2:]) * MIB)
        else:
            self.eager(mode)

    def eager(self, mode):
        on_cpu = lambda: self.torch.autograd.graph.save_on_cpu(pin_memory=self.cuda)
        around = {"save_on_cpu": on_cpu, "checkpoint_offload": on_cpu}
        if mode not in (*around, "checkpoint", "eager"):
            raise ValueError(f"mode '{mode}' is none of those at the head of this file")
        self.model.checkpointing, self.around = mode.startswith("checkpoint"), around.get(mode, contextlib.nullcontext)
        try:
            self.say(self.named, **self.measured(self.model))
        finally:
            self.model.checkpointing, self.around = False, contextlib.nullcontext

    def run_all(self, modes):
        self.dump_graphs()
        for mode in modes:
            left = self.end - time.time()
            if left < (15 if self.cuda else 1):
                self.say(mode, error="no time left")
                continue
            try:
                self.run(mode)
            except Exception as problem:
                self.say(mode, error=f"{type(problem).__name__}: {str(problem)[:400]}")
                traceback.print_exc()
                self.clear()
                gc.collect()
                if self.cuda:
                    self.torch.cuda.empty_cache()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(BARS))
    parser.add_argument("--modes", default=MODES)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--at-once", type=int, default=2, help="models that compile beside one another")
    parser.add_argument("--child")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.child:
        Child(args.child, args.smoke).run_all(args.modes.split(","))
    else:
        parent(args)
