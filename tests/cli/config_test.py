#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`muster serve --config=FILE`: what the file sets, what the command line replaces, what is refused and where."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, "tests/tensorflow")
import peer

PATIENCE = 60


class ConfigTest(peer.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "muster.conf")

    def write(self, *lines):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def check(self, *flags):
        return subprocess.run([peer.MUSTER, "serve", "--config=" + self.file, "--check-config", *flags],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)

    def refuse(self, *words, flags=()):
        said = self.check(*flags)
        self.assertEqual((said.returncode, said.stdout), (3, ""), said.stderr)
        for some in words:
            self.assertIn(some, said.stderr)

    def page_of(self, *flags):
        """/metrics of a server with this file, which also shows that it starts."""
        served = subprocess.Popen([peer.MUSTER, "serve", *flags], stdout=subprocess.PIPE, text=True,
                                  preexec_fn=peer.die_with_parent)
        try:
            at = dict(served.stdout.readline().split() for _ in range(2))
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(at["http"] + "/metrics", timeout=PATIENCE) as answer:
                return answer.read().decode()
        finally:
            served.send_signal(signal.SIGTERM)
            self.assertEqual(served.wait(PATIENCE), 0)
            served.stdout.close()

    def limit(self, page, name):
        return int(re.search(r'muster_limit\{limit="%s"\} (\d+)' % name, page).group(1))

    def test_sets_what_the_command_line_does_not(self):
        self.write("# comment", "[serve]", "listen = localhost:0", "http=localhost:0", "", "max-sessions=7",
                   "max-watchers=8", "insecure=false")
        page = self.page_of("--config=" + self.file, "--max-sessions=9")
        self.assertEqual(self.limit(page, "sessions"), 9)
        self.assertEqual(self.limit(page, "watchers"), 8)
        page = self.page_of("--max-sessions", "9", "--config", self.file)
        self.assertEqual(self.limit(page, "sessions"), 9)

    def test_check_says_that_it_is_valid_and_takes_no_port(self):
        with socket.create_server(("127.0.0.1", 0)) as held:
            self.write("[serve]", "listen=127.0.0.1:%d" % held.getsockname()[1])
            said = self.check()
            self.assertEqual((said.returncode, said.stdout, said.stderr), (0, self.file + ": valid\n", ""))
        said = subprocess.run([peer.MUSTER, "serve", "--check-config", "--max-sessions=-1"], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        self.assertEqual(said.returncode, 3)
        self.assertIn("--max-sessions=-1 is out of range (use 1 to ", said.stderr)

    def test_refuses_what_no_server_can_do(self):
        self.write("[serve]")
        for name in "expect", "data-dir", "http-host", "tls-cert":
            self.refuse("--%s is empty; is a variable of the script unset?" % name, flags=["--%s=" % name])
        for lines in (["listen=localhost:1", "http=localhost:1"], ["health-listen=localhost:1", "http=localhost:1"]):
            self.write("[serve]", *lines)
            self.refuse(":3: http: 'localhost:1' is used by another option already")
        self.write("[serve]")
        for line, words in [("http-host=a/b", "http-host: invalid name 'a/b' (use a host name)"),
                            ("role=worker=run", ":2: role gives roles to client certificates; set --tls-ca, "),
                            ("listen=localhost:1,unix:/tmp/a,localhost:1", "--listen has 'localhost:1' twice")]:
            self.write("[serve]", line)
            self.refuse(words)
        self.write("[serve]", "listen=localhost:0,localhost:0")
        self.assertEqual(self.check().returncode, 0)

    def test_an_empty_file_sets_nothing(self):
        for lines in [], ["[serve]"], ["# nothing"]:
            self.write(*lines)
            self.assertEqual(self.check().returncode, 0)

    def test_names_the_line_of_an_unknown_option_and_the_nearest_name(self):
        self.write("[serve]", "", "max-session=7")
        self.refuse("%s:3: unknown option 'max-session'; did you mean 'max-sessions'?" % self.file)
        self.write("[serve]", "colour=blue")
        self.refuse("%s:2: unknown option 'colour'\n" % self.file)
        for alone in "config", "check-config", "help":
            self.write("[serve]", alone + "=true")
            self.refuse("%s:2: unknown option '%s'" % (self.file, alone))

    def test_names_the_line_of_what_is_no_setting(self):
        for line, words in [("[server]", "unknown group (use [serve])"),
                            ("max-sessions", "this line isn't a setting (use NAME=VALUE)"),
                            ("=7", "this line isn't a setting"),
                            ("listen=localhost:1", "'listen' is already set in line 2")]:
            self.write("[serve]", "listen=localhost:0", line)
            self.refuse("%s:3: %s" % (self.file, words))
        self.write("listen=localhost:0", "[serve]")
        self.refuse("%s:1: this line is before the line '[serve]'" % self.file)

    def test_names_the_line_of_a_wrong_value(self):
        for line, words in [("max-sessions=many", "max-sessions: invalid value 'many' (use a number)"),
                            ("max-sessions=7 # seven", "invalid value '7 # seven'"),
                            ("max-sessions=-1", "max-sessions=-1 is out of range (use 1 to "),
                            ("insecure=yes", "insecure: invalid value 'yes' (use true or false)"),
                            ("chief-lease=soon", "chief-lease: invalid duration 'soon'"),
                            ("chief-lease=0", "chief-lease: invalid time '0' (use 1s or more)"),
                            ("listen=", "listen: invalid value ''"),
                            ("expect=", "expect: invalid value '' (use a value, or remove the line)"),
                            ("data-dir=", "data-dir: invalid value '' (use a value, or remove the line)"),
                            ("data-dir=;/tmp", "data-dir: invalid value '' (use a value in each place of the list)"),
                            ("data-dir=/tmp; ;/var", "data-dir: invalid value '' (use a value in each place of the list)")]:
            self.write("[serve]", line)
            self.refuse("%s:2: " % self.file, words)

    def test_a_wrong_value_is_refused_though_the_command_line_replaces_it(self):
        self.write("[serve]", "max-sessions=many")
        self.refuse("max-sessions: invalid value 'many'", flags=["--max-sessions=7"])

    def test_blames_the_command_line_for_its_own(self):
        self.write("[serve]", "max-sessions=7")
        self.refuse("--max-sessions=-2 is out of range", flags=["--max-sessions=-2"])

    def test_refuses_the_limits_of_64_bits_as_other_numbers(self):
        self.write("[serve]", "max-sessions=-9223372036854775808")
        self.refuse("max-sessions=-9223372036854775808 is out of range")
        self.write("[serve]")
        for name in ("max-graph-bytes", "max-op-bytes"):
            for number in ("-1", "-9223372036854775808"):
                self.refuse("--%s=%s is out of range (use 1 to 9223372036854775807)" % (name, number), flags=["--%s=%s" % (name, number)])

    def test_checks_the_files_and_addresses_that_it_names(self):
        self.write("[serve]", "token-file=/no/such/file")
        self.refuse("/no/such/file")
        self.write("[serve]", "listen=0.0.0.0:2222")
        self.refuse("'0.0.0.0:2222' is reachable from other machines")
        self.write("[serve]", "listen=nowhere", "insecure=true")
        self.refuse("nowhere")
        self.write("[serve]", "http=localhost:many")
        self.refuse("localhost:many")

    def test_prints_nothing_of_a_file_that_is_none(self):
        for text in "run s3cret-token\n", "[s3cret-token]\n", "[serve]\ns3cret-token\n":
            self.write(*text.splitlines())
            self.assertNotIn("s3cret-token", self.check().stderr)

    def test_refuses_a_file_that_it_cannot_read(self):
        self.refuse("--config: can't read '%s': No such file" % self.file)
        os.mkfifo(self.file)
        self.refuse("it is a pipe; use a regular file")
        os.remove(self.file)
        with open(self.file, "wb") as file:
            file.truncate(1 << 40)
        self.refuse("is too large: the limit is 1048576 bytes")
        for path, words in [("/dev/zero", "it is a device"), ("/", "it is a directory")]:
            said = subprocess.run([peer.MUSTER, "serve", "--check-config", "--config=" + path], capture_output=True,
                                  text=True, timeout=PATIENCE, check=False)
            self.assertEqual(said.returncode, 3)
            self.assertIn(words, said.stderr)
        with open(self.file, "wb") as file:
            file.write(b"[serve]\nlisten=\xff\n")
        self.refuse("isn't UTF-8 text")
        said = subprocess.run([peer.MUSTER, "serve", "--help", "--config=/no/such/file"], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)


if __name__ == "__main__":
    peer.main()
