#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`muster serve` as its owner sees it: its ports, its manager's socket, who is let in."""

import concurrent.futures
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, "tests/tensorflow")
import peer

DIGITS, X, Y = (peer.fixture(name) for name in ("digits.meta", "digits_x.npy", "digits_y.npy"))
FAKE = os.path.abspath("tests/tensorflow_master/libtensorflow_fake.so")
PATIENCE = 60


class Serve:
    """A server of the test's own; its first lines say where."""

    def __init__(self, *flags, env=None, lines=1, stderr=None):
        self.process = subprocess.Popen(
            [peer.MUSTER, "serve", "--listen=localhost:0", *flags],
            stdout=subprocess.PIPE, stderr=stderr, text=True, env={**os.environ, **(env or {})},
            preexec_fn=peer.die_with_parent)
        self.at = {}
        for _ in range(lines):
            what, where = self.process.stdout.readline().split()
            self.at[what] = where

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.process.stdout.close()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


class Manager:
    """A service manager's socket."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)

    def hear(self, wanted):
        """The next datagram that has this line; what comes before it is dropped."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if select.select([self.socket], [], [], end - time.monotonic())[0]:
                lines = self.socket.recv(4096).decode().split("\n")
                if wanted in lines:
                    return lines
        raise AssertionError("nobody said %r" % wanted)

    def is_silent(self):
        return not select.select([self.socket], [], [], 0)[0]


def muster(*arguments):
    return subprocess.run([peer.MUSTER, *arguments], capture_output=True, text=True, timeout=PATIENCE)


