"""What people do with a model under a budget, on the CPU: behaviour_test.py [-k name]"""
import copy
import io
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), HERE]
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.fx.passes.fake_tensor_prop import FakeTensorProp  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import plimsoll_torch as pt  # noqa: E402
from measured import difference, gradients, peak_of  # noqa: E402
from models import ResNet, Transformer, _words  # noqa: E402
from plimsoll_torch import partitioner, preview, resident, rewrite, stored  # noqa: E402
from plimsoll_torch.kernel_times import KernelTimes  # noqa: E402
from plimsoll_torch.schedule import find_schedule, least_schedule  # noqa: E402

torch.set_num_threads(1)
SEARCH = {"deadline": 0.5, "threads": 1}


def small(dropout=0.0, layers=2):
    torch.manual_seed(0)
    return Transformer("gpt2", vocabulary=300, longest=64, width=64, layers=layers, dropout=dropout).train(), _words(300, 2, 64)


def part_of(model, arguments, share):
    """Between what is resident and what keeping everything needs."""
    seen = pt.plan(model, arguments, shares=(), **SEARCH)
    return seen.resident_bytes + int((seen.keep_all_bytes - seen.resident_bytes) * share)


class Broken(nn.Module):
    """Two graphs: a break in the middle."""

    def __init__(self):
        super().__init__()
        layer = lambda: nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.GELU())
        self.first, self.second = nn.Sequential(*[layer() for _ in range(3)]), nn.Sequential(*[layer() for _ in range(3)])

    def forward(self, x):
        h = self.first(x)
        torch._dynamo.graph_break()
        return self.second(h).square().mean()


