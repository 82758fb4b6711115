"""The optimizer's step inside the backward pass, on the CPU: step_test.py [-k name]"""
import copy
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), HERE]
import torch  # noqa: E402
from torch import nn  # noqa: E402

import plimsoll_torch as pt  # noqa: E402
from measured import peak_of  # noqa: E402
from models import ResNet, Transformer, _words  # noqa: E402

torch.set_num_threads(1)
SEARCH = {"deadline": 0.5, "threads": 1}


def small(kind="gpt2"):
    torch.manual_seed(0)
    return Transformer(kind, vocabulary=300, longest=64, width=64, layers=2).train(), _words(300, 2, 64)


class StepInBackward(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def trained(self, model, make, arguments, steps=3, scheduled=False, **options):
        optimizer = make(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5) if scheduled else None
        pt.compile(model, options.pop("budget", "1GiB"), optimizer=optimizer, search=SEARCH, **options)
        losses = []
        for _ in range(steps):
            loss = model(*arguments)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
            if scheduler is not None:
                scheduler.step()
        return losses

    def same(self, model, make, arguments, tolerance=1e-5, **options):
        other = copy.deepcopy(model)
        theirs = self.trained(other, make, arguments, **{k: v for k, v in options.items() if k == "scheduled"})
        torch._dynamo.reset()
        ours = self.trained(model, make, arguments, step_in_backward=True, **options)
        self.assertGreater(model.plimsoll.plans[0].stepped_bytes, 0)
        stays = sum(p.nbytes for p in model.parameters() if p.dim() > 3)
        self.assertEqual(model.plimsoll.plans[0].gradient_bytes, stays, "only gradients of convolutions wait for the optimizer")
        for mine, yours in zip(ours, theirs):
            self.assertAlmostEqual(mine, yours, delta=tolerance * abs(yours))
        for (name, mine), yours in zip(model.named_parameters(), other.parameters()):
            self.assertLess((mine - yours).abs().max().item(), 10 * tolerance, name)
            self.assertIsNone(mine.grad, name)
        self.assertNotEqual(ours[0], ours[-1])

    def test_weights_are_those_of_separate_steps(self):
        model, arguments = small()  # embedding and head are one weight
        self.same(model, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), arguments, scheduled=True)

    def test_under_a_budget_where_values_are_recomputed(self):
        model, arguments = small("llama")
        held = sum(p.nbytes for p in model.parameters())
        seen = pt.plan(model, arguments, shares=(), **SEARCH)
        budget = seen.resident_bytes + int((seen.keep_all_bytes - seen.resident_bytes - held) * 0.6) + 2 * held
        self.same(model, lambda p: torch.optim.Adam(p, lr=1e-2), arguments, 2e-4, budget=budget)
        self.assertGreater(model.plimsoll.plans[0].again, 0)
        self.assertLessEqual(model.plimsoll.planned_peak(), budget)

    def test_running_statistics(self):
        torch.manual_seed(0)
        self.same(ResNet().train(), lambda p: torch.optim.SGD(p, lr=0.01), (torch.randn(4, 3, 32, 32), torch.tensor([1, 2, 3, 4])), 1e-4)

    def test_gradients_do_not_exist_together(self):
        model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(256, 256), nn.GELU())])
        given = (torch.randn(8, 256),)
        peaks = []
        for inside in (False, True):
            torch._dynamo.reset()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
            pt.compile(model, "1GiB", optimizer=optimizer, search=SEARCH, step_in_backward=inside)

            def step():
                model(*given).square().mean().backward()
                optimizer.step()
            peaks.append(peak_of(step, optimizer.zero_grad))
            planned = model.plimsoll.planned_peak() - model.plimsoll.resident
            self.assertLessEqual(peaks[-1], planned)
        one = 256 * 256 * 4
        print(f"step_in_backward: {peaks[1] >> 10} KiB beside what is resident, without {peaks[0] >> 10}", flush=True)
        self.assertLess(peaks[1], peaks[0] - 6 * one)

    def test_what_needs_all_gradients_is_refused(self):
        model, arguments = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pt.compile(model, "1GiB", optimizer=optimizer, search=SEARCH, step_in_backward=True)
        model(*arguments).backward()
        for clip in (lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0), lambda: nn.utils.clip_grad_value_(model.parameters(), 1.0)):
            with self.assertRaisesRegex(RuntimeError, "clipping needs all gradients"):
                clip()
        with self.assertRaisesRegex(RuntimeError, "second forward pass of training before optimizer.step"):
            model(*arguments)
        optimizer.step()
        with self.assertRaisesRegex(RuntimeError, "a gradient scaler needs all gradients"):
            torch.amp.GradScaler("cpu").scale(model(*arguments))
        with self.assertRaisesRegex(ValueError, "pass the optimizer too"):
            pt.compile(model, "1GiB", step_in_backward=True)
        with self.assertRaisesRegex(ValueError, "does not have the parameters"):
            pt.compile(model, "1GiB", optimizer=torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0), step_in_backward=True)
        pt.compile(model, "1GiB", optimizer=optimizer, search=SEARCH)  # as before
        model(*arguments).backward()
        self.assertGreater(float(nn.utils.clip_grad_norm_(model.parameters(), 1.0)), 0)


if __name__ == "__main__":
    unittest.main()
