"""Host memory for saved activations and optimizer state: offload_test.py [-k name]

On the CPU copies are real and only the overlap is not; PLIMSOLL_TEST_DEVICE=cuda runs the same on a GPU.
"""
import contextlib
import copy
import gc
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), HERE]
import torch  # noqa: E402
from torch import nn  # noqa: E402

import plimsoll_torch as pt  # noqa: E402
from measured import difference, gradients  # noqa: E402
from models import ResNet, Transformer, _words  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402

from plimsoll_torch import host_copies, resident  # noqa: E402
from plimsoll_torch.host_copies import HostCopies, dense_strides  # noqa: E402

torch.set_num_threads(1)
DEVICE = os.environ.get("PLIMSOLL_TEST_DEVICE", "cpu")


def small():
    torch.manual_seed(0)
    model = Transformer("gpt2", vocabulary=300, longest=64, width=64, layers=2, dropout=0.1).train().to(DEVICE)
    return model, tuple(t.to(DEVICE) for t in _words(300, 2, 64))


class Late:
    """A stream that copies when it is waited for and no earlier, from and to memory that nobody but its user keeps: what is read
    before it is waited for is not there yet, and what is let go before it is waited for is gone."""

    def __init__(self):
        self.queue, self.given = [], 0

    def copy(self, target, source):
        layouts = [(t.dtype, t.storage_offset(), t.shape, t.stride()) for t in (target, source)]
        references = [StorageWeakRef(t.untyped_storage()) for t in (target, source)]
        if target.dtype.is_floating_point:
            target.fill_(float("nan"))
        else:
            target.fill_(255)  # as a float: not a number
        self.queue.append((references, layouts))
        self.given += 1
        return self.given

    def wait(self, event):
        while self.given - len(self.queue) < event:
            references, layouts = self.queue.pop(0)
            storages = [torch.UntypedStorage._new_with_weak_ptr(r.cdata) for r in references]
            if None in storages:
                raise AssertionError("memory of a copy that nobody has waited for was freed")
            target, source = (torch.empty(0, dtype=dtype).set_(s, *layout) for s, (dtype, *layout) in zip(storages, layouts))
            target.copy_(source)

    def done(self, event):
        return self.given - len(self.queue) >= event


@contextlib.contextmanager
def late():
    """Copies of the CPU by such a stream."""
    before, device = dict(host_copies._all), torch.device("cpu")
    host_copies._all[device] = HostCopies(device, Late())
    try:
        yield host_copies._all[device]
    finally:
        host_copies._all.clear()
        host_copies._all.update(before)


