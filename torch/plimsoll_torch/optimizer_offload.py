"""Optimizer state in host memory, fetched ahead of the step that needs it.

    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    pt.offload_optimizer(optimizer)              # AdamW of a 1B model in fp32: 8 GB leave the device

step() goes through the parameters in parts of some `part` bytes of state: while one part is updated, the next one is on its way in and
the one before on its way out, so that three parts at most are on the device. The first step makes the state part by part too.
State dictionaries hold tensors of the host; loading one works as before. With pt.compile(..., step_in_backward=True) the part is
one parameter, and the next one is the one that came next in the step before.
"""
import functools
import types
import weakref

import torch

from plimsoll_torch.byte_size import parse_bytes
from plimsoll_torch.host_copies import HostCopies
from plimsoll_torch.step_in_backward import whole_step

_SCALAR = 1  # elements; counters stay where they are
_offloaded = {}


class OffloadedState:
    def __init__(self, optimizer, part, devices):
        self.optimizer, self.part, self.devices = optimizer, part, devices
        self.held, self.coming = {}, {}  # parameter -> {name: Held}, {name: Coming}
        self.order, self.after = [], {}
        self.step_of = whole_step(optimizer)

    def _mine(self, parameter):
        return parameter.device.type in self.devices

    def fetch(self, parameters):
        """Starts the copies to the device."""
        for p in parameters:
            if p in self.held and p not in self.coming:
                copies = HostCopies.of(p.device)
                self.coming[p] = {name: copies.back(held) for name, held in self.held[p].items()}

    def arrive(self, parameters):
        self.fetch(parameters)
        for p in parameters:
            for name, coming in self.coming.pop(p, {}).items():
                self.optimizer.state[p][name] = coming.ready()

    def leave(self, parameters, limit):
        for p in parameters:
            if not self._mine(p):
                continue
            copies = HostCopies.of(p.device)
            for name, tensor in self.optimizer.state.get(p, {}).items():
                if isinstance(tensor, torch.Tensor) and tensor.numel() > _SCALAR and tensor.device == p.device:
                    held = copies.out(tensor)
                    self.held.setdefault(p, {})[name] = held
                    self.optimizer.state[p][name] = held.tensor()
            copies.settle(limit)

    def _take_in_what_was_loaded(self, parameters):
        """A state dictionary was loaded, or somebody set a state: what lies on the host is not what is held."""
        for p in parameters:
            state = self.optimizer.state.get(p, {})
            if not self._mine(p):
                continue
            known = self.held.get(p, {})
            if any(isinstance(t, torch.Tensor) and t.numel() > _SCALAR and (name not in known or t.data_ptr() != known[name].buffer.data_ptr())
                   for name, t in state.items()):
                self.coming.pop(p, None)
                self.held.pop(p, None)
                for name, t in state.items():
                    if isinstance(t, torch.Tensor) and t.numel() > _SCALAR:
                        state[name] = t.to(p.device)
                self.leave([p], self.part)

    def parts(self):
        for group in self.optimizer.param_groups:
            part, size = [], 0
            for p in group["params"]:
                if p.grad is None:
                    continue
                part.append(p)
                size += 2 * p.nbytes
                if size >= self.part:
                    yield group, part
                    part, size = [], 0
            if part:
                yield group, part

    def step(self):
        self._take_in_what_was_loaded(list(self.optimizer.state))
        parts = list(self.parts())
        for i, (group, part) in enumerate(parts):
            self.arrive(part)
            if i + 1 < len(parts):
                self.fetch(parts[i + 1][1])
            self.run(group, part)
            self.leave(part, self.part)
        for device in {p.device for _, part in parts for p in part if self._mine(p)}:
            HostCopies.of(device).settle()

    def run(self, group, part):
        """The optimizer's own step for these parameters alone."""
        members, groups = group["params"], self.optimizer.param_groups
        group["params"], self.optimizer.param_groups = part, [group]
        try:
            with torch.no_grad():
                self.step_of(self.optimizer)
        finally:
            group["params"], self.optimizer.param_groups = members, groups

    def step_one(self, group, parameter):
        """Inside the backward pass: the next one is guessed from the step before."""
        if self.order:
            self.after[self.order[-1]] = parameter
        self.order = [parameter]
        self._take_in_what_was_loaded([parameter])
        self.arrive([parameter])
        following = self.after.get(parameter)
        if following is not None:
            self.fetch([following])
        self.run(group, [parameter])
        self.leave([parameter], self.part)

    def window_bytes(self):
        """State that is on the device at once, at most: a part that is updated, one that comes and one that leaves."""
        largest = max((2 * p.nbytes for group in self.optimizer.param_groups for p in group["params"]), default=0)
        return 3 * max(self.part, largest)


def of(optimizer):
    return _offloaded.get(id(optimizer))


def offload_optimizer(optimizer, part="128MiB", devices=("cuda",)):
    """Keeps the optimizer's state in pinned host memory; the optimizer itself, changed in place."""
    if of(optimizer) is not None:
        return optimizer
    if any(group.get("capturable") for group in optimizer.param_groups):
        raise ValueError("offload_optimizer: capturable=True is for CUDA graphs, whose memory cannot move; construct the optimizer without")
    state = OffloadedState(optimizer, parse_bytes(part, "part"), devices)
    _offloaded[id(optimizer)] = state
    weakref.finalize(optimizer, _offloaded.pop, id(optimizer), None)
    hooked = type(optimizer).profile_hook_step

    @functools.wraps(type(optimizer).step)
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        state.step()
        self._opt_called = True  # what schedulers look for, in the order in which steps and schedules were called
        return loss
    made = hooked(step)
    made._wrapped_by_lr_sched = True
    optimizer.step = types.MethodType(made, optimizer)
    return optimizer
