"""The bytes that a step allocates on the CPU at most, as PyTorch's profiler sees every allocation."""
import torch
from torch.profiler import ProfilerActivity, profile


def peak_of(step, clear=lambda: None):
    """Beside what is there before; the step runs once before it is measured."""
    step()
    clear()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


def gradients(model, arguments, call=None, seed=1):
    model.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    loss = (model if call is None else call)(*arguments)  # a compiled module has no truth value
    loss.backward()
    return loss.item(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def difference(ours, theirs):
    """The largest relative to the largest entry of the same gradient."""
    if ours.keys() != theirs.keys():
        raise AssertionError(f"gradients of {sorted(ours.keys() ^ theirs.keys())} are missing on one side")
    return max((ours[n] - theirs[n]).abs().max().item() / (theirs[n].abs().max().item() + 1e-12) for n in theirs)
