"""Seconds of the tasks of a joint graph on the device it will run on.

A fused kernel takes as long as its bytes do. A kernel that cannot be fused (mm, convolution, attention) is run on the
device once per signature - operator, shapes, strides, types - and its time is kept on disk; where it cannot be run (no
device, or no room for its operands) it is max(FLOPs / rate, bytes / bandwidth). Rates are measured once per device too.

    times = KernelTimes(torch.device("cuda"))
    cost = times.of_kernel(node, forward=True)       # seconds, flops, scratch

Running it tells its workspace too, the bytes that it allocates and frees again (cuDNN takes up to gigabytes). In the backward
pass only kernels that may have one are run: their time shifts no decision, they run once whatever is planned.
Convolutions are run channels-last, as Inductor lays them out.
"""
import contextlib
import json
import os
import tempfile

import torch
import torch.fx as fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry

from plimsoll_torch.cache_folder import cache_folder
from plimsoll_torch.operators import is_overload, node_bytes, packet, size_hint, tensors
from plimsoll_torch.swap import CopyRates

exclusive = contextlib.nullcontext  # entered around what is timed; a benchmark puts a lock between processes here
_RUNS = 3
_LONG_ENOUGH = 2e-3  # seconds between two events
_CONVOLUTIONS = {torch.ops.aten.convolution, torch.ops.aten.convolution_backward}
_MOST_ON_CPU = 1 << 30  # bytes of operands; larger convolutions are not run to see what they allocate
_COPIED = 1 << 26  # bytes that are copied to measure it
_LEAST_COPY = 1 << 20  # bytes of a value on a GPU that is worth a copy
H200_COPIES = 50e9
_SHARE_OF_FREE = 0.25  # of the memory that is free, for the operands of one kernel


class Cost:
    def __init__(self, seconds, flops=0.0, scratch=0):
        self.seconds, self.flops, self.scratch = seconds, flops, scratch


class Rates:
    """What kernels reach, not what a data sheet says."""

    def __init__(self, flops, bandwidth, launch):
        self.flops, self.bandwidth, self.launch = flops, bandwidth, launch


# One core of a common machine; plans on the CPU are for correctness, and for "would it fit".
CPU_RATES = Rates({}, 1e10, 1e-6)
CPU_FLOPS = 5e10
# Where a plan is made for a GPU that is not here.
H200_RATES = Rates({"torch.bfloat16": 600e12, "torch.float16": 600e12, "torch.float32": 300e12}, 3.8e12, 2e-6)


