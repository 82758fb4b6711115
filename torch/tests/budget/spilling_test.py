"""Spilling from Python, on the plug-in's fake device: spilling_test.py LIBRARY. Needs neither PyTorch nor a GPU.

What moves and that bytes stay is tested in C++ (caching_spill_test.cpp, fake_driver_test.cpp); here, what is asked of whom, and
what is said where it cannot be done.
"""
import ctypes
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from plimsoll_torch import allocator, spilling  # noqa: E402

MIB = 2**20


class Storage:
    def __init__(self, address, size):
        self.address, self.size = address, size

    def data_ptr(self):
        return self.address

    def nbytes(self):
        return self.size


class Tensor:
    """What spilling asks of a tensor."""

    def __init__(self, library, size, kind="cuda"):
        self.device, self.shape = type("Device", (), {"type": kind, "index": 0})(), (size,)
        self.storage = Storage(library.plimsoll_device_alloc(size, 0, None), size)

    def untyped_storage(self):
        return self.storage


class Module:
    def __init__(self, *tensors):
        self.tensors = tensors

    def parameters(self):
        return iter(self.tensors[:1])

    def buffers(self):
        return iter(self.tensors[1:])


class Spilling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = allocator._load(sys.argv[1])
        cls.library.plimsoll_use_fake_device(ctypes.c_int64(1 << 30))
        cls.library.plimsoll_device_alloc.restype = ctypes.c_void_p
        cls.library.plimsoll_device_alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        cls.library.plimsoll_device_free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]

    def setUp(self):
        self.library.plimsoll_reset()  # nothing is pinned

    def tensor(self, size, kind="cuda"):
        made = Tensor(self.library, size, kind)
        self.addCleanup(self.library.plimsoll_device_free, made.storage.address, size, 0, None)
        return made

    def test_a_module_goes_and_comes_back(self):
        spilling.begin(self.library, 0)
        module = Module(self.tensor(32 * MIB), self.tensor(16 * MIB))
        self.assertEqual(spilling.spill(module), (48 * MIB, 0))
        self.assertEqual(self.library.plimsoll_count(0, 7), 48 * MIB)
        self.assertEqual(spilling.restore([module]), (48 * MIB, 0))
        self.assertEqual(self.library.plimsoll_count(0, 7), 0)

    def test_what_is_pinned_is_checked_first(self):
        spilling.begin(self.library, 0)
        by_device = spilling._addresses(self.tensor(64 * MIB))
        with self.assertRaisesRegex(MemoryError, "of host memory would be pinned, and MemAvailable leaves 10.0 MiB; spill less"):
            spilling._check_room(by_device, (10 * MIB, "MemAvailable"))

    def test_what_is_no_tensor_is_refused(self):
        with self.assertRaisesRegex(TypeError, "a int is neither a tensor nor a module"):
            spilling._addresses([7])
        with self.assertRaisesRegex(ValueError, "is on 'cpu', not on a cuda device"):
            spilling._addresses(self.tensor(MIB, "cpu"))

    def test_it_must_have_been_asked_for(self):
        spilling._library = None
        with self.assertRaisesRegex(RuntimeError, 'call plimsoll_torch.use_allocator.spill="host"'):
            spilling.spill([])

    def test_a_full_device_is_out_of_memory_said_with_figures(self):
        spilling.begin(self.library, 0)
        tensor = self.tensor(600 * MIB)
        spilling.spill(tensor)
        self.tensor(900 * MIB)
        done, problem = spilling._move(self.library.plimsoll_restore, spilling._addresses(tensor))
        self.assertGreater(done.moved, 0)
        self.assertRegex(problem, "of device memory could not be had; .* moved before")


class HostRoom(unittest.TestCase):
    def room(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="ascii") as file:
                    file.write(text)
            return spilling.host_room(root)

    MACHINE = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n"}

    def test_the_machine_without_groups(self):
        self.assertEqual(self.room(self.MACHINE), (8000 << 10, "MemAvailable"))
        self.assertEqual(self.room({}), (1 << 62, "nothing known"))

    def test_the_tightest_group_above_this_process(self):
        files = {**self.MACHINE, "proc/self/cgroup": "0::/user/job\n",
                 "sys/fs/cgroup/user/job/memory.max": "max\n", "sys/fs/cgroup/user/job/memory.current": "5\n",
                 "sys/fs/cgroup/user/memory.max": "5000000\n", "sys/fs/cgroup/user/memory.current": "4500000\n",
                 "sys/fs/cgroup/user/memory.stat": "anon 1\ninactive_file 100000\n"}
        self.assertEqual(self.room(files), (600000, "/user/memory.max"))

    def test_the_first_version_of_groups(self):
        files = {**self.MACHINE, "proc/self/cgroup": "9:memory:/job\n1:cpu:/\n",
                 "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "3000000\n", "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "1000000\n"}
        self.assertEqual(self.room(files), (2000000, "/job/memory.limit_in_bytes"))

    def test_damaged_files_say_nothing(self):
        self.assertEqual(self.room({**self.MACHINE, "proc/self/cgroup": "nonsense\n0::/a\n", "sys/fs/cgroup/a/memory.max": "x y"}), (8000 << 10, "MemAvailable"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
