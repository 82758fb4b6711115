"""Saved activations in host memory for eager models: what torch.autograd.graph.save_on_cpu does, beside the computation.

    with pt.offload_activations():
        loss = model(x, y)
    loss.backward()

save_on_cpu copies each saved tensor where it is saved and waits for it, twice a step. Here copies run on a stream of their own into
buffers that stay pinned from step to step, and the backward pass asks for the next ones (`ahead` bytes of them) before it needs
them. Parameters stay, and so does what is smaller than `smallest` and what is a small part of something larger, a batch of a data set
for example, which stays on the device anyway. At most `leaving` bytes wait for their copy on the device: when the bus is slower than
the model, the model waits for it.

Whole storages travel, and come back under views with the strides and offsets that were saved: queries, keys and values of attention are
slices of one product, which is copied once; and no kernel sees another layout than without this. That is more than a nicety:
cuDNN's attention looks its plan up by the layouts of query, key and value alone, so tensors that came back in another layout than
its result did were given a plan for a result of yet another one, and gradients were wrong.

What is written in place after it was saved is refused in the backward pass, as autograd does itself: it leaves that to hooks.
"""
import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from plimsoll_torch.byte_size import parse_bytes
from plimsoll_torch.host_copies import HostCopies

_MOST_PARTS = 4


class _Kept:
    """A storage on the host."""

    def __init__(self, copies, source):
        self.copies, self.source, self.version, self.spoiled = copies, source, source._version, False
        self.held = self.coming = self.there = None

    def copied(self):
        self.spoiled, self.source = self.source._version != self.version, None

    def fetch(self):
        self.coming = self.coming or self.copies.back(self.held)

    def storage(self):
        """On the device, for as long as somebody uses it."""
        found = torch.UntypedStorage._new_with_weak_ptr(self.there.cdata) if self.there is not None else None
        if found is None:
            self.fetch()
            found, self.coming = self.coming.ready().untyped_storage(), None
            self.there = StorageWeakRef(found)
        return found


class _View:
    """What autograd holds in the tensor's place."""

    def __init__(self, hooks, place, kept, tensor):
        self.saved, self.place, self.kept = hooks.saved, place, kept
        self.layout = (tensor.storage_offset(), tensor.shape, tensor.stride())
        self.dtype, self.device = tensor.dtype, tensor.device


class _Stays:
    """A tensor that stays where it is."""

    def __init__(self, tensor):
        # A result that its own operator saved would never be freed.
        self.tensor, self.version = tensor if tensor.is_leaf else tensor.detach(), tensor._version

    def get(self):
        if self.tensor._version != self.version:
            raise _written_over(self.tensor.shape)
        return self.tensor


def _written_over(shape):
    return RuntimeError(f"offload_activations: a tensor of shape {tuple(shape)} that the backward pass needs was written in place after it was saved; "
                        "without offload_activations autograd names the operation (torch.autograd.set_detect_anomaly(True))")


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

    def _stays(self, tensor):
        if tensor.device.type not in self.devices or tensor.layout is not torch.strided or type(tensor) is not torch.Tensor:
            return True  # among them parameters, and tensors that are wrappers of others
        # Whole storages travel; queries, keys and values are thirds of theirs.
        return (tensor.nbytes < self.smallest or tensor.untyped_storage().nbytes() > _MOST_PARTS * tensor.nbytes
                or (tensor._base is not None and tensor._base.is_leaf))

    def _pack(self, tensor):
        if self._stays(tensor):
            return _Stays(tensor)
        storage = tensor.untyped_storage()
        key = (StorageWeakRef(storage), tensor._version)
        place, kept = self.known.get(key, (0, lambda: None))
        kept = kept()
        if kept is None:
            copies = HostCopies.of(tensor.device)
            kept = _Kept(copies, tensor.detach())
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            kept.held = copies.out(whole, self.reuse, kept.copied, varies=True)
            place = len(self.saved)
            self.known[key] = (place, weakref.ref(kept))
            self.saved.append(weakref.ref(kept))
            self.bytes, self.count = self.bytes + whole.nbytes, self.count + 1
            copies.settle(self.leaving)
        return _View(self, place, kept, tensor)

    def _unpack(self, view):
        if isinstance(view, _Stays):
            return view.get()
        view.kept.copies.settle()
        if view.kept.spoiled:
            raise _written_over(view.layout[1])
        storage = view.kept.storage()
        self._ask_ahead(view)
        return torch.empty(0, dtype=view.dtype, device=view.device).set_(storage, *view.layout)

    def _ask_ahead(self, view):
        """Backward passes go through what was saved from the last to the first."""
        room = self.ahead
        for place in reversed(range(view.place)):
            kept = view.saved[place]()
            if kept is None or kept.there is not None:  # used already, or about to be given back
                continue
            room -= kept.held.buffer.nbytes
            if room < 0:
                return
            kept.fetch()
