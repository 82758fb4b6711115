#!/usr/bin/env python3
"""What tools/merge_profiles.py makes of profiles, and what it refuses."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import merge_profiles  # noqa: E402


def profile(measured, kernels=None, rate=1e12, **more):
    card = {"instruction_set": "sm_90 tf32", "library": "cuDNN 9.14.0", "kernels": kernels or {}}
    return {"schema": 1, "name": "cuda:0", "note": "", "memory_bytes": 1 << 37, "operations_per_second": {"fp32": rate}, "memory_bytes_per_second": 4e12,
            "launch_seconds": 2e-6, "efficiency": {"relu": 0.5}, "card": card, "measured": measured} | more


class MergeProfiles(unittest.TestCase):
    def merged(self, *profiles):
        return merge_profiles.merge(list(profiles), "h200", "a note")

    def test_operators_are_those_of_all_models_with_the_least_of_their_times(self):
        out = self.merged(profile({"a": 1.23456e-5, "b": 3e-6}), profile({"a": 2e-5, "c": 4e-6}))
        self.assertEqual(out["measured"], {"a": 1.235e-5, "b": 3e-6, "c": 4e-6})

    def test_kernels_keep_scratch_and_engines(self):
        out = self.merged(profile({}, {"a": {"scratch_bytes": 256, "engine": "cudnn:1"}}), profile({}, {"b": {"in_place": False}}))
        self.assertEqual(out["card"]["kernels"], {"a": {"scratch_bytes": 256, "engine": "cudnn:1"}, "b": {"in_place": False}})
        self.assertEqual(out["card"]["instruction_set"], "sm_90 tf32")

    def test_rates_are_medians_and_shares_of_models_are_left_out(self):
        out = self.merged(*(profile({}, rate=rate) for rate in (1e12, 5e12, 2e12)))
        self.assertEqual(out["operations_per_second"], {"fp32": 2e12})
        self.assertEqual((out["name"], out["note"]), ("h200", "a note"))
        self.assertIsInstance(self.merged(profile({}), profile({}))["memory_bytes"], int)
        self.assertNotIn("efficiency", out)

    def test_other_cards_other_libraries_and_other_engines_are_refused(self):
        plain = profile({})
        plain["card"]["instruction_set"] = "sm_90"
        for other in (profile({}, memory_bytes=1 << 36), plain, profile({}, {"a": {"engine": "cudnn:2"}})):
            with self.assertRaises(ValueError):
                self.merged(profile({}, {"a": {"engine": "cudnn:1"}}), other)

    def test_what_was_not_measured_stays_as_an_earlier_profile_has_it(self):
        out = self.merged(profile({"a": 1e-6}, {"a": {"engine": "cudnn:1"}}))
        base = self.merged(profile({"a": 9e-6, "b": 2e-6}, {"a": {"scratch_bytes": 9}, "b": {"scratch_bytes": 256}}))
        self.assertEqual(merge_profiles.keep_what_is_missing(out, base), 1)
        self.assertEqual(out["measured"], {"a": 1e-6, "b": 2e-6})
        self.assertEqual(out["card"]["kernels"], {"a": {"engine": "cudnn:1"}, "b": {"scratch_bytes": 256}})

    def test_rates_that_tf32_hides_are_the_earlier_ones(self):
        out = self.merged(profile({}, rate=455e12))
        merge_profiles.keep_what_is_missing(out, self.merged(profile({}, rate=51e12)))
        self.assertEqual(out["operations_per_second"], {"fp32": 51e12})


if __name__ == "__main__":
    unittest.main()