class Activations(unittest.TestCase):
    def offloaded(self, model, arguments, **options):
        hooks = pt.offload_activations(smallest="1KiB", devices=(DEVICE,), **options)

        def call(*given):
            with hooks:
                return model(*given)
        return gradients(model, arguments, call), hooks

    def compare(self, around=contextlib.nullcontext):
        for model, arguments in (small(), (ResNet().train().to(DEVICE), (torch.randn(2, 3, 32, 32, device=DEVICE), torch.tensor([1, 2], device=DEVICE)))):
            states = copy.deepcopy(model.state_dict())
            theirs = gradients(model, arguments)
            for options in ({}, {"ahead": 0}, {"ahead": 0, "reuse": False}, {"ahead": "20KiB", "leaving": 0}):
                with around():
                    for _ in range(2):  # the second time in the buffers of the first
                        model.load_state_dict(states)
                        ours, hooks = self.offloaded(model, arguments, **options)
                        # Some kernels of a GPU add in another order each time.
                        self.assertLessEqual(difference(ours[1], theirs[1]), 0.0 if DEVICE == "cpu" else 1e-4)
                        self.assertGreater(hooks.count, 5)

    def test_gradients_are_the_same_bits(self):
        self.compare()

    @unittest.skipIf(DEVICE != "cpu", "streams of a GPU are real")
    def test_nothing_is_read_or_freed_before_its_copy_was_waited_for(self):
        self.compare(late)

    @unittest.skipIf(DEVICE != "cpu", "streams of a GPU are real")
    def test_the_late_stream_sees_what_is_wrong(self):
        with late() as copies:
            made = copies.back(copies.out(torch.ones(1000)))
            self.assertTrue(made.tensor.isnan().all())
            self.assertTrue((made.ready() == 1).all())
            copies.out(torch.ones(1000))
            copies.leaving.clear()  # as if nobody kept it
            with self.assertRaisesRegex(AssertionError, "freed"):
                copies.stream.wait(copies.stream.given)

    def test_layouts_come_back_as_they_were(self):
        """Kernels are chosen by them, and cuDNN's attention keeps plans by some of them only."""
        seen = []

        class Look(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *tensors):
                ctx.save_for_backward(*tensors)
                seen.append([(t.shape, t.stride(), t.storage_offset()) for t in tensors])
                return sum(t.sum() for t in tensors)

            @staticmethod
            def backward(ctx, gradient):
                tensors = ctx.saved_tensors
                seen.append([(t.shape, t.stride(), t.storage_offset()) for t in tensors])
                seen.append([t.untyped_storage().data_ptr() == tensors[0].untyped_storage().data_ptr() for t in tensors])
                return tuple(gradient.expand_as(t) for t in tensors)
        base = torch.randn(2, 16, 3, 4, 8, device=DEVICE, requires_grad=True) * 1.0
        hooks = pt.offload_activations(smallest=1, devices=(DEVICE,))
        with hooks:
            queries, keys, values = (base[:, :, i].transpose(1, 2) for i in range(3))
            loss = Look.apply(queries, keys, values, base[:1, :1].expand(2, 16, 3, 4, 8))
        self.assertEqual((hooks.count, hooks.bytes), (1, base.nbytes))
        loss.backward()
        self.assertEqual(seen[1], seen[0])
        self.assertEqual(seen[2], [True] * 4, "one storage came back for all of them")

    def test_a_tensor_saved_twice_is_copied_once_and_parameters_never(self):
        weight = nn.Parameter(torch.randn(64, 64, device=DEVICE))
        x = torch.randn(64, 64, requires_grad=True, device=DEVICE)
        hooks = pt.offload_activations(smallest=1, devices=(DEVICE,))
        with hooks:
            y = x * 1.0
            loss = (y.sin() + y.cos() + y @ weight).sum()
        self.assertEqual((hooks.count, hooks.bytes), (1, y.nbytes))
        loss.backward()
        self.assertTrue(torch.allclose(x.grad, y.detach().cos() - y.detach().sin() + (torch.ones(64, 64, device=DEVICE) @ weight.t()), atol=1e-4))

    def test_a_second_backward_pass_and_views(self):
        x = torch.randn(8, 16, requires_grad=True, device=DEVICE)
        with pt.offload_activations(smallest=1, devices=(DEVICE,)):
            loss = (x.t().exp() * x[:, :1].expand(8, 16).t()).sum()
        loss.backward(retain_graph=True)
        once = x.grad.clone()
        loss.backward()
        self.assertTrue(torch.equal(x.grad, 2 * once))

    def test_two_passes_before_either_goes_back(self):
        x = torch.randn(8, 16, requires_grad=True, device=DEVICE)
        hooks, losses = pt.offload_activations(smallest=1, devices=(DEVICE,)), []
        for scale in (1.0, 2.0):
            with hooks:
                losses.append((x * scale).sin().sum())
        for loss in losses:
            loss.backward()
        self.assertTrue(torch.allclose(x.grad, x.detach().cos() + 2 * (2 * x.detach()).cos(), atol=1e-6))

    @unittest.skipIf(DEVICE != "cpu", "on a GPU the copy may be done first")
    def test_what_is_written_over_before_it_was_copied_is_refused(self):
        x = torch.randn(8, 16, requires_grad=True)
        with late(), pt.offload_activations(smallest=1, devices=(DEVICE,)):
            y = x * 1.0
            loss = y.sin().sum()
            y.zero_()
            with self.assertRaisesRegex(RuntimeError, "written in place"):
                loss.backward()

    def test_results_that_operators_save_are_freed(self):
        x = torch.randn(64, 64, requires_grad=True, device=DEVICE)
        for smallest in (1, "1GiB"):  # kept on the host; kept where they are
            with pt.offload_activations(smallest=smallest, devices=(DEVICE,)):
                y = x.exp()
            reference = StorageWeakRef(y.untyped_storage())
            HostCopies.of(x.device).settle()
            gc.disable()
            try:
                del y
                self.assertTrue(reference.expired())
            finally:
                gc.enable()

    def test_buffers_are_used_again(self):
        model, arguments = small()
        self.offloaded(model, arguments)
        copies = HostCopies.of(arguments[0].device)
        before = {size: len(waiting) for size, waiting in copies.waiting.items()}
        self.offloaded(model, arguments)
        self.assertEqual({size: len(waiting) for size, waiting in copies.waiting.items()}, before)

    def test_changing_shapes_keep_no_more_buffers_than_were_once_in_use(self):
        copies = HostCopies(torch.device(DEVICE))
        most = 0
        for length in [3000 + 977 * step % 2000 for step in range(50)]:
            held = [copies.out(torch.zeros(length, device=DEVICE), varies=True) for _ in range(3)]
            copies.settle()
            self.assertTrue(all(torch.equal(one.tensor().cpu(), torch.zeros(length)) for one in held))
            most = max(most, sum(one.buffer.nbytes for one in held))
            del held
            gc.collect()
            self.assertLessEqual(copies.used_bytes + copies.waiting_bytes, most)
        self.assertEqual(copies.waiting_bytes, sum(size * len(waiting) for size, waiting in copies.waiting.items()))
        self.assertEqual(copies.used_bytes, 0)

    def test_what_stays_and_is_written_over_is_refused(self):
        x = torch.randn(8, 16, requires_grad=True, device=DEVICE)
        with pt.offload_activations(smallest="1GiB", devices=(DEVICE,)):
            y = x.sigmoid()
            loss = (y * 1.0).sum()
            y.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "written in place"):
            loss.backward()

    def test_a_batch_of_a_data_set_on_the_device_stays_there(self):
        data = torch.randn(1000, 64, device=DEVICE)
        w = torch.randn(64, 64, requires_grad=True, device=DEVICE)
        hooks = pt.offload_activations(smallest=1, devices=(DEVICE,))
        with hooks:
            loss = (data[32:64] @ w).sum()
        self.assertEqual(hooks.count, 0)
        loss.backward()
        self.assertTrue(torch.allclose(w.grad, data[32:64].sum(0)[:, None].expand(64, 64), atol=1e-4))


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
