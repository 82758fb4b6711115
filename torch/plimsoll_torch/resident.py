"""Bytes that lie on the device beside what is planned: parameters, inputs, optimizer state, gradients of other graphs.

On a GPU the allocator is asked. On the CPU nobody counts, so what is known is added up: storages of parameters, buffers
and arguments, each once.
"""
import torch
from torch.utils._pytree import tree_leaves

# State tensors of a parameter's size that optimizers allocate at their first step.
_COPIES = {"SGD": lambda g: bool(g.get("momentum")), "RMSprop": lambda g: 1 + bool(g.get("momentum")) + bool(g.get("centered")),
           "Adam": lambda g: 2 + bool(g.get("amsgrad")), "AdamW": lambda g: 2 + bool(g.get("amsgrad")), "NAdam": lambda g: 2,
           "RAdam": lambda g: 2, "Adamax": lambda g: 2, "Adadelta": lambda g: 2, "Adagrad": lambda g: 1, "ASGD": lambda g: 1,
           "Rprop": lambda g: 2}


def local(tensor):
    """This rank's part of a tensor that several ranks share."""
    return getattr(tensor, "_local_tensor", tensor)  # to_local() would be traced while compiling


def storages(tensors):
    """Bytes of the storages behind tensors, each once; of a fake or meta tensor too."""
    seen = {}
    for t in tensors:
        if isinstance(t, torch.Tensor):
            t = local(t)
            storage = t.untyped_storage()
            seen[storage._cdata] = storage.nbytes()
    return sum(seen.values())


def tensors_in(*trees):
    return [t for t in tree_leaves(trees) if isinstance(t, torch.Tensor)]


def device_of(model, arguments=()):
    found = next((p for p in model.parameters()), None) if isinstance(model, torch.nn.Module) else None
    if found is None:
        found = next(iter(tensors_in(arguments)), None)
    return found.device if found is not None else torch.device("cpu")


def trained_parameters(model, optimizer=None):
    """Each once; tied weights are one parameter."""
    if isinstance(model, torch.nn.Module):
        return [p for p in model.parameters() if p.requires_grad]
    if optimizer is not None:
        return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    return []


def gradient_bytes(parameters):
    return sum(local(p).numel() * p.element_size() for p in parameters)


def optimizer_bytes(optimizer, to_come=True):
    """Bytes of an optimizer's state: those it will allocate at its first step, or those it has."""
    if optimizer is None:
        return 0
    from plimsoll_torch import optimizer_offload
    offloaded = optimizer_offload.of(optimizer)
    if offloaded is not None:
        return offloaded.window_bytes() if to_come else 0
    if not to_come:
        return storages([t for state in optimizer.state.values() for t in tensors_in(list(state.values()))])
    total = 0
    for group in optimizer.param_groups:
        copies = _COPIES.get(type(optimizer).__name__, lambda g: 0)(group)
        for p in group["params"]:
            if p.requires_grad and not optimizer.state.get(p):
                total += int(copies) * local(p).numel() * p.element_size()
    return total


def knows_optimizer(optimizer):
    return optimizer is None or type(optimizer).__name__ in _COPIES


class Meter:
    """Bytes allocated on one device, now and at most."""

    def __init__(self, device):
        self.device = device
        self.cuda = device.type == "cuda" and torch.cuda.is_available()
        if self.cuda:
            self._take_workspaces()

    def _take_workspaces(self):
        """cuBLAS takes a workspace at the first product of each thread and keeps it (34 MiB on an H200). Forward and
        backward pass run on different threads; after a product and its gradient both count from the start."""
        with torch.enable_grad(), torch.autocast("cuda", enabled=False):
            for dtype in (torch.float32, torch.bfloat16):
                small = torch.ones(16, 16, device=self.device, dtype=dtype, requires_grad=True)
                torch.autograd.grad((small @ small).sum(), small)

    def allocated(self, model, arguments, optimizer):
        if self.cuda:
            return torch.cuda.memory_allocated(self.device)
        held = list(model.parameters()) + list(model.buffers()) if isinstance(model, torch.nn.Module) else []
        gradients = [p.grad for p in held if isinstance(p, torch.nn.Parameter) and p.grad is not None]
        state = optimizer_bytes(optimizer, to_come=False)
        return storages([*held, *gradients, *tensors_in(arguments)]) + state

    def reset_peak(self):
        if self.cuda:
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self):
        return torch.cuda.max_memory_allocated(self.device) if self.cuda else None
