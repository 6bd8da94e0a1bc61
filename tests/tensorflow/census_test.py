# SPDX-License-Identifier: Apache-2.0
"""The census: unmodified programs of TensorFlow 1 on TensorFlow's own server and on muster's masters, in
one run. What they compute and how they fail is the same; what the engine lacks, it names."""
import contextlib
import os
import subprocess

import numpy as np
import tensorflow as tf

import peer
import programs
from programs import stories

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

OPS_TOOL = os.path.abspath("tests/tensorflow/ops_tool")


def engine_ops():
    """What the engine has: the ops, and the dtypes that each takes."""
    lines = subprocess.run([OPS_TOOL], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    return dict(line.split("\t") for line in lines.splitlines())


def flat(results):
    """The same with dictionaries within spread out."""
    found = {}
    for name, value in results.items():
        if isinstance(value, dict):
            found.update(("%s: %s" % (name, key), inner) for key, inner in flat(value).items())
        else:
            found[name] = value
    return found


class Census(peer.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.engine = engine_ops()
        cls.theirs = cls.stack.enter_context(peer.tensorflow_server())
        cls.ours = cls.stack.enter_context(peer.muster_server())

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

    def run_on(self, target, program):
        """With nothing left there from another program."""
        v1.Session.reset(target)
        return program.run(target)

    def tell(self, name):
        """A story, on each master."""
        told = []
        for target in (self.theirs, self.ours):
            v1.Session.reset(target)
            told.append(stories.STORIES[name][0](target, self.folder()))
        self.assert_same(*told, "muster serve")

    def check(self, name, kind):
        program = programs.ALL[name](kind, self.folder())
        wanted = self.run_on(self.theirs, program)
        missing = program.ops - set(self.engine)
        if missing:
            with self.assertRaises(tf.errors.NotFoundError) as caught:
                self.run_on(self.ours, program)
            self.assertRegex(str(caught.exception), "Op type not registered '(%s)'" % "|".join(sorted(missing)))
            self.assertIn("--master=", str(caught.exception))
        else:
            self.assert_same(wanted, self.run_on(self.ours, program), "muster serve")


def add(name, check, *arguments):
    setattr(Census, "test_" + "_".join((name, *arguments)), lambda self: check(self, name, *arguments))


for each in programs.ALL:
    for variables in programs.KINDS:
        add(each, Census.check, variables)
for each in stories.STORIES:
    add(each, Census.tell)

if __name__ == "__main__":
    peer.main()
