"""The optimizer's step inside the backward pass: each gradient is used where it is made and never waits for the others.

    model = pt.compile(model, "8GiB", optimizer=opt, step_in_backward=True)
    loss = model(x, y); loss.backward()      # weights change here, gradient by gradient
    opt.step(); opt.zero_grad()              # nothing is left to do; kept, so that schedulers count

A compiled backward pass is one node of autograd and returns all gradients at once, so hooks on parameters would come too late.
Instead each gradient of a parameter goes to an operator in the graph, apply_gradient(gradient, parameter), and leaves the graph's results
(a 1B model in bf16: 2 GB less). Called at run time, it finds the optimizer by the parameter's address and runs its step for
that parameter alone, with the learning rate of the moment.

A weight must not change before its last reader has run: the operator says that it writes the parameter, which Inductor's scheduler
heeds, and since passes over the graph in front of the scheduler do not (mm + c becomes one addmm, later), the calls are
placed once more behind them, each behind the last reader of its weight (PlaceSteps).

Whatever needs all gradients at once is refused with a sentence: clipping, gradient scalers, accumulation, several ranks.
"""
import functools
import weakref

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass

from plimsoll_torch.operators import is_view

_HOW = "call pt.compile(..., step_in_backward=False)"
_MOST_DIMENSIONS = 3
_live = weakref.WeakSet()
_library = torch.library.Library("plimsoll_torch", "FRAGMENT")
_library.define("apply_gradient(Tensor gradient, Tensor(a!) parameter) -> ()")
OPERATOR = torch.ops.plimsoll_torch.apply_gradient.default


def _apply(gradient, parameter):
    for one in list(_live):
        if one.apply(parameter.data_ptr(), gradient):
            return
    raise RuntimeError(f"step_in_backward: a gradient of shape {tuple(gradient.shape)} belongs to no parameter of a live optimizer; was the "
                       f"model moved or the optimizer replaced after pt.compile? {_HOW}")


_library.impl("apply_gradient", _apply, "CompositeExplicitAutograd")


@torch.library.register_fake("plimsoll_torch::apply_gradient", lib=_library)
def _(gradient, parameter):
    return None


def whole_step(optimizer):
    """The step of an optimizer's class without the hooks, which are for the whole step."""
    step = type(optimizer).step
    return step.__wrapped__ if getattr(step, "hooked", False) else step


class StepInBackward:
    """One optimizer that steps inside the backward pass of one model."""

    def __init__(self, model, optimizer):
        if optimizer is None:
            raise ValueError("step_in_backward: pass the optimizer too, pt.compile(model, budget, optimizer=opt, step_in_backward=True)")
        if torch.distributed.is_available() and torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
            raise ValueError(f"step_in_backward: {torch.distributed.get_world_size()} ranks average their gradients after the backward pass; {_HOW}")
        own = {p for group in optimizer.param_groups for p in group["params"]}
        missing = [name for name, p in model.named_parameters() if p.requires_grad and p not in own] if isinstance(model, torch.nn.Module) else []
        if missing or not isinstance(model, torch.nn.Module):
            raise ValueError(f"step_in_backward: the optimizer does not have the parameters {missing[:3]} ({len(missing)} in all) of the model; {_HOW}")
        self.optimizer, self.groups = optimizer, {p: group for group in optimizer.param_groups for p in group["params"]}
        self.places, self.applied, self.forwards = {}, set(), 0
        self.step = whole_step(optimizer)
        self.hook = optimizer.register_step_pre_hook(self._whole_step)
        _live.add(self)
        _guard()

    def end(self):
        self.hook.remove()
        _live.discard(self)

    def apply(self, address, gradient):
        parameter = self.places.get(address)
        if parameter is None or parameter.data_ptr() != address:
            self.places = {p.data_ptr(): p for p in self.groups}
            parameter = self.places.get(address)
        if parameter is None:
            return False
        if parameter in self.applied:
            raise RuntimeError(f"step_in_backward: a second gradient for a parameter of shape {tuple(parameter.shape)} before optimizer.step(); {_HOW}")
        from plimsoll_torch import optimizer_offload
        group, groups, offloaded = self.groups[parameter], self.optimizer.param_groups, optimizer_offload.of(self.optimizer)
        if offloaded is not None:
            parameter.grad = gradient
            offloaded.step_one(group, parameter)
            parameter.grad = None
            self.applied.add(parameter)
            return True
        members = group["params"]
        parameter.grad, group["params"], self.optimizer.param_groups = gradient, [parameter], [group]
        try:
            with torch.no_grad():
                self.step(self.optimizer)
        finally:
            parameter.grad, group["params"], self.optimizer.param_groups = None, members, groups
        self.applied.add(parameter)
        return True

    def forward_begins(self):
        if self.forwards:
            raise RuntimeError("step_in_backward: a second forward pass of training before optimizer.step(): gradients of several passes cannot be "
                               f"accumulated when each is used at once; {_HOW} (evaluation belongs under torch.no_grad())")
        self.forwards = 1

    def _whole_step(self, *_):
        late = [p for p in self.applied if p.grad is not None]
        self.applied.clear()
        self.forwards = 0
        if late:
            raise RuntimeError(f"step_in_backward: {len(late)} parameters have a gradient from outside of the compiled model too; {_HOW}")


