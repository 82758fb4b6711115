"""Each small model under budgets, compiled by Inductor for the CPU. budget_test.py NAME…

Three promises: gradients are those of torch.compile, to 1e-6; what a step allocates is measured to be at most what was
planned, and the plan at most the budget; and the plan is no more than 1 % above the measurement for transformers at 40 % and
more, 5 % elsewhere (a plan that claimed everything would keep the second promise and be worth nothing).
"""
import copy
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), HERE]
import torch  # noqa: E402

import plimsoll_torch as pt  # noqa: E402
from measured import difference, gradients, peak_of  # noqa: E402
from models import MODELS, make  # noqa: E402

torch.set_num_threads(1)
TRANSFORMERS = {"gpt2", "bert", "llama", "t5", "vit"}
SEARCH = {"work": 1, "threads": 1} if os.environ.get("PLIMSOLL_SLOW_SEARCH") else {"deadline": 1.0, "threads": 1}
NAMES = [a for a in sys.argv[1:] if a in MODELS] or list(MODELS)
sys.argv[1:] = [a for a in sys.argv[1:] if a not in MODELS]


class Budget(unittest.TestCase):
    def hold(self, name, model, arguments, budget, theirs):
        """One budget; the share of the plan that was measured to be used, or None where it was refused."""
        torch._dynamo.reset()
        model.zero_grad(set_to_none=True)
        try:
            pt.compile(model, budget, search=SEARCH)
            loss, ours = gradients(model, arguments)
        except pt.DoesNotFit as refused:
            self.assertGreater(refused.smallest_budget, budget)
            return None, refused.smallest_budget
        finally:
            session = model.plimsoll
        self.assertLess(difference(ours, theirs[1]), 1e-6, name)
        self.assertAlmostEqual(loss, theirs[0], delta=1e-6 * abs(theirs[0]))
        self.assertLessEqual(session.planned_peak(), budget)
        beside = session.resident
        used = peak_of(lambda: model(*arguments).backward(), lambda: model.zero_grad(set_to_none=True))
        planned = session.planned_peak() - beside
        plan = session.plans[-1]
        print(f"{name}: budget {budget >> 10} KiB, planned {planned >> 10} beside {beside >> 10} resident, measured {used >> 10} ({used / planned - 1:+.2%}), "
              f"by {plan.by}, {plan.again} again, keep-all {plan.keep_all_bytes >> 10}, PyTorch {plan.pytorch_bytes >> 10}, model {plan.modelled_bytes >> 10}", flush=True)
        self.assertTrue(plan.audited)
        self.assertLessEqual(used, planned, f"{name} at {budget}")
        return used / planned, session.planned_peak()

    def hold_all(self, name):
        model, arguments = make(name)
        other = copy.deepcopy(model)
        torch._dynamo.reset()
        theirs = gradients(other, arguments, torch.compile(other))
        _, full = self.hold(name, model, arguments, 1 << 40, theirs)
        resident = model.plimsoll.resident
        held = 0
        for share in (0.6, 0.4):
            share_used, smallest = self.hold(name, model, arguments, resident + int((full - resident) * share), theirs)
            if share_used is None:  # the smallest budget that works works
                share_used, _ = self.hold(name, model, arguments, smallest, theirs)
                self.assertIsNotNone(share_used, f"{name}: {smallest} was said to be the smallest budget that works")
                self.assertGreater(share_used, 0.95)
            else:
                held += 1
                self.assertGreater(share_used, 0.99 if name in TRANSFORMERS else 0.95)
        if name in TRANSFORMERS:
            self.assertEqual(held, 2, "both budgets are held")


for _name in NAMES:
    setattr(Budget, f"test_{_name}", lambda self, name=_name: self.hold_all(name))

if __name__ == "__main__":
    unittest.main()
