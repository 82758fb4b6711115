#!/usr/bin/env python3
"""Running models and plans as a user of the program does: weights, devices, data, checkpoints, losses.

    running_test.py PLIMSOLL WORK_FOLDER EXPORTS [--slow]

EXPORTS is tests/onnx/exports: small models that PyTorch exported (tools/references/export_onnx.py), with the
outputs that PyTorch gave. Every test has a folder of its own.
"""
import json
import math
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import npz_files  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
WORK = pathlib.Path(sys.argv[2]).resolve()
EXPORTS = pathlib.Path(sys.argv[3]).resolve()


def model_with_data_beside(file):
    """y = x + w, as onnx.proto says, with w in another file."""
    def field(number, content):
        if isinstance(content, int):
            return bytes([number << 3, content])
        content = content.encode() if isinstance(content, str) else content
        return bytes([number << 3 | 2, len(content)]) + content

    def value(name):
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, field(1, field(1, 2)))))

    weight = field(1, 2) + field(2, 1) + field(8, "w") + field(13, field(1, "location") + field(2, file)) + field(14, 1)
    add = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "Add")
    return field(1, 8) + field(7, field(1, add) + field(5, weight) + field(11, value("x")) + field(12, value("y"))) + field(8, field(2, 17))


class Running(unittest.TestCase):
    def setUp(self):
        self.folder = WORK / self.id().split(".")[-1]
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def call(self, *arguments, cwd=None):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=cwd or self.folder, capture_output=True, text=True)

    def done(self, *arguments, cwd=None):
        result = self.call(*arguments, cwd=cwd)
        self.assertEqual(result.returncode, 0, (arguments, result.stderr))
        return result

    def told(self, *arguments):
        return json.loads(self.done(*arguments, "--json").stdout)

    def refused(self, code, words, *arguments, cwd=None):
        result = self.call(*arguments, cwd=cwd)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        return result.stderr

    def copy(self, name, to="m.onnx"):
        shutil.copy(EXPORTS / f"{name}.onnx", self.folder / to)
        arrays = npz_files.load(EXPORTS / f"{name.split('.')[0]}.npz")
        npz_files.save(self.folder / "in.npz", **{key.removeprefix("in."): value for key, value in arrays.items() if key.startswith("in.")})
        return arrays["out.0"][2]

    def assert_close(self, file, expected, tolerance=1e-4):
        (_, _, found), = npz_files.load(self.folder / file).values()
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertLess(abs(a - b), tolerance * (1 + abs(b)))


