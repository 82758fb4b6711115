"""Values of a compiled graph in host memory: four operators, and what a copy costs.

    host = copy_out(x)          starts on a stream of its own; host lies in pinned memory
    copied_out(host, x)         the computing stream waits for it: x may be freed, so it stays until here
    back = copy_in(host, device)   starts
    copied_in(back)             waits: before the first reader

Where they stand is the plan's choice (rewrite.py). Waiting is said to write (to `host`, to `back`), so that Inductor's scheduler lets
nobody read before it, and x lives until `copied_out` has read it: the generated code says by itself what is in memory when, and is audited
as any other (a reader in front of a wait is refused). Copies move what a tensor spans, in its own layout, in one piece.

PyTorch 2.15 has operators for this too (torch.ops.ao), 2.11 none. Theirs free a tensor's storage behind Inductor's back (resize_(0)), for which an
audit would have to trust them, and wait through a table by address; these run on both versions.

On the CPU the "host" is memory that PyTorch does not count, copied at once: gradients, plans and peaks can be tested there.
"""
import contextlib
import functools
from dataclasses import dataclass

import torch
from torch._inductor.dependencies import StarDep, WeakDep
from torch._inductor.scheduler import SchedulerNode
from torch.utils._ordered_set import OrderedSet

from plimsoll_torch.host_copies import HostCopies
from plimsoll_torch.operators import span_bytes

_library = torch.library.Library("plimsoll_torch", "FRAGMENT")
_any_layout = (torch.Tag.flexible_layout,)
_library.define("copy_out(Tensor tensor) -> Tensor", tags=_any_layout)
_library.define("copied_out(Tensor(a!) host, Tensor tensor) -> ()", tags=_any_layout)
_library.define("copy_in(Tensor host, Device device) -> Tensor", tags=_any_layout)
_library.define("copied_in(Tensor(a!) tensor) -> ()", tags=_any_layout)
COPY_OUT, COPIED_OUT = torch.ops.plimsoll_torch.copy_out.default, torch.ops.plimsoll_torch.copied_out.default
COPY_IN, COPIED_IN = torch.ops.plimsoll_torch.copy_in.default, torch.ops.plimsoll_torch.copied_in.default

_under_way = {}  # address of what is copied to -> (event, device, what must stay until it is done)


@dataclass(frozen=True)
class CopyRates:
    """Bytes a second, and the seconds before a copy begins."""
    out: float
    back: float
    latency: float = 1e-5
    smallest: int = 1  # bytes of a value that is worth a copy


def _span(tensor):
    return tensor.as_strided((span_bytes(tensor) // tensor.element_size(),), (1,))


def _host_memory(tensor):
    if tensor.device.type == "cuda":  # PyTorch keeps pinned memory for the next step
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, pin_memory=True)
    return torch.frombuffer(bytearray(max(8, span_bytes(tensor))), dtype=torch.uint8).view(tensor.dtype).as_strided(tensor.shape, tensor.stride())


def _start(target, source, device, stays):
    stream = HostCopies.of(device).stream
    for address in [a for a, (event, on, _) in list(_under_way.items()) if on == device and stream.done(event)]:
        del _under_way[address]  # of a step that failed, too: until now nothing was freed under its copy
    if source.numel():
        _under_way[target.data_ptr()] = (stream.copy(_span(target), _span(source)), device, stays)
    return target


def _wait(target):
    event, device, _ = _under_way.pop(target.data_ptr(), (None, None, None))
    if device is not None:
        HostCopies.of(device).stream.wait(event)


def _copy_out(tensor):
    host = _host_memory(tensor)
    return _start(host, tensor, tensor.device, (host,))  # the tensor stays until copied_out: the graph says so


def _copy_in(host, device):
    made = torch.empty_strided(host.shape, host.stride(), dtype=host.dtype, device=device)
    return _start(made, host, made.device, (made, host))


_library.impl("copy_out", _copy_out, "CompositeExplicitAutograd")
_library.impl("copied_out", lambda host, tensor: _wait(host), "CompositeExplicitAutograd")
_library.impl("copy_in", _copy_in, "CompositeExplicitAutograd")
_library.impl("copied_in", _wait, "CompositeExplicitAutograd")


@torch.library.register_fake("plimsoll_torch::copy_out", lib=_library)
def _host_of(tensor):
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")


@torch.library.register_fake("plimsoll_torch::copy_in", lib=_library)
def _back_of(host, device):
    return torch.empty_strided(host.shape, host.stride(), dtype=host.dtype, device=device)


@torch.library.register_fake("plimsoll_torch::copied_out", lib=_library)
def _(host, tensor):
    return None


@torch.library.register_fake("plimsoll_torch::copied_in", lib=_library)
def _(tensor):
    return None


@contextlib.contextmanager
def order_kept():
    """While compiling: where Inductor fuses loops of different sizes for the CPU, PyTorch before 2.15 forgets what a reader must wait for
    (SchedulerNode.recompute_size_and_body)."""
    original = SchedulerNode.recompute_size_and_body
    if "mutation_renames" in original.__code__.co_names:
        yield
        return

    @functools.wraps(original)
    def recompute(node, *arguments, **options):
        waits = [dep for dep in node.read_writes.reads if isinstance(dep, (StarDep, WeakDep))]
        original(node, *arguments, **options)
        node.set_read_writes(node.read_writes.with_read(OrderedSet(waits)).rename(node.mutation_renames))
    SchedulerNode.recompute_size_and_body = recompute
    try:
        yield
    finally:
        SchedulerNode.recompute_size_and_body = original


# In the joint graph.

def _call(graph, operator, arguments, value, half):
    node = graph.call_function(operator, arguments)
    node.meta = {"val": value, "partitioner_tag": f"must_be_in_{half}"}
    return node


def start_out(graph, node, half):
    value = node.meta["val"]
    with value.fake_mode:
        host = _host_of(value)
    return _call(graph, COPY_OUT, (node,), host, half)


def end_out(graph, host, node, half):
    return _call(graph, COPIED_OUT, (host, node), None, half)


def start_in(graph, host, node):
    value = node.meta["val"]
    with value.fake_mode:
        back = _back_of(host.meta["val"], value.device)
    return _call(graph, COPY_IN, (host, value.device), back, "backward")


def end_in(graph, back):
    return _call(graph, COPIED_IN, (back,), None, "backward")


def write_copies_out(graph, tasks, leaving):
    """In the forward half: leaving[value] = (value behind which its copy starts, value behind which it may be freed). The host's node
    of each node that leaves."""
    place = {n: at for at, n in enumerate(graph.nodes)}
    behind, hosts, ends = {}, {}, {}
    for value, (start, end) in leaving.items():
        own = tasks.values[value].nodes
        first, last = (max([*own, *tasks.values[i].nodes], key=place.__getitem__) for i in (start, end))
        behind.setdefault(first, []).append((own, False))
        ends.setdefault(last if place[last] >= place[first] else first, []).append((own, True))
    for at, told in ends.items():
        behind.setdefault(at, []).extend(told)
    for at in sorted(behind, key=place.__getitem__):
        where = at
        for own, ending in behind[at]:
            for node in own:
                with graph.inserting_after(where):
                    if ending:
                        where = end_out(graph, hosts[node], node, "forward")
                    else:
                        where = hosts[node] = start_out(graph, node, "forward")
    return hosts
