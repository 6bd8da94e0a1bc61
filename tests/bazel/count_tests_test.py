#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The last line of .ci/run is right about what passed, failed and was skipped."""
import json
import os
import subprocess
import tempfile
import unittest


class CountTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.events = []

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def result(self, label, status, cases="", attempt=1, shard=1):
        xml = self.path("%s.%d.%d.xml" % (label.strip("/"), attempt, shard))
        with open(xml, "w") as file:
            file.write("<testsuites><testsuite>%s</testsuite></testsuites>" % cases)
        self.events += [
            {"id": {"targetCompleted": {"label": label}}, "completed": {"success": True}},
            {"id": {"testResult": {"label": label, "run": 1, "shard": shard, "attempt": attempt}},
             "testResult": {"status": status, "testActionOutput": [{"name": "test.xml", "uri": "file://" + xml}]}}]

    def count(self, status=0, steps="", run="plain"):
        with open(self.path(run + ".json"), "w") as file:
            file.writelines(json.dumps(event) + "\n" for event in self.events)
        with open(self.path(run + ".status"), "w") as file:
            file.write("%d\n" % status)
        with open(self.path("steps"), "w") as file:
            file.write(steps)
        done = subprocess.run(["bazel/count_tests.py", self.folder.name], stdout=subprocess.PIPE, text=True)
        return done.stdout.splitlines()[-1], done.returncode

    def test_cases_count_one_by_one(self):
        self.result("//a", "PASSED", "<testcase/><testcase/><testcase><skipped/></testcase>")
        self.assertEqual(self.count(), ("2 passed, 0 failed, 1 skipped", 0))

    def test_a_test_without_cases_counts_as_one(self):
        self.result("//a", "PASSED")
        self.assertEqual(self.count(), ("1 passed, 0 failed", 0))

    def test_failed_cases_are_distinguished_from_passed_ones(self):
        self.result("//a", "FAILED", "<testcase/><testcase><failure/></testcase><testcase><error/></testcase>")
        self.assertEqual(self.count(3), ("1 passed, 2 failed", 1))

    def test_googletests_word_for_skipped_is_known(self):
        self.result("//a", "PASSED", '<testcase result="skipped"/><testcase result="completed"/>')
        self.assertEqual(self.count(), ("1 passed, 0 failed, 1 skipped", 0))

    def test_a_test_that_ran_out_of_time_failed(self):
        self.result("//a", "TIMEOUT", "<testcase/>")
        self.assertEqual(self.count(3), ("0 passed, 1 failed", 1))

    def test_the_last_attempt_and_every_shard_count(self):
        self.result("//a", "FAILED", "<testcase><failure/></testcase>", attempt=1)
        self.result("//a", "PASSED", "<testcase/>", attempt=2)
        self.result("//a", "PASSED", "<testcase/>", shard=2)
        self.assertEqual(self.count(), ("2 passed, 0 failed", 0))

    def test_what_does_not_build_failed(self):
        self.result("//a", "PASSED", "<testcase/>")
        self.events.append({"id": {"targetCompleted": {"label": "//b"}}, "completed": {}})
        self.events.append({"id": {"targetCompleted": {"label": "//c"}}, "aborted": {"reason": "ANALYSIS_FAILURE"}})
        self.assertEqual(self.count(1), ("1 passed, 2 failed", 1))

    def test_a_bazel_that_fails_otherwise_failed(self):
        self.assertEqual(self.count(37), ("0 passed, 1 failed", 1))

    def test_an_event_that_was_truncated_ends_the_list(self):
        self.result("//a", "PASSED", "<testcase/>")
        self.count()
        with open(self.path("cut.json"), "w") as file:
            file.write('{"id": {"testRes')
        with open(self.path("cut.status"), "w") as file:
            file.write("36")
        self.assertEqual(self.count(), ("1 passed, 1 failed", 1))

    def test_steps_count_too(self):
        self.assertEqual(self.count(steps="setup 0\nformat 1\n"), ("1 passed, 1 failed", 1))

    def test_runs_add_up(self):
        self.result("//a", "PASSED", "<testcase/>")
        self.count(run="plain")
        self.assertEqual(self.count(run="asan"), ("2 passed, 0 failed", 0))


if __name__ == "__main__":
    unittest.main()
