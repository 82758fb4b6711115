"""Copies between the device and pinned host memory on a stream of their own, beside what is computed.

    copies = HostCopies.of(device)
    held = copies.out(tensor)          # starts; `held.tensor` lies on the host
    copies.settle(limit)               # device tensors whose copies are done are let go; more than `limit` bytes are waited for
    back = copies.back(held)           # starts; back.ready() when it is read

A tensor that is being copied must stay as it is until the copy is done: `out` keeps it, and lets it go only after the computing
stream has waited for the copy, so its memory is counted and never handed out early (record_stream would hide it from
memory_allocated while it is still in use). Host buffers are used again: pinning one takes milliseconds.
On the CPU the same code copies at once: what is tested there is everything but the overlap.
"""
import collections
import weakref

import torch

_all = {}


class Held:
    """A tensor's bytes on the host. The buffer goes back to the pool with the last reference."""

    def __init__(self, copies, buffer, shape, stride, dtype):
        self.shape, self.stride, self.dtype = shape, stride, dtype
        self.buffer = buffer
        weakref.finalize(self, copies.pool[buffer.nbytes].append, buffer).atexit = False

    def tensor(self):
        return self.buffer.view(self.dtype).as_strided(self.shape, self.stride)


class Coming:
    """A tensor on its way to the device."""

    def __init__(self, copies, tensor, event):
        self.copies, self.tensor, self.event = copies, tensor, event

    def ready(self):
        if self.event is not None:
            torch.cuda.current_stream(self.tensor.device).wait_event(self.event)
            self.copies.arriving.pop(id(self), None)
        return self.tensor


def dense_strides(tensor):
    """Strides without gaps in the order of the tensor's own: what was a slice or a transpose stays in its layout, which kernels of
    attention and convolution were chosen for. Of an expanded tensor: contiguous ones."""
    if any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape)):
        return torch.empty(tensor.shape, device="meta").stride()
    strides, expected = [0] * tensor.dim(), 1
    for d in sorted(range(tensor.dim()), key=lambda d: (tensor.stride(d), -d)):
        strides[d] = expected
        expected *= tensor.shape[d]
    return tuple(strides)


class HostCopies:
    def __init__(self, device):
        self.device, self.cuda = device, device.type == "cuda"
        self.stream = torch.cuda.Stream(device) if self.cuda else None
        self.pool = collections.defaultdict(list)
        self.leaving, self.leaving_bytes = collections.deque(), 0
        self.arriving = {}  # what nobody may wait for in the end must still not be freed under its copy

    @staticmethod
    def of(device):
        device = torch.device(device)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        if device not in _all:
            _all[device] = HostCopies(device)
        return _all[device]

    def _buffer(self, size):
        waiting = self.pool[size]
        # One that waits may still be read by a copy of this stream, behind which the next one is queued.
        return waiting.pop() if waiting else torch.empty(size, dtype=torch.uint8, pin_memory=self.cuda)

    def out(self, tensor):
        held = Held(self, self._buffer(tensor.numel() * tensor.element_size()), tensor.shape, dense_strides(tensor), tensor.dtype)
        if not self.cuda:
            held.tensor().copy_(tensor)
            return held
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            held.tensor().copy_(tensor, non_blocking=True)
            event = self.stream.record_event()
        self.leaving.append((event, tensor))
        self.leaving_bytes += tensor.nbytes
        return held

    def settle(self, limit=0):
        while self.leaving and (self.leaving_bytes > limit or self.leaving[0][0].query()):
            event, tensor = self.leaving.popleft()
            torch.cuda.current_stream(self.device).wait_event(event)
            self.leaving_bytes -= tensor.nbytes
        for key in [k for k, coming in self.arriving.items() if coming.event.query()]:
            del self.arriving[key]

    def back(self, held):
        if not self.cuda:
            return Coming(self, held.tensor().clone(), None)
        made = torch.empty_strided(held.shape, held.stride, dtype=held.dtype, device=self.device)
        self.stream.wait_stream(torch.cuda.current_stream(self.device))  # the memory may have had another use until now
        with torch.cuda.stream(self.stream):
            made.copy_(held.tensor(), non_blocking=True)
            event = self.stream.record_event()
        coming = Coming(self, made, event)
        self.arriving[id(coming)] = coming
        return coming
