"""Where torch.compile asks which values to save: Plimsoll's answer, one joint graph at a time.

    joint graph -> task graph -> schedule within the room -> backward half written anew -> PyTorch cuts it in two

PyTorch calls a partitioner through its option custom_partitioner_fn; its uuid() is part of the keys of PyTorch's caches,
so a compilation is found again for the same budget only. Inside, PyTorch's own partitioner does everything but the
choice: partitioners.choose_saved_values_set is ours while it runs.

`holder` has the budget (session.py): room(tasks) says how many bytes a graph may use beside what is resident, least() whether it is to
use as few as it can, done(GraphPlan, tasks) is told what was planned, cut(StepAudit) where PyTorch cut the graph, key() is all that decides,
steps_in_backward whether gradients are used where they are made, offload whether values may wait in host memory (True, or the bytes a second
of copies).
"""
import time
from dataclasses import dataclass, field

import torch
from torch._functorch import partitioners
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from plimsoll_torch import rewrite, step_in_backward, stored
from plimsoll_torch.allocation_audit import StepAudit
from plimsoll_torch.kernel_times import H200_COPIES, KernelTimes, has_workspace
from plimsoll_torch.operators import span_bytes, tensors
from plimsoll_torch import saved_set
from plimsoll_torch.saved_set import greedy, simulate
from plimsoll_torch.schedule import BACK, find_schedule, least_schedule
from plimsoll_torch.task_graph import TaskGraph, maker, output_of

VERSION = 11  # of the plans: changes when the same request would be planned otherwise
_SLOWER_THAN_NOTHING = 0.001  # PyTorch's own choice is taken where it fits and costs at most this share of the step
_LONGEST_TIMELINE = 600
_SLACK_BITS = 10  # one part in 1,024 of the room
_TRIES_BELOW = 3


@dataclass
class GraphPlan:
    """What was planned for one graph. Bytes are beside the resident ones."""
    by: str  # "pytorch": its own choice; "schedule"; "saved set"
    fits: bool
    room: int
    peak: int  # by the model, until the generated code was read
    saved_bytes: int
    gradient_bytes: int
    resident_bytes: int  # parameters and inputs of this graph
    keep_all_bytes: int
    pytorch_bytes: int  # the peak of PyTorch's own choice
    smallest_bytes: int
    values: int
    kept: int
    again: int
    twice: int
    again_seconds: float
    step_seconds: float
    bound_seconds: float
    plan_seconds: float
    modelled_bytes: int = 0  # the peak by the model of Inductor
    audited: bool = False  # the peak is what the generated code allocates
    stepped_bytes: int = 0  # of gradients that the optimizer uses inside the backward pass
    why: str = ""  # of a saved set: why no schedule
    offloaded: int = 0  # values that wait in host memory
    offloaded_bytes: int = 0
    smallest_with_offload: int = 0  # by the model, where the least was planned and copies were not allowed
    limiting: list = field(default_factory=list)  # {"name", "module", "bytes"}
    tensors: list = field(default_factory=list)  # {"name", "module", "bytes", "fate", "seconds"}
    timeline: list = field(default_factory=list)  # (live bytes, whether in the forward pass)
    buffers: list = field(default_factory=list)  # (begin, end, bytes) of what the generated code allocates
    at_peak: list = field(default_factory=list)  # what is live where most is, largest first


def module_of(node):
    """The innermost module that a node comes from, as the user named it."""
    stack = node.meta.get("nn_module_stack")
    if stack:
        path = list(stack.values())[-1][0]
        for prefix in ("L['self'].", "L['fn'].", "L['model'].", "L['self']", "__self__."):
            path = path.removeprefix(prefix)
        return path.replace("_modules['", "").replace("']", "") or "(model)"
    return ""


def describe(value):
    return {"name": value.node.name, "module": module_of(value.node), "bytes": value.bytes,
            "shape": [str(s) for t in tensors(value.node) for s in t.shape]}


def workspace_at_most(tasks):
    """Of the kernel that needs most with what it reads and writes: its workspace, where it has one. No plan can change it."""
    together = lambda v: v.scratch + v.bytes + sum(tasks.values[i].bytes for i in v.inputs)
    most = max(tasks.values, key=together, default=None)
    return [{"name": f"workspace of {maker(most.node).name}", "module": module_of(most.node), "bytes": most.scratch, "shape": []}] if most and most.scratch else []


