# SPDX-License-Identifier: Apache-2.0
"""The census: unmodified programs of TensorFlow 1 on TensorFlow's own server and on muster's masters, in
one run. What they compute and how they fail is the same; what the engine lacks, it names."""
import os
import subprocess
import sys

import numpy as np
import tensorflow as tf

import compatibility
import peer
import programs
from compatibility import GATEWAY, LOCAL, TENSORFLOW
from programs import stories

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

OPS_TOOL = os.path.abspath("tests/tensorflow/ops_tool")
DOCUMENT = "docs/compatibility.md"


def engine_ops():
    """What the engine has: the ops, and the dtypes that each takes."""
    lines = subprocess.run([OPS_TOOL], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    ops = dict(line.split("\t")[:2] for line in lines.splitlines())
    return {op: " ".join(word for word in attributes.split() if ":" in word) for op, attributes in ops.items()}


def flat(results):
    """The same with dictionaries within spread out."""
    found = {}
    for name, value in results.items():
        if isinstance(value, dict):
            found.update(("%s: %s" % (name, key), inner) for key, inner in flat(value).items())
        else:
            found[name] = value
    return found


# What the census has seen: on which masters a story or a (program, kind) did as on TensorFlow's server, and
# which programs use an op.
passed, users = {}, {}


class Census(peer.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = engine_ops()
        cls.theirs = cls.enterClassContext(peer.tensorflow_server())
        cls.ours = {LOCAL: cls.enterClassContext(peer.muster_server()),
                    TENSORFLOW: cls.enterClassContext(peer.muster_server("--master=tensorflow:" + sys.prefix)),
                    GATEWAY: cls.enterClassContext(peer.muster_server("--master=" + cls.theirs))}

    def assert_same(self, wanted, got, where):
        wanted, got = flat(wanted), flat(got)
        self.assertEqual(list(got), list(wanted), where)
        for name, value in wanted.items():
            what = "%s, on %s" % (name, where)
            if isinstance(value, list):
                self.assertEqual(got[name], value, what)
            elif np.asarray(value).dtype.kind in "fc":
                np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-6, err_msg=what)
            else:
                np.testing.assert_array_equal(got[name], value, err_msg=what)

    def compare(self, run, masters, what):
        """On TensorFlow's server and on these, each with nothing left there from before."""
        wanted = self.again(lambda: self.afresh(run, self.theirs))
        for master in masters:
            if master == LOCAL:
                got = self.afresh(run, self.ours[LOCAL])
                self.again(lambda: self.assert_same(wanted, got, LOCAL),
                           lambda: self.assert_same(self.afresh(run, self.theirs), got, LOCAL))
            else:
                self.again(lambda: self.assert_same(wanted, self.afresh(run, self.ours[master]), master))
            passed.setdefault(what, set()).add(master)

    @staticmethod
    def afresh(run, target):
        v1.Session.reset(target)
        return run(target)

    @staticmethod
    def again(first, then=None):
        """What TensorFlow's runtime does is asked up to three times: now and then its worker takes a step for one that
        came before ("request was received twice"), which Python's sessions pass over, a last save included; and it runs
        initializers that read other reference variables too early. Our engine is asked once."""
        call = first
        for _ in range(2):
            try:
                return call()
            except (AssertionError, tf.errors.OpError) as failure:
                print("asked again, since", failure, file=sys.stderr)
                call = then or first
        return call()

    def check(self, name, kind):
        """A program of the census."""
        program = programs.ALL[name](kind, self.folder())
        missing = program.ops - set(self.engine)
        for op in program.ops:
            users.setdefault(op, set()).add((name, kind))
        self.compare(program.run, [TENSORFLOW, GATEWAY] if missing else list(self.ours), (name, kind))
        if missing:
            v1.Session.reset(self.ours[LOCAL])
            with self.assertRaises(tf.errors.NotFoundError) as caught:
                program.run(self.ours[LOCAL])
            self.assertRegex(str(caught.exception), "Op type not registered '(%s)'" % "|".join(sorted(missing)))
            self.assertIn("--master=tensorflow", str(caught.exception))

    def tell(self, name):
        """A story."""
        self.compare(lambda target: stories.STORIES[name][0](target, self.folder()), list(self.ours), name)


def add(name, check, *arguments):
    setattr(Census, "test_" + "_".join((name, *arguments)), lambda self: check(self, name, *arguments))


for each in programs.ALL:
    for variables in programs.KINDS:
        add(each, Census.check, variables)
for each in stories.STORIES:
    add(each, Census.tell)


class Document(peer.TestCase):  # after Census
    def test_is_what_the_census_has_seen(self):
        """docs/compatibility.md; `bazel run` of this test writes it."""
        if len(passed) < len(programs.ALL) * len(programs.KINDS) + len(stories.STORIES):
            self.skipTest("not all of the census has passed")
        made = compatibility.render(passed, users, Census.engine)
        workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
        if workspace:
            with open(os.path.join(workspace, DOCUMENT), "w", encoding="utf-8") as file:
                file.write(made)
        with open(DOCUMENT, encoding="utf-8") as file:
            self.assertTrue(workspace or file.read() == made,
                            DOCUMENT + " is stale: bazel run //tests/tensorflow:census_test writes it anew")


if __name__ == "__main__":
    peer.main()
