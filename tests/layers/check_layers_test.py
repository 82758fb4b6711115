#!/usr/bin/env python3
"""tools/check_layers.py finds what it is there for: violations are planted in a small tree of modules."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).resolve().parents[2] / "tools/check_layers.py"

# bottom, middle (may use bottom), top (may use middle): a tree without a fault.
GOOD = {
    "tools/layers.txt": "# a comment\nbase:\nbottom:\nmiddle: bottom\ntop: middle\n",
    "src/plimsoll/base/units.h": "",
    "src/plimsoll/base/CMakeLists.txt": "plimsoll_module(base)",
    "src/plimsoll/bottom/grain.h": "namespace plimsoll::bottom { struct Grain {}; }\n",
    "src/plimsoll/bottom/CMakeLists.txt": "plimsoll_module(bottom LINK plimsoll::base)",
    "src/plimsoll/middle/bread.h": '#include "plimsoll/bottom/grain.h"\n'
    "namespace plimsoll::middle { using bottom::Grain; }\n",
    "src/plimsoll/middle/bread.cpp": '#include "plimsoll/middle/bread.h"\n',
    "src/plimsoll/middle/CMakeLists.txt": "plimsoll_module(middle LINK plimsoll::bottom PRIVATE_LINK ZLIB::ZLIB)",
    "src/plimsoll/top/meal.cpp": '#include "plimsoll/middle/bread.h"\n'
    "// bottom::Grain in a comment\n"
    'const char* text = "bottom::Grain"; plimsoll::middle::Grain grain; other::bottom::Thing thing;\n',
    "src/plimsoll/top/CMakeLists.txt": "plimsoll_module(top LINK plimsoll::middle)",
}


class CheckLayers(unittest.TestCase):
    def problems(self, files=()):
        """The checker's lines for the good tree with some files replaced."""
        with tempfile.TemporaryDirectory() as folder:
            for name, content in {**GOOD, **dict(files)}.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            done = subprocess.run([sys.executable, CHECKER, folder], capture_output=True, text=True, check=False)
        lines = done.stderr.splitlines()
        self.assertEqual(done.returncode, 1 if lines else 0, done.stdout)
        return lines

    def expect(self, problem, files):
        lines = self.problems(files=files)
        self.assertTrue(any(problem in line for line in lines), f"{problem!r} is not in {lines}")

    def test_a_right_tree_has_no_problem(self):
        self.assertEqual(self.problems(), [])

    def test_an_include_that_is_not_in_the_table(self):
        self.expect(
            "top/meal.cpp:1: top may not include bottom",
            {"src/plimsoll/top/meal.cpp": '#include "plimsoll/bottom/grain.h"\n'},
        )

    def test_a_name_of_a_module_that_somebody_else_included(self):
        for use in ("bottom::Grain grain;", "plimsoll::bottom::Grain grain;", "f(bottom::Grain{});"):
            self.expect(
                "top/meal.cpp:2: top may not use bottom::",
                {"src/plimsoll/top/meal.cpp": f'#include "plimsoll/middle/bread.h"\n{use}\n'},
            )

    def test_a_link_that_is_not_in_the_table(self):
        self.expect(
            "top may not link bottom",
            {"src/plimsoll/top/CMakeLists.txt": "plimsoll_module(top LINK plimsoll::middle plimsoll::bottom)"},
        )

    def test_an_include_that_is_not_linked(self):
        self.expect(
            "middle includes bottom and does not link it",
            {"src/plimsoll/middle/CMakeLists.txt": "plimsoll_module(middle LINK plimsoll::base)"},
        )

    def test_a_module_in_the_table_that_does_not_exist(self):
        self.expect("there is no module cellar", {"tools/layers.txt": GOOD["tools/layers.txt"] + "cellar:\n"})

    def test_a_module_that_the_table_forgot(self):
        self.expect("the module attic is missing", {"src/plimsoll/attic/box.h": ""})

    def test_a_cycle_in_the_table(self):
        table = "base:\nbottom: top\nmiddle: bottom\ntop: middle\n"
        self.expect("a cycle: bottom, middle, top", {"tools/layers.txt": table})

    def test_units_that_include_each_other(self):
        files = {
            "src/plimsoll/middle/flour.h": '#include "plimsoll/middle/dough.h"\n',
            "src/plimsoll/middle/dough.cpp": '#include "plimsoll/middle/dough.h"\n#include "plimsoll/middle/flour.h"\n',
            "src/plimsoll/middle/dough.h": "",
        }
        self.expect("units include each other in a circle: middle/dough, middle/flour", files)
        # A test belongs to no unit: it may include whatever it tests.
        files["src/plimsoll/middle/dough_test.cpp"] = files.pop("src/plimsoll/middle/dough.cpp")
        self.assertEqual(self.problems(files=files), [])

    def test_support_of_tests_in_what_is_shipped_is_found(self):
        support = {"src/plimsoll/middle/testing/crumb.h": '#include "plimsoll/middle/bread.h"\n'}
        include = '#include "plimsoll/middle/testing/crumb.h"\n'
        self.assertEqual(self.problems({**support, "src/plimsoll/top/meal_test.cpp": include}), [])
        self.assertEqual(
            self.problems({**support, "src/plimsoll/top/soup.cpp": include}),
            ["src/plimsoll/top/soup.cpp:1: only tests may include middle/testing/crumb.h"],
        )


if __name__ == "__main__":
    unittest.main()
