"""Copies between the device and pinned host memory on a stream of their own, beside what is computed.

    copies = HostCopies.of(device)
    held = copies.out(tensor)          # starts; `held.tensor()` lies on the host
    copies.settle(limit)               # device tensors whose copies are done are let go; more than `limit` bytes are waited for
    back = copies.back(held)           # starts; back.ready() when it is read

A tensor that is being copied must stay as it is until the copy is done: `out` keeps it, and lets it go only after the computing
stream has waited for the copy, so its memory is counted and never handed out early (record_stream would hide it from
memory_allocated while it is still in use). Host buffers are used again, because pinning one takes milliseconds: by tensors of about
their size where shapes change, and never more of them wait than were once in use together.
On the CPU the same code copies at once. The tests put a stream there that copies as late as it may.
"""
import collections
import weakref

import torch

_all = {}


class SideStream:
    """Copies behind whatever the computing stream has been given so far."""

    def __init__(self, device):
        self.device, self.stream = device, torch.cuda.Stream(device)

    def copy(self, target, source):
        """An event that is reached when it is done."""
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            target.copy_(source, non_blocking=True)
            return self.stream.record_event()

    def wait(self, event):
        """What is computed from now on sees what was copied, and may use the memory again."""
        torch.cuda.current_stream(self.device).wait_event(event)

    def done(self, event):
        return event.query()


class AtOnce:
    """In the place of a stream, on the CPU."""

    def copy(self, target, source):
        target.copy_(source)

    def wait(self, event):
        pass

    def done(self, event):
        return True


class Held:
    """A tensor's bytes on the host. The buffer goes back to the pool with the last reference."""

    def __init__(self, copies, buffer, shape, stride, dtype, reuse):
        self.shape, self.stride, self.dtype = shape, stride, dtype
        self.buffer = buffer
        if reuse:
            weakref.finalize(self, copies.give_back, buffer).atexit = False

    def tensor(self):
        return self.buffer.view(self.dtype).as_strided(self.shape, self.stride)


class Coming:
    """A tensor on its way to the device."""

    def __init__(self, copies, tensor, event):
        self.copies, self.tensor, self.event = copies, tensor, event

    def ready(self):
        self.copies.stream.wait(self.event)
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


def buffer_bytes(size):
    """The least of a series of four sizes for each power of two that holds `size`."""
    step = 1 << max(9, size.bit_length() - 3)
    return -(-size // step) * step


class HostCopies:
    def __init__(self, device, stream=None):
        self.device, self.cuda = device, device.type == "cuda"
        self.stream = stream or (SideStream(device) if self.cuda else AtOnce())
        self.waiting = collections.OrderedDict()  # buffers by size, the size that was used longest ago first
        self.waiting_bytes = self.used_bytes = self.most_used_bytes = 0
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

    def _buffer(self, size, reuse):
        if not reuse:
            return torch.empty(size, dtype=torch.uint8, pin_memory=self.cuda)
        self.used_bytes += size
        self.most_used_bytes = max(self.most_used_bytes, self.used_bytes)
        if self.waiting.get(size):
            self.waiting_bytes -= size
            self.waiting.move_to_end(size)
            # It may still be read by a copy of this stream, behind which the next one is queued.
            return self.waiting[size].pop()
        self._drop_waiting()
        return torch.empty(size, dtype=torch.uint8, pin_memory=self.cuda)

    def give_back(self, buffer):
        self.used_bytes -= buffer.nbytes
        self.waiting_bytes += buffer.nbytes
        self.waiting.setdefault(buffer.nbytes, []).append(buffer)
        self.waiting.move_to_end(buffer.nbytes)
        self._drop_waiting()

    def _drop_waiting(self):
        """Pinned memory that is freed waits for copies that still read it."""
        while self.waiting_bytes > 0 and self.used_bytes + self.waiting_bytes > self.most_used_bytes:
            size, buffers = next(iter(self.waiting.items()))
            if buffers:
                buffers.pop()
                self.waiting_bytes -= size
            if not buffers:
                del self.waiting[size]

    def out(self, tensor, reuse=True, when_done=None, varies=False):
        """`when_done` is called after the computing stream has waited for the copy. `varies`: the next step's size may be another."""
        size = tensor.numel() * tensor.element_size()
        held = Held(self, self._buffer(buffer_bytes(size) if varies else size, reuse), tensor.shape, dense_strides(tensor), tensor.dtype, reuse)
        event = self.stream.copy(held.tensor(), tensor)
        self.leaving.append((event, tensor, when_done))
        self.leaving_bytes += tensor.nbytes
        return held

    def settle(self, limit=0):
        while self.leaving and (self.leaving_bytes > limit or self.stream.done(self.leaving[0][0])):
            event, tensor, when_done = self.leaving.popleft()
            self.stream.wait(event)
            self.leaving_bytes -= tensor.nbytes
            if when_done is not None:
                when_done()
        for key in [k for k, coming in self.arriving.items() if self.stream.done(coming.event)]:
            del self.arriving[key]

    def back(self, held):
        made = torch.empty_strided(held.shape, held.stride, dtype=held.dtype, device=self.device)
        coming = Coming(self, made, self.stream.copy(made, held.tensor()))
        self.arriving[id(coming)] = coming
        return coming
