#!/usr/bin/env python3
"""Figures cannot go stale silently: what README.md and docs/ show is what tools/figures.py writes."""
import pathlib
import re
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
import bench_torch  # noqa: E402
import figures  # noqa: E402

sys.path.insert(0, str(SOURCE / "tools/references"))
import bench_ort  # noqa: E402


class Documents(unittest.TestCase):
    def test_every_table_is_what_the_script_would_write(self):
        self.assertEqual(figures.check(), [])

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((SOURCE / "README.md").read_text().splitlines()), 120)

    def test_every_target_and_script_of_a_command_is_there(self):
        targets = set(re.findall(r"^([a-z-]+):", (SOURCE / "Makefile").read_text(), re.M))
        for section in figures.SECTIONS:
            words = section.command.split()
            if words[0] == "make":
                self.assertIn(words[1], targets)
            for word in words:
                if word.startswith(("tools/", "torch/")):
                    self.assertTrue((SOURCE / word).exists(), word)

    def test_every_number_of_a_section_has_a_kind_of_its_own(self):
        for section in figures.SECTIONS:
            if section.columns:
                self.assertLess(max(section.ours, default=0), len(section.columns), section.name)
                self.assertTrue(all(i in section.figures for i in section.ours), section.name)


class Blocks(unittest.TestCase):
    """Each fault is found."""

    def setUp(self):
        self.section = next(section for section in figures.SECTIONS if section.name == "bytes")
        self.text = self.section.read()

    def refuses(self, text, why):
        with self.assertRaisesRegex(figures.Wrong, why):
            if figures.Block.parse(self.section, text).render() != text:
                raise figures.Wrong("is not what the script would write")

    def test_a_word_where_a_figure_belongs(self):
        self.refuses(re.sub(r"\| [\d,]+ MiB \|", "| much |", self.text, count=1), "is no figure")

    def test_a_date_that_is_missing(self):
        self.refuses(re.sub(r"\*\d{4}-\d\d-\d\d: ", "*", self.text), "DATE")

    def test_another_command(self):
        self.refuses(self.text.replace("--json", "--csv", 1), "the script runs")

    def test_a_row_too_short(self):
        self.refuses(re.sub(r"^(\| alexnet .*?) \| [^|]* \|$", r"\1 |", self.text, flags=re.M), "cells under")

    def test_another_heading(self):
        self.refuses(self.text.replace("Plimsoll |", "ours |", 1), "not what the script would write")

    def test_a_table_outside(self):
        self.assertEqual(figures.tables_outside(self.text), [])
        self.assertEqual(len(figures.tables_outside(self.text + "\n| a | b |\n|---|---|\n| speed | 3 ms |\n")), 1)

    def test_what_is_measured_is_written_and_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "README.md"
            copy.write_text("before\n" + self.text + "\nafter\n")
            section = figures.Section("bytes", copy, self.section.command, self.section.columns, lambda here: None, texts=3, ours=(4,))
            row = ["a model", "8", "compiled", "2 MiB", "1 MiB", "3 MiB", "−66.7 %"]
            section.write(figures.Block(section, [row], "2026-01-02", "once."))
            self.assertEqual(figures.Block.parse(section, section.read()).rows, [row])
            self.assertTrue(copy.read_text().startswith("before\n") and copy.read_text().endswith("\nafter\n"))
            with self.assertRaises(figures.Wrong):
                section.write(figures.Block(section, [[*row[:-1], "a lot"]], "2026-01-02", "once."))

    def test_spreads(self):
        self.assertEqual(figures.spread([3, 1, 2]), "2.00 (1.00 to 3.00)")
        self.assertTrue(figures.FIGURE.fullmatch(figures.spread([-3.5, 1, 2], "{:+.1f}")))
        for text in ("1,035 MiB", "0.97", "−16.3 %", "+4.6 (−1.0 to +7.2)", "–", "1.008 ×"):
            self.assertTrue(figures.FIGURE.fullmatch(text), text)
        for text in ("", "fast", "1.0.0", "3 apples", "4 (3)"):
            self.assertFalse(figures.FIGURE.fullmatch(text), text)
        self.assertEqual([figures.digits(x) for x in (0.000123, 0.045, 3.94, 128, 0)], ["0.00012", "0.045", "3.9", "128", "0"])


