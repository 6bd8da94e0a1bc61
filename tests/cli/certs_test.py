#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`muster certs`: what it makes secures a server, gives its callers their roles, and is replaced while a job trains."""

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import unittest
import urllib.request
import warnings

sys.path.insert(0, "tests/tensorflow")
import peer

DIGITS, X, Y = (peer.fixture(name) for name in ("digits.meta", "digits_x.npy", "digits_y.npy"))
MODEL = "--meta-graph=" + DIGITS


def modes(folder):
    return {name: stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder)}


class Certs(peer.TestCase):
    def setUp(self):
        self.files = os.path.join(self.folder(), "pki")
        self.made = peer.muster("certs", self.files)

    def path(self, name):
        return os.path.join(self.files, name)

    def server(self, *more):
        """Flags of a server that requires a certificate and a token."""
        return ["--tls-cert=" + self.path("server.pem"), "--tls-key=" + self.path("server.key"),
                "--token-file=" + self.path("tokens"), "--tls-ca=" + self.path("ca.pem"), *more]

    def client(self, role, name="client"):
        return ["--tls-ca=" + self.path("ca.pem"), "--tls-cert=" + self.path(name + ".pem"),
                "--tls-key=" + self.path(name + ".key"), "--token-file=" + self.path(role + ".token")]

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_makes_secrets_that_only_their_owner_can_read(self):
        secrets = ["ca.key", "server.key", "client.key", "tokens", "admin.token", "run.token", "read.token"]
        self.assertEqual(modes(self.files), {**{name: 0o600 for name in secrets},
                                             **{name: 0o644 for name in ("ca.pem", "server.pem", "client.pem")}})
        for name in secrets:
            self.assertNotIn(self.read(name).strip(), self.made)
        for role in "admin", "run", "read":
            self.assertNotIn(self.read(role + ".token").strip(), self.read("tokens"))

    def test_keeps_what_is_there(self):
        before = {name: self.read(name) for name in os.listdir(self.files)}
        said = peer.muster("certs", self.files, "--client=worker")
        self.assertIn("kept %s" % self.path("server.pem"), said)
        self.assertEqual({name: self.read(name) for name in before}, before)
        self.assertEqual(set(os.listdir(self.files)) - set(before), {"worker.pem", "worker.key"})

    def test_refuses_what_it_cannot_make(self):
        os.chmod(self.path("ca.key"), 0o644)
        self.assertIn("chmod 600", peer.muster("certs", self.files, "--renew", code=3))
        fresh = os.path.join(self.folder(), "other")
        for flag in "--host=a,b", "--client=a/b", "--client=ca", "--days=0", "--days=40000":
            self.assertIn("invalid", peer.muster("certs", fresh, flag, code=3), flag)
        self.assertFalse(os.path.exists(fresh))
        self.assertIn("needs DIR", peer.muster("certs", code=3))

    def test_gives_each_role_its_commands(self):
        target = self.serve(*self.server())
        master = "--master=" + target
        peer.muster("status", target, *self.client("read"))
        refused = peer.muster("prepare", MODEL, master, *self.client("read"), code=3)
        self.assertIn("CreateSession needs the role 'run', and the client 'client' has 'read'", refused)
        peer.muster("prepare", MODEL, master, *self.client("run"))
        peer.muster("run", MODEL, master, "--target=train", "--feed=x:0=@" + X, "--feed=y:0=@" + Y, *self.client("run"))
        refused = peer.muster("finish", MODEL, master, *self.client("run"), code=3)
        self.assertIn("needs the role 'admin'", refused)
        peer.muster("finish", MODEL, master, *self.client("admin"))

    def test_logs_who_was_refused_and_who_administers_but_no_secret(self):
        path = os.path.join(self.folder(), "log")
        with self.logged_serve(path, *self.server()) as target:
            master = "--master=" + target
            peer.muster("prepare", MODEL, master, *self.client("read"), code=3)
            peer.muster("prepare", MODEL, master, *self.client("run"))
            peer.muster("finish", MODEL, master, *self.client("run"), code=3)
            peer.muster("finish", MODEL, master, *self.client("admin"))
            tokens = [self.read(role + ".token").strip() for role in ("admin", "run", "read")]
            peer.muster("certs", self.files, "--renew", "--renew-tokens")
            peer.await_true(lambda: self.status(target, self.client("read")) == 0, "the new tokens are read")
        text, events = self.log_of(path)
        refused = [event for event in events if event["event"] == "refused"]
        self.assertEqual([(event["method"], event["role"], event["client"]) for event in refused if event["role"] == "read"],
                         [("/tensorflow.MasterService/CreateSession", "read", "client")], refused)
        audit = [event for event in events if event["event"] == "audit"]
        self.assertEqual([(event["model"], event["role"], "error" in event) for event in audit],
                         [("digits", "run", True), ("digits", "admin", False)])
        self.assertRegex(audit[1]["client"], r"^(127\.0\.0\.1|\[::1\]):\d+, certificate 'client', token of line 1$")
        reloads = [event for event in events if event["event"] == "reload" and event["level"] == "info"]
        self.assertEqual({event["file"] for event in reloads}, {self.path("tokens"), self.path("server.pem")})
        self.assertEqual([event["count"] for event in reloads if "count" in event], [6])
        for token in tokens + [self.read(role + ".token").strip() for role in ("admin", "run", "read")]:
            self.assertNotIn(token, text)

    @staticmethod
    @contextlib.contextmanager
    def logged_serve(path, *flags):
        """A server with its log, as JSON, in a file; its target."""
        with open(path, "wb") as log:
            server = subprocess.Popen([peer.MUSTER, "serve", "--listen=localhost:0", "--log-format=json", *flags],
                                      stdout=subprocess.PIPE, stderr=log, preexec_fn=peer.die_with_parent)
        try:
            yield peer.first_line(server, "muster serve").split()[1]
        finally:
            peer.end(server)

    @staticmethod
    def log_of(path):
        with open(path, encoding="utf-8") as log:
            text = log.read()
        return text, [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def drop_old_tokens(self):
        """What an operator does last: the file is replaced as a whole."""
        lines = self.read("tokens").split("#")[0]
        with open(os.open(self.path("tokens.new"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(lines)
        os.rename(self.path("tokens.new"), self.path("tokens"))

    def test_a_gateway_goes_on_with_its_next_certificate_and_token(self):
        target = self.serve(*self.server())
        path = os.path.join(self.folder(), "log")
        old = self.path("old.token")
        with open(os.open(old, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(self.read("run.token"))
        upstream = [flag.replace("--", "--master-", 1) for flag in self.client("run")]
        with self.logged_serve(path, "--master=" + target, *upstream) as gateway:
            step = [MODEL, "--master=" + gateway, "--target=train", "--feed=x:0=@" + X, "--feed=y:0=@" + Y]
            peer.muster("prepare", MODEL, "--master=" + gateway)
            peer.muster("run", *step)
            peer.muster("certs", self.files, "--renew", "--renew-tokens")
            read_again = lambda: {event.get("file") for event in self.log_of(path)[1] if event["event"] == "reload"}
            peer.await_true(lambda: read_again() >= {self.path("run.token"), self.path("client.pem")}, "the gateway read them")
            peer.await_true(lambda: self.status(target, self.client("read")) == 0, "the server read them")
            self.drop_old_tokens()
            peer.await_true(lambda: self.status(target, [*self.client("run")[:3], "--token-file=" + old]) == 3,
                            "the old token is refused")
            peer.muster("run", *step)

    def test_gives_certificates_roles_by_name(self):
        peer.muster("certs", self.files, "--client=worker")
        target = self.serve(*self.server("--role=worker=run", "--role=*=read"))
        peer.muster("status", target, *self.client("admin"))
        self.assertIn("role 'run'", peer.muster("prepare", MODEL, "--master=" + target, *self.client("admin"), code=3))
        peer.muster("prepare", MODEL, "--master=" + target, *self.client("admin", "worker"))

    def test_replaces_all_under_load_without_a_failed_step(self):
        """The authority's certificates, then the tokens; at last the old tokens are refused."""
        target = self.serve(*self.server())
        old = self.path("old.token")
        with open(os.open(old, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(self.read("read.token"))
        job = subprocess.Popen(
            [peer.MUSTER, "train", MODEL, "--master=" + target, "--feed=x:0=@" + X, "--feed=y:0=@" + Y, "--loss=loss:0",
             "--steps=1000000000", "--json", *self.client("run")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(self.kill, job)
        reader = self.client("read")
        steps = lambda: int((re.findall(r"(\d[\d,]*) in all", peer.muster("status", target, *reader)) or ["0"])[0]
                            .replace(",", ""))
        peer.await_true(lambda: steps() > 100, "the job trains")

        peer.muster("certs", self.files, "--renew", "--renew-tokens")
        peer.await_true(lambda: self.status(target, reader) == 0, "the new token is accepted")
        self.assertEqual(self.status(target, [*reader[:-1], "--token-file=" + old]), 0)
        before = steps()
        peer.await_true(lambda: steps() > before + 100, "the job trains with the new token")
        self.drop_old_tokens()
        peer.await_true(lambda: self.status(target, [*reader[:-1], "--token-file=" + old]) == 3, "the old token is refused")
        before = steps()
        peer.await_true(lambda: steps() > before + 100, "the job still trains")

        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGTERM)
        out, err = job.communicate(timeout=peer.COMMAND_SECONDS)
        self.assertEqual(job.returncode, 6, err)
        said = set(re.findall(r'"event":"(\w+)"', out)) - {"waiting"}  # for two seconds at its start, on a slow machine
        self.assertEqual(said, {"ready", "step", "preempted"})  # not: lost
        self.assertNotIn("token", out + err)

    def test_reads_its_files_at_a_hangup_and_does_not_end(self):
        """A bad file changes nothing, whether a hangup or its time is the reason to read it."""
        with peer.muster_process(*self.server()) as (target, pid):
            reader = self.client("read")
            self.assertEqual(self.status(target, reader), 0)
            with open(self.path("tokens"), "a", encoding="utf-8") as file:
                file.write("admin\n")
            os.kill(pid, signal.SIGHUP)
            self.assertEqual(self.status(target, reader), 0)
            peer.muster("certs", self.files, "--renew", "--renew-tokens")
            self.assertEqual(self.status(target, self.client("read")), 3)
            with open(self.path("tokens"), "r+", encoding="utf-8") as file:
                good = file.read().replace("admin\n", "")
                file.seek(0)
                file.truncate()
                file.write(good)
            os.kill(pid, signal.SIGHUP)
            peer.await_true(lambda: self.status(target, self.client("read")) == 0, "the new tokens are read")
        for flags in [], ["--token-file=" + self.path("tokens")]:
            with peer.muster_process(*flags) as (target, pid):
                os.kill(pid, signal.SIGHUP)
                self.assertEqual(self.status(target, ["--token-file=" + self.path("read.token")]), 0)
                self.assertTrue(peer.is_running(pid))

    def test_goes_on_and_ends_whatever_its_files_become(self):
        """A pipe without a writer would block who opens it, a device who reads it."""
        odd = {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda path: os.symlink("/dev/zero", path),
               "sparse": lambda path: open(path, "wb").truncate(1 << 40)}
        for name, make in odd.items():
            make(self.path(name))
        for file in "tokens", "server.pem", "server.key", "ca.pem":
            kept = self.path(file + ".kept")
            with peer.muster_process(*self.server()) as (target, pid):
                os.rename(self.path(file), kept)
                for name in odd:
                    os.link(self.path(name), self.path(file)) if name in ("pipe", "sparse") else \
                        os.symlink(self.path(name), self.path(file))
                    os.kill(pid, signal.SIGHUP)
                    flags = [flag.replace("ca.pem", "ca.pem.kept") if file == "ca.pem" else flag
                             for flag in self.client("read")]
                    self.assertEqual(self.status(target, flags), 0, (file, name))
                    os.remove(self.path(file))
            os.rename(kept, self.path(file))  # the server has ended by SIGTERM

    def test_has_one_policy_of_tls_on_both_ports(self):
        """What gRPC takes on its port, HTTP takes on the other: TLS 1.2 and later, ephemeral keys, AEAD."""
        old, tls12, tls13 = [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
        for kind, key in ("ECDSA", ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]), ("RSA", ["rsa:2048"]):
            refused = [(version, "ALL") for version in old]
            refused += [(tls12, suite) for suite in (
                "ECDHE-%s-AES128-SHA" % kind, "ECDHE-%s-AES128-SHA256" % kind, "ECDHE-%s-AES256-SHA384" % kind,
                "AES128-GCM-SHA256", "AES128-SHA", "DHE-RSA-AES128-GCM-SHA256", "AES128-CCM", "aNULL")]
            taken = [(tls12, "ECDHE-%s-AES128-GCM-SHA256" % kind), (tls12, "ECDHE-%s-AES256-GCM-SHA384" % kind),
                     (tls13, "ALL")]
            files = {name: self.path(kind + name) for name in ("cert", "key")}
            subprocess.run(["openssl", "req", "-x509", "-newkey", *key, "-nodes", "-days", "2", "-subj", "/CN=localhost",
                            "-keyout", files["key"], "-out", files["cert"]], check=True, capture_output=True)
            for port in self.ports(files):
                for version, suites in refused:
                    with self.assertRaises((ssl.SSLError, OSError), msg=(kind, port, version, suites)):
                        self.shake(port, version, suites)
                for version, suites in taken:
                    self.shake(port, version, suites)

    def test_its_end_is_among_the_metrics(self):
        files = {name: self.path("short" + name) for name in ("cert", "key")}
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", files["key"], "-out", files["cert"]], check=True, capture_output=True)
        shown = subprocess.run(["openssl", "x509", "-enddate", "-noout", "-in", files["cert"]], check=True, capture_output=True, text=True)
        end = ssl.cert_time_to_seconds(shown.stdout.strip().removeprefix("notAfter="))
        with self.served(files) as ports:
            url = "https://localhost:%d/metrics" % ports[1]
            with urllib.request.urlopen(url, timeout=peer.COMMAND_SECONDS, context=ssl._create_unverified_context()) as answer:
                page = answer.read().decode()
        self.assertEqual(float(re.search(r"^muster_certificate_expiry_timestamp_seconds (.*)$", page, re.M).group(1)), end)

    @contextlib.contextmanager
    def served(self, files):
        process = subprocess.Popen(
            [peer.MUSTER, "serve", "--listen=localhost:0", "--http=localhost:0", "--tls-cert=" + files["cert"],
             "--tls-key=" + files["key"]], stdout=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)
        try:
            yield [int(process.stdout.readline().rsplit(":", 1)[1].split("/")[0]) for _ in range(2)]
        finally:
            process.terminate()
            process.wait(peer.COMMAND_SECONDS)
            process.stdout.close()

    def ports(self, files):
        with self.served(files) as ports:
            yield from ports

    @staticmethod
    def shake(port, version, suites):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old versions are deprecated
            context.minimum_version = context.maximum_version = version
        context.set_ciphers(suites + ":@SECLEVEL=0")
        context.set_alpn_protocols(["h2", "http/1.1"])
        with socket.create_connection(("localhost", port), timeout=peer.COMMAND_SECONDS) as plain:
            with context.wrap_socket(plain) as made:
                assert made.version() is not None

    @staticmethod
    def kill(job):
        if job.poll() is None:
            job.kill()
            job.communicate()

    def status(self, target, flags):
        return subprocess.run([peer.MUSTER, "status", target, *flags], capture_output=True, timeout=peer.COMMAND_SECONDS,
                              check=False).returncode


if __name__ == "__main__":
    peer.main()