class Partitioner(CustomPartitionerFn):
    def __init__(self, holder, search=None, measure=True):
        self.holder, self.measure = holder, measure
        self.search = dict(search or {})
        self.times = {}

    def __deepcopy__(self, memo):
        return self  # PyTorch copies its options; the holder of the budget stays one

    def uuid(self):
        return ("plimsoll", VERSION, self.holder.key())

    def __call__(self, joint, joint_inputs, **options):
        original = partitioners.choose_saved_values_set
        self.forward_outputs, self.static_inputs = options["num_fwd_outputs"], options.get("static_lifetime_input_indices")

        def choose(graph, info, memory_budget=1.0):
            return self.choose(original, graph, info, memory_budget)
        partitioners.choose_saved_values_set = choose
        try:
            forward, backward = partitioners.min_cut_rematerialization_partition(joint, joint_inputs, **options)
            outputs = [getattr(n, "name", "") for n in output_of(forward.graph).args[0]]
            inputs = [n.name for n in backward.graph.nodes if n.op == "placeholder"]
            self.holder.cut(StepAudit(outputs, inputs, options["num_fwd_outputs"], self._scratch_of))
            return forward, backward
        finally:
            partitioners.choose_saved_values_set = original

    def _times(self, graph):
        device = next((t.device for n in graph.nodes for t in tensors(n) if t.device.type != "cpu"), torch.device("cpu"))
        if device not in self.times:
            self.times[device] = KernelTimes(device, self.measure)
        return self.times[device]

    def _copies(self, times):
        """What a copy to the host and back costs; None: nothing is copied."""
        offload = self.holder.offload
        return times.copy_rates() if offload is True else times.copy_rates(float(offload)) if offload else None

    def _scratch_of(self, node):
        """Bytes that a library's kernel takes while it runs; 0 where that was not measured."""
        if not has_workspace(node):
            return 0
        device = next((t.device for n in [node, *node.all_input_nodes] for t in tensors(n)), None)
        return self.times[device].of_kernel(node, forward=False).scratch if device in self.times else 0

    def choose(self, original, graph, info, memory_budget):
        began = time.perf_counter()
        rewrite.keep_sums_apart(graph, info)
        rewrite.share_padding(graph, info)
        theirs = original(graph, info, memory_budget)
        times = self._times(graph)
        stepped = step_in_backward.gradients_of_parameters(graph, self.forward_outputs, self.static_inputs) if self.holder.steps_in_backward else []
        tasks = TaskGraph(graph, info, times, extra=theirs, used_at_once=[gradient for _, gradient in stepped])
        times.save()
        own = simulate(tasks, {tasks.index[n] for n in theirs if n in tasks.index})
        all_saved = simulate(tasks, tasks.forward_values())
        room = self.holder.room(tasks)
        self.copies = self._copies(times)
        planned = GraphPlan(
            by="pytorch", fits=room is None or own.peak <= room, room=room, peak=own.peak, saved_bytes=own.saved_bytes,
            gradient_bytes=sum(v.bytes for v in tasks.values if v.keep and not v.forward), resident_bytes=tasks.resident_bytes,
            keep_all_bytes=all_saved.peak, pytorch_bytes=own.peak, smallest_bytes=own.peak, values=len(tasks.values),
            kept=len(own.crossing), again=len(own.again), twice=0, again_seconds=own.seconds,
            step_seconds=tasks.base_seconds, bound_seconds=0.0, plan_seconds=0.0)
        least = room is not None and self.holder.least()
        if room is None or not least and own.peak <= room and own.seconds <= _SLOWER_THAN_NOTHING * tasks.base_seconds:
            chosen, fate = theirs, self._fates(tasks, own.crossing, own.again)
            self._draw(planned, tasks, own)
        else:
            chosen, fate = self._fit(graph, info, tasks, room, planned, least)
        if stepped:
            step_in_backward.insert_steps(graph, self.forward_outputs, {parameter for parameter, _ in stepped})
            chosen = list(dict.fromkeys([*chosen, *(parameter for parameter, _ in stepped)]))
            planned.stepped_bytes = sum(span_bytes(gradient.meta["val"]) for _, gradient in stepped)
        planned.tensors = fate
        planned.plan_seconds = time.perf_counter() - began
        self.holder.done(planned, tasks)
        return chosen

    def _within(self, tasks, room):
        # Strides that Inductor pads are not in the model: a plan to the last byte would be compiled twice.
        found = find_schedule(tasks, room - max(0, room >> _SLACK_BITS), copies=self.copies, **self.search)
        if not found.fits and found.smallest_bytes <= room:
            found = find_schedule(tasks, room, copies=self.copies, **self.search)
        for _ in range(_TRIES_BELOW):
            if not found.fits or found.peak <= room:
                break
            # What was planned fits, the forward pass that makes everything once does not: planned for less, it may.
            below = find_schedule(tasks, max(0, found.asked - (found.peak - room)), copies=self.copies, **self.search)
            if not below.fits or below.peak >= found.peak:
                break
            found = below
        return found

    def _fit(self, graph, info, tasks, room, planned, least):
        found = None if least else self._within(tasks, room)
        if found is None or not found.fits:
            found = least_schedule(tasks, self.copies)
            if self.copies is None:
                planned.smallest_with_offload = find_schedule(tasks, 0, copies=tasks.times.copy_rates(H200_COPIES), work=1, threads=1).smallest_bytes
        planned.limiting = workspace_at_most(tasks) + [describe(tasks.values[i]) for i in found.limiting[:8]]
        planned.smallest_bytes = found.smallest_bytes
        planned.bound_seconds = found.bound_seconds
        stored.mark(tasks)
        always = list(info.inputs) + [n for n in graph.nodes if n.op == "call_function" and partitioners.is_sym_node(n)
                                      and n not in info.tangents_closure]
        if found.fits:
            try:
                nodes = rewrite.rewrite_backward(graph, info, tasks, found.saved, found.backward, found.leaving)
                planned.by, planned.peak, planned.saved_bytes = "schedule", found.peak, found.saved_bytes
                planned.fits = found.peak <= room
                self._count(planned, found.saved, found.again, found.seconds)
                gone = {i for what, i in found.backward if what == BACK}
                planned.offloaded, planned.offloaded_bytes = len(gone), sum(tasks.values[i].bytes for i in gone)
                self._draw(planned, tasks, found)
                return always + nodes, self._fates(tasks, found.saved, found.again, gone)
            except rewrite.CannotRewrite as problem:
                planned.why = str(problem)
        return self._fit_saved_set(tasks, room, planned, always, least)

    def _fit_saved_set(self, tasks, room, planned, always, least):
        found = (None if least else greedy(tasks, room)) or saved_set.least(tasks)
        planned.by, planned.fits, planned.peak, planned.saved_bytes = "saved set", found.peak <= room, found.peak, found.saved_bytes
        planned.smallest_bytes = found.peak if found.peak > room else planned.smallest_bytes
        self._count(planned, found.crossing, found.again, found.seconds)
        self._draw(planned, tasks, found)
        return (always + [n for i in sorted(found.crossing) for n in tasks.values[i].nodes],
                self._fates(tasks, found.crossing, found.again))

    @staticmethod
    def _count(planned, kept, again, seconds):
        planned.kept, planned.again, planned.twice = len(kept), len(again), len(again) - len(set(again))
        planned.again_seconds = seconds

    @staticmethod
    def _draw(planned, tasks, found):
        every = -(-len(found.timeline) // _LONGEST_TIMELINE)
        planned.timeline = [max(found.timeline[i:i + every]) for i in range(0, len(found.timeline), every)] if every else []
        planned.at_peak = [describe(tasks.values[i]) for i in sorted(found.at_peak, key=lambda i: -tasks.values[i].bytes)[:24]]

    @staticmethod
    def _fates(tasks, kept, again, gone=frozenset()):
        """What happens to each value of the forward pass that the backward pass needs."""
        runs = {}
        for i in again:
            runs[i] = runs.get(i, 0) + 1
        told = []
        for i in sorted(set(kept) | set(runs) | gone):
            value = tasks.values[i]
            fate = "in host memory" if i in gone else f"recomputed {runs[i]} ×" if i in runs and i not in kept else "kept" if i not in runs else "kept, then recomputed"
            told.append(dict(describe(value), fate=fate, seconds=value.seconds * runs.get(i, 0)))
        return told
