"""For models that torch.compile cannot take: which blocks to checkpoint so that a step fits.

    chosen = pt.checkpoint_plan(model, (x, y), budget="8GiB", optimizer=opt)    # looks, on fake tensors: nothing is run
    chosen.apply()                                                              # wraps those blocks; chosen.undo() takes it back

Blocks are the members of ModuleLists and Sequentials, outermost first. A checkpointed block saves its inputs alone and runs its
forward pass a second time. The peak is estimated as what is fixed and saved, plus the largest block that is being
recomputed, plus a gradient of the largest saved tensor: eager PyTorch frees when Python does, so this is an estimate (pt.compile
promises), and what it leaves out is small beside activations.
"""
import copy
import functools
from dataclasses import dataclass, field

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from plimsoll_torch import resident
from plimsoll_torch.byte_size import parse_bytes, show_bytes
from plimsoll_torch.errors import DoesNotFit


@dataclass
class Block:
    name: str
    saved: int = 0  # bytes that its forward pass saves for the backward pass
    inputs: int = 0  # bytes that are saved instead when it is checkpointed
    flops: int = 0


@dataclass
class CheckpointPlan:
    model: torch.nn.Module
    blocks: list
    chosen: list
    peak_bytes: int
    plain_bytes: int  # without checkpoints
    flops: int  # of what is run again, of a forward pass of `all_flops`
    all_flops: int
    wrapped: dict = field(default_factory=dict)

    def __str__(self):
        return (f"{len(self.chosen)} of {len(self.blocks)} blocks checkpointed: {show_bytes(self.peak_bytes)} instead of {show_bytes(self.plain_bytes)}, "
                f"{self.flops / max(1, self.all_flops):.0%} of the forward pass run again: {', '.join(b.name for b in self.chosen)}")

    def apply(self):
        for block in self.chosen:
            module = self.model.get_submodule(block.name)
            if block.name not in self.wrapped:
                self.wrapped[block.name] = module.forward
                module.forward = _checkpointed(module.forward)
        return self

    def undo(self):
        for name in list(self.wrapped):
            del self.model.get_submodule(name).forward  # the class has its own
            del self.wrapped[name]


def _checkpointed(forward):
    @functools.wraps(forward)
    def run(*args, **kwargs):
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)
    return run


def _candidates(model):
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) and len(module) > 1:
            for child, inner in module.named_children():
                path = f"{name}.{child}" if name else child
                if not any(path.startswith(other + ".") for other in found) and any(True for _ in inner.parameters()):
                    found[path] = inner
    return found


class _Observer:
    """Counts what each block saves during one forward pass, storages once, parameters not at all."""

    def __init__(self, model):
        self.known = {t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers()]}
        self.open, self.outside, self.largest, self.blocks, self.keep = [], 0, 0, {}, []

    def saves(self, tensor):
        if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in self.known:
            storage = tensor.untyped_storage()
            self.known.add(storage._cdata)
            self.keep.append(storage)  # so that its number is not given away again
            self.largest = max(self.largest, storage.nbytes())
            if self.open:
                self.open[-1].saved += storage.nbytes()
            else:
                self.outside += storage.nbytes()
        return tensor

    def watch(self, name, module):
        block = self.blocks[name] = Block(name)

        def enter(_, args, kwargs):
            block.inputs = resident.storages(resident.tensors_in(args, kwargs))
            self.open.append(block)

        def leave(*_):
            self.open.pop()
        module.register_forward_pre_hook(enter, with_kwargs=True)
        module.register_forward_hook(leave)


def _observe(model, example):
    args, kwargs = ((), example) if isinstance(example, dict) else (example, {}) if isinstance(example, (tuple, list)) else ((example,), {})
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = copy.deepcopy(model)
        fake._compiled_call_impl = None
        seen = _Observer(fake)
        for name, module in _candidates(fake).items():
            seen.watch(name, module)
        args, kwargs = tree_map_only(torch.Tensor, mode.from_tensor, (tuple(args), kwargs))
        seen.known |= {t.untyped_storage()._cdata for t in resident.tensors_in(args, kwargs)}
        counter = FlopCounterMode(display=False)
        with torch.enable_grad(), counter, torch.autograd.graph.saved_tensors_hooks(seen.saves, lambda t: t):
            fake(*args, **kwargs)
    counts = counter.get_flop_counts()
    total = sum(counts.get("Global", {}).values())
    top = type(fake).__name__
    for name, block in seen.blocks.items():
        block.flops = sum(counts.get(f"{top}.{name}", {}).values())
    return seen, total


def checkpoint_plan(model, example, budget, *, optimizer=None, reserve=0):
    """The cheapest set of blocks to checkpoint within the budget, by FLOPs a byte; DoesNotFit where none is enough."""
    budget, reserve = parse_bytes(budget), parse_bytes(reserve, "reserve") if reserve else 0
    seen, total = _observe(model, example)
    blocks = list(seen.blocks.values())
    if not blocks:
        raise ValueError("checkpoint_plan: the model has no ModuleList or Sequential of several members, so there are no blocks to choose from")
    state = resident.optimizer_bytes(optimizer) + resident.optimizer_bytes(optimizer, to_come=False)
    fixed = (resident.storages([*model.parameters(), *model.buffers(), *resident.tensors_in(example)]) + state + reserve
             + resident.gradient_bytes(resident.trained_parameters(model)))

    def peak(chosen):
        kept = seen.outside + sum(b.inputs if b.name in chosen else b.saved for b in blocks)
        return fixed + kept + max((b.saved for b in blocks if b.name in chosen), default=0) + seen.largest
    order = sorted((b for b in blocks if b.saved > b.inputs), key=lambda b: (b.flops + 1) / (b.saved - b.inputs))
    chosen = []
    while peak({b.name for b in chosen}) > budget and len(chosen) < len(order):
        chosen.append(order[len(chosen)])
    needs = peak({b.name for b in chosen})
    if needs > budget:
        smallest = min(peak({b.name for b in order[:n]}) for n in range(len(order) + 1))
        largest = [{"name": b.name, "module": "", "bytes": b.saved} for b in sorted(blocks, key=lambda b: -b.saved)[:4]]
        raise DoesNotFit(budget, smallest, largest, {"parameters, gradients, optimizer and inputs": fixed}, "pt.compile recomputes in finer steps")
    return CheckpointPlan(model, blocks, chosen, needs, peak(set()), sum(b.flops for b in chosen), total)
