# SPDX-License-Identifier: Apache-2.0
"""examples/cluster ends well, loses its parameter server in between and says what a person came to see."""
import os
import re
import subprocess

import peer


class Demo(peer.TestCase):
    def test_goes_on_where_the_parameter_server_died(self):
        done = subprocess.run([os.path.abspath("examples/cluster/cluster")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=peer.WATCHDOG_SECONDS - 20,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout)
        for words in (r"^ps:0 +killed", r"^chief:0 +ready at step \d+, restored from .*model.ckpt-", r"^worker:0 +lost: ",
                      r"^worker:1 +lost: ", r"^chief:0 +done at step 3\d\d\d$", r"^worker:0 +done at step 3",
                      r"^worker:1 +done at step 3", r"^model.ckpt-3\d\d\d names (9\d|100)\.\d % of the digits rightly"):
            self.assertRegex(done.stdout, re.compile(words, re.MULTILINE))


if __name__ == "__main__":
    peer.main()
