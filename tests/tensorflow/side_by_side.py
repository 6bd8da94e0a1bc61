# SPDX-License-Identifier: Apache-2.0
"""The same steps on TensorFlow's server and on ours: what each answers, down to the words of an error."""
import re

import tensorflow as tf

import peer

v1 = tf.compat.v1
STEP_MS = 20000


def words(error):
    """An error's own text, without Python's frames, the node and who says it."""
    text = str(error.message)
    at = text.find("Node: '")
    if at >= 0:
        text = text[text.find("\n", at) + 1:]
    text = re.sub(r"^From /job:.*:\n", "", text)
    text = re.sub(r" \(hash code \d+\)", "", text.split("\n\t [[")[0])
    return text.split("\n")[0].strip()


def plain(value):
    """A fetched value to compare: an export's keys come in any order."""
    if isinstance(value, list) and len(value) == 2 and len(value[0]) == len(value[1]):
        return sorted(zip(value[0].tolist(), value[1].tolist()))
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def outcomes(target, build, timeout_ms=STEP_MS, read=plain):
    """Runs what build gives, one after the other, in a session of its own."""
    answers = []
    with tf.Graph().as_default():
        steps = build()
        with v1.Session(target) as session:
            for step in steps:
                try:
                    answers.append(read(session.run(step, options=v1.RunOptions(timeout_in_ms=timeout_ms))))
                except tf.errors.OpError as error:
                    answers.append((type(error).__name__, words(error)))
    return answers


def any_shape(value, dtype=None):
    """A value whose shape Python doesn't know, so that the server is asked."""
    return v1.placeholder_with_default(tf.constant(value, dtype), None)


class TestCase(peer.TestCase):
    """Has a server of each side for all of its tests."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.theirs = cls.enterClassContext(peer.tensorflow_server())
        cls.ours = cls.enterClassContext(peer.muster_server())

    def check(self, build):
        """The same answers; returns them."""
        wanted = outcomes(self.theirs, build)
        self.assertEqual(outcomes(self.ours, build), wanted)
        return wanted
