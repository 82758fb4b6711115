"""Values of a compiled graph that wait in host memory, on the CPU, where the "host" is memory that PyTorch does not count. swap_test.py

PLIMSOLL_TEST_DEVICE=cuda runs the operators on a GPU.
"""
import copy
import os
import sys
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), HERE]
import torch  # noqa: E402

import plimsoll_torch as pt  # noqa: E402
from measured import difference, gradients, peak_of  # noqa: E402
from models import Transformer, _words  # noqa: E402
from offload_test import DEVICE, late  # noqa: E402
from plimsoll_torch import partitioner, preview, swap  # noqa: E402
from plimsoll_torch.schedule import BACK, OUT, find_schedule, least_schedule  # noqa: E402
from plimsoll_torch.session import Session  # noqa: E402

torch.set_num_threads(1)
SEARCH = {"deadline": 0.5, "threads": 1}
FAST = swap.CopyRates(1e12, 1e12, 0.0, smallest=1)


def words():
    """Activations are four times the gradients; dropout has masks and seeds that must not be made again."""
    torch.manual_seed(0)
    model = Transformer("gpt2", vocabulary=300, longest=64, width=64, layers=2, dropout=0.1).train().to(DEVICE)
    return model, tuple(t.to(DEVICE) for t in _words(300, 8, 64))


@unittest.skipIf(DEVICE != "cpu", "bytes are counted by PyTorch's profiler of the CPU")
class Swap(unittest.TestCase):
    def budget(self, model, arguments, share):
        """In parts of the least that recomputing alone needs by the model; the code for the CPU needs a quarter more."""
        seen = pt.plan(model, arguments, shares=(), **SEARCH)
        return seen.resident_bytes + int((seen.smallest_budget_bytes - seen.resident_bytes) * share)

    def compiled(self, model, arguments, budget, **options):
        torch._dynamo.reset()
        pt.compile(model, budget, search=SEARCH, **options)
        return gradients(model, arguments)

    def test_less_than_recomputing_needs_with_the_same_gradients(self):
        model, arguments = words()
        other = copy.deepcopy(model)
        torch._dynamo.reset()
        theirs = gradients(other, arguments, torch.compile(other))
        budget = self.budget(model, arguments, 1.1)
        ours = self.compiled(model, arguments, budget, offload="1TiB")
        session = model.plimsoll
        plan = session.plans[0]
        self.assertLess(difference(ours[1], theirs[1]), 1e-6)
        self.assertGreater(plan.offloaded, 0)
        self.assertTrue(plan.audited)
        self.assertIn("in host memory", [one["fate"] for one in plan.tensors])
        self.assertIn(f"{plan.offloaded} in host memory", session.report())
        self.assertLessEqual(session.planned_peak(), budget)
        used = peak_of(lambda: model(*arguments).backward(), lambda: model.zero_grad(set_to_none=True))
        planned = session.planned_peak() - session.resident
        print(f"{plan.offloaded} values, {plan.offloaded_bytes >> 10} KiB on the host; planned {planned >> 10} KiB, measured {used >> 10}, keep-all "
              f"{plan.keep_all_bytes >> 10}, again {plan.again}", flush=True)
        self.assertLessEqual(used, planned)
        self.assertGreater(used, 0.95 * planned)

    def test_nothing_is_read_or_freed_before_its_copy_was_waited_for(self):
        model, arguments = words()
        other = copy.deepcopy(model)
        torch._dynamo.reset()
        theirs = gradients(other, arguments, torch.compile(other))
        with late() as copies:
            ours = self.compiled(model, arguments, self.budget(model, arguments, 1.1), offload="1TiB")
            self.assertGreater(copies.stream.given, 2)
            self.assertLess(difference(ours[1], theirs[1]), 1e-6)
            self.assertEqual(swap._under_way, {})

    def test_a_refusal_says_that_the_host_may_help(self):
        model, arguments = words()
        nothing = lambda tasks, budget, **search: find_schedule(tasks, 0, **search)  # a search that never finds a plan
        with (mock.patch.object(partitioner, "find_schedule", nothing), mock.patch.object(Session, "_has_a_host", lambda _: True),
              self.assertRaisesRegex(pt.DoesNotFit, "offload=True")):
            self.compiled(model, arguments, self.budget(model, arguments, 1.05))

    def test_true_without_a_gpu_is_refused_with_a_sentence(self):
        model, _ = words()
        with self.assertRaisesRegex(ValueError, "offload: True asks for the rates of a GPU's copies"):
            pt.compile(model.cpu(), "1GiB", offload=True)
        with self.assertRaisesRegex(ValueError, "offload"):
            pt.compile(model.cpu(), "1GiB", offload="fast")


class Plans(unittest.TestCase):
    def test_copies_are_planned_where_they_cost_less_than_computing_again(self):
        model, arguments = words()
        tasks = preview.capture(model, arguments)[0].tasks[0]
        alone = least_schedule(tasks)
        budget = int(alone.smallest_bytes * 1.1)
        again, copied = find_schedule(tasks, budget, **SEARCH), find_schedule(tasks, budget, copies=FAST, **SEARCH)
        slow = find_schedule(tasks, budget, copies=swap.CopyRates(1.0, 1.0), **SEARCH)
        kinds = {what for what, _ in copied.backward}
        self.assertTrue(copied.fits and again.fits and slow.fits)
        self.assertIn(BACK, kinds)
        self.assertLess(copied.seconds, again.seconds)
        self.assertLessEqual(copied.peak, budget)
        self.assertFalse({what for what, _ in slow.backward} & {OUT, BACK})
        for value, (start, end) in copied.leaving.items():
            self.assertTrue(value <= start <= end < tasks.first_backward)

    def test_small_values_stay(self):
        model, arguments = words()
        tasks = preview.capture(model, arguments)[0].tasks[0]
        budget = int(least_schedule(tasks).smallest_bytes * 1.1)
        found = find_schedule(tasks, budget, copies=swap.CopyRates(1e12, 1e12, 0.0, smallest=20000), **SEARCH)
        self.assertGreater(len(found.leaving), 0)
        self.assertGreaterEqual(min(tasks.values[i].bytes for i in found.leaving), 20000)


class Operators(unittest.TestCase):
    def test_every_layout_and_type_comes_back_as_it_was(self):
        whole = torch.arange(240.0, device=DEVICE).view(4, 60)
        for given in (whole, whole.t(), whole[1:3, 7:29], whole[2], whole[1:2].expand(3, 60), whole > 100, whole.to(torch.bfloat16)[:, ::2],
                      whole.new_empty(0, 3), torch.tensor(3, device=DEVICE), whole.view(2, 2, 5, 12).to(memory_format=torch.channels_last)):
            host = swap.COPY_OUT(given)
            swap.COPIED_OUT(host, given)
            back = swap.COPY_IN(host, given.device)
            swap.COPIED_IN(back)
            self.assertTrue(torch.equal(back, given))
            self.assertEqual((back.stride(), back.dtype, back.device), (given.stride(), given.dtype, given.device))
            self.assertEqual(host.device.type, "cpu")
            self.assertEqual(host.is_pinned(), DEVICE == "cuda" and given.numel() > 0)


if __name__ == "__main__":
    unittest.main()
