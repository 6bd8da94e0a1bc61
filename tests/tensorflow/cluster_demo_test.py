# SPDX-License-Identifier: Apache-2.0
"""examples/cluster ends well, loses its parameter server in between and says what a person came to see."""
import os
import re
import subprocess

import peer

peer.enter_namespace("true")  # the example's ports are its own


@peer.needs_namespace
class Demo(peer.TestCase):
    def test_goes_on_where_the_parameter_server_died(self):
        limit = str(peer.WATCHDOG_SECONDS - 20)  # SIGTERM, so that it ends what it has started
        done = subprocess.run(["timeout", limit, os.path.abspath("examples/cluster/cluster")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        for words in (r"^ps:0 +killed", r"^chief:0 +restored .*model.ckpt-", r"^worker:0 +lost the session", r"^worker:1 +lost: ",
                      r"^chief:0 +trained digits_ps to step 15\d\d", r"^worker:0 +trained digits_ps to step 15",
                      r"^worker:1 +done at step 15", r"^model.ckpt-15\d\d: accuracy:0 float\[\] = 0\.9"):
            self.assertRegex(done.stdout, re.compile(words, re.MULTILINE))


if __name__ == "__main__":
    peer.main()
