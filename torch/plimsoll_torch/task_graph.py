"""The model of Inductor: a joint graph of forward and backward pass as tasks whose results lie in memory.

    value    a tensor that is stored: result or operand of a kernel that cannot be fused, result of a reduction, an
             operand that must outlive such a kernel, an output. A view is its base.
    inlined  every other pointwise result. It is made anew inside each kernel that reads it: no bytes, no time.
    task     one value with everything that is inlined in front of it; it reads the values at the far end of that cone.

    x ─ layer_norm ─ mm ─ gelu ─ mm     the norm's result is stored (an mm reads it); its mean and 1/sigma are (reductions);
                                        gelu's result is stored, what gelu is computed through is not

1,961 nodes of GPT-2's joint graph are 520 values. Parameters and inputs are there all the time ("resident") and no part of
what is planned. Cost: linear in the graph but for the bit sets, which are nodes x kernels / 64.
"""
from dataclasses import dataclass

import torch.fx as fx
from torch.utils._pytree import tree_leaves

from plimsoll_torch.kernel_times import Cost
from plimsoll_torch.operators import (aten, is_fusible, is_getitem, is_reduction, is_tangent, is_view, may_run_twice,
                                      node_bytes, packet, tensors, writes_over_first_operand)

# Inductor writes a result over an operand of the same type of which it needs at least this share (and not more than all).
_SHARE_WRITTEN_OVER = 0.95
# Inductor's own: it stores a result that reads so many (or, with several readers, so many) buffers.
_MOST_READS, _MOST_READS_IF_SHARED = 8, 4


@dataclass
class Value:
    node: fx.Node
    nodes: list  # with further results of the same forward kernel: kept and dropped together
    bytes: int
    inputs: list  # values by index; resident ones are left out
    seconds: float
    flops: float
    scratch: int  # bytes while it runs only
    forward: bool
    recompute: bool
    keep: bool  # there when the step ends: gradients, results
    fused: bool  # may be written over an operand that dies
    out: bool  # a result of the forward pass


def output_of(graph):
    return next(n for n in reversed(graph.nodes) if n.op == "output")


def maker(node):
    """The operator whose result a node is: of a getitem, what it takes an item of."""
    return node.args[0] if is_getitem(node) else node


def _type_of(node):
    return next((t.dtype for t in tensors(node)), None)


def _bases(nodes):
    base = {}
    for n in nodes:
        looks_through = is_view(n) or is_getitem(n) and is_view(n.args[0])
        base[n] = base[n.all_input_nodes[0]] if n.op == "call_function" and n.all_input_nodes and looks_through else n
    return base


