#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The takeover of elastic_test.py on TensorFlow's own server, which knows neither members nor chiefs: a gateway does."""
import sys

sys.path.insert(0, "tests/scenarios")
import elastic_test
from processes import peer

elastic_test.EPOCHS = 60


class ElasticOnTensorFlowTest(elastic_test.TestCase):
    def test_another_takes_over(self):
        master = self.enterContext(peer.tensorflow_server())
        _, target = self.serve(0, "--master=" + master)
        self.expect_takeover(target)


if __name__ == "__main__":
    peer.main()
