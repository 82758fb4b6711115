"""Budgets in the training loops of others, on the CPU: Trainer, Lightning, DDP and FSDP2 on two ranks, accumulation. training_loops_test.py [-k name]"""
import copy
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), HERE]
import torch  # noqa: E402
from torch import nn  # noqa: E402

import plimsoll_torch as pt  # noqa: E402
from models import Transformer, _words  # noqa: E402

torch.set_num_threads(1)
SEARCH = {"deadline": 0.5, "threads": 1}
RANKS = """
import os, sys
sys.path[:0] = [os.path.join(sys.argv[3], "..", ".."), sys.argv[3]]
import torch, torch.distributed as dist
from torch import nn
import torch.distributed._functional_collectives as collectives
import plimsoll_torch as pt
torch.set_num_threads(1)
rank, kind = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + sys.argv[4], rank=rank, world_size=2)
SEARCH = {"deadline": 0.3, "threads": 1}

class Layer(nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.up, self.down, self.shared = nn.Linear(64, 256), nn.Linear(256, 64), shared
    def forward(self, x):
        h = torch.nn.functional.gelu(self.up(x))
        if self.shared:  # a number of all ranks in the middle of what may be recomputed
            h = h * torch.sigmoid(collectives.all_reduce(h.detach().mean(0), "avg", dist.group.WORLD))
        return x + self.down(h)

torch.manual_seed(0)
model = nn.Sequential(*[Layer(kind == "collective") for _ in range(4)])
plain = nn.Sequential(*[Layer(False) for _ in range(4)])
plain.load_state_dict(model.state_dict())
whole = torch.randn(2, 128, 64, generator=torch.Generator().manual_seed(5))
x = whole[rank]
beside = sum(p.numel() * 4 for p in model.parameters()) * 2 + x.nbytes
if kind == "ddp":
    trained = nn.parallel.DistributedDataParallel(pt.compile(model, beside + (700 << 10), search=SEARCH))
elif kind == "fsdp":
    from torch.distributed.fsdp import fully_shard
    mesh = dist.init_device_mesh("cpu", (2,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    trained = pt.compile(fully_shard(model, mesh=mesh), "64MiB", search=SEARCH)
else:
    try:  # the smallest budget, which the error tells
        pt.compile(model, beside, search=SEARCH)(x)
    except pt.DoesNotFit as refused:
        trained = pt.compile(model, refused.smallest_budget, search=SEARCH)
for _ in range(2):
    trained.zero_grad()
    trained(x).square().mean().backward()
session = model.plimsoll
if kind == "collective":
    told = [t for p in session.plans for t in p.tensors if t["name"].startswith(("all_reduce", "wait_tensor"))]
    print("collective", sum(p.again for p in session.plans), len(told), [t["fate"] for t in told if "recomputed" in t["fate"]])
else:
    plain(whole.flatten(0, 1)).square().mean().backward()
    full = lambda g: g.full_tensor() if hasattr(g, "full_tensor") else g
    worst = max((full(p.grad) - q.grad).abs().max().item() / q.grad.abs().max().item() for p, q in zip(model.parameters(), plain.parameters()))
    print(kind, "worst", worst, "graphs", len(session.plans), "again", sum(p.again for p in session.plans), "planned", session.planned_peak() <= session.budget)
    assert worst < 1e-4, worst
dist.barrier()
dist.destroy_process_group()
"""


class Loops(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def ranks(self, kind):
        with tempfile.TemporaryDirectory() as folder:
            running = [subprocess.Popen([sys.executable, "-c", RANKS, str(rank), kind, HERE, os.path.join(folder, "meet")], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}) for rank in range(2)]
            told = [process.communicate(timeout=900) for process in running]
        for process, (out, err) in zip(running, told):
            self.assertEqual(process.returncode, 0, err[-3000:])
        print(told[0][0].strip(), flush=True)
        return told[0][0]

    def test_ddp_averages_what_was_planned(self):
        self.assertRegex(self.ranks("ddp"), r"graphs 1 again [1-9]\d* planned True")

    def test_fsdp2_shards(self):
        self.assertRegex(self.ranks("fsdp"), r"graphs [1-9]\d* again \d+ planned True")

    def test_collectives_are_never_recomputed(self):
        self.assertRegex(self.ranks("collective"), r"collective [1-9]\d* [1-9]\d* \[\]")

    def test_trainer_of_transformers(self):
        from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=300, bos_token_id=1, eos_token_id=1, use_cache=False,
                                           resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
        data = [{"input_ids": row, "labels": row} for row in torch.randint(0, 300, (8, 64), generator=torch.Generator().manual_seed(1))]
        losses = []
        for budget in (None, "64MiB"):
            own = copy.deepcopy(model)
            if budget:
                own = pt.compile(own, budget, search=SEARCH)  # the one line
            with tempfile.TemporaryDirectory() as folder:
                trainer = Trainer(own, TrainingArguments(folder, max_steps=3, per_device_train_batch_size=2, gradient_accumulation_steps=2, report_to=[], use_cpu=True,
                                                         save_strategy="no", disable_tqdm=True, learning_rate=1e-3), train_dataset=data)
                losses.append(trainer.train().training_loss)
        self.assertTrue(own.plimsoll.plans)
        self.assertAlmostEqual(losses[0], losses[1], delta=1e-4 * losses[0])

    def test_lightning(self):
        import pytorch_lightning as lightning
        torch.manual_seed(0)
        start = Transformer("gpt2", vocabulary=300, longest=64, width=64, layers=2)

        class Module(lightning.LightningModule):
            def __init__(self, net, budget):
                super().__init__()
                self.net = pt.compile(net, budget, search=SEARCH) if budget else net  # the one line
                self.losses = []

            def training_step(self, batch, _):
                loss = self.net(*batch)
                self.losses.append(loss.item())
                return loss

            def configure_optimizers(self):
                return torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        batches = torch.utils.data.DataLoader([tuple(t[0] for t in _words(300, 1, 64)) for _ in range(8)], batch_size=2)
        seen = []
        for budget in (None, "64MiB"):
            module = Module(copy.deepcopy(start), budget)
            lightning.Trainer(max_steps=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                              enable_model_summary=False, accumulate_grad_batches=1, gradient_clip_val=1.0).fit(module, batches)
            seen.append(module.losses)
        self.assertTrue(module.net.plimsoll.plans)
        for mine, yours in zip(seen[1], seen[0]):
            self.assertAlmostEqual(mine, yours, delta=1e-4 * yours)

    def test_accumulated_gradients_count_in_the_budget(self):
        torch.manual_seed(0)
        model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.GELU())])
        optimizer, x = torch.optim.SGD(model.parameters(), lr=0.0), torch.randn(64, 256)
        pt.compile(model, "64MiB", optimizer=optimizer, search=SEARCH)
        model(x).square().mean().backward()
        once, first = [p.grad.clone() for p in model.parameters()], model.plimsoll.resident
        pt.compile(model, "64MiB", optimizer=optimizer, search=SEARCH)  # planned while gradients are there
        model(x).square().mean().backward()
        self.assertEqual(model.plimsoll.resident - first, sum(p.nbytes for p in model.parameters()))
        for p, was in zip(model.parameters(), once):
            self.assertLess((p.grad - 2 * was).abs().max().item(), 1e-6)


if __name__ == "__main__":
    unittest.main()