def _between_events(run, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / times


def time_on_device(run):
    """Seconds, the best of a few rows of runs behind one another; and the bytes that a run needs beside its results."""
    run()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    made = run()
    scratch = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
    del made
    once = _between_events(run, 1)
    many = max(1, min(20, int(_LONG_ENOUGH / max(once, 1e-6))))  # short kernels wait for the host when they run alone
    return min(_between_events(run, many) for _ in range(_RUNS)), scratch


def scratch_on_cpu(run):
    """The bytes that a run needs beside its results, as PyTorch's profiler sees allocations."""
    from torch.profiler import ProfilerActivity, profile
    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        made = run()
    live = peak = 0
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    del made
    return peak - live


def has_workspace(node):
    """Whether a library runs it and may take memory while it does. Other operators allocate when they run alone (a scatter
    copies what it changes) and nothing once Inductor has fused them; cuBLAS keeps one workspace for all products."""
    return packet(node) in _CONVOLUTIONS or "scaled_dot_product" in str(node.target) or "attention_" in str(node.target)


class TimesFile:
    """A small JSON file of times by signature in the user's own cache folder; absent or damaged is empty."""

    def __init__(self, name):
        self.path = os.path.join(cache_folder(), name)
        self.times, self.changed = {}, False
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            with open(self.path, encoding="utf-8") as file:
                read = json.load(file)
            self.times = {str(k): (float(seconds), int(scratch)) for k, (seconds, scratch) in read.items()
                          if 0 <= seconds < 1e3 and 0 <= scratch < 2**48}

    def save(self):
        if not self.changed:
            return
        with contextlib.suppress(OSError):  # a read-only home costs the next run some milliseconds
            folder = os.path.dirname(self.path)
            os.makedirs(folder, mode=0o700, exist_ok=True)
            handle, made = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(self.times, file)
            os.replace(made, self.path)
            self.changed = False


class KernelTimes:
    def __init__(self, device, measure=True):
        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda" and torch.cuda.is_available()
        self.measure = measure and self.cuda
        self.look_inside = measure and self.device.type == "cpu"
        name = torch.cuda.get_device_name(self.device) if self.cuda else self.device.type
        self.file = TimesFile(f"kernel_times-{name.replace(' ', '_').replace('/', '_')}-{torch.__version__}.json")
        self.prefix = f"{torch.get_float32_matmul_precision()} "  # TF32 or not
        self.rates = self._measured_rates() if self.measure else H200_RATES if self.device.type == "cuda" else CPU_RATES

    def of_fused(self, read_and_written):
        return read_and_written / self.rates.bandwidth + self.rates.launch

    def of_kernel(self, node, forward):
        """Of an operator that is a kernel of its own."""
        moved = node_bytes(node) + sum(node_bytes(i) for i in node.all_input_nodes)
        dtype = next((t.dtype for i in node.all_input_nodes for t in tensors(i)), torch.float32)
        flops = self._flops(node)
        rate = self.rates.flops.get(str(dtype), CPU_FLOPS if self.device.type != "cuda" else 60e12)
        seconds = max(flops / rate, moved / self.rates.bandwidth) + self.rates.launch
        scratch, workspace = 0, has_workspace(node)
        if self.measure and is_overload(node) and (forward or workspace):
            seconds, scratch = self._measured(self.prefix + self._signature(node), lambda: self._time(node, moved), (seconds, 0))
            scratch = scratch if workspace else 0
        elif self.look_inside and packet(node) in _CONVOLUTIONS and moved < _MOST_ON_CPU:
            _, scratch = self._measured(self._signature(node), lambda: (0.0, scratch_on_cpu(self._real_call(node))), (0.0, 0))
        return Cost(seconds, flops, scratch)

    def save(self):
        self.file.save()

    def _measured(self, key, run, otherwise):
        if key not in self.file.times:
            try:
                with exclusive():
                    self.file.times[key] = run()
                self.file.changed = True
            except Exception:  # an operator that cannot be run by itself is estimated
                return otherwise
        return self.file.times[key]

    def _measured_rates(self):
        with unset_fake_temporarily(), torch.no_grad():
            def product(dtype):
                a = torch.ones(4096, 4096, dtype=dtype, device=self.device)
                return time_on_device(lambda: a @ a)

            def copy():
                a = torch.empty(2**28, dtype=torch.uint8, device=self.device)
                return time_on_device(lambda: a.clone())
            work, moved = 2 * 4096**3, 2 * 2**28
            flops = {str(d): work / self._measured(f"{self.prefix}rate {d}", lambda d=d: product(d), (work / H200_RATES.flops[str(d)], 0))[0]
                     for d in (torch.bfloat16, torch.float16, torch.float32)}
            return Rates(flops, moved / self._measured("bandwidth", copy, (moved / H200_RATES.bandwidth, 0))[0], 2e-6)

    def copy_rates(self, given=None):
        """Between the device and pinned host memory, beside nothing else: those that are given, else measured, else an H200's."""
        smallest = _LEAST_COPY if self.device.type == "cuda" else 1
        if given or not self.measure:
            return CopyRates(given or H200_COPIES, given or H200_COPIES, smallest=smallest)
        def copy(out):
            host, there = torch.empty(_COPIED, dtype=torch.uint8, pin_memory=True), torch.empty(_COPIED, dtype=torch.uint8, device=self.device)
            to, of = (host, there) if out else (there, host)
            return time_on_device(lambda: to.copy_(of, non_blocking=True))
        with unset_fake_temporarily(), torch.no_grad():
            out, back = (_COPIED / self._measured(f"copy {'out' if out else 'in'}", lambda out=out: copy(out), (_COPIED / H200_COPIES, 0))[0]
                         for out in (True, False))
        return CopyRates(out, back, smallest=smallest)

    @staticmethod
    def _arguments(node, change):
        return tree_map(lambda a: change(a) if isinstance(a, fx.Node) else a, (node.args, node.kwargs))

    def _flops(self, node):
        count = flop_registry.get(packet(node))
        if count is None:
            return 0
        args, kwargs = self._arguments(node, lambda n: n.meta.get("val"))
        with contextlib.suppress(Exception):  # a formula that does not know these arguments
            return size_hint(count(*args, **kwargs, out_val=node.meta["val"]))
        return 0

    def _signature(self, node):
        def tell(operand):
            return [(tuple(map(size_hint, t.shape)), tuple(map(size_hint, t.stride())), str(t.dtype)) for t in tensors(operand)]
        return str((str(node.target), self._arguments(node, tell)))

    def _time(self, node, moved):
        free, _ = torch.cuda.mem_get_info(self.device)
        if moved > _SHARE_OF_FREE * free:
            raise MemoryError
        return time_on_device(self._real_call(node))

    def _real_call(self, node):
        """The operator on tensors of the right shapes, ready to be run."""
        with unset_fake_temporarily(), torch.no_grad():
            def real(operand):
                value = operand.meta.get("val")
                if not isinstance(value, torch.Tensor):
                    return size_hint(value) if isinstance(value, torch.SymInt) else value
                made = torch.empty_strided([size_hint(s) for s in value.shape], [size_hint(s) for s in value.stride()],
                                           dtype=value.dtype, device=value.device)
                made = made.fill_(0.5) if value.dtype.is_floating_point else made.zero_()
                return made.to(memory_format=torch.channels_last) if packet(node) in _CONVOLUTIONS and made.dim() == 4 else made
            args, kwargs = self._arguments(node, real)

        def run():
            with unset_fake_temporarily(), torch.no_grad(), torch.autocast(self.device.type, enabled=False):
                return node.target(*args, **kwargs)
        return run