def end_for(optimizer):
    """An optimizer that is compiled with once more starts anew."""
    for one in list(_live):
        if one.optimizer is optimizer:
            one.end()


def _stepping():
    return [one for one in _live if one.applied]


@functools.cache
def _guard():
    """Clipping after the backward pass and scaling before it would be wrong without a word."""
    from torch.amp import GradScaler
    from torch.nn.utils import clip_grad

    def refuse(what, original, when):
        @functools.wraps(original)
        def guarded(*args, **kwargs):
            if when(*args):
                raise RuntimeError(f"step_in_backward: {what} needs all gradients at once, and the optimizer has used them already; {_HOW}")
            return original(*args, **kwargs)
        return guarded
    for name in ("clip_grad_norm_", "clip_grad_value_", "_get_total_norm", "get_total_norm"):
        if hasattr(clip_grad, name):
            guarded = refuse("clipping", getattr(clip_grad, name), lambda *_: bool(_stepping()))
            setattr(clip_grad, name, guarded)
            if hasattr(torch.nn.utils, name):
                setattr(torch.nn.utils, name, guarded)
    GradScaler.scale = refuse("a gradient scaler", GradScaler.scale, lambda scaler, *_: scaler.is_enabled() and bool(_live))


# In the joint graph.

def gradients_of_parameters(graph, forward_outputs, static_inputs):
    """(parameter, gradient) for the parameters of a joint graph; parameters are what PyTorch calls static inputs. Those of
    convolutions step with the optimizer: the backward pass may see a channels-last copy of them, which says nothing of whose it is."""
    results = next(n for n in reversed(graph.nodes) if n.op == "output").args[0]
    given = [n for n in graph.nodes if n.op == "placeholder"]
    static, pairs = set(static_inputs or ()), []
    for i, gradient in enumerate(results[forward_outputs:]):
        if isinstance(gradient, torch.fx.Node) and i in static and gradient.op == "call_function":
            shapes = [tuple(n.meta["val"].shape) for n in (given[i], gradient)]
            if len(shapes[0]) <= _MOST_DIMENSIONS and shapes[0] == shapes[1] and given[i].meta["val"].dtype == gradient.meta["val"].dtype:
                pairs.append((given[i], gradient))
    return pairs


def insert_steps(graph, forward_outputs, parameters):
    """Gradients of these parameters go to the optimizer instead of out of the graph."""
    end = next(n for n in reversed(graph.nodes) if n.op == "output")
    results, given = list(end.args[0]), [n for n in graph.nodes if n.op == "placeholder"]
    with graph.inserting_before(end):
        for i, gradient in enumerate(results[forward_outputs:]):
            if given[i] in parameters:
                node = graph.call_function(OPERATOR, (gradient, given[i]))
                node.meta = {"val": None, "partitioner_tag": "must_be_in_backward"}
                results[forward_outputs + i] = None
    end.args = (type(end.args[0])(results), *end.args[1:])


def _last_reader(parameter, place):
    last, work, seen = -1, [parameter], set()
    while work:
        for user in work.pop().users:
            if user.target is OPERATOR or user in seen:
                continue
            seen.add(user)
            last = max(last, place[user]) if user.op != "output" else last
            if is_view(user):
                work.append(user)
    return last


def place_steps(graph):
    """Each step directly behind its gradient and the last reader of its weight."""
    nodes = list(graph.nodes)
    place = {n: i for i, n in enumerate(nodes)}
    for step in [n for n in nodes if n.target is OPERATOR]:
        gradient, parameter = step.args
        at = max(place[gradient], _last_reader(parameter, place))
        nodes[at].append(step)


class PlaceSteps(CustomGraphPass):
    """The last of Inductor's passes over a graph."""

    def __call__(self, graph):
        if any(n.target is OPERATOR for n in graph.nodes):
            place_steps(graph)

    def uuid(self):
        return "plimsoll_torch steps 1"
