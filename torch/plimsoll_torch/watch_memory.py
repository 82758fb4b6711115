"""pt.watch(): one line of memory for each training step, and a snapshot when memory runs out.

    step 12: peak 5,430.2 MiB, after 1,208.0 MiB; most in blocks.3.mlp (+612.0 MiB), head (+594.1 MiB)

A step ends when an optimizer steps. Growth is measured around the forward of each module; the innermost ones are named.
On a GPU the allocator is asked; on the CPU the resident set of the process. When CUDA runs out of memory a snapshot with stacks
is written, which `plimsoll view` opens.
"""
import os
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from plimsoll_torch.byte_size import show_bytes

_NAMED = 3


def _resident_set():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    def __init__(self, model=None, file=None, snapshot="plimsoll_out_of_memory.pickle"):
        self.file = file or sys.stderr
        self.cuda = torch.cuda.is_available()
        self.step, self.growth, self.open, self.peak = 0, {}, [], 0
        self.names = {m: n or type(m).__name__ for n, m in model.named_modules()} if model is not None else {}
        register = torch.nn.modules.module
        self.handles = [register.register_module_forward_pre_hook(self._enter), register.register_module_forward_hook(self._leave, always_call=True),
                        register_optimizer_step_post_hook(self._end)]
        self.snapshot = snapshot
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
            if snapshot:
                torch.cuda.memory._record_memory_history(max_entries=100_000)
                torch._C._cuda_attach_out_of_memory_observer(self._out_of_memory)

    def now(self):
        bytes_ = torch.cuda.memory_allocated() if self.cuda else _resident_set()
        self.peak = max(self.peak, bytes_)
        return bytes_

    def _enter(self, module, _):
        if not torch.compiler.is_compiling():
            self.open.append((module, self.now(), [0]))

    def _leave(self, module, _, __):
        if torch.compiler.is_compiling() or not self.open or self.open[-1][0] is not module:
            return
        _, before, inner = self.open.pop()
        grown = self.now() - before
        if self.open:
            self.open[-1][2][0] += grown
        name = self.names.get(module, type(module).__name__)
        self.growth[name] = self.growth.get(name, 0) + grown - inner[0]

    def _end(self, *_):
        after = self.now()
        peak = torch.cuda.max_memory_allocated() if self.cuda else self.peak
        most = sorted(self.growth.items(), key=lambda kv: -kv[1])[:_NAMED]
        told = ", ".join(f"{name} (+{show_bytes(size)})" for name, size in most if size > 0)
        print(f"step {self.step}: peak {show_bytes(peak)}, after {show_bytes(after)}" + (f"; most in {told}" if told else ""), file=self.file, flush=True)
        self.step, self.growth, self.open, self.peak = self.step + 1, {}, [], 0
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()

    def _out_of_memory(self, device, wanted, *_):
        print(f"out of memory on device {device}: {show_bytes(wanted)} were asked for in step {self.step}; {self.snapshot} says where "
              f"memory is (plimsoll view {self.snapshot})", file=self.file, flush=True)
        torch.cuda.memory._dump_snapshot(self.snapshot)

    def stop(self):
        for handle in self.handles:
            handle.remove()


def watch(model=None, file=None, snapshot="plimsoll_out_of_memory.pickle"):
    """Starts to print one line a step; .stop() ends it. With a model, modules are called by their names in it."""
    return Watch(model, file, snapshot)
