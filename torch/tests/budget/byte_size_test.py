"""Sizes as people write them, without PyTorch."""
import importlib.util
import os
import unittest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "plimsoll_torch", "byte_size.py")
spec = importlib.util.spec_from_file_location("byte_size", PATH)
byte_size = importlib.util.module_from_spec(spec)
spec.loader.exec_module(byte_size)


class ByteSize(unittest.TestCase):
    def test_units_are_read(self):
        for text, size in (("8GiB", 8 << 30), ("8G", 8 << 30), ("8 gb", 8 * 10**9), ("500MB", 5 * 10**8), ("1.5KiB", 1536), ("77", 77), (77, 77), (".5k", 512)):
            self.assertEqual(byte_size.parse_bytes(text), size, text)

    def test_what_is_no_size_is_refused_with_its_name(self):
        for text in ("", "GiB", "8XB", "8 GiB GiB", "-1", "1e99", "0", 0, -5, "nan", float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, "reserve: "):
                byte_size.parse_bytes(text, "reserve")
        for other in (None, True, [8]):
            with self.assertRaisesRegex(TypeError, "budget: "):
                byte_size.parse_bytes(other)


if __name__ == "__main__":
    unittest.main()
