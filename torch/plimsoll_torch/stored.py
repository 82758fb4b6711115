"""Sums of gradients are made where the plan makes them.

Inductor inlines a pointwise result into every reader unless it reads many buffers. The sum of a residual's two gradients reads
three with its ReLU's mask; so it is not made when both are there but later, inside its readers, and until then all of them
wait: in ResNet-50 three tensors of 392 MiB in the place of one. Such sums are therefore marked in the joint graph, and
Inductor is told to make them when it comes to them. Fused kernels stay fused: what nobody outside of a kernel reads is not written.

Other results are left as Inductor likes them: made early, a result of which one operand dies is no smaller than the operand (the
gradient of a max-pool in fp32, 784 MiB, would be there twice).
"""
import contextlib
import functools

from torch._inductor import ir
from torch._inductor.graph import GraphLowering
from torch._prims_common import make_channels_last_strides_for

from plimsoll_torch.operators import is_reduction, is_tangent
from plimsoll_torch.task_graph import maker

MARK = "plimsoll_stored"


def mark(tasks):
    """Results of the backward pass that take the place of two operands or more: of which they are the last readers."""
    last = {i: reader for reader, value in enumerate(tasks.values) for i in value.inputs}
    for index, value in enumerate(tasks.values):
        if value.forward:
            continue
        replaced = [i for i in value.inputs if last[i] == index and tasks.values[i].bytes >= value.bytes]
        source = maker(value.node)
        if len(replaced) >= 2 and value.bytes and source not in tasks.kernels and not is_reduction(source) and not is_tangent(value.node):
            value.node.meta[MARK] = True


def _store(graph, node, result):
    prefers = getattr(graph, "nodes_prefer_channels_last", ())
    if node in prefers and len(result.get_size()) == 4:
        order = ir.get_stride_order(make_channels_last_strides_for(node.meta["val"].shape))
        return ir.ExternKernel.require_stride_order(result, order)
    result.realize()
    return result


@contextlib.contextmanager
def as_planned():
    """While compiling."""
    original = GraphLowering.run_node

    @functools.wraps(original)
    def run_node(graph, node):
        result = original(graph, node)
        return _store(graph, node, result) if node.meta.get(MARK) and isinstance(result, ir.TensorBox) else result
    GraphLowering.run_node = run_node
    try:
        yield
    finally:
        GraphLowering.run_node = original
