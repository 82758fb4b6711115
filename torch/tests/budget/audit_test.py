"""The generated code is read right: names, views, items, reference counts."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from plimsoll_torch.allocation_audit import Storage, interpret  # noqa: E402


def audit(lines, sizes=None, inputs=None, symbols=None, block=1, held=()):
    source = "class Runner:\n    def call(self, args):\n" + "".join(f"        {line}\n" for line in lines)
    return interpret(source, sizes or {}, symbols or {}, inputs or {}, block, held)


NEW = "empty_strided_cpu((4, 8), (8, 1), torch.float32)"  # 128 bytes


class Audit(unittest.TestCase):
    def test_freed_is_not_live(self):
        self.assertEqual(audit([f"a = {NEW}", "del a", f"b = {NEW}", "return (b, )"]).peak, 128)
        self.assertEqual(audit([f"a = {NEW}", f"b = {NEW}", "del a", "return (b, )"]).peak, 256)

    def test_another_name_holds_the_same_storage(self):
        self.assertEqual(audit([f"a = {NEW}", "b = a; del a  # reuse", f"c = {NEW}", "return (b, c, )"]).peak, 256)
        self.assertEqual(audit([f"a = {NEW}", "b = reinterpret_tensor(a, (32, ), (1, ), 0)", "del a", f"c = {NEW}", "return (c, )"]).peak, 256)

    def test_a_name_that_is_bound_again_lets_go(self):
        self.assertEqual(audit([f"a = {NEW}", f"a = {NEW}", f"a = {NEW}", "return (a, )"]).peak, 256)

    def test_items_live_as_long_as_the_tuple_or_their_names(self):
        lines = ["t = torch.ops.aten.two.default(x)", "p = t[0]", "q = t[1]", "del t", "del p", f"r = {NEW}", "return (q, r, )"]
        told = audit(lines, sizes={"p": 1000, "q": 10})
        self.assertEqual(told.peak, 1010)
        self.assertEqual([s.bytes for s in told.outputs], [10, 128])

    def test_parameters_do_not_count_and_what_was_saved_does_until_it_is_deleted(self):
        saved, parameter = Storage(500, "saved"), Storage(10**6, "p", counted=False)
        lines = ["p, s = args", "args.clear()", f"a = {NEW}", "del s", "b = empty_strided_cpu((125, ), (1, ), torch.float32)", "return (a, b, )"]
        inputs = {"p": parameter, "s": saved}
        self.assertEqual(audit(lines, inputs=inputs).peak, 628)
        self.assertEqual(audit(lines, inputs=inputs, held=[saved]).peak, 1128, "the caller holds it too")

    def test_sizes_may_be_symbols_and_come_in_blocks(self):
        lines = ["a = empty_strided_cuda((s0, 2), (2, 1), torch.bfloat16)", "return (a, )"]
        self.assertEqual(audit(lines, symbols={"s0": 10}).peak, 40)
        self.assertEqual(audit(lines, symbols={"s0": 10}, block=512).peak, 512)
        self.assertEqual(audit(lines, symbols={"s0": 0}).peak, 0)

    def test_who_reads_a_copy_before_it_has_arrived_is_told(self):
        copy = ["b = torch.ops.plimsoll_torch.copy_in.default(h, device(type='cuda'))", "assert_size_stride(b, (8, ), (1, ))", "c = b; del b"]
        wait, read = "torch.ops.plimsoll_torch.copied_in.default(c)", "triton_fused_0.run(reinterpret_tensor(c, (8, ), (1, ), 0), x, stream=stream0)"
        self.assertEqual(audit([*copy, wait, read, "return ()"], sizes={"b": 8}).early, "")
        self.assertEqual(audit([*copy, read, wait, "return ()"], sizes={"b": 8}).early, "triton_fused_0.run")
        self.assertEqual(audit([*copy, f"d = {NEW}", "del c", "return (d, )"], sizes={"b": 8}).early, "")

    def test_code_of_another_kind_is_not_guessed(self):
        self.assertIsNone(interpret("def other(args):\n    return ()\n", {}, {}, {}))


if __name__ == "__main__":
    unittest.main()
