# SPDX-License-Identifier: Apache-2.0
"""The muster command on TensorFlow's own server, and on `muster serve` for the same story."""
import concurrent.futures
import os
import re
import socket
import subprocess
import sys

import numpy as np
import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()

DIGITS = peer.fixture("digits.meta")
FEEDS = ["--feed=x=@" + peer.fixture("digits_x.npy"), "--feed=y=@" + peer.fixture("digits_y.npy")]


def command(name, target, *arguments, meta_graph=DIGITS):
    return [name, "--meta-graph=" + meta_graph, "--master=" + target, "--timeout=60", *arguments]


def read_variables(target):
    """All variables of the digits model as TensorFlow's client sees them on target."""
    with tf.Graph().as_default():
        v1.train.import_meta_graph(DIGITS)
        with v1.Session(target) as session:
            variables = v1.global_variables()
            return dict(zip([v.op.name for v in variables], session.run(variables)))


class Story:
    """Prepare, wait, train, save, die, restore; the server is a subclass's."""

    def start(self):
        return self.enterContext(self.server())

    def test_a_worker_waits_for_a_chief(self):
        target = self.start()
        impatient = [w for w in command("wait", target) if not w.startswith("--timeout")] + ["--timeout=5"]
        self.assertIn("not", peer.muster(*impatient, code=1))
        peer.muster(*command("prepare", target))
        peer.muster(*command("wait", target))

    def test_a_model_is_trained_saved_and_restored(self):
        target, folder = self.start(), self.folder()
        peer.muster(*command("prepare", target, "--checkpoint-dir=" + folder))
        first = peer.muster_json(*command("run", target, *FEEDS, "--fetch=loss:0"))
        peer.muster(*command("run", target, *FEEDS, "--target=train", "--steps=20"))
        last = peer.muster_json(*command("run", target, *FEEDS, "--fetch=loss:0"))
        self.assertLess(self.number(last["loss:0"]), self.number(first["loss:0"]))
        peer.muster(*command("save", target, "--checkpoint-dir=" + folder))

        wanted = read_variables(target)
        self.assertEqual(wanted["global_step"], 20)
        self.check_that_tensorflow_reads(folder, wanted)

        other = self.start()
        self.assertIn("model.ckpt-20", peer.muster(*command("prepare", other, "--checkpoint-dir=" + folder)))
        peer.muster(*command("wait", other))
        self.check_equal(read_variables(other), wanted)

    def number(self, value):
        return value["values"] if isinstance(value, dict) else value

    def check_that_tensorflow_reads(self, folder, wanted):
        prefix = v1.train.latest_checkpoint(folder)
        self.assertEqual(os.path.basename(prefix), "model.ckpt-20")
        read = tf.train.load_checkpoint(prefix)
        self.check_equal({name: read.get_tensor(name) for name, _ in tf.train.list_variables(prefix)}, wanted)
        with tf.Graph().as_default():
            saver = v1.train.import_meta_graph(prefix + ".meta")
            with v1.Session() as session:
                saver.restore(session, prefix)
                np.testing.assert_array_equal(session.run("hidden/bias:0"), wanted["hidden/bias"])

    def check_equal(self, got, wanted):
        self.assertEqual(sorted(got), sorted(wanted))
        for name, value in wanted.items():
            np.testing.assert_array_equal(got[name], value, err_msg=name)

    def test_a_model_with_a_local_variable_gets_ready(self):
        target, linreg = self.start(), peer.fixture("linreg.meta")
        peer.muster(*command("prepare", target, meta_graph=linreg))
        peer.muster(*command("wait", target, meta_graph=linreg))

    def test_a_checkpoint_of_tensorflow_is_restored(self):
        target, folder = self.start(), self.folder()
        with tf.Graph().as_default():
            saver = v1.train.import_meta_graph(DIGITS)
            with v1.Session() as session:
                session.run(v1.get_collection(v1.GraphKeys.INIT_OP))
                session.run(v1.assign(v1.global_variables()[0], 77))
                wanted = session.run("hidden/kernel:0")
                saver.save(session, os.path.join(folder, "model.ckpt"), global_step=77)
        peer.muster(*command("prepare", target, "--checkpoint-dir=" + folder))
        got = read_variables(target)
        self.assertEqual(got["global_step"], 77)
        np.testing.assert_array_equal(got["hidden/kernel"], wanted)

    def test_a_failed_step_ends_with_the_masters_words(self):
        target = self.start()
        self.assertIn("hidden/kernel", peer.muster(*command("run", target, "--fetch=hidden/kernel:0"), code=4))


