"""Plans without running anything, and without a GPU: what a step needs, what less would cost, the largest batch.

    print(pt.plan(model, (x, y), optimizer=opt))      # peak, smallest budget, a curve of budgets and their cost
    pt.max_batch(model, (x, y), budget="24GiB")       # along the first dimension of the example's tensors

The model is copied as fake tensors, which have shapes and no memory, and compiled up to where PyTorch chooses what to save;
nothing is lowered to kernels. Attention on the CPU is memory-efficient as on a GPU, convolutions have no workspace here, and
what libraries allocate on a GPU (cuBLAS: some 10 to 100 MB) is not seen: pass it as `reserve`.
"""
import copy
import os
import traceback
from dataclasses import dataclass, field

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._pytree import tree_map_only

from plimsoll_torch import resident
from plimsoll_torch.byte_size import parse_bytes, show_bytes
from plimsoll_torch.partitioner import Partitioner, describe
from plimsoll_torch.recompiling import as_often_as_asked
from plimsoll_torch.saved_set import simulate
from plimsoll_torch.schedule import find_schedule

_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)


@dataclass
class CapturedStep:
    tasks: list  # a TaskGraph for each graph, in the order of the forward pass
    fixed: int  # parameters, buffers, inputs, optimizer state
    gradients: int
    pytorch: list  # GraphPlan of PyTorch's own choice

    def beside(self, i):
        """Bytes beside the room of graph i, with PyTorch's choice for the others."""
        own = self.pytorch[i].gradient_bytes
        return self.fixed + max(0, self.gradients - own) + sum(p.saved_bytes for p in self.pytorch[:i])

    def largest(self):
        return max(range(len(self.tasks)), key=lambda i: self.pytorch[i].keep_all_bytes)


@dataclass
class Preview:
    resident_bytes: int
    optimizer_bytes: int
    gradient_bytes: int
    keep_all_bytes: int  # peak of a step that recomputes nothing
    pytorch_bytes: int  # peak of a step as torch.compile chooses
    smallest_budget_bytes: int
    curve: list = field(default_factory=list)  # {"budget_bytes", "peak_bytes", "slower"}
    limiting: list = field(default_factory=list)
    graphs: int = 1

    def __str__(self):
        lines = [f"torch.compile       {show_bytes(self.pytorch_bytes):>14}   of which parameters, inputs and optimizer "
                 f"{show_bytes(self.resident_bytes)}, gradients {show_bytes(self.gradient_bytes)}",
                 f"recomputes nothing  {show_bytes(self.keep_all_bytes):>14}",
                 f"smallest budget     {show_bytes(self.smallest_budget_bytes):>14}"]
        lines += [f"  budget {show_bytes(c['budget_bytes']):>14}   peak {show_bytes(c['peak_bytes']):>14}   {c['slower']:+.1%} time"
                  for c in self.curve]
        lines += [f"  limiting: {one['name']} {one['module']} {show_bytes(one['bytes'])}" for one in self.limiting[:4]]
        return "\n".join(lines)


class _Listener:
    """Holds no budget: every graph is as PyTorch would cut it."""
    steps_in_backward = offload = False

    def __init__(self):
        self.tasks, self.plans = [], []

    def key(self):
        return None

    def room(self, tasks):
        return None

    def done(self, planned, tasks):
        self.tasks.append(tasks)
        self.plans.append(planned)

    def cut(self, audit):
        pass


def _interpret(gm, example_inputs, **_):
    from torch._functorch.aot_autograd import make_boxed_func
    return make_boxed_func(gm.forward)


def _fake(tree, mode):
    return tree_map_only(torch.Tensor, mode.from_tensor, tree)


def _fake_model(model, mode):
    """A copy whose parameters and buffers are fake; what is tied stays tied. Copied under the mode, buffers are refused by PyTorch 2.15."""
    fake = {id(p): torch.nn.Parameter(mode.from_tensor(p.detach()), p.requires_grad) for p in model.parameters()}
    fake.update({id(b): mode.from_tensor(b) for b in model.buffers()})
    made = copy.deepcopy(model, fake)
    made._compiled_call_impl = None
    return made


def _asks_for_a_number(problem):
    """Where the model's own code asks what is in a tensor: outside PyTorch, nearest to the question."""
    inside = os.path.dirname(torch.__file__) + os.sep
    place = next((f for f in reversed(traceback.extract_tb(problem.__traceback__)) if not f.filename.startswith(inside)), None)
    return f"{place.filename}:{place.lineno} (`{place.line}`) asks for a number that the model computes" if place else "the model asks for a number that it computes"