class Printed:
    """A machine on which every program prints the same text."""

    def __init__(self, text):
        self.text, self.python = text, "python3"

    def run(self, command, **how):
        return self.text

    def program(self, name):
        return name


class Answers(unittest.TestCase):
    """What the programs print is read as figures that the tables take."""

    def read(self, name, text, rows):
        section = next(section for section in figures.SECTIONS if section.name == name)
        made, remark = section.measure(Printed(text))
        self.assertEqual(len(made), rows, made)
        figures.Block.parse(section, figures.Block(section, made, "2026-01-02", remark).render())
        return made

    def test_run_bench(self):
        made = self.read("budget", "gpt2, 2 x 256, adam, all remedies\n"
                         "  budget              arena   measured    slower      bar  predicted      off\n"
                         "  no budget        1.92 GiB     2268ms      0.0%       0%     2304ms    -1.6%\n"
                         "  50%             964.9 MiB     2371ms      4.6%      15%     2461ms    -3.7%\n", 4)
        self.assertEqual(made[1][2:], ["50 %", "964.9 MiB", "2,371 (2,371 to 2,371)", "+4.6 (+4.6 to +4.6)", "−3.7 (−3.7 to −3.7)"])

    def test_fit_bench(self):
        made = self.read("graphs", "-- the given order\nunet2            n=38     budget 1400   of 2096   known   4.73%  ours   4.73%  bound   4.00%  first   9.10% in 0.0004s, best at 0.1s \n"
                         "-- the order may change\nunet2            n=38     budget 1400   of 2096   known   4.73%  ours   1.00%  bound   4.00%  first   9.10% in 0.0004s, best at 0.1s \n", 5)
        self.assertEqual(made[0], ["U-net", "38", "67 %", "4.73 %", "4.73 %", "4.00 %", "0.000 s"])

    def test_pack_bench(self):
        line = "{:28} {:8} buffers  height {:14}  +{:8.4f} %  {:10} {:26} {:8.3f} s\n"
        text = "seed 1: 0.061 s in all\nseed 2: 0.118 s in all\n"
        text += "".join(line.format(f"{name} minimize", 100, 1000, 0, "optimal", "point cover", 0.01) for name in "ABCDEF")
        text += line.format("training, a million", 1000000, 5, 0, "optimal", "skyline", 0.97) + line.format("random, a million", 1000000, 5, 1.04, "feasible", "windows", 9.6)
        made = self.read("packer", text, 4)
        self.assertEqual(made[0][2], "0.09 (0.06 to 0.12)")
        self.assertEqual(made[3][2:], ["9.60", "1.04 %"])


class Turns(unittest.TestCase):
    """The rivals of a benchmark alternate, so that a slow minute is everybody's."""

    def test_onnxruntime_and_plimsoll_alternate(self):
        seen = []

        class Rival:
            def __init__(self, name):
                self.name = name

            def times(self):
                seen.append(self.name)
                return [len(seen)]

        medians = bench_ort.take_turns([Rival("a"), Rival("b")], 4)
        self.assertEqual("".join(seen), "abbaabba")
        self.assertEqual(medians, [[1, 4, 5, 8], [2, 3, 6, 7]])

    def test_ratios_are_those_of_one_round(self):
        rounds = {"eager": [100, 50], "compiled": [80, 60], "plimsoll": [40, 100]}
        self.assertEqual(bench_torch.ratios(rounds), [0.5, 2.0])


if __name__ == "__main__":
    unittest.main()