class PlansKnowTheirWeights(Running):
    def test_a_plan_of_a_file_gives_what_the_file_gives(self):
        for name, sizes in (("convnext.script", []), ("resnet.dynamo", []), ("llama.dynamo", ["--seq", 12])):
            expected = self.copy(name)
            self.done("plan", "m.onnx", "--batch", 2, *sizes, "-o", "p.json")
            self.done("run", "p.json", "--inputs", "in.npz", "--outputs", "out.npz")
            self.assert_close("out.npz", expected)

    def test_a_file_that_runs_on_synthetic_data_says_so(self):
        self.copy("resnet.script")
        self.assertIn("on synthetic data", self.done("run", "m.onnx", "--batch", 2).stdout)
        for asked in (["--random"], ["--inputs", "in.npz"]):
            self.assertNotIn("on synthetic data", self.done("run", "m.onnx", "--batch", 2, *asked).stdout)

    def test_training_from_a_plan_begins_where_training_from_the_file_does(self):
        self.copy("convnext.script")
        how = ["--train", "--loss", "cross-entropy", "--batch", 2]
        self.done("plan", "m.onnx", *how, "--untie", "-o", "p.json")
        self.assertEqual(self.told("run", "p.json", "--steps", 2)["losses"], self.told("run", "m.onnx", *how, "--untie", "--steps", 2)["losses"])

    def test_a_model_elsewhere_is_not_read_unless_it_is_named(self):
        expected = self.copy("resnet.script", "model.onnx")
        (self.folder / "plans").mkdir()
        self.done("plan", "model.onnx", "-o", "plans/p.json")
        run = ["run", "plans/p.json", "--inputs", "in.npz", "--outputs", "out.npz"]
        model = str(self.folder / "model.onnx")
        self.refused(3, ["plans/p.json: its weights are in '" + model, f"--weights {model}"], *run)
        self.done(*run, "--weights", "model.onnx")
        self.assert_close("out.npz", expected)

    def test_a_hostile_plan_cannot_climb_out_of_its_folder(self):
        self.copy("resnet.script")
        (self.folder / "inside").mkdir()
        self.done("plan", "m.onnx", "-o", "p.json")
        plan = json.loads((self.folder / "p.json").read_text())
        os.symlink(self.folder / "m.onnx", self.folder / "inside/link.onnx")
        for path, why in (("../m.onnx", "leads out"), ("link.onnx", "symbolic link"), (str(self.folder / "m.onnx"), "not in the plan's folder"), ("/proc/self/mem", "not in the plan's folder")):
            plan["weights"]["model"] = path
            (self.folder / "inside/p.json").write_text(json.dumps(plan))
            self.refused(3, [why], "run", "inside/p.json")

    def test_weights_that_are_gone_or_changed_are_refused(self):
        expected = self.copy("resnet.script")
        self.done("plan", "m.onnx", "-o", "p.json")
        moved = self.folder / "moved"
        moved.mkdir()
        shutil.move(self.folder / "p.json", moved / "p.json")
        self.refused(3, ["moved/m.onnx', which is not there", "--weights"], "run", "moved/p.json")
        shutil.copy(self.folder / "m.onnx", moved / "m.onnx")
        run = ["run", "moved/p.json", "--inputs", "in.npz", "--outputs", "out.npz"]
        self.done(*run)
        self.assert_close("out.npz", expected)
        content = bytearray((moved / "m.onnx").read_bytes())
        content[len(content) // 2] ^= 1  # a number of a weight
        (moved / "m.onnx").write_bytes(content)
        self.refused(3, ["have changed", "had the hash", "--weights moved/m.onnx"], *run)
        warned = self.done(*run, "--weights", "moved/m.onnx")
        self.assertIn("not what moved/p.json was planned from", warned.stderr)
        (moved / "m.onnx").write_bytes(content + b"\x12\x00")
        self.refused(3, ["have changed", "bytes, now it has"], *run)

    def test_weights_of_an_archive_need_no_model(self):
        self.copy("convnext.script")
        how = ["--train", "--loss", "cross-entropy", "--batch", 2]
        self.done("plan", "m.onnx", *how, "-o", "p.json")
        losses = self.told("run", "p.json", "--steps", 2, "--save", "w.npz")["losses"]
        (self.folder / "m.onnx").unlink()
        self.refused(3, ["which is not there"], "run", "p.json")
        later = self.told("run", "p.json", "--steps", 1, "--weights", "w.npz")["losses"]
        self.assertLess(later[0], losses[0])
        self.assertEqual(later, self.told("run", "p.json", "--steps", 1, "--resume", "w.npz")["losses"])

    def test_external_data_is_part_of_what_is_compared(self):
        (self.folder / "m.onnx").write_bytes(model_with_data_beside("w.bin"))
        (self.folder / "w.bin").write_bytes(struct.pack("<2f", 3, 4))
        npz_files.save(self.folder / "in.npz", x=("<f4", (2,), [10.0, 20.0]))
        self.done("plan", "m.onnx", "-o", "p.json")
        self.assertEqual([file["name"] for file in json.loads((self.folder / "p.json").read_text())["weights"]["files"]], ["", "w.bin"])
        run = ["run", "p.json", "--inputs", "in.npz", "--outputs", "out.npz"]
        self.done(*run)
        self.assert_close("out.npz", [13, 24])
        (self.folder / "w.bin").write_bytes(struct.pack("<2f", 3, 5))
        self.refused(3, ["have changed", "'w.bin' had the hash"], *run)
        (self.folder / "w.bin").unlink()
        self.refused(3, ["its weights", "w.bin"], *run)

    def test_members_of_a_plan_set_know_them_too(self):
        expected = self.copy("sizes.script")
        self.done("plan", "m.onnx", "--sizes", "batch=2..4", "--dim", "height=10", "--dim", "width=15", "-o", "set.json")
        self.done("run", "set.json", "--batch", 3, "--inputs", "in.npz", "--outputs", "out.npz")
        self.assert_close("out.npz", expected)
        self.done("run", "set.json", "--sizes", "batch=2..4", "--steps", 4)
        (self.folder / "m.onnx").unlink()
        self.refused(3, ["which is not there"], "run", "set.json", "--sizes", "batch=2..4", "--steps", 4)

    def test_a_plan_that_does_not_say_where_its_weights_are_is_refused(self):
        self.copy("resnet.script")
        self.done("plan", "m.onnx", "-o", "p.json")
        plan = json.loads((self.folder / "p.json").read_text())
        del plan["weights"]
        (self.folder / "old.json").write_text(json.dumps(plan))
        self.refused(3, ["old.json: its weights came from a file that it does not name"], "run", "old.json")
        self.done("plan", "mlp", "-o", "mlp.json")
        self.assertNotIn("weights", json.loads((self.folder / "mlp.json").read_text()))
        self.refused(2, ["mlp.json takes no weights from a model file"], "run", "mlp.json", "--weights", "m.onnx")

    def test_outputs_of_a_plan_need_inputs(self):
        self.done("plan", "mlp", "--infer", "-o", "p.json")
        self.refused(2, ["no values for the inputs"], "run", "p.json", "--outputs", "out.npz")


class Devices(Running):
    def test_a_device_that_cannot_run_is_exit_code_6(self):
        self.refused(6, ["device 'h200'", "--device cpu"], "run", "mlp", "--steps", 1, "--device", "h200")
        self.refused(2, ["device 'tpu'"], "run", "mlp", "--device", "tpu")
        self.done("run", "mlp", "--steps", 1, "--device", "cpu")

    def test_fewer_threads_than_asked_for_compute_the_same(self):
        two = self.told("run", "resnet18", "--batch", 2, "--image", 32, "--threads", 2, "--steps", 2)["losses"]
        limited = subprocess.run([PROGRAM, "run", "resnet18", "--batch", "2", "--image", "32", "--threads", "2", "--steps", "2", "--json"],
                                 cwd=self.folder, env=dict(os.environ, OMP_THREAD_LIMIT="1"), capture_output=True, text=True, timeout=60)
        self.assertEqual(limited.returncode, 0, limited.stderr)
        self.assertEqual(json.loads(limited.stdout)["losses"], two)

    def test_a_plan_for_another_machine_is_planned_but_does_not_run(self):
        self.done("plan", "mlp", "--device", "h200", "-o", "p.json")
        self.done("check", "p.json")
        self.refused(6, ["p.json: planned for another machine", "h200"], "run", "p.json")

    def test_what_a_card_cannot_do_is_not_planned_for_one_on_paper(self):
        self.refused(2, ["plan sets are for the CPU"], "plan", "mlp", "--device", "h200", "--sizes", "batch=1..2")

    def test_lossy_encodings_are_planned_for_a_card_where_they_are_asked_for(self):
        budget = ("plan", "mlp", "--device", "h200", "--budget", "80%", "--techniques", "all")
        self.assertIn("encoded (lossy: fp16)", self.done(*budget, "--lossy", "fp16").stdout)
        self.assertNotIn("lossy", self.done(*budget).stdout)

    def test_a_plan_has_the_arithmetic_that_was_asked_for(self):
        for words, expected in ((["--tf32"], "sm_90 tf32"), ([], "sm_90")):
            self.done("plan", "mlp", "--device", "h200", *words, "-o", "p.json")
            self.assertEqual(json.loads((self.folder / "p.json").read_text())["environment"]["instruction_set"], expected)

    def test_a_plan_has_decided_what_ranks_share(self):
        self.done("plan", "mlp", "-o", "p.json")
        for words in (["--shard", "optimizer"], ["--reduction", "any"], ["--tune", "2"]):
            self.refused(2, [words[0], "has decided"], "run", "p.json", *words)


class Training(Running):
    how = ["--train", "--loss", "cross-entropy", "--batch", 2]

    def test_untied_initialisers_train_as_pytorch_trains_the_model(self):
        for name in ("shared.onnx", "shared.npz"):
            shutil.copy(pathlib.Path(__file__).parent / name, self.folder)
        reference = npz_files.load(self.folder / "shared.npz")
        how = ["shared.onnx", *self.how, "--data", "shared.npz", "--optimizer", "sgd", "--lr", "0.5", "--steps", 5, "--json"]
        tied = self.done("run", *how)
        self.assertRegex(tied.stderr, r"shared.onnx: \d+ weights stand in 23 places: \d are shared, '[^']+' by \d+; .*--untie")
        self.assertIn("1 float initialiser is not trained", tied.stderr)
        untied = self.done("run", *how, "--untie")
        self.assertNotIn("--untie", untied.stderr)
        for a, b, c in zip(json.loads(untied.stdout)["losses"], reference["losses"][2], json.loads(tied.stdout)["losses"]):
            self.assertLess(abs(a - b), 2e-5)
        self.assertGreater(abs(c - b), 1e-3)  # another model: shared biases are one
        told = self.told("memory", "shared.onnx", *self.how, "--untie")
        self.assertEqual(told["parameters"], reference["parameters"][2][0])

    def test_tables_and_frequencies_are_not_trained(self):
        self.copy("llama.dynamo")
        done = self.done("memory", "m.onnx", *self.how, "--json")
        self.assertIn("2 float initialisers are not trained, no parameters: tables of sines and cosines (2)", done.stderr)
        self.done("run", "m.onnx", *self.how, "--steps", 1, "--optimizer", "sgd", "--save", "w.npz")
        saved = npz_files.load(self.folder / "w.npz")
        self.assertIn("model.model.embed_tokens.weight", saved)
        self.assertEqual([name for name, (_, shape, _) in saved.items() if len(shape) > 2], [])  # the tables have more axes

    def test_labels_that_name_no_class_are_named(self):
        images = ("<f4", (4, 1, 28, 28), [0.1] * 4 * 784)
        npz_files.save(self.folder / "d.npz", images=images, labels=("<i8", (4,), [0, 1, 10, 2]))
        self.refused(3, ["d.npz: input 'labels': element [2] is 10; ", "takes 0 to 9, or -100 for none"], "run", "mlp", "--batch", 4, "--data", "d.npz")
        npz_files.save(self.folder / "d.npz", images=images, labels=("<i8", (4,), [0, 1, -100, 2]))
        self.done("run", "mlp", "--batch", 4, "--data", "d.npz")
        npz_files.save(self.folder / "d.npz", images=("<f4", (8, 1, 28, 28), [0.1] * 8 * 784), labels=("<i8", (8,), [0, 1, 2, 3, 4, 5, -1, 7]))
        self.refused(3, ["element [6] is -1"], "run", "mlp", "--batch", 4, "--accumulate", 2, "--data", "d.npz")

    def test_a_loss_that_is_none_is_said_and_found(self):
        how = ["run", "mlp", "--batch", 4, "--steps", 8, "--optimizer", "sgd", "--lr", "1e30"]
        done = self.done(*how)
        self.assertRegex(done.stderr, r"warning: step \d: the loss is NaN or infinite; --find-nan names")
        self.assertIn("first_bad_step", self.told(*how))
        self.refused(3, ["made the first"], *how, "--find-nan")
        self.assertIn("no NaN and no infinity", self.done("run", "mlp", "--batch", 4, "--steps", 2, "--find-nan").stdout)

    def test_layers_that_a_step_leaves_out_at_random_are_the_same_when_recomputed(self):
        shutil.copy(pathlib.Path(__file__).parent / "drop_path.onnx", self.folder / "m.onnx")
        how = ["m.onnx", "--train", "--loss", "cross-entropy", "--batch", 64, "--lr", "0.01"]
        plain = self.told("run", *how, "--steps", 4)["losses"]
        self.assertEqual(plain, self.told("run", *how, "--steps", 4, "--executor", "on-demand")["losses"])
        self.done("plan", *how, "--checkpointing", "drop-cheap", "-o", "again.json")
        steps = json.loads((self.folder / "again.json").read_text())["steps"]
        self.assertTrue(any(step["do"] == "recompute" for step in steps))
        self.assertEqual(plain, self.told("run", "again.json", "--steps", 4)["losses"])
        still = self.told("run", *how[:-1], "0", "--steps", 3)["losses"]  # nothing is learnt, and other layers are left out
        self.assertEqual(len(set(still)), 3)

    def test_amp_computes_imported_models_in_bf16(self):
        expected = self.copy("convnext.script")
        self.done("run", "m.onnx", "--amp", "bf16", "--inputs", "in.npz", "--outputs", "out.npz")
        self.assert_close("out.npz", expected, 5e-2)
        graph = self.done("graph", "m.onnx", "--amp", "bf16", "--batch", 2).stdout
        self.assertIn("bf16", graph)
        plain = self.told("run", "m.onnx", *self.how, "--steps", 3)
        narrow = self.told("run", "m.onnx", *self.how, "--steps", 3, "--amp", "bf16")
        for a, b in zip(plain["losses"], narrow["losses"]):
            self.assertLess(abs(a - b), 0.05 * abs(a))
        self.assertNotEqual(plain["losses"], narrow["losses"])
        self.refused(2, ["--amp fp32: expects bf16 or fp16"], "plan", "m.onnx", "--amp", "fp32")
        self.refused(2, ["--dtype is for built-in models"], "plan", "m.onnx", "--dtype", "bf16")


class Data(Running):
    how = ["m.onnx", "--train", "--loss", "cross-entropy", "--batch", 2]

    def setUp(self):
        super().setUp()
        self.copy("convnext.script")
        size = 3 * 64 * 64
        self.examples = [[math.sin(0.1 * i * (k + 1)) for i in range(size)] for k in range(5)]
        self.save("d.npz", range(5))

    def save(self, name, which, label="<i8", image="<f4", **how):
        which = list(which)
        npz_files.save(self.folder / name, x=(image, (len(which), 3, 64, 64), [v for k in which for v in self.examples[k]]), labels=(label, (len(which),), [k % 10 for k in which]), **how)

    def test_more_examples_than_the_batch_are_a_data_set(self):
        told = self.told("run", *self.how, "--data", "d.npz", "--epochs", 2, "--save", "w.npz")
        self.assertEqual(told["data_set"], {"examples": 5, "batch": 2, "shuffled": True, "epochs": 2.0})
        self.assertEqual(len(told["losses"]), 5)
        again = self.told("run", *self.how, "--data", "d.npz", "--epochs", 2)
        self.assertEqual(told["losses"], again["losses"])
        other = self.told("run", *self.how, "--data", "d.npz", "--epochs", 2, "--seed", 5)
        self.assertNotEqual(told["losses"], other["losses"])

    def test_a_folder_of_shards_is_the_same_data_set(self):
        (self.folder / "shards").mkdir()
        self.save("shards/a.npz", range(2))
        self.save("shards/b.npz", range(2, 5), compressed=True)
        one = self.told("run", *self.how, "--data", "d.npz", "--steps", 3)
        self.assertEqual(one["losses"], self.told("run", *self.how, "--data", "shards", "--steps", 3)["losses"])

    def test_what_was_trained_is_what_inference_runs(self):
        """Folded constants, batch norms and weights that stand in several places take the new weights too."""
        for name in ("convnext.script", "densenet.script", "densenet.dynamo", "efficientnet.script"):
            for untie in ([], ["--untie"]):
                with self.subTest(name, untie=untie):
                    self.copy(name)
                    self.save("d.npz", range(2))
                    train = ["run", *self.how, *untie, "--data", "d.npz"]
                    self.done(*train, "--steps", 3, "--lr", 0.01, "--save", "w.npz")
                    loss = self.told(*train, "--steps", 1, "--weights", "w.npz")["losses"][0]
                    done = self.done("run", "m.onnx", *untie, "--batch", 2, "--weights", "w.npz", "--inputs", "d.npz", "--outputs", "o.npz")
                    self.assertNotIn("belong to nothing", done.stderr)
                    (_, shape, logits), = npz_files.load(self.folder / "o.npz").values()
                    rows = [logits[shape[1] * k:shape[1] * (k + 1)] for k in range(2)]
                    ours = sum(math.log(sum(map(math.exp, row))) - row[k % 10] for k, row in enumerate(rows)) / 2
                    self.assertLess(abs(ours - loss), 1e-4 * max(1, loss))

    def test_a_file_without_all_weights_is_refused(self):
        self.done("run", *self.how, "--data", "d.npz", "--steps", 1, "--save", "w.npz")
        arrays = npz_files.load(self.folder / "w.npz")
        name = next(name for name in arrays if name.endswith("bias"))
        npz_files.save(self.folder / "one.npz", **{name: arrays[name]})
        words = ["run", "m.onnx", "--batch", 2, "--weights", "one.npz", "--inputs", "in.npz", "--outputs", "o.npz"]
        self.refused(3, ["are not in it"], *words)
        self.done(*words, "--allow-missing")

    def test_other_types_are_cast_with_a_note(self):
        plain = self.told("run", *self.how, "--data", "d.npz", "--steps", 2)
        self.save("cast.npz", range(5), label="<i4", image="<f8")
        done = self.done("run", *self.how, "--data", "cast.npz", "--steps", 2, "--json")
        self.assertIn("input 'x': fp64 in cast.npz is cast to fp32", done.stderr)
        self.assertIn("input 'labels': int32 in cast.npz is cast to int64", done.stderr)
        for a, b in zip(plain["losses"], json.loads(done.stdout)["losses"]):
            self.assertLess(abs(a - b), 1e-5)

    def test_a_label_out_of_range_is_named_with_its_file_and_example(self):
        npz_files.save(self.folder / "bad.npz", x=("<f4", (3, 3, 64, 64), [v for k in range(3) for v in self.examples[k]]), labels=("<i8", (3,), [1, 2, 1000]))
        self.refused(3, ["bad.npz, example 2: input 'labels': element [", "] is 1000; cross_entropy takes 0 to 9"], "run", *self.how, "--data", "bad.npz", "--epochs", 1)

    def test_inference_sees_every_example_in_order(self):
        self.done("run", "m.onnx", "--batch", 2, "--inputs", "d.npz", "--outputs", "all.npz")
        (_, shape, together), = npz_files.load(self.folder / "all.npz").values()
        self.assertEqual(shape, (5, 10))
        self.save("two.npz", (3, 4))
        self.done("run", "m.onnx", "--batch", 2, "--inputs", "two.npz", "--outputs", "two_out.npz")
        (_, _, two), = npz_files.load(self.folder / "two_out.npz").values()
        for a, b in zip(together[30:], two):
            self.assertLess(abs(a - b), 1e-5)

    def test_checkpoints_on_the_way_and_on_interrupt(self):
        whole = self.told("run", *self.how, "--data", "d.npz", "--steps", 6)["losses"]
        self.refused(2, ["--save-every: there is no --save FILE"], "run", *self.how, "--save-every", 2)
        self.refused(3, ["no/such/folder"], "run", *self.how, "--save", "no/such/folder/w.npz")
        process = subprocess.Popen([PROGRAM, "run", *map(str, self.how), "--data", "d.npz", "--steps", "100000", "--save", "w.npz", "--save-every", "2"], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.startswith("step 4 "):
                break
        self.assertTrue((self.folder / "w.npz").exists())
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        self.assertEqual(process.wait(), 0)
        steps, = re.findall(r"stopped after step (\d+), saved to w.npz", rest)
        later = self.told("run", *self.how, "--data", "d.npz", "--resume", "w.npz", "--steps", 1)["losses"]
        if int(steps) < 6:
            self.assertEqual(later[0], whole[int(steps)])


class Loading(Running):
    def test_memory_accepts_what_plan_accepts_and_they_agree(self):
        self.copy("llama_mask.script")
        shutil.copy(EXPORTS / "gpt2.dynamo.onnx", self.folder / "gpt2.onnx")
        for model in (["mlp", "--batch", 4], ["resnet18", "--batch", 2, "--image", 64], ["gpt2", "--layers", 2, "--batch", 1, "--seq", 64], ["m.onnx", "--batch", 2, "--seq", 12], ["gpt2.onnx", "--train", "--loss", "cross-entropy", "--batch", 2, "--seq", 12]):
            self.assertEqual(self.told("memory", *model)["total_bytes"], self.told("plan", *model)["baseline_bytes"], model)

    def test_dimensions_have_laws_and_there_is_no_batch_0(self):
        self.copy("sizes.script")
        told = self.told("memory", "m.onnx", "--dim", "batch=4", "--dim", "height=16", "--dim", "width=16")
        self.assertEqual(told["law"]["batch"]["at"], 4)
        self.assertEqual([row["batch"] for row in told["scratch"]], [4, 8, 16])
        self.copy("llama_mask.script")
        self.assertNotIn("batch", self.told("memory", "m.onnx")["scratch"][0])
        text = self.done("memory", "m.onnx").stdout
        self.assertNotIn("batch 0", text)
        self.assertIn("no law of growth: the file has one size only", text)
        # a table of 1,024 positions: there is no larger graph to find the law by
        text = self.done("memory", "gpt2", "--layers", 1, "--seq", 1024, "--batch", 1).stdout
        self.assertIn("growth with seq (here 1024)", text)

    def test_sizes_that_a_file_cannot_have_are_refused(self):
        self.copy("resnet.script")  # 2 x 3 x 64 x 64, all fixed
        where = "input 'x' is fp32[2,3,64,64]; sizes that the exporter did not leave open"
        for verb in ("plan", "memory", "run"):
            self.refused(2, ["m.onnx", "no input takes a batch of 4", where], verb, "m.onnx", "--batch", 4)
        self.refused(2, ["no input takes a length of 5", where], "plan", "m.onnx", "--seq", 5)
        self.refused(2, ["--dim foo=3: no dimension of an input is called so", where], "plan", "m.onnx", "--dim", "foo=3")
        self.refused(2, ["no input takes a batch of"], "plan", "m.onnx", "--train", "--loss", "cross-entropy", "--max-batch", "--budget", "2MB")
        self.assertEqual(self.told("memory", "m.onnx", "--batch", 2)["total_bytes"], self.told("memory", "m.onnx")["total_bytes"])
        self.done("plan", "m.onnx", "--batch", 2)
        self.copy("sizes.script")
        self.refused(2, ["--dim foo=3", "there are batch, height, width"], "plan", "m.onnx", "--dim", "batch=4", "--dim", "foo=3", "--dim", "height=16", "--dim", "width=16")
        self.done("plan", "m.onnx", "--batch", 5, "--dim", "height=16", "--dim", "width=16")
        self.refused(3, ["input 'x': dimensions 'batch' and 'height' and 'width' have no size; give them with --batch N --dim height=SIZE --dim width=SIZE"], "memory", "m.onnx")
        self.refused(3, ["dimension 'width' has no size; give one with --dim width=SIZE"], "memory", "m.onnx", "--batch", 2, "--dim", "height=16")

    def test_a_graph_without_a_name_of_its_own_is_called_like_its_file(self):
        self.copy("resnet.script", "my model.onnx")  # "main_graph" in the file
        self.assertTrue(self.done("plan", "my model.onnx").stdout.startswith("my model: "))

    def test_a_loss_in_other_words_is_said_in_ours(self):
        self.copy("llama_mask.script")
        for loss in ("ce", "cross_entropy", "crossentropy"):
            self.refused(2, [f"--loss {loss} is neither", "did you mean cross-entropy?"], "plan", "m.onnx", "--train", "--loss", loss)
        self.refused(3, ["say what to minimise with --loss cross-entropy, mse or"], "plan", "m.onnx", "--train")

    def test_images_in_another_order_or_size_are_refused_with_what_to_do(self):
        labels = ("<i8", (2,), [0, 1])
        for shape, words in (((2, 8, 8, 3), "its dimensions are in another order, transpose it"), ((2, 3, 8, 8), "for built-in models give --image 8")):
            npz_files.save(self.folder / "d.npz", images=("<f4", shape, [0.5] * 384), labels=labels)
            image = 8 if shape[3] == 3 else 64
            self.refused(3, ["input 'images'", words], "run", "resnet18", "--batch", 2, "--width", 8, "--classes", 10, "--image", image, "--data", "d.npz")

    def test_a_loss_without_training_is_refused(self):
        self.copy("resnet.script")
        self.refused(2, ["--loss is for training, and this is an inference of m.onnx; give --train too"], "plan", "m.onnx", "--loss", "cross-entropy")
        self.refused(2, ["--lr is for training"], "run", "m.onnx", "--lr", 0.1)

    def test_a_plan_that_is_not_kept_says_how_to_run_the_model(self):
        self.copy("resnet.script")
        text = self.done("plan", "m.onnx", "--batch", 2).stdout
        self.assertEqual(text.splitlines()[-1], "run it: plimsoll run m.onnx --batch 2")
        text = self.done("plan", "m.onnx", "--train", "--loss", "cross-entropy", "--budget", "100%").stdout
        self.assertIn("run it: plimsoll run m.onnx --train", text)

    def test_folders_and_pictures_are_called_what_they_are(self):
        (self.folder / "models").mkdir()
        self.copy("resnet.script", "models/a.onnx")
        self.refused(3, ["models: no model but a folder; name a model in it: models/a.onnx"], "plan", "models")
        (self.folder / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
        (self.folder / "cat.onnx").write_bytes(b"\xff\xd8\xff\xe0" + bytes(64))
        self.refused(3, ["cat.png: no model but a PNG picture"], "plan", "cat.png")
        self.refused(3, ["cat.onnx: no model but a JPEG picture"], "memory", "cat.onnx")
        npz_files.save(self.folder / "w.pt", w=("<f4", (1,), [0.0]))
        self.refused(3, ["w.pt: no model but a zip archive"], "run", "w.pt")

    def test_arrays_that_are_not_there_are_named_beside_those_that_are(self):
        self.copy("resnet.script")
        npz_files.save(self.folder / "w.npz", y=("<f4", (1,), [0.0]), z=("<f4", (1,), [0.0]))
        self.refused(3, ["w.npz: input 'x' is not in it; it has 'y', 'z'"], "run", "m.onnx", "--inputs", "w.npz", "--outputs", "o.npz")
        self.refused(3, ["w.npz: weight '", "is not in the checkpoint"], "run", "mlp", "--resume", "w.npz")

    def test_a_budget_that_is_too_small_is_said_before_operators_are_measured(self):
        begin = time.monotonic()
        self.refused(4, ["is too little"], "run", "resnet50", "--batch", 8, "--budget", "1MiB")
        self.refused(4, ["is too little"], "run", "resnet50", "--batch", 8, "--budget", "1%")
        self.assertLess(time.monotonic() - begin, 60)


class Slow(Running):
    def test_a_pipe_gets_a_line_every_ten_seconds(self):
        done = self.done("plan", "gpt2", "--layers", 4, "--batch", 4, "--budget", "75%", "--deadline", "25s")
        lines = [line for line in done.stderr.splitlines() if " s left" in line]
        self.assertIn(len(lines), (1, 2))
        self.assertNotIn("\r", done.stderr)


if __name__ == "__main__":
    wanted = "Slow" if "--slow" in sys.argv else None
    suite = unittest.TestSuite()
    for name, case in list(globals().items()):
        if isinstance(case, type) and issubclass(case, Running) and case is not Running and (name == "Slow") == (wanted is not None):
            suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