class Joined(nn.Module):
    """A residual with a norm behind the sum's ReLU, as in ResNet."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(32, 32, 1, bias=False), nn.BatchNorm2d(32)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)) + x)


class Mean(nn.Module):
    def forward(self, x):
        return x.square().mean()


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = x + checkpoint(layer, x, use_reentrant=False)
        return x.square().mean()


class Behaviour(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def same(self, model, arguments, budget, tolerance=1e-6, calls=1, **options):
        """Compiled under a budget, gradients are those of torch.compile."""
        other = copy.deepcopy(model)
        theirs = gradients(other, arguments, torch.compile(other, dynamic=options.get("dynamic")))
        torch._dynamo.reset()
        pt.compile(model, budget, search=SEARCH, **options)
        for _ in range(calls):
            ours = gradients(model, arguments)
        self.assertLess(difference(ours[1], theirs[1]), tolerance)
        self.assertLessEqual(model.plimsoll.planned_peak(), budget)
        return model.plimsoll

    def test_refused_before_anything_is_launched_and_usable_afterwards(self):
        torch.manual_seed(0)
        model, arguments = ResNet().train(), (torch.randn(2, 3, 32, 32), torch.tensor([1, 2]))
        before = {n: b.clone() for n, b in model.named_buffers()}
        with self.assertRaisesRegex(pt.DoesNotFit, "smallest budget that works is [0-9]+ bytes") as caught:
            pt.compile(model, "700KiB", search=SEARCH)(*arguments)
        self.assertGreater(caught.exception.smallest_budget, 700 << 10)
        self.assertTrue(caught.exception.limiting and caught.exception.limiting[0]["bytes"] > 0)
        for name, buffer in model.named_buffers():
            self.assertTrue(torch.equal(buffer, before[name]), f"{name} was updated by a step that was refused")
        pt.compile(model, "1GiB", search=SEARCH)(*arguments).backward()

    def test_a_refusal_names_the_workspace_of_a_library(self):
        torch.manual_seed(0)
        model, arguments = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), Mean()), (torch.randn(2, 3, 16, 16),)
        with mock.patch.object(KernelTimes, "_measured", lambda *_: (0.0, 4 << 20)), torch._functorch.config.patch(enable_autograd_cache=False):
            pt.compile(model, 1 << 20, search=SEARCH)
            with self.assertRaisesRegex(pt.DoesNotFit, r"limiting: workspace of \w*convolution\w*( of \S+)?, 4,096.0 KiB\n  limiting: relu of 1, "):
                gradients(model, arguments)

    def test_autocast(self):
        model, arguments = small()
        other = copy.deepcopy(model)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            theirs = gradients(other, arguments, torch.compile(other))
            budget = part_of(model, arguments, 0.75)
            torch._dynamo.reset()
            ours = gradients(pt.compile(model, budget, search=SEARCH), arguments)
        self.assertLess(difference(ours[1], theirs[1]), 2e-2)
        self.assertGreater(model.plimsoll.plans[0].again, 0)

    def test_dropout_is_drawn_once(self):
        model, arguments = small(dropout=0.3)
        session = self.same(model, arguments, part_of(model, arguments, 0.75))
        self.assertGreater(session.plans[0].again, 0)

    def test_other_sizes_are_planned_again_when_larger(self):
        budget = part_of(small()[0], _words(300, 4, 64), 0.6)
        for turn in range(2):  # the second finds all in PyTorch's caches
            torch._dynamo.reset()
            model, _ = small()
            pt.compile(model, budget, search=SEARCH, dynamic=True)
            plain = copy.deepcopy(model)
            plain._compiled_call_impl = None
            peaks = []
            for batch in (2, 3, 4):
                arguments = _words(300, batch, 64)
                self.assertLess(difference(gradients(model, arguments)[1], gradients(plain, arguments)[1]), 1e-4)
                peaks.append(model.plimsoll.planned_peak())
            self.assertTrue(model.plimsoll.dynamic, turn)
            self.assertLess(peaks[0], peaks[2])
            self.assertLessEqual(peaks[2], budget)

    def test_a_step_that_compiles_nothing_counts_nothing_and_holds_nothing(self):
        model, arguments = small()
        pt.compile(model, 1 << 30, search=SEARCH)
        gradients(model, arguments)
        never = mock.Mock(side_effect=AssertionError("asked in a step that compiles nothing"))
        with mock.patch.object(resident, "tensors_in", never), mock.patch.object(resident.Meter, "allocated", never), \
                mock.patch.object(model.plimsoll, "_compile_graph", never):
            gradients(model, arguments)
        self.assertIsNone(model.plimsoll.arguments)

    def test_any_number_of_budgets_is_compiled_for_one_function(self):
        model, arguments = small()
        torch._dynamo.reset()
        with torch._dynamo.config.patch(recompile_limit=1):
            largest = pt.max_batch(model, arguments, part_of(model, arguments, 2.2), **SEARCH)
            self.assertGreater(largest, 2)
            for budget in (1 << 30, 1 << 31):
                pt.compile(model, budget, search=SEARCH)
                gradients(model, arguments)
                self.assertEqual(len(model.plimsoll.plans), 1)

    def test_a_model_that_pytorch_does_not_compile_is_told(self):
        model, arguments = small()
        pt.compile(model, 1 << 30, search=SEARCH)
        with torch.compiler.set_stance("force_eager"), self.assertWarnsRegex(pt.BudgetExceeded, "compiled nothing"):
            gradients(model, arguments)

    def test_graph_breaks_share_one_budget(self):
        torch.manual_seed(0)
        model, arguments = Broken().train(), (torch.randn(256, 64),)
        session = self.same(model, arguments, 1 << 30)
        self.assertEqual(len(session.plans), 2)
        full, resident_bytes = session.planned_peak(), session.resident
        session = self.same(model, arguments, resident_bytes + int((full - resident_bytes) * 0.75))
        self.assertEqual(len(session.plans), 2)
        self.assertGreater(sum(p.again for p in session.plans), 0)

    def test_checkpoints_of_the_user(self):
        torch.manual_seed(0)
        model, arguments = Checkpointed().train(), (torch.randn(128, 64),)
        self.same(model, arguments, part_of(model, arguments, 0.8))

    def test_gradients_accumulate(self):
        model, arguments = small()
        pt.compile(model, "1GiB", search=SEARCH)
        _, once = gradients(model, arguments)
        model(*arguments).backward()
        twice = {n: p.grad for n, p in model.named_parameters()}
        self.assertLess(difference(twice, {n: 2 * g for n, g in once.items()}), 1e-5)

    def test_a_second_backward_pass_is_refused_by_pytorch_with_a_sentence(self):
        model, arguments = small()
        loss = pt.compile(model, "1GiB", search=SEARCH)(*arguments)
        loss.backward()
        with self.assertRaisesRegex(RuntimeError, "backward through the graph a second time|saved tensors|donated"):
            loss.backward()

    def test_evaluation_needs_no_plan(self):
        model, arguments = small()
        pt.compile(model, "1GiB", search=SEARCH)
        with torch.no_grad():
            self.assertAlmostEqual(model(*arguments).item(), model._call_impl(*arguments).item(), places=5)
        self.assertEqual(model.plimsoll.plans, [])

    def test_the_model_stays_itself(self):
        model, arguments = small()
        names = list(model.state_dict())
        self.assertIs(pt.compile(model, "1GiB", search=SEARCH), model)
        self.assertEqual(list(model.state_dict()), names)
        self.assertIsNone(copy.deepcopy(model).plimsoll)
        pickle.loads(pickle.dumps(model))(*arguments)

    def test_functions_too(self):
        model, arguments = small()

        def step(x, y):
            return model(x, y) * 2
        budgeted = pt.compile(step, "1GiB", search=SEARCH)
        budgeted(*arguments).backward()
        self.assertEqual(len(budgeted.plimsoll.plans), 1)

    def test_state_of_the_optimizer_counts_before_it_exists(self):
        model, arguments = small()
        parameters = sum(p.numel() * 4 for p in model.parameters())
        optimizer = torch.optim.AdamW(model.parameters())
        pt.compile(model, "1GiB", optimizer=optimizer, search=SEARCH)
        model(*arguments).backward()
        self.assertEqual(model.plimsoll.state_to_come, 2 * parameters)
        optimizer.step()
        self.assertEqual(resident.optimizer_bytes(optimizer), 0)
        self.assertAlmostEqual(resident.optimizer_bytes(optimizer, to_come=False), 2 * parameters, delta=1024)

    def test_a_compilation_from_the_cache_has_its_plan(self):
        model, arguments = small()
        budget = part_of(model, arguments, 0.6)
        with tempfile.TemporaryDirectory() as folder, torch._inductor.utils.fresh_inductor_cache():
            os.environ["PLIMSOLL_CACHE"], before = folder, os.environ.get("PLIMSOLL_CACHE")
            try:
                plans = []
                for _ in range(2):
                    torch._dynamo.reset()
                    pt.compile(model, budget, search=SEARCH)
                    ours = gradients(model, arguments)[1]
                    plans.append([(p.peak, p.again, p.by) for p in model.plimsoll.plans])
            finally:
                os.environ.pop("PLIMSOLL_CACHE")
                if before is not None:
                    os.environ["PLIMSOLL_CACHE"] = before
        self.assertEqual(plans[0], plans[1])
        other = copy.deepcopy(model)
        other._compiled_call_impl = None
        self.assertLess(difference(ours, gradients(other, arguments)[1]), 1e-4)

    def test_plans_of_models_that_differ_in_code_or_numbers_are_kept_apart(self):
        from plimsoll_torch.session import fingerprint
        seen = [fingerprint(m) for m in (small()[0], small(dropout=0.1)[0], Transformer("bert", 300, 64, 64, 2), small()[0].eval(), small)]
        self.assertEqual(len(set(seen)), len(seen))
        self.assertEqual(fingerprint(small()[0]), seen[0])

    def test_modes_with_cuda_graphs_are_refused(self):
        model, _ = small()
        for options in ({"mode": "reduce-overhead"}, {"mode": "max-autotune"}, {"options": {"triton.cudagraphs": True}}):
            with self.assertRaisesRegex(ValueError, "CUDA graphs"):
                pt.compile(model, "1GiB", **options)
        plain = nn.Sequential(nn.Linear(8, 8), nn.GELU())
        pt.compile(plain, "1GiB", mode="max-autotune-no-cudagraphs", search=SEARCH)(torch.ones(4, 8)).sum().backward()
        self.assertEqual(len(plain.plimsoll.plans), 1)
        with self.assertRaisesRegex(TypeError, "unknown option 'backend'"):
            pt.compile(model, "1GiB", backend="eager")

    def test_plan_and_largest_batch_run_nothing(self):
        model, arguments = small()
        seen = pt.plan(model, arguments, optimizer=torch.optim.AdamW(model.parameters()), **SEARCH)
        self.assertLess(seen.smallest_budget_bytes, seen.pytorch_bytes)
        self.assertGreaterEqual(len(seen.curve), 3)
        slower = [point["slower"] for point in seen.curve]
        self.assertEqual(slower, sorted(slower), "less memory never costs less time")
        self.assertIn("smallest budget", str(seen))
        budget = part_of(model, arguments, 1.0)
        most = pt.max_batch(model, arguments, budget, deadline=0.2, threads=1)
        self.assertGreaterEqual(most, 2)
        self.assertLess(most, 16)
        self.assertTrue(all(p.grad is None for p in model.parameters()))

    def test_plans_models_with_buffers(self):
        torch.manual_seed(0)
        model = ResNet().train()
        seen = pt.plan(model, (torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))), shares=(), **SEARCH)
        held = sum(t.nbytes for t in [*model.parameters(), *model.buffers()])
        self.assertGreaterEqual(seen.resident_bytes, held)
        self.assertIs(type(model.stem[1].running_mean), torch.Tensor, "the model itself is left as it is")

    def test_a_plan_says_where_a_model_asks_for_a_number(self):
        class Skips(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 8)

            def forward(self, x):
                if torch.rand([]) < 0.5:  # as layerdrop does
                    x = self.layer(x)
                return self.layer(x).square().mean()
        with self.assertRaisesRegex(ValueError, r"behaviour_test.py:\d+ \(`if torch.rand\(\[\]\) < 0.5:.*asks for a number.*pt.compile works"):
            pt.plan(Skips(), torch.randn(4, 8), **SEARCH)

    def test_sums_of_gradients_take_the_place_of_their_operands(self):
        torch.manual_seed(0)
        residuals = nn.Sequential(*[Joined() for _ in range(6)], nn.Flatten(), nn.Linear(32 * 64, 1), Mean()).train()
        plain = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1), Mean()).train()
        for model, x, sums in ((residuals, torch.randn(16, 32, 8, 8), 4), (plain, torch.randn(16, 64), 0)):
            (tasks,) = preview.capture(model, (x,))[0].tasks
            stored.mark(tasks)
            marked = [v for v in tasks.values if v.node.meta.get(stored.MARK)]
            masked = [v for v in marked if v.node.target is torch.ops.aten.where.self]  # a ReLU's mask on the sum of two gradients
            self.assertEqual(len(masked), sums, [str(v.node) for v in marked])
            self.assertTrue(all(not v.forward and v.bytes == x.nbytes for v in masked))

    def test_gradients_of_residuals_are_those_of_pytorch(self):
        torch.manual_seed(0)
        model = nn.Sequential(*[Joined() for _ in range(6)], nn.Flatten(), nn.Linear(32 * 64, 1), Mean()).train()
        arguments = (torch.randn(16, 32, 8, 8),)
        theirs = gradients(copy.deepcopy(model), arguments)[1]
        torch._dynamo.reset()
        pt.compile(model, part_of(model, arguments, 0.6), search=SEARCH)
        self.assertLess(difference(gradients(model, arguments)[1], theirs), 1e-5)
        self.assertEqual(model.plimsoll.plans[-1].by, "schedule")

    def test_a_loss_in_parts_is_scheduled_with_its_gradients(self):
        class Parts(Transformer):
            def forward(self, x, y):
                h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
                for block in self.blocks:
                    h = block(h)
                return pt.linear_cross_entropy(self.norm(h), self.head.weight, y, chunks=4)
        torch.manual_seed(0)
        model, arguments = Parts("gpt2", vocabulary=2000, longest=64, width=64, layers=2).train(), _words(2000, 4, 64)
        theirs = gradients(copy.deepcopy(model), arguments)[1]
        torch._dynamo.reset()
        pt.compile(model, part_of(model, arguments, 0.7), search=SEARCH)
        self.assertLess(difference(gradients(model, arguments)[1], theirs), 1e-5)
        plan = model.plimsoll.plans[-1]
        self.assertEqual((plan.by, plan.why), ("schedule", ""))
        self.assertLess(plan.peak, 3 * 4 * 2000 * 256, "three times the logits of all parts were never there")

    def test_report(self):
        model, arguments = small()
        pt.compile(model, part_of(model, arguments, 0.6), search=SEARCH)
        self.assertIn("nothing is planned yet", model.plimsoll.report())
        model(*arguments).backward()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            self.assertIn("recomputed", model.plimsoll.report(path))
            with open(path, encoding="utf-8") as file:
                page = file.read()
        for expected in ("<svg", "blocks.0", "By module", "recomputed 1 ×"):
            self.assertIn(expected, page)

    def test_an_arena_of_fixed_offsets_holds_the_step(self):
        model, arguments = small()
        pt.compile(model, part_of(model, arguments, 0.6), search=SEARCH)
        model(*arguments).backward()
        (found,), (planned,) = model.plimsoll.arena(), model.plimsoll.plans
        print(f"arena: {found['arena_bytes'] >> 10} KiB for {found['live_bytes'] >> 10} KiB that are live, {len(planned.buffers)} buffers, optimal {found['optimal']}", flush=True)
        self.assertGreaterEqual(found["arena_bytes"], found["live_bytes"])
        self.assertLess(found["arena_bytes"], 1.02 * found["live_bytes"])
        placed = [(*buffer, offset) for buffer, offset in zip(planned.buffers, found["offsets"])]
        for i, (begin, end, size, offset) in enumerate(placed):
            self.assertLessEqual(offset + size, found["arena_bytes"])
            for other_begin, other_end, other_size, other in placed[:i]:
                self.assertFalse(begin < other_end and other_begin < end and offset < other + other_size and other < offset + size, "two buffers in one place")

    def test_watch_prints_a_line_a_step(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        optimizer, told = torch.optim.SGD(model.parameters(), lr=0.1), io.StringIO()
        watched = pt.watch(model, file=told)
        for _ in range(2):
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
        watched.stop()
        optimizer.step()
        self.assertEqual([line.split(":")[0] for line in told.getvalue().splitlines()], ["step 0", "step 1"])

    def test_checkpoints_for_eager_models(self):
        model, arguments = small(dropout=0.2, layers=6)
        theirs = gradients(model, arguments)
        step, clear = lambda: model(*arguments).backward(), lambda: model.zero_grad(set_to_none=True)
        plain = pt.checkpoint_plan(model, arguments, "1GiB")
        self.assertEqual(plain.chosen, [])
        before = peak_of(step, clear)
        held = resident.storages([*model.parameters(), *arguments])
        chosen = pt.checkpoint_plan(model, arguments, int(0.8 * plain.plain_bytes))
        self.assertGreaterEqual(len(chosen.chosen), 1)
        chosen.apply()
        self.assertLess(difference(gradients(model, arguments)[1], theirs[1]), 1e-6)
        after = peak_of(step, clear)
        print(f"checkpoint_plan: {chosen}; measured {after >> 10} KiB beside what is resident, without {before >> 10}", flush=True)
        self.assertLess(after, before)
        self.assertLessEqual(after, chosen.peak_bytes - held)
        chosen.undo()
        self.assertAlmostEqual(peak_of(step, clear), before, delta=0.02 * before)
        with self.assertRaises(pt.DoesNotFit):
            pt.checkpoint_plan(model, arguments, "100KiB")

    def test_a_model_of_transformers(self):
        from transformers import GPT2Config, GPT2LMHeadModel
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=300, bos_token_id=1, eos_token_id=1, use_cache=False)).train()
        words = torch.randint(0, 300, (2, 64))
        run = lambda net: net(input_ids=words, labels=words).loss
        other = copy.deepcopy(model)
        theirs = gradients(other, (), lambda: run(torch.compile(other)))
        torch._dynamo.reset()
        pt.compile(model, "1GiB", search=SEARCH)
        ours = gradients(model, (), lambda: run(model))
        self.assertLess(difference(ours[1], theirs[1]), 1e-5)
        session = model.plimsoll
        budget = session.resident + int((session.planned_peak() - session.resident) * 0.7)
        torch._dynamo.reset()
        pt.compile(model, budget, search=SEARCH)
        ours = gradients(model, (), lambda: run(model))
        self.assertLess(difference(ours[1], theirs[1]), 1e-5)
        self.assertLessEqual(model.plimsoll.planned_peak(), budget)

    def test_weights_come_back_by_name(self):
        import numpy
        model, _ = small()
        other = copy.deepcopy(model)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "w.npz")
            arrays = {n: p.detach().numpy() + 1 for n, p in model.named_parameters()}
            numpy.savez(path, **arrays)
            self.assertEqual(set(pt.load_weights(other, path)), set(arrays))
            for (name, ours), theirs in zip(other.named_parameters(), model.parameters()):
                self.assertTrue(torch.equal(ours, theirs + 1), name)
            numpy.savez(path, **{**arrays, "norm.bias": numpy.zeros(3, "f4")})
            with self.assertRaisesRegex(ValueError, "'norm.bias' is \\(3,\\)"):
                pt.load_weights(other, path)
            del arrays["norm.bias"]
            numpy.savez(path, **arrays)
            with self.assertRaisesRegex(ValueError, "has no \\['norm.bias'\\]"):
                pt.load_weights(other, path)
            self.assertNotIn("norm.bias", pt.load_weights(other, path, strict=False))

    def test_the_loss_in_parts_is_the_loss(self):
        torch.manual_seed(0)
        hidden, weight = torch.randn(3, 7, 16, dtype=torch.float64, requires_grad=True), torch.randn(50, 16, dtype=torch.float64, requires_grad=True)
        target = torch.randint(0, 50, (3, 7))
        target[1, 2:5] = -100
        whole = nn.functional.cross_entropy(nn.functional.linear(hidden, weight).flatten(0, 1), target.flatten()) * 3
        theirs = torch.autograd.grad(whole, (hidden, weight))
        for chunks in (1, 2, 5, 21, 40):
            parts = pt.linear_cross_entropy(hidden, weight, target, chunks=chunks) * 3
            self.assertAlmostEqual(parts.item(), whole.item(), delta=1e-5)
            for ours, other in zip(torch.autograd.grad(parts, (hidden, weight)), theirs):
                self.assertLess((ours - other).abs().max().item(), 1e-6)
        self.assertTrue(torch.isfinite(pt.linear_cross_entropy(hidden, weight, torch.full((3, 7), -100))))
        for wrong in ((hidden, weight, target[:2]), (hidden, weight.t(), target)):
            with self.assertRaisesRegex(ValueError, "linear_cross_entropy: "):
                pt.linear_cross_entropy(*wrong)

    def test_plans_for_less_where_the_forward_pass_needs_more_than_the_schedule(self):
        model, arguments = small()
        asked = []

        def forward_needs_more(tasks, budget, **search):
            found = find_schedule(tasks, budget, **search)
            asked.append(budget)
            found.peak += budget // 20 if len(asked) == 1 else 0
            return found
        budget = part_of(model, arguments, 0.7)
        with mock.patch.object(partitioner, "find_schedule", forward_needs_more), torch._functorch.config.patch(enable_autograd_cache=False):
            pt.compile(model, budget, search=SEARCH)
            gradients(model, arguments)
        self.assertGreater(len(asked), 1)
        self.assertLess(asked[1], asked[0])
        self.assertEqual(model.plimsoll.plans[-1].by, "schedule")
        self.assertLessEqual(model.plimsoll.plans[-1].modelled_bytes, asked[0])

    def test_the_least_plan_is_the_same_each_time(self):
        model, arguments = small()
        step, _ = preview.capture(model, arguments)
        first, second = least_schedule(step.tasks[0]), least_schedule(step.tasks[0])
        self.assertTrue(first.fits)
        self.assertGreater(len(first.again), 5)
        self.assertEqual((first.backward, first.saved, first.peak), (second.backward, second.saved, second.peak))

    def test_gradients_of_a_loss_in_parts_do_not_wait_for_the_number_of_labels(self):
        from torch.fx.experimental.proxy_tensor import make_fx
        given = torch.randn(24, 8, requires_grad=True), torch.randn(31, 8, requires_grad=True), torch.randint(0, 31, (24,))
        graph = make_fx(lambda h, w, y: torch.autograd.grad(pt.linear_cross_entropy(h, w, y, chunks=3), (h, w)))(*given).graph
        needs = {}
        for n in graph.nodes:
            needs[n] = {n}.union(*(needs[i] for i in n.all_input_nodes))
        of_labels = {n for n in graph.nodes if n.target is torch.ops.aten.sum.default and n.meta["val"].dtype is torch.int64}
        products = [n for n in graph.nodes if n.target in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)]
        self.assertEqual((len(of_labels), len(products)), (1, 9))
        self.assertFalse([str(n) for n in products if needs[n] & of_labels])

    def test_padding_is_shared_between_a_matrix_and_its_transpose(self):
        from torch.fx.experimental.proxy_tensor import make_fx
        aten = torch.ops.aten

        def padded_twice(x, a, b):
            wide = aten.constant_pad_nd.default(x, [0, 3])
            tall = aten.constant_pad_nd.default(aten.permute.default(x, [1, 0]), [0, 0, 0, 3])
            other = aten.constant_pad_nd.default(x, [0, 4])
            return aten.mm.default(wide, a), aten.mm.default(tall, b), other
        given = torch.randn(4, 5), torch.randn(8, 2), torch.randn(4, 2)
        graph = make_fx(padded_twice)(*given)
        info = type("Info", (), {"required_bw_nodes": set(), "tangents_closure": set(), "is_required_fw": lambda self, n: True})()
        FakeTensorProp(graph).propagate(*given)
        before = graph(*given)
        rewrite.share_padding(graph.graph, info)
        graph.graph.lint()
        graph.recompile()
        self.assertEqual(sum(n.target is aten.constant_pad_nd.default for n in graph.graph.nodes), 2)
        for ours, theirs in zip(graph(*given), before):
            self.assertTrue(torch.allclose(ours, theirs, atol=1e-6))

    def test_what_is_padded_in_the_backward_pass_keeps_the_layout_of_its_base(self):
        from torch.fx.experimental.proxy_tensor import make_fx
        aten = torch.ops.aten

        def turned_first(x, a, b):
            tall = aten.constant_pad_nd.default(aten.permute.default(x, [1, 0]), [0, 0, 0, 3])
            wide = aten.constant_pad_nd.default(x, [0, 3])
            return aten.mm.default(tall, a), aten.mm.default(wide, b)
        given = torch.randn(4, 5), torch.randn(4, 2), torch.randn(8, 2)
        graph = make_fx(turned_first)(*given)
        FakeTensorProp(graph).propagate(*given)
        nodes = {n for n in graph.graph.nodes if n.op == "call_function"}
        info = type("Info", (), {"required_bw_nodes": set(nodes), "tangents_closure": set(nodes), "is_required_fw": lambda self, n: False})()
        before = graph(*given)
        rewrite.share_padding(graph.graph, info)
        graph.graph.lint()
        graph.recompile()
        (pad,) = [n for n in graph.graph.nodes if n.target is aten.constant_pad_nd.default]
        self.assertEqual((pad.args[0].op, tuple(pad.meta["val"].shape)), ("placeholder", (4, 8)))
        self.assertIn(pad, info.tangents_closure)
        for ours, theirs in zip(graph(*given), before):
            self.assertTrue(torch.allclose(ours, theirs, atol=1e-6))


SCRIPT = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
if "plain" not in sys.argv:
    model = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.ones(32, 64)).square().mean()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
print("done", sys.argv[1:], type(getattr(model, "plimsoll", None)).__name__)
"""


class Script(unittest.TestCase):
    def run_script(self, *arguments):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(SCRIPT)
            script.flush()
            place = os.pathsep.join([os.path.join(HERE, "..", ".."), os.environ.get("PYTHONPATH", "")])
            arguments = [script.name if a == "SCRIPT" else a for a in arguments]
            return subprocess.run([sys.executable, "-m", "plimsoll_torch", *arguments], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": place})

    def test_a_script_is_run_under_a_budget(self):
        done = self.run_script("--budget", "64MiB", "SCRIPT", "one", "--budget")
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn("done ['one', '--budget'] Session", done.stdout)

    def test_a_script_that_does_not_fit_ends_with_the_reason(self):
        done = self.run_script("--budget", "200KiB", "SCRIPT")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("smallest budget that works", done.stderr)

    def test_a_script_that_compiles_nothing_is_told_so(self):
        done = self.run_script("--budget", "64MiB", "SCRIPT", "plain")
        self.assertEqual(done.returncode, 1)
        self.assertIn("never called torch.compile", done.stderr)

    def test_a_size_that_is_none_is_refused(self):
        done = self.run_script("--budget", "lots", "SCRIPT")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'lots' is not a size", done.stderr)


if __name__ == "__main__":
    unittest.main()
