#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The manual page and the service: do they say what the command says of itself?"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PATIENCE = 60


def run(*command, **rest):
    return subprocess.run(command, text=True, capture_output=True, timeout=PATIENCE, **rest)


def help_of(*words):
    done = run("cli/muster", *words, "--help")
    assert done.returncode == 0, done
    return done.stdout


def commands():
    for name in re.findall(r"^  ([a-z]+) ", help_of().partition("Commands:")[2].partition("\n\n")[0], re.M):
        if name == "help":
            continue
        text = help_of(name)
        if "\nOptions:" in text:
            yield name, text
        else:
            for verb in re.findall(r"^  ([a-z]+) ", text, re.M):
                yield name + " " + verb, help_of(name, verb)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open("packaging/muster.1", encoding="utf-8") as file:
            cls.page = file.read().replace("\\-", "-")

    def section(self, begin):
        return re.search(r"^\.S[HS] %s\b.*\n((?:(?!\.S[HS] ).*\n?)*)" % re.escape(begin), self.page, re.M).group(1)

    def test_has_every_command_with_every_option(self):
        common = self.section("COMMON OPTIONS")
        names = [name for name, _ in commands()]
        self.assertTrue({"serve", "prepare", "wait", "train", "checkpoint verify"} <= set(names), names)
        for name, text in commands():
            told = self.section("muster " + name)
            for option in re.findall(r"^  (--[a-z-]+)", text.partition("\nOptions:")[2].replace("  --help ", ""), re.M):
                self.assertRegex(told, re.escape(option) + r"(?![a-z-])", name)
                self.assertTrue(re.search(r"^\.BI? %s\b" % option, told + common, re.M), "%s of %s isn't explained" % (option, name))

    def test_has_no_option_that_no_command_knows(self):
        known = set(re.findall(r"--[a-z-]+", "".join(text for _, text in commands()))) | {"--version"}
        self.assertLessEqual(set(re.findall(r"(?<![a-z-])--[a-z-]+", self.page)), known)

    def test_has_every_exit_code(self):
        told = help_of().partition("Exit codes:")[2]
        codes = re.findall(r"\b(\d) [a-z]", told)
        self.assertEqual(codes, re.findall(r"^\.B (\d)$", self.section("EXIT STATUS"), re.M))

    def test_is_roff(self):
        done = run("groff", "-man", "-ww", "-z", "-Tutf8", "-K", "utf-8", "packaging/muster.1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Service(unittest.TestCase):
    def test_runs_a_command_that_there_is(self):
        with open("packaging/muster-serve.service.in", encoding="utf-8") as file:
            unit = file.read()
        self.assertRegex(unit, r"(?m)^Type=notify$")
        self.assertRegex(unit, r"(?m)^ExecStart=@prefix@/bin/muster serve --config=@sysconfdir@/muster/muster.conf ")
        # Both deny openat2 (), without which there is no data-dir=.
        self.assertNotRegex(unit, r"(?m)^(DynamicUser|RestrictSUIDSGID)=")
        with open("packaging/muster.default", encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^MUSTER_SERVE_OPTIONS=$")

    def test_has_a_configuration_that_the_command_takes(self):
        with open("packaging/muster.conf", encoding="utf-8") as file:
            text = file.read()
        with tempfile.TemporaryDirectory(dir=os.environ["TEST_TMPDIR"]) as folder:
            path = folder + "/muster.conf"
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("/var/lib/muster", folder).replace(":2222", ":0"))
            done = run("cli/muster", "serve", "--config=" + path, "--check-config")
            self.assertEqual(done.returncode, 0, done.stderr)
        for option in re.findall(r"^#?([a-z-]+)=", text, re.M):
            self.assertIn("--%s=" % option, help_of("serve"))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze, from systemd")
    def test_is_understood_by_systemd(self):
        with tempfile.TemporaryDirectory(dir=os.environ["TEST_TMPDIR"]) as folder:
            with open("packaging/muster-serve.service.in", encoding="utf-8") as file:
                unit = file.read().replace("@prefix@/bin/muster", "/bin/true").replace("@sysconfdir@", "/etc")
            path = folder + "/muster-serve.service"
            with open(path, "w", encoding="utf-8") as file:
                file.write(unit)
            done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path)
            self.assertEqual((done.returncode, [line for line in done.stderr.splitlines() if "muster-serve" in line]), (0, []))
            rated = run("systemd-analyze", "security", "--offline=true", "--threshold=20", path)
            self.assertEqual(rated.returncode, 0, rated.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