def get(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class ModelsTest(unittest.TestCase):
    def run_muster(self, *words):
        return subprocess.run([peer.MUSTER, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE, check=False).stdout

    def test_status_and_doctor_count_the_same_ones_as_ready(self):
        with Serve() as served:
            at, graph = served.at["serving"], "--meta-graph=" + DIGITS
            trains = subprocess.Popen(
                [peer.MUSTER, "train", "--master=" + at, graph, "--feed=x:0=@" + X, "--feed=y:0=@" + Y, "--steps=1000000000",
                 "--model=preempted"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=peer.die_with_parent)
            self.run_muster("wait", "--master=" + at, "--model=preempted", "--for=step>=1", "--timeout=%d" % PATIENCE)
            trains.terminate()
            self.assertEqual(trains.wait(PATIENCE), 6)
            self.run_muster("prepare", "--master=" + at, graph, "--model=prepared")
            self.run_muster("finish", "--master=" + at, "--model=over")

            # the server asks the ready op by itself
            peer.await_true(lambda: "up  2 of 3 models ready" in self.run_muster("status", at), "both are ready")
            self.assertIn(", 2 of 3 models ready", self.run_muster("doctor", at))


class ManagedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.manager = Manager(folder.name + "/notify")
        self.addCleanup(self.manager.socket.close)

    def test_reports_to_its_manager_how_it_goes(self):
        with Serve(env={"NOTIFY_SOCKET": self.manager.name}) as served:
            nobody = "STATUS=serving: 0 sessions, 0 waiting, 0 of 0 models ready"
            self.assertIn(nobody, self.manager.hear("READY=1"))
            waiting = subprocess.Popen(
                [peer.MUSTER, "wait", "--meta-graph=" + DIGITS, "--master=" + served.at["serving"],
                 "--timeout=1h"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"})
            self.manager.hear("STATUS=serving: 1 session, 1 waiting, 0 of 0 models ready")
            waiting.terminate()
            self.assertEqual(waiting.wait(PATIENCE), -signal.SIGTERM)
            self.manager.hear(nobody)
            self.assertEqual(served.end(), 0)
            self.manager.hear("STOPPING=1")

    def test_keeps_the_watchdog_content_while_it_answers(self):
        env = {"NOTIFY_SOCKET": self.manager.name, "WATCHDOG_USEC": "200000"}
        with Serve(env=env) as served:
            for _ in range(3):
                self.manager.hear("WATCHDOG=1")
            served.end()

    def test_leaves_another_process_watchdog_alone(self):
        env = {"NOTIFY_SOCKET": self.manager.name, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
        with Serve(env=env) as served:
            self.manager.hear("READY=1")
            self.assertEqual(get_nothing_but_stop(self.manager, served), ["STOPPING=1"])


def get_nothing_but_stop(manager, served):
    served.end()
    said = []
    while not manager.is_silent():
        said += [line for line in manager.socket.recv(4096).decode().split("\n")
                 if not line.startswith("STATUS=")]
    return said


class PortsTest(unittest.TestCase):
    def test_answers_http(self):
        with Serve("--http=localhost:0", "--health-listen=localhost:0", lines=3) as served:
            self.assertEqual(get(served.at["http"] + "/healthz"), (200, "serving\n"))
            self.assertEqual(get(served.at["http"] + "/readyz")[0], 200)
            status, page = get(served.at["http"] + "/metrics")
            self.assertEqual(status, 200)
            self.assertIn("muster_limit{limit=\"sessions\"} 20000\n", page)
            self.assertEqual(get(served.at["http"] + "/nothing")[0], 404)

    def test_takes_its_limits_from_the_line(self):
        with Serve("--http=localhost:0", "--max-sessions=7", "--max-graph-bytes=1000",
                   "--max-steps=3", "--max-watchers=5", "--max-request-bytes=100000",
                   "--max-memory=3GiB", "--idle-session=1h", "--chief-lease=5", lines=2) as served:
            page = get(served.at["http"] + "/metrics")[1]
            for limit in ["sessions\"} 7", "graph_bytes\"} 1000", "steps\"} 3", "watchers\"} 5",
                          "request_bytes\"} 100000", "memory\"} 3221225472"]:
                self.assertIn("muster_limit{limit=\"%s\n" % limit, page)
            refused = muster("wait", "--meta-graph=" + DIGITS, "--master=" + served.at["serving"],
                             "--timeout=30")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("--max-graph-bytes", refused.stderr)

    def test_refuses_what_makes_no_sense(self):
        for flag, words in [("--max-sessions=-1", "--max-sessions"),
                            ("--max-request-bytes=3000000000", "--max-request-bytes"),
                            ("--idle-session=0", "--idle-session"),
                            ("--max-memory=much", "--max-memory: invalid size 'much'"),
                            ("--max-memory=0%", "--max-memory"), ("--max-memory=5Z", "80%"),
                            ("--chief-lease=soon", "--chief-lease"),
                            ("--listen=0.0.0.0:0", "--insecure"),
                            ("--http=0.0.0.0:0", "--insecure"),
                            ("--tls-cert=/no/such/file", "key"),
                            ("--token-file=/no/such/file", "/no/such/file"),
                            ("--master-token-file=/no/such/file", "/no/such/file")]:
            said = muster("serve", "--listen=localhost:0", flag)
            self.assertEqual(said.returncode, 3, flag)
            self.assertIn(words, said.stderr)
            self.assertEqual(said.stdout, "")

    def test_refuses_to_be_its_own_master(self):
        for listen, master in [(None, "grpc://localhost:2222"), (None, "127.0.0.1:2222"),
                               ("127.0.0.1:24702", "grpc://127.0.0.1:24702"), ("0.0.0.0:24702", "grpc://localhost:24702"),
                               ("localhost:0,unix:/tmp/muster.own", "unix:/tmp/muster.own")]:
            said = muster("serve", *([] if listen is None else ["--listen=" + listen]), "--master=" + master, "--insecure",
                          "--check-config")
            self.assertEqual((said.returncode, said.stdout), (3, ""), master)
            self.assertIn("--master '%s' is where this server itself listens (--listen)" % master, said.stderr)
        for listen, master in [("127.0.0.1:24702", "grpc://127.0.0.2:24702"), ("localhost:0", "grpc://localhost:24702")]:
            said = muster("serve", "--listen=" + listen, "--master=" + master, "--check-config")
            self.assertEqual((said.returncode, said.stderr), (0, ""), master)

    def test_says_that_an_address_is_in_use_though_the_name_has_another(self):
        with socket.create_server(("127.0.0.1", 0)) as held:
            taken = "localhost:%d" % held.getsockname()[1]
            for flag in "--listen", "--health-listen", "--http":
                said = muster("serve", "--listen=localhost:0", "%s=%s" % (flag, taken))
                self.assertEqual((said.returncode, said.stdout), (3, ""), flag)
                self.assertIn("can't listen on %s: address already in use; " % taken, said.stderr)

    def test_listens_to_all_if_asked(self):
        with Serve("--listen=0.0.0.0:0", "--insecure") as served:
            self.assertTrue(served.at["serving"].startswith("grpc://0.0.0.0:"))

    def test_raises_its_open_files(self):
        with Serve() as served:
            with open("/proc/%d/limits" % served.process.pid) as limits:
                files = [line.split() for line in limits if line.startswith("Max open files")][0]
            self.assertEqual(files[3], files[4])


class FilesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.data, self.outside = (os.path.join(self.folder.name, name) for name in ("data", "outside"))
        os.mkdir(self.data)
        os.mkdir(self.outside)

    def save(self, served, directory):
        return muster("save", "--meta-graph=" + DIGITS, "--master=" + served.at["serving"],
                      "--checkpoint-dir=" + directory)

    def test_writes_only_to_its_data_directories(self):
        with Serve("--data-dir=" + self.data) as served:
            run = os.path.join(self.data, "run")
            prepared = muster("prepare", "--meta-graph=" + DIGITS, "--master=" + served.at["serving"],
                              "--checkpoint-dir=" + run, "--timeout=30")
            self.assertEqual(prepared.returncode, 0, prepared.stderr)
            saved = self.save(served, run)
            self.assertEqual(saved.returncode, 0, saved.stderr)
            self.assertTrue(os.path.exists(os.path.join(run, "checkpoint")))
            os.symlink(self.outside, os.path.join(self.data, "link"))
            for directory in self.outside, os.path.join(self.data, "link"):
                saved = self.save(served, directory)  # by the command, which writes with its own rights
                self.assertEqual(saved.returncode, 0, saved.stderr)
                said = " ".join(saved.stderr.split())
                self.assertIn("are written by the chief, because the master can't use '%s'" % directory, said)
                self.assertIn("is outside the server's data directories ('%s'); use a path in them" % self.data, said)
                self.assertEqual([name for name in os.listdir(self.outside) if "probe" in name], [])

    def test_refuses_a_data_directory_that_is_not_there(self):
        said = muster("serve", "--listen=localhost:0", "--data-dir=/no/such")
        self.assertEqual((said.returncode, said.stdout), (3, ""))
        self.assertIn("--data-dir: invalid data directory '/no/such': ", said.stderr)

    def test_confines_a_runtime_that_opens_files_itself(self):
        with Serve("--data-dir=" + self.data, "--master=tensorflow:" + FAKE) as served:
            self.assertTrue(served.at["serving"].startswith("grpc://"))
        said = muster("serve", "--listen=localhost:0", "--data-dir=/no/such", "--master=tensorflow:" + FAKE)
        self.assertEqual((said.returncode, said.stdout), (3, ""))
        self.assertIn("--data-dir: invalid data directory '/no/such': ", said.stderr)

    def test_warns_where_other_machines_reach_every_file(self):
        for flags, warns in [(["--listen=0.0.0.0:0", "--insecure"], True),
                             (["--listen=0.0.0.0:0", "--insecure", "--data-dir=" + self.data], False),
                             (["--listen=localhost:0"], False),
                             (["--listen=0.0.0.0:0", "--insecure", "--master=grpc://localhost:1"], False)]:
            with tempfile.TemporaryFile("w+") as said:
                with Serve(*flags, stderr=said):
                    pass
                said.seek(0)
                self.assertEqual("confine them with --data-dir" in said.read(), warns, flags)


class LocalUsersTest(unittest.TestCase):
    """Over a Unix socket."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.socket = "unix:" + os.path.join(self.folder.name, "m.sock")

    def test_each_command_reaches_it(self):
        with Serve("--listen=" + self.socket) as served:
            self.assertEqual(served.at["serving"], self.socket)
            model = ["--meta-graph=" + DIGITS, "--master=" + self.socket]
            run = "--checkpoint-dir=" + os.path.join(self.folder.name, "run")
            for command in [["train", *model, run, "--feed=x:0=@" + X, "--feed=y:0=@" + Y, "--steps=20"],
                            ["prepare", *model, "--overwrite"], ["wait", *model, "--timeout=60"],
                            ["wait", "--model=digits", "--master=" + self.socket, "--timeout=60"],
                            ["wait", "--model=digits", "--master=unix://" + self.socket[len("unix:"):], "--timeout=60"],
                            ["save", *model, "--checkpoint-dir=" + self.folder.name],
                            ["status", self.socket], ["finish", *model]]:
                said = muster(*command)
                self.assertEqual(said.returncode, 0, (command, said.stderr))
        checked = muster("serve", "--check-config", "--listen=%s,localhost:1" % self.socket)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        refused = muster("wait", *model, "--timeout=1")
        self.assertIn("there is no such socket: no process listens there", refused.stderr)

    def test_is_served_beside_a_port_with_tokens_but_needs_none(self):
        token = os.path.join(self.folder.name, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("secret\n")
        with Serve("--listen=%s,localhost:0" % self.socket, "--token-file=" + token, lines=1) as served:
            port = served.process.stdout.readline().split()[1]
            self.assertEqual(muster("status", self.socket).returncode, 0)
            self.assertNotEqual(muster("status", port).returncode, 0)
            self.assertEqual(muster("status", port, "--token-file=" + token).returncode, 0)

    def test_a_gateway_reaches_it_too(self):
        with Serve("--listen=" + self.socket), Serve("--master=" + self.socket) as gateway:
            said = muster("prepare", "--meta-graph=" + DIGITS, "--master=" + gateway.at["serving"],
                          "--timeout=60")
            self.assertEqual(said.returncode, 0, said.stderr)

    def test_refuses_users_without_a_socket_and_unknown_ones(self):
        for flags, words in [(["--allow-user=root"], "--listen=unix:/PATH"),
                             (["--listen=" + self.socket, "--allow-user=no such"], "no user has this name"),
                             (["--listen=unix:m.sock"], "unix:/PATH")]:
            said = muster("serve", "--listen=localhost:0", *flags)
            self.assertEqual((said.returncode, said.stdout), (3, ""), said.stderr)
            self.assertIn(words, said.stderr)


class StartTest(unittest.TestCase):
    """With a runtime as its child that isn't TensorFlow, and does as it is told."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.pids = folder.name + "/pids"

    def command(self, how, *arguments):
        return subprocess.Popen(
            [peer.MUSTER, *arguments, "--master=tensorflow:" + FAKE], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, "MUSTER_FAKE_TENSORFLOW": how,
                 "MUSTER_FAKE_TENSORFLOW_PIDS": self.pids})

    def child(self):
        """Its process, once it hangs."""
        peer.await_true(lambda: os.path.exists(self.pids) and os.path.getsize(self.pids) > 0, "it hangs")
        with open(self.pids) as file:
            return int(file.read())

    def expect_end(self, command, code):
        out, err = command.communicate(timeout=PATIENCE)
        self.assertEqual((command.returncode, out), (code, ""), err)
        child = self.child()
        peer.await_true(lambda: not peer.is_running(child), "its child ended")
        return err

    def test_a_signal_ends_it_while_its_master_starts(self):
        for number in signal.SIGTERM, signal.SIGINT:
            with self.subTest(number=number.name):
                served = self.command("hang", "serve", "--listen=localhost:0")
                self.assertTrue(peer.is_running(self.child()))
                served.send_signal(number)
                self.assertEqual(self.expect_end(served, 0), "")
                os.unlink(self.pids)

    def test_says_that_its_master_did_not_start(self):
        served = self.command("abort", "serve", "--listen=localhost:0")
        self.assertIn("was killed by signal 6", self.expect_end(served, 4))

    def test_serves_once_its_master_does(self):
        served = self.command("", "serve", "--listen=localhost:0")
        self.assertIn("serving grpc://localhost:", served.stdout.readline())
        served.terminate()
        self.assertIn("  TensorFlow 2.99.0-fake from '", self.expect_end(served, 0))

    def test_prepare_and_train_have_their_timeout_in_the_start(self):
        for verb, words in ("prepare", []), ("train", ["--steps=1", "--feed=x:0=@" + X, "--feed=y:0=@" + Y]):
            with self.subTest(verb=verb):
                command = self.command("hang", verb, "--meta-graph=" + DIGITS, "--timeout=6", *words)
                err = self.expect_end(command, 2)
                self.assertIn("still starting: it has been starting its server for ", err)
                self.assertIn("try: raise --timeout", err)
                os.unlink(self.pids)

    def test_prepare_is_cancelled_in_the_start(self):
        command = self.command("hang", "prepare", "--meta-graph=" + DIGITS)
        self.child()
        command.send_signal(signal.SIGINT)
        self.expect_end(command, -signal.SIGINT)

    def test_prepare_does_not_wait_for_what_died(self):
        command = self.command("abort", "prepare", "--meta-graph=" + DIGITS)
        self.assertIn("was killed by signal 6", self.expect_end(command, 4))


class SecuredTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(dir="/tmp"))
        cls.cert, cls.key, cls.token = peer.secrets(cls.folder)

    def secured(self, *flags, **more):
        return Serve("--tls-cert=" + self.cert, "--tls-key=" + self.key,
                     "--token-file=" + self.token, *flags, **more)

    def prepare(self, target, *flags):
        return muster("prepare", "--meta-graph=" + DIGITS, "--master=" + target, "--timeout=20",
                      *flags)

    def test_lets_in_who_has_the_token(self):
        with self.secured() as served:
            target = served.at["serving"]
            self.assertTrue(target.startswith("grpcs://localhost:"))
            let_in = self.prepare(target, "--tls-ca=" + self.cert, "--token-file=" + self.token)
            self.assertEqual(let_in.returncode, 0, let_in.stderr)
            for flags in [[], ["--tls-ca=" + self.cert]]:
                refused = self.prepare(target, *flags, "--timeout=2")
                self.assertNotEqual(refused.returncode, 0)
                self.assertNotIn("a-secret", refused.stderr + refused.stdout)

    def test_each_command_distinguishes_tls_from_plain_text(self):
        trained = ["--steps=1", "--feed=x:0=@" + X, "--feed=y:0=@" + Y]
        model = "--meta-graph=" + DIGITS
        commands = [["status"], ["wait", model], ["prepare", model], ["run", model, "--target=train"],
                    ["save", model, "--checkpoint-dir=" + self.folder], ["finish", "--model=digits"],
                    ["train", model, *trained]]
        with Serve() as plain, self.secured() as secured:
            self.expect_tls_told(plain.at["serving"].replace("grpc:", "grpcs:"), ["--tls-ca=" + self.cert], commands,
                                 "TLS handshake failed: the port speaks plain text; use grpc://")
            self.expect_tls_told(secured.at["serving"].replace("grpcs:", "grpc:"), [], commands,
                                 "the port speaks TLS; use grpcs://")

    def expect_tls_told(self, target, flags, commands, words):
        """Beside one another: some of them wait for a master until their timeout."""
        def run(command):
            where = target if command[0] == "status" else "--master=" + target
            seconds = 20 if command[0] in ("wait", "prepare", "train") else 60
            return muster(*command, where, *flags, "--timeout=%d" % seconds)

        with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
            for command, said in zip(commands, pool.map(run, commands)):
                self.assertIn(words, said.stderr, command)
                self.assertEqual(said.returncode, 2, command)

    def test_is_reached_through_a_gateway_without_either(self):
        with self.secured() as master:
            with Serve("--master=" + master.at["serving"], "--master-tls-ca=" + self.cert,
                       "--master-token-file=" + self.token) as gateway:
                done = self.prepare(gateway.at["serving"])
                self.assertEqual(done.returncode, 0, done.stderr)
                with open("/proc/%d/cmdline" % gateway.process.pid) as line:
                    self.assertNotIn("a-secret", line.read())

    def test_feeds_the_watchdog_with_tls_too(self):
        manager = Manager(self.folder + "/notify")
        self.addCleanup(manager.socket.close)
        with self.secured(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "500000"}):
            manager.hear("WATCHDOG=1")
            manager.hear("WATCHDOG=1")

    def test_listens_beyond_this_machine_with_tls(self):
        with self.secured("--listen=0.0.0.0:0") as served:
            self.assertTrue(served.at["serving"].startswith("grpcs://0.0.0.0:"))


if __name__ == "__main__":
    peer.main()
