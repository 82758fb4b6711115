"""Saved activations in host memory for eager models: what torch.autograd.graph.save_on_cpu does, beside the computation.

    with pt.offload_activations():
        loss = model(x, y)
    loss.backward()

save_on_cpu copies each saved tensor where it is saved and waits for it, twice a step. Here copies run on a stream of their own into
buffers that stay pinned from step to step, a tensor that several operators save is copied once, and the backward pass asks
for the next tensors (`ahead` bytes of them) before it needs them. Parameters stay, and so does what is smaller than `smallest`.
At most `leaving` bytes wait for their copy on the device: when the bus is slower than the model, the model waits for it.
"""
import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from plimsoll_torch.byte_size import parse_bytes
from plimsoll_torch.host_copies import HostCopies


class _Saved:
    """What autograd holds in the tensor's place."""

    def __init__(self, held, place):
        self.held, self.place, self.coming = held, place, None


class offload_activations(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self, smallest="1MiB", leaving="256MiB", ahead="512MiB", devices=("cuda",), reuse=True):
        self.smallest, self.leaving, self.ahead = (0 if not size else parse_bytes(size, name) for name, size in
                                                   (("smallest", smallest), ("leaving", leaving), ("ahead", ahead)))
        self.reuse = reuse  # of host buffers, from step to step
        self.devices, self.saved, self.known = devices, [], {}
        self.bytes = self.count = 0  # that were copied out
        super().__init__(self._pack, self._unpack)

    def __enter__(self):
        self.saved, self.known, self.bytes, self.count = [], {}, 0, 0
        return super().__enter__()

    def _pack(self, tensor):
        if tensor.device.type not in self.devices or tensor.nbytes < self.smallest or isinstance(tensor, torch.nn.Parameter) or tensor.is_sparse:
            return tensor
        if tensor._base is not None and isinstance(tensor._base, torch.nn.Parameter):
            return tensor
        key = (tensor.data_ptr(), tensor._version, tuple(tensor.shape), tensor.stride(), tensor.dtype)
        earlier = self.known.get(key)
        if earlier is not None and not earlier[0].expired() and earlier[1]() is not None:
            return earlier[1]()
        copies = HostCopies.of(tensor.device)
        saved = _Saved(copies.out(tensor.detach(), self.reuse), len(self.saved))
        self.known[key] = (StorageWeakRef(tensor.untyped_storage()), weakref.ref(saved))
        self.saved.append((weakref.ref(saved), copies))
        self.bytes, self.count = self.bytes + tensor.nbytes, self.count + 1
        copies.settle(self.leaving)
        return saved

    def _unpack(self, saved):
        if not isinstance(saved, _Saved):
            return saved
        copies = self.saved[saved.place][1]
        copies.settle()
        coming = saved.coming or copies.back(saved.held)
        saved.coming = None
        self._ask_ahead(saved.place)
        return coming.ready()

    def _ask_ahead(self, place):
        """Backward passes go through what was saved from the last to the first."""
        room = self.ahead
        for reference, copies in reversed(self.saved[:place]):
            one = reference()
            if one is None:
                continue
            size = one.held.buffer.nbytes
            if size > room:
                return
            room -= size
            if one.coming is None:
                one.coming = copies.back(one.held)
