# SPDX-License-Identifier: Apache-2.0
"""Tells what a training does, as `muster train --json` does: of each session, and of steps, ten times a second."""

import json
import time

from tensorflow_quietly import tf

STEP_SECONDS = 0.1


def tell(event, **more):
    print(json.dumps({"event": event, "time": time.time(), **more}, separators=(",", ":")), flush=True)


class Teller(tf.train.SessionRunHook):
    """When a session is made, and what steps it makes."""

    def __init__(self, step):
        self.step = step
        self.told = 0

    def after_create_session(self, session, coord):
        tell("ready", step=int(session.run(self.step)))
        self.told = 0

    def before_run(self, context):
        return tf.train.SessionRunArgs(self.step)

    def after_run(self, context, values):
        now = time.time()
        if now - self.told >= STEP_SECONDS:
            tell("step", step=int(values.results))
            self.told = now