def capture(model, example, optimizer=None):
    """The joint graphs of a training step as tasks. `example` is a tuple of arguments, a dictionary of them, or a tensor."""
    from torch._inductor.compile_fx import compile_fx
    args, kwargs = ((), example) if isinstance(example, dict) else (example, {}) if isinstance(example, (tuple, list)) else ((example,), {})
    holder = _Listener()
    partitioner = Partitioner(holder, measure=False)

    def backend(gm, inputs):
        return compile_fx(gm, inputs, inner_compile=_interpret, config_patches={"custom_partitioner_fn": partitioner})
    held = [*model.parameters(), *model.buffers()] if isinstance(model, torch.nn.Module) else []
    fixed = resident.storages([*held, *resident.tensors_in(args, kwargs)])
    trained = resident.trained_parameters(model, optimizer)
    state = resident.optimizer_bytes(optimizer) + resident.optimizer_bytes(optimizer, to_come=False)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch._functorch.config.patch(enable_autograd_cache=False), as_often_as_asked():
        fake = _fake_model(model, mode) if isinstance(model, torch.nn.Module) else model
        try:
            with torch.enable_grad():
                torch.compile(fake, backend=backend)(*_fake(tuple(args), mode), **_fake(kwargs, mode))
        except DataDependentOutputException as problem:
            raise ValueError(f"plan: {_asks_for_a_number(problem)}, which nobody knows without running it; pt.compile works with such a model") from None
    if not holder.tasks:
        raise ValueError("plan: the model has nothing to train: no parameter requires a gradient, or the result does not depend on one")
    return CapturedStep(holder.tasks, fixed + state, resident.gradient_bytes(trained), holder.plans), state


def plan(model, example, *, optimizer=None, budget=None, reserve=0, shares=_SHARES, **search):
    """What a training step of `model` on `example` needs, and what smaller budgets cost. Nothing is run."""
    step, state = capture(model, example, optimizer)
    reserve = parse_bytes(reserve, "reserve") if reserve else 0
    at = step.largest()
    tasks, beside = step.tasks[at], step.beside(at) + reserve
    keep_all = simulate(tasks, tasks.forward_values()).peak + beside
    floor = find_schedule(tasks, 0, **search)
    made = Preview(step.fixed + reserve, state, step.gradients, keep_all, max(p.peak + step.beside(i) for i, p in enumerate(step.pytorch)) + reserve,
                   floor.smallest_bytes + beside, limiting=[describe(tasks.values[i]) for i in floor.limiting[:8]], graphs=len(step.tasks))
    if budget is not None:
        budgets = [parse_bytes(budget)]
    else:
        budgets = [beside + int((keep_all - beside) * share) for share in shares]
    for bytes_ in budgets:
        found = find_schedule(tasks, max(0, bytes_ - beside), **search)
        if found.fits and found.peak + beside <= bytes_:
            made.curve.append({"budget_bytes": bytes_, "peak_bytes": found.peak + beside, "slower": found.seconds / tasks.base_seconds})
    return made


def _with_batch(example, batch):
    """The example with another first dimension wherever it has the example's own."""
    first = next((t for t in resident.tensors_in(example) if t.dim() > 0), None)
    if first is None:
        raise ValueError("max_batch: the example has no tensor with a first dimension")
    own = first.shape[0]
    with FakeTensorMode(allow_non_fake_inputs=True):
        return tree_map_only(torch.Tensor, lambda t: torch.empty((batch, *t.shape[1:]), dtype=t.dtype, device=t.device)
                             if t.dim() > 0 and t.shape[0] == own else t, example), own


def max_batch(model, example, budget, *, optimizer=None, reserve=0, most=1 << 20, **search):
    """The largest first dimension of the example whose step fits `budget`; 0 if one does not."""
    budget = parse_bytes(budget)
    reserve = parse_bytes(reserve, "reserve") if reserve else 0
    search = {"deadline": 0.5, **search}

    def needs(batch):
        step, _ = capture(model, _with_batch(example, batch)[0], optimizer)
        at = step.largest()
        room = budget - reserve - step.beside(at)
        found = find_schedule(step.tasks[at], max(0, room), **search)
        fits = room > 0 and found.fits and found.peak <= room
        return fits, (found.peak if fits else max(found.smallest_bytes, found.floor_bytes)) + step.beside(at) + reserve
    good, bad = 0, None
    guess = _with_batch(example, 1)[1]
    while bad is None or bad - good > 1:
        fits, _ = needs(guess)
        good, bad = (guess, bad) if fits else (good, guess)
        if bad is None:
            if good >= most:
                return most
            guess = min(2 * guess, most)
        else:
            guess = (good + bad) // 2
    return good