class OnTensorFlow(Story, peer.TestCase):
    server = staticmethod(peer.tensorflow_server)

    def test_commands_that_need_musters_server_say_so(self):
        target = self.start()
        address = target.removeprefix("grpc://")
        words = ("'%s' doesn't implement this call, as TensorFlow's server doesn't; put a gateway in front of it: "
                 "`muster serve --master=%s`")
        for wanted in ["wait", "--model=digits", "--master=" + target, "--timeout=60"], ["drain", target]:
            self.assertIn(words % (address, address), peer.muster(*wanted, code=3))

    def test_a_handle_that_is_fetched_is_named(self):
        target = self.start()
        peer.muster(*command("prepare", target))
        self.assertIn("'global_step:0' (op 'VarHandleOp') is a resource, which can't be fetched; fetch an op that reads it, "
                      "such as 'global_step/Read/ReadVariableOp:0'",
                      peer.muster(*command("run", target, "--fetch=global_step:0"), code=3))


class OnMuster(Story, peer.TestCase):
    server = staticmethod(peer.muster_server)


class OtherContainer(peer.TestCase):
    """A reset of a container in which the model has no variable."""

    def check(self, target):
        wait = ["wait", "--model=digits", "--master=" + target]
        chief = subprocess.Popen([peer.MUSTER, *command("train", target, *FEEDS, "--steps=1000000000")],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(peer.end, chief)
        peer.muster(*wait, "--for=step>=1", "--timeout=60")
        v1.Session.reset(target, ["other"])
        lines = []
        while not lines or not lines[-1].startswith("continuing "):
            lines.append(chief.stdout.readline())  # bounded by the test's timeout
            self.assertTrue(lines[-1], lines)
        self.assertIn("the master was reset; preparing the model again\n", lines)
        self.assertRegex("".join(lines), "continuing with the model on the master: digits at step [1-9]")
        chief.kill()
        chief.wait()
        v1.Session.reset(target, ["other"])
        peer.muster(*wait, "--timeout=60")
        v1.Session.reset(target, ["localhost"])
        peer.muster(*wait, "--timeout=3", code=1)

    def test_leaves_the_model_as_it_is(self):
        self.check(self.serve())

    def test_leaves_the_model_behind_a_gateway_as_it_is(self):
        self.check(self.serve("--master=" + self.serve()))


def repeated(n):
    """How many two joined strings and a short one are, n times: a request of some 10 KB, whatever n is."""
    joined = v1.strings.join([tf.constant("a" * 5000), tf.constant("b" * 5000)])
    return tf.raw_ops.Size(input=tf.tile(tf.stack([joined, tf.constant("short")]), [n]))


class TooMuch(peer.TestCase):
    """What a small request asks for."""

    def check_that_it_is_refused(self, session, n):
        with self.assertRaises(tf.errors.ResourceExhaustedError) as raised:
            session.run(repeated(n))
        self.assertIn("--max-op-bytes", raised.exception.message)

    def test_is_refused_and_the_server_goes_on(self):
        with peer.muster_process() as (target, process), tf.Graph().as_default(), v1.Session(target) as session:
            self.check_that_it_is_refused(session, 10_000_000)
            self.check_that_it_is_refused(session, 2_000_000_000)
            self.assertEqual(session.run(repeated(3)), 6)
            self.assertTrue(peer.is_running(process))

    def test_is_what_its_owner_says(self):
        with tf.Graph().as_default(), v1.Session(self.serve("--max-op-bytes=1000000")) as session:
            self.check_that_it_is_refused(session, 100)
            self.assertEqual(session.run(repeated(20)), 40)

    def test_is_limited_by_the_master_that_runs_it(self):
        self.assertIn("--max-op-bytes", peer.muster("serve", "--master=grpc://localhost:1", "--max-op-bytes=5", code=3))
        self.assertIn("--max-op-bytes", peer.muster("serve", "--max-op-bytes=-5", code=3))


# The commands that ask a master, and ways to use each; of these, status and drain take a bare target.
GONE = {
    "prepare": [["--meta-graph=" + DIGITS]],
    "wait": [["--meta-graph=" + DIGITS], ["--model=digits"]],
    "train": [["--meta-graph=" + DIGITS, "--steps=3", *FEEDS, *role]
              for role in ([], ["--task=worker:0", "--tasks=2"], ["--task=auto"])],
    "status": [[], ["--ready"], ["--json"]],
    "run": [["--meta-graph=" + DIGITS, "--fetch=global_step:0"]],
    "save": [["--meta-graph=" + DIGITS, "--checkpoint-dir=never"]],
    "drain": [[], ["--model=digits", "--json"]],
    "finish": [["--model=digits"], ["--meta-graph=" + DIGITS]],
}
ASK_NOBODY = {"serve", "inspect", "evaluate", "certs", "checkpoint", "help"}
FINDS = {"doctor"}  # for which that is something found, as tests/cli/doctor_test.py has it


class Nobody(peer.TestCase):
    def test_no_answer_has_an_exit_code_of_its_own_in_every_command(self):
        listed = peer.muster("help").partition("Commands:\n")[2].partition("\n\n")[0]
        self.assertEqual(set(re.findall(r"^  (\w+)", listed, re.M)) - ASK_NOBODY - FINDS, set(GONE))
        held = self.enterContext(peer.hold_port())  # where nobody listens, and nobody will
        self.check_that_all_say_so("grpc://localhost:%d" % peer.port_of(held))

    def test_so_has_a_server_that_says_nothing(self):
        silent = self.enterContext(socket.create_server(("localhost", 0), backlog=100))
        self.check_that_all_say_so("grpc://localhost:%d" % silent.getsockname()[1])

    def check_that_all_say_so(self, target):
        def ask(name, way):
            where = target if name in ("status", "drain") else "--master=" + target
            return peer.muster(name, where, *way, "--timeout=2", code=2)
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            asked = [(name, way, threads.submit(ask, name, way)) for name, ways in GONE.items() for way in ways]
        for name, way, said in asked:
            with self.subTest(name, way=way):
                self.assertIn(target.removeprefix("grpc://"), said.result())


class Prints(peer.TestCase):
    def test_what_a_graph_prints_is_one_line_of_the_log(self):
        """Else a client could forge lines of it, or control the terminal on which it is read."""
        process = subprocess.Popen([peer.MUSTER, "serve", "--listen=localhost:0"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)
        target = process.stdout.readline().split()[1]
        with tf.Graph().as_default(), v1.Session(target) as session:
            for stream in sys.stdout, sys.stderr:
                session.run(tf.print("one\n2026-11-27T00:00:00.000Z info    audit  forged\u2028\x1b[2Jend",
                                     output_stream=stream))
        process.terminate()
        out, err = process.communicate(timeout=peer.COMMAND_SECONDS)
        self.assertEqual(out, "")
        printed = [line.split("  ", 1)[1] for line in err.splitlines() if "forged" in line]
        self.assertEqual(printed, ["print  a graph printed: one 2026-11-27T00:00:00.000Z info    audit  "
                                   "forged??[2Jend"] * 2, err)


if __name__ == "__main__":
    peer.main()
