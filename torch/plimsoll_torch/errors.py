"""What can go wrong with a budget, in words."""
from plimsoll_torch.byte_size import show_bytes


class DoesNotFit(RuntimeError):
    """No plan within the budget is known. Raised while compiling, before the step has launched anything.

    budget, smallest_budget    bytes: what was given, and the smallest budget that works
    limiting                   the tensors that meet where most is needed: {"name", "module", "bytes", "shape"}
    at_peak                    what the generated code holds where most is needed, where it was read: {"name", "bytes"}
    parts                      bytes that no plan can change, by what they are
    """

    def __init__(self, budget, smallest_budget, limiting=(), parts=None, remedy="", at_peak=()):
        self.budget, self.smallest_budget = budget, smallest_budget
        self.limiting, self.parts, self.at_peak = list(limiting), dict(parts or {}), list(at_peak)
        told = [f"budget: {show_bytes(budget)} do not hold a training step; the smallest budget that works is "
                f"{smallest_budget} bytes ({show_bytes(smallest_budget)})"]
        if self.parts:
            told.append("  there before any plan: " + ", ".join(f"{name} {show_bytes(size)}" for name, size in self.parts.items() if size))
        for one in self.limiting:
            where = f" of {one['module']}" if one.get("module") else ""
            shape = f" ({' × '.join(one['shape'])})" if one.get("shape") else ""
            told.append(f"  limiting: {one['name']}{where}, {show_bytes(one['bytes'])}{shape}")
        if remedy:
            told.append(f"  {remedy}")
        super().__init__("\n".join(told))


class BudgetExceeded(UserWarning):
    """A step was measured to need more than the budget, and planning again did not help."""
