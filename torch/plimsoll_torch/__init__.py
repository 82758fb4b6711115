"""PyTorch with a memory budget.

    import plimsoll_torch as pt
    model = pt.compile(model, budget="8GiB", optimizer=opt)     # a step stays within it, or pt.DoesNotFit before it starts
    model.plimsoll.report("report.html")                        # what is kept, what is recomputed, and what it costs
    pt.plan(model, example, optimizer=opt)                      # the same without a GPU: peak, curve
    pt.max_batch(model, example, budget="24GiB")
    pt.linear_cross_entropy(hidden, weight, target)             # the loss over a large vocabulary without all its logits
    pt.offload_optimizer(opt)                                   # its state in host memory, fetched ahead
    with pt.offload_activations(): loss = model(x)              # of an eager model: saved tensors in host memory
    pt.watch()                                                  # memory by module, one line a step
    pt.use_allocator(capacity="12GiB", spill="host")            # PyTorch on Plimsoll's caching allocator
    pt.spill(module); pt.restore(module)                        # to host memory and back, at the same addresses

How it works: docs/pytorch.md.
"""
import importlib

from plimsoll_torch.allocator import UNSUPPORTED, library_path, use_allocator

_WHERE = {"compile": "session", "Session": "session", "DoesNotFit": "errors", "BudgetExceeded": "errors",
          "plan": "preview", "curve": "preview", "max_batch": "preview", "watch": "watch_memory",
          "linear_cross_entropy": "losses", "checkpoint_plan": "eager", "offload_activations": "activation_offload", "offload_optimizer": "optimizer_offload",
          "spill": "spilling", "restore": "spilling", "export": "onnx_bridge", "load_weights": "onnx_bridge", "parse_bytes": "byte_size"}

__all__ = ["UNSUPPORTED", "library_path", "use_allocator", *sorted(_WHERE)]


def __getattr__(name):
    """What needs PyTorch's compiler is imported when it is asked for: use_allocator() must come before CUDA starts."""
    if name in _WHERE:
        return getattr(importlib.import_module("plimsoll_torch." + _WHERE[name]), name)
    raise AttributeError(f"module 'plimsoll_torch' has no attribute '{name}'")
