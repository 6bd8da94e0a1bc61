#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""count_tests.py FOLDER: adds up test results and prints "N passed, N failed".

FOLDER holds, for each run of bazel test, NAME.json (its build event file) and NAME.status (its exit
status), and `steps`, lines of "NAME STATUS" that count as one test each. A GoogleTest binary counts
its test cases, any other test counts as one. What didn't build, crashed or ran out of time counts
as one failure. Exits with 1 when anything failed.
"""
import glob
import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree as ET


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def fail(self, what, times=1):
        self.failed += times
        self.failures.append(what)


def events(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                return  # cut off when Bazel was killed


def test_cases(result):
    for output in result.get("testActionOutput", ()):
        if output["name"] != "test.xml" or not output.get("uri", "").startswith("file://"):
            continue
        try:
            yield from ET.parse(urllib.parse.unquote(output["uri"][len("file://"):])).getroot().iter("testcase")
        except (OSError, ET.ParseError):
            pass


def was_skipped(case):
    return case.find("skipped") is not None or case.get("result") == "skipped"


def count_result(count, label, result):
    cases = list(test_cases(result))
    bad = sum(1 for c in cases if c.find("failure") is not None or c.find("error") is not None)
    skipped = sum(1 for c in cases if was_skipped(c))
    if result.get("status") not in ("PASSED", "FLAKY") and bad == 0:
        # A crash, a time-out: at least this one. The cases before it passed, if they are known.
        count.fail("%s: %s" % (label, result.get("status", "no result")))
        skipped, cases = 0, []
    elif bad:
        count.fail("%s: %d of %d" % (label, bad, len(cases)), bad)
    elif not cases:
        cases = [None]
    count.skipped += skipped
    count.passed += max(0, len(cases) - bad - skipped)


def count_run(count, path):
    ended = {}  # the last attempt of each shard and run
    unbuilt = set()
    for event in events(path):
        identity = event.get("id", {})
        if "testResult" in identity:
            name = identity["testResult"]
            ended[name["label"], name.get("run", 0), name.get("shard", 0)] = event.get("testResult", {})
        elif "targetCompleted" in identity and not event.get("completed", {}).get("success"):
            unbuilt.add(identity["targetCompleted"]["label"])
    for (label, _, _), result in sorted(ended.items()):
        count_result(count, label, result)
        unbuilt.discard(label)
    for label in sorted(unbuilt):
        count.fail("%s: didn't build" % label)


def count_folder(folder):
    count = Count()
    for path in sorted(glob.glob(os.path.join(folder, "*.status"))):
        run = os.path.basename(path)[:-len(".status")]
        before = count.failed
        with open(path, encoding="utf-8") as file:
            status = int(file.read())
        if os.path.exists(path[:-len(".status")] + ".json"):
            count_run(count, path[:-len(".status")] + ".json")
        if status != 0 and count.failed == before:
            count.fail("bazel test (%s) ended with %d" % (run, status))
    try:
        with open(os.path.join(folder, "steps"), encoding="utf-8") as file:
            steps = [line.split() for line in file]
    except OSError:
        steps = []
    for name, status in steps:
        if status == "0":
            count.passed += 1
        else:
            count.fail("%s ended with %s" % (name, status))
    return count


def main():
    count = count_folder(sys.argv[1])
    for failure in count.failures:
        print("FAILED " + failure)
    print("%d passed, %d failed%s" % (
        count.passed, count.failed, ", %d skipped" % count.skipped if count.skipped else ""))
    sys.exit(1 if count.failed else 0)


if __name__ == "__main__":
    main()
