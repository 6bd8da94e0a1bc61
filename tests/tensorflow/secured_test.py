# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own client can neither speak TLS nor send a token: it reaches a secured master through a gateway."""
import numpy as np
import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()


class Secured(peer.TestCase):
    def setUp(self):
        cert, key, token = peer.secrets(self.folder())
        self.master = self.serve("--tls-cert=" + cert, "--tls-key=" + key, "--tls-ca=" + cert, "--token-file=" + token)
        self.gateway = self.serve("--master=" + self.master, "--master-tls-ca=" + cert, "--master-tls-cert=" + cert,
                                  "--master-tls-key=" + key, "--master-token-file=" + token)

    def model(self):
        graph = tf.Graph()
        with graph.as_default():
            step = v1.train.create_global_step()
            w = v1.get_variable("w", [2], initializer=v1.constant_initializer(0.5))
            loss = tf.reduce_sum(tf.square(w))
            train = v1.train.GradientDescentOptimizer(0.25).minimize(loss, global_step=step)
        return graph, w, train

    def test_the_master_speaks_tls(self):
        self.assertTrue(self.master.startswith("grpcs://"), self.master)
        self.assertTrue(self.gateway.startswith("grpc://"), self.gateway)

    def test_a_monitored_session_trains_through_a_gateway(self):
        graph, w, train = self.model()
        with graph.as_default(), v1.train.MonitoredTrainingSession(self.gateway) as session:
            session.run(train)
            session.run(train)
            np.testing.assert_allclose(session.run(w), [0.125, 0.125])

    def test_a_client_alone_is_not_let_in(self):
        graph, w, _ = self.model()
        plain = self.master.replace("grpcs://", "grpc://")
        config = v1.ConfigProto(operation_timeout_in_ms=2000)
        with self.assertRaises(tf.errors.OpError):
            with v1.Session(plain, graph=graph, config=config) as session:
                session.run(w)


if __name__ == "__main__":
    peer.main()
