"""Host memory for optimizer state: offload_test.py [-k name]

On the CPU copies are real and only the overlap is not; PLIMSOLL_TEST_DEVICE=cuda runs the same on a GPU.
"""
import copy
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), HERE]
import torch  # noqa: E402
from torch import nn  # noqa: E402

import plimsoll_torch as pt  # noqa: E402
from models import Transformer, _words  # noqa: E402
from plimsoll_torch import resident  # noqa: E402
from plimsoll_torch.host_copies import dense_strides  # noqa: E402

torch.set_num_threads(1)
DEVICE = os.environ.get("PLIMSOLL_TEST_DEVICE", "cpu")


def small():
    torch.manual_seed(0)
    model = Transformer("gpt2", vocabulary=300, longest=64, width=64, layers=2, dropout=0.1).train().to(DEVICE)
    return model, tuple(t.to(DEVICE) for t in _words(300, 2, 64))


class Copies(unittest.TestCase):
    def test_strides(self):
        dense = torch.randn(4, 5, 6).permute(2, 0, 1)
        self.assertEqual(dense_strides(dense), dense.stride())
        self.assertEqual(dense_strides(torch.randn(4, 1).expand(4, 6)), (6, 1))
        self.assertEqual(dense_strides(torch.randn(8, 8)[:, ::2]), (4, 1))
        heads = torch.randn(2, 16, 3, 4, 8)[:, :, 1].transpose(1, 2)  # queries of attention: a slice, transposed
        self.assertEqual((heads.shape, dense_strides(heads)), ((2, 4, 16, 8), (512, 8, 32, 1)))
        self.assertEqual(dense_strides(torch.randn(2, 3, 1, 5).to(memory_format=torch.channels_last)), (15, 1, 15, 3))


class Optimizer(unittest.TestCase):
    def train(self, make, steps=4, offload=False, between=None, **options):
        model, arguments = small()
        optimizer = make(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        if offload:
            pt.offload_optimizer(optimizer, devices=(DEVICE,), **options)
        for step in range(steps):
            torch.manual_seed(step)
            model(*arguments).backward()
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            if between is not None and step == 1:
                between(optimizer)
        return model, optimizer

    def test_weights_are_the_same_bits(self):
        for make in (lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=False), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False)):
            theirs, _ = self.train(make)
            for part in ("8KiB", "64KiB", "1GiB"):
                ours, optimizer = self.train(make, offload=True, part=part)
                for (name, mine), yours in zip(ours.named_parameters(), theirs.parameters()):
                    self.assertTrue(torch.allclose(mine, yours, atol=0 if DEVICE == "cpu" else 2e-3, rtol=0), f"{name} with parts of {part}")
                held = sum(h.buffer.nbytes for names in pt_state(optimizer).held.values() for h in names.values())
                self.assertEqual(held, resident.gradient_bytes(theirs.parameters()) * (2 if "AdamW" in str(optimizer) else 1))

    def test_a_loaded_state_is_taken_over(self):
        make = lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=False)
        reload = lambda optimizer: optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        theirs, _ = self.train(make, between=reload)
        ours, _ = self.train(make, offload=True, between=reload, part="64KiB")
        for mine, yours in zip(ours.parameters(), theirs.parameters()):
            self.assertTrue(torch.allclose(mine, yours, atol=0 if DEVICE == "cpu" else 2e-3, rtol=0))

    def test_it_counts_as_a_window_and_not_as_state(self):
        model, _ = small()
        optimizer = torch.optim.AdamW(model.parameters())
        whole = resident.optimizer_bytes(optimizer)
        pt.offload_optimizer(optimizer, part="16KiB", devices=(DEVICE,))
        self.assertEqual(whole, 2 * resident.gradient_bytes(model.parameters()))
        self.assertLess(resident.optimizer_bytes(optimizer), whole)
        self.assertGreater(resident.optimizer_bytes(optimizer), 3 * 16 << 10)

    def test_capturable_is_refused(self):
        with self.assertRaisesRegex(ValueError, "capturable"):
            pt.offload_optimizer(torch.optim.AdamW([nn.Parameter(torch.ones(1))], capturable=True))

    def test_inside_the_backward_pass(self):
        models = []
        for inside in (False, True):
            torch._dynamo.reset()
            model, arguments = small()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)  # Adam turns the smallest difference into a step
            if inside:
                pt.offload_optimizer(optimizer, part="16KiB", devices=(DEVICE,))
            pt.compile(model, "1GiB", optimizer=optimizer, search={"deadline": 0.5, "threads": 1}, step_in_backward=inside)
            for step in range(3):
                torch.manual_seed(step)
                model(*arguments).backward()
                optimizer.step()
                optimizer.zero_grad()
            models.append(model)
        for (name, mine), yours in zip(models[1].named_parameters(), models[0].parameters()):
            self.assertLess((mine - yours).abs().max().item(), 1e-4, name)


def pt_state(optimizer):
    from plimsoll_torch import optimizer_offload
    return optimizer_offload.of(optimizer)


if __name__ == "__main__":
    unittest.main()
