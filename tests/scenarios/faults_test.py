#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong at three in the morning, on real processes and sockets: nobody hangs past his deadline,
nobody hears "ready" that isn't, and what is wrong is said.

It runs in a network namespace of its own, where a queue that drops every packet can be put on the
loopback; where the system gives none, the tests that need it are skipped.
"""
import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, "tests/scenarios")
import processes
from processes import DIGITS, peer


@contextlib.contextmanager
def black_hole():
    """Every packet is lost, also those of connections that stand."""
    subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "blackhole"], check=True)
    try:
        yield
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)


class FaultsTest(processes.TestCase):
    # --- nobody answers ---

    @peer.needs_namespace
    def test_a_black_hole_ends_at_the_deadline(self):
        with black_hole():
            waiting = self.wait_command("grpc://127.0.0.1:2222", "1s")
            preparing = self.start(peer.MUSTER, "prepare", "--meta-graph=" + DIGITS,
                                   "--master=grpc://127.0.0.1:2222", "--timeout=1s")
            self.expect_end(waiting, 2, "127.0.0.1:2222", timeout=1)
            self.expect_end(preparing, 2, "127.0.0.1:2222", timeout=1)

    @peer.needs_namespace
    def test_a_server_behind_a_cut_wire_is_given_up_at_the_deadline(self):
        _, target = self.serve()
        waiting = self.wait_command(target, "10s")
        waiting.expect("no chief has ever registered")
        with black_hole():
            self.expect_end(waiting, 1, timeout=10)

    @peer.needs_namespace
    def test_a_wire_that_was_cut_for_a_while_costs_nobody_his_model(self):
        _, target = self.serve()
        waiting = self.wait_command(target, "60s")
        waiting.expect("waiting for digits")
        with black_hole():
            time.sleep(1)  # the fault itself: this long nothing gets through
        self.prepare(target)
        self.assertEqual(waiting.wait(60), 0, waiting.text())

    def test_a_port_that_takes_connections_and_says_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            target = "grpc://127.0.0.1:%d" % silent.getsockname()[1]
            self.expect_end(self.wait_command(target, "1s"), 2, timeout=1)

    def test_a_server_that_shakes_hands_and_then_says_nothing(self):
        """Half-open HTTP/2: the settings come, an answer never does."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            held = []

            def settle():
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = server.accept()
                        connection.sendall(b"\0\0\0\4\0\0\0\0\0" + b"\0\0\0\4\1\0\0\0\0")
                        held.append(connection)

            threading.Thread(target=settle, daemon=True).start()
            target = "grpc://127.0.0.1:%d" % server.getsockname()[1]
            self.expect_end(self.wait_command(target, "2s"), 2, timeout=2)
            for connection in held:
                connection.close()

    # --- the server ---

    def test_a_stopped_server_is_given_up_at_the_deadline(self):
        server, target = self.serve()
        server.stop()
        self.expect_end(self.wait_command(target, "1s"), 2, timeout=1)

    def test_a_server_that_stops_while_somebody_waits(self):
        server, target = self.serve()
        waiting = self.wait_command(target, "10s")
        waiting.expect("no chief has ever registered")
        server.stop()
        self.expect_end(waiting, 1, timeout=10)

    def test_a_server_that_was_stopped_goes_on(self):
        server, target = self.serve()
        waiting = self.wait_command(target, "60s")
        waiting.expect("waiting for digits")
        server.stop()
        time.sleep(1)  # the fault itself
        server.signal(signal.SIGCONT)
        self.prepare(target)
        self.assertEqual(waiting.wait(60), 0, waiting.text())

    def test_a_server_killed_and_restarted_while_workers_wait(self):
        server, target = self.serve_lastingly()
        workers = [self.wait_command(target, "60s") for _ in range(3)]
        for worker in workers:
            worker.expect("waiting for digits")
        server.signal(signal.SIGKILL)
        server.wait(10)
        for worker in workers:
            worker.expect("127.0.0.1")
        server, again = self.serve(int(target.rsplit(":", 1)[1]))
        self.assertEqual(again, target)
        self.prepare(target)
        for worker in workers:
            self.assertEqual(worker.wait(60), 0, worker.text())

    def test_a_model_is_not_ready_any_more_on_a_server_that_came_back(self):
        server, target = self.serve_lastingly()
        self.prepare(target)
        self.assertEqual(self.wait_command(target, "30s").wait(60), 0)
        server.signal(signal.SIGKILL)
        server.wait(10)
        self.serve(int(target.rsplit(":", 1)[1]))
        self.expect_end(self.wait_command(target, "5s"), 1, "not", timeout=5)


if __name__ == "__main__":
    peer.enter_namespace("tc qdisc add dev lo root blackhole")
    peer.main()