class TaskGraph:
    """Values in the order of their tasks, the forward ones first; index[node] is the value that a node (or view) is."""

    def __init__(self, graph, info, times, extra=(), used_at_once=()):
        self.times = times
        self.nodes = [n for n in graph.nodes if n.op != "output"]
        self.resident = {n for n in self.nodes if n.op == "get_attr" or n.op == "placeholder" and not is_tangent(n)}
        self.base = _bases(self.nodes)
        results = [n for n in tree_leaves(output_of(graph).args) if isinstance(n, fx.Node)]
        self.final = {self.base[n] for n in results}
        # Gradients that the optimizer uses where they are made are stored and do not stay.
        self.passing = {self.base[n] for n in used_at_once}
        self._find_forward(info, extra)
        self.values, self.index = [], {}
        self._make_values(self._stored({self.base[n] for n in extra if n in self.base}))
        for n in self.nodes:
            if self.base[n] in self.index:
                self.index[n] = self.index[self.base[n]]
        self.first_backward = next((i for i, v in enumerate(self.values) if not v.forward), len(self.values))
        self.resident_bytes = sum(node_bytes(n) for n in self.resident)
        self.base_seconds = sum(v.seconds for v in self.values)

    def _find_forward(self, info, extra):
        forward = {n for n in self.nodes if info.is_required_fw(n)}
        # Only the backward pass reads the log-sum-exp of attention, but the forward pass makes it.
        forward |= {n for n in self.nodes if is_getitem(n) and n.args[0] in forward}
        # What neither pass claims (1 / (n sigma), gradients that a loss in parts makes with its logits) may be made early, and is
        # if it is to be saved: with everything that it is made of.
        work = [n for n in extra if n.op == "call_function" and n not in info.tangents_closure]
        while work:
            n = work.pop()
            if n not in forward:
                forward.add(n)
                work += [i for i in n.all_input_nodes if i.op == "call_function"]
        self.forward = forward

    def _same_pass(self, a, b):
        return (a in self.forward) == (b in self.forward)

    def _kernels_around(self, kernels):
        """Of each node: the kernels that must run before it and after it in its own pass, as bit sets."""
        bit = {n: 1 << i for i, n in enumerate(n for n in self.nodes if n in kernels)}
        above, below = {}, {}
        for n in self.nodes:
            above[n] = bit.get(n, 0)
            for i in n.all_input_nodes:
                above[n] |= above[i] if self._same_pass(i, n) else 0
        for n in reversed(self.nodes):
            below[n] = 0
            for u in n.users:
                below[n] |= below[u] | bit.get(u, 0) if u in above and self._same_pass(u, n) else 0
        return lambda n, user: above[user] & ~bit.get(user, 0) & below[n] if user in above and self._same_pass(user, n) else 0

    def _readers(self, node):
        """Of a value, seen through its views."""
        readers, work = [], [node]
        while work:
            for user in work.pop().users:
                (work if self.base.get(user) is node else readers).append(user)
        return readers

    def _stored(self, extra):
        base, resident = self.base, self.resident
        real = [n for n in self.nodes if base[n] is n and n not in resident and tensors(n) and packet(n) is not aten.copy_]
        self.kernels = {n for n in real if not is_fusible(n)}
        between = self._kernels_around(self.kernels)
        stored, reads = set(), {}  # reads: the values at the far end of what is inlined
        for n in real:
            if isinstance(n.meta["val"], (tuple, list)):
                continue
            source, users = maker(n), self._readers(n)
            cone = set()
            if source not in self.kernels:
                for i in source.all_input_nodes:
                    b = base[i]
                    cone |= {b} if b in stored or b in resident else reads.get(b, set())
            reads[n] = cone
            if (source in self.kernels or is_reduction(source) or n in self.final or n in extra or is_tangent(n)
                    or not may_run_twice(source)
                    or any(u in self.kernels or between(n, u) for u in users)
                    or len(cone) > _MOST_READS or len(cone) > _MOST_READS_IF_SHARED and len(users) > 1):
                stored.add(n)
        return stored

    def _cone(self, node, stored):
        cone, seen, work = set(), set(), list(maker(node).all_input_nodes)
        while work:
            b = self.base[work.pop()]
            if b in seen:
                continue
            seen.add(b)
            if b in stored or b in self.resident:
                cone.add(b)
            else:
                work += maker(b).all_input_nodes
        return cone

    def _make_values(self, stored):
        place = {n: i for i, n in enumerate(self.nodes)}
        for n in sorted(stored, key=lambda n: (n not in self.forward, place[n])):
            source, cone, size, forward = maker(n), self._cone(n, stored), node_bytes(n), n in self.forward
            alone = source in self.kernels
            twin = next((self.index[g] for g in source.users if g in self.index), None) if alone and n is not source else None
            final = n in self.final
            if not alone and not final:
                size = self._bytes_written_over(n, size, cone)
            if twin is not None and forward:
                other = self.values[twin]
                other.nodes.append(n)
                other.bytes += size
                other.keep, other.out = other.keep or final, other.out or final
                self.index[n] = twin
                continue
            if twin is not None:
                cost = Cost(0.0)  # counted with the first result of the same kernel
            elif alone:
                cost = self.times.of_kernel(source, forward)
            else:
                cost = Cost(self.times.of_fused(size + sum(node_bytes(c) for c in cone)))
            self.index[n] = len(self.values)
            self.values.append(Value(
                node=n, nodes=[n], bytes=size, inputs=sorted({self.index[c] for c in cone if c in self.index}),
                seconds=cost.seconds, flops=cost.flops, scratch=cost.scratch, forward=forward, recompute=forward and may_run_twice(source),
                keep=final and not is_tangent(n) and n not in self.passing, fused=not alone or writes_over_first_operand(source), out=final and forward))

    def _bytes_written_over(self, node, size, cone):
        """Written over an operand that is a little larger (padded), a result has the operand's bytes."""
        larger = [self.values[self.index[c]].bytes for c in cone if c in self.index and _type_of(c) == _type_of(node)]
        return min((b for b in larger if _SHARE_WRITTEN_OVER * b <= size < b), default=size)

    def forward_values(self):
        return set(range(self.first_backward))

    def overwritten_by(self, value):
        """The operand that a fused task may write its result over: same bytes, not kept."""
        if not value.fused or value.bytes == 0:
            return None
        return next((k for k in value.inputs if self.values[k].bytes == value.bytes and not self.values[k].keep
                     and _type_of(self.values[k].node) == _type_of(value.node)), None)
