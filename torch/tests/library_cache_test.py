"""Which libraries plimsoll_torch is willing to load; needs neither PyTorch nor a GPU.

    python3 torch/tests/library_cache_test.py
"""
import os
import shutil
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from plimsoll_torch import allocator, library_cache
from plimsoll_torch.library_cache import UnsafePlace

STRANGER = 12345


def write(path, text="library"):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class LibraryCache(unittest.TestCase):
    def setUp(self):
        self.root = os.path.realpath(tempfile.mkdtemp())  # 0700, below the sticky /tmp
        self.folder = os.path.join(self.root, "cache", "plimsoll")

    def tearDown(self):
        shutil.rmtree(self.root)

    def build(self, text="library"):
        return library_cache.built_library("shim.so", lambda path: write(path, text), self.folder)

    def test_the_folder_is_the_users_own(self):
        home = {"HOME": "/home/ada"}
        with mock.patch.dict(os.environ, home, clear=True):
            self.assertEqual(library_cache.cache_folder(home), "/home/ada/.cache/plimsoll")
            self.assertEqual(library_cache.cache_folder({**home, "XDG_CACHE_HOME": "/x"}), "/x/plimsoll")
            self.assertEqual(library_cache.cache_folder({**home, "XDG_CACHE_HOME": "not/absolute"}), "/home/ada/.cache/plimsoll")
            self.assertEqual(library_cache.cache_folder({**home, "XDG_CACHE_HOME": "/x", "PLIMSOLL_CACHE": "/y"}), "/y")

    def test_what_is_made_is_private_and_made_once(self):
        before = os.umask(0)
        try:
            path = self.build()
        finally:
            os.umask(before)
        self.assertEqual(os.stat(self.folder).st_mode & 0o7777, 0o700)
        self.assertEqual(os.stat(os.path.dirname(self.folder)).st_mode & 0o022, 0)
        self.assertEqual(self.build("another"), path)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "library")
        self.assertEqual(os.listdir(self.folder), ["shim.so"])

    def test_a_build_that_fails_leaves_nothing(self):
        def fail(path):
            write(path, "half")
            raise OSError("no compiler")
        with self.assertRaises(OSError):
            library_cache.built_library("shim.so", fail, self.folder)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_folder_that_others_may_use_is_refused(self):
        self.build()
        for mode in (0o777, 0o1777, 0o770, 0o755, 0o701):
            os.chmod(self.folder, mode)
            with self.assertRaisesRegex(UnsafePlace, "others may use it"):
                self.build()

    def test_a_folder_or_library_of_somebody_else_is_refused(self):
        path = self.build()
        with self.assertRaisesRegex(UnsafePlace, "belongs to user"):
            library_cache.private_folder(self.folder, user=os.geteuid() + 1)
        with self.assertRaisesRegex(UnsafePlace, "belongs to user"):
            library_cache.check_library(path, user=os.geteuid() + 1)
        if os.geteuid() == 0:
            os.chown(path, STRANGER, STRANGER)
            with self.assertRaisesRegex(UnsafePlace, "belongs to user 12345"):
                self.build()
            os.chown(path, 0, 0)
            os.chown(self.folder, STRANGER, STRANGER)
            with self.assertRaisesRegex(UnsafePlace, "belongs to user 12345"):
                self.build()

    def test_a_parent_that_others_may_write_is_refused_unless_sticky(self):
        self.build()
        parent = os.path.dirname(self.folder)
        os.chmod(parent, 0o1777)
        self.build()
        for mode in (0o777, 0o775):
            os.chmod(parent, mode)
            with self.assertRaisesRegex(UnsafePlace, "others may write in it"):
                self.build()
        if os.geteuid() == 0:
            os.chmod(parent, 0o755)
            os.chown(parent, STRANGER, STRANGER)
            with self.assertRaisesRegex(UnsafePlace, "could replace what is below"):
                self.build()

    def test_links_are_judged_by_where_they_lead(self):
        open_to_all = os.path.join(self.root, "open")
        os.mkdir(open_to_all)
        os.chmod(open_to_all, 0o777)
        write(os.path.join(open_to_all, "shim.so"), "planted")
        os.makedirs(os.path.dirname(self.folder))
        os.symlink(open_to_all, self.folder)
        with self.assertRaises(UnsafePlace):
            self.build()

    def test_a_library_that_others_may_write_or_a_link_is_refused(self):
        path = self.build()
        os.chmod(path, 0o722)
        with self.assertRaisesRegex(UnsafePlace, "others may write it"):
            self.build()
        os.unlink(path)
        os.symlink("/lib/elsewhere.so", path)
        with self.assertRaisesRegex(UnsafePlace, "not a regular file"):
            self.build()

    def fake_torch(self):
        return types.SimpleNamespace(__file__=os.path.join(self.root, "torch", "__init__.py"), __version__="9.9",
                                     _C=types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True))

    def test_a_library_planted_in_the_temporary_folder_is_not_loaded(self):
        planted = os.path.join(self.root, f"plimsoll-{os.getuid()}")
        os.mkdir(planted)
        write(os.path.join(planted, "oom_shim-9.9.so"), "planted")
        with mock.patch.object(tempfile, "gettempdir", return_value=self.root), \
             mock.patch.dict(os.environ, {"XDG_CACHE_HOME": os.path.join(self.root, "cache")}):
            os.environ.pop("PLIMSOLL_CACHE", None)
            self.assertIsNone(allocator._build_shim(self.fake_torch()))  # there is no PyTorch to compile against

    def test_an_unsafe_cache_is_a_warning_and_no_library(self):
        self.build()
        os.chmod(self.folder, 0o777)
        with mock.patch.dict(os.environ, {"PLIMSOLL_CACHE": self.folder}), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.assertIsNone(allocator._build_shim(self.fake_torch()))
        self.assertTrue(any("others may use it" in str(warning.message) for warning in told))


if __name__ == "__main__":
    unittest.main()
