#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What users of other libraries are used to: a fixture that many tests share, a pool of processes, a coroutine that Ctrl-C ends."""
import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
import muster
import pythons

PATIENCE = 120


@contextlib.contextmanager
def model():
    """As a fixture: a session of an initialised model, closed afterwards."""
    scaffold = muster.Scaffold.load(case.fixture("linreg.meta"))
    manager = muster.SessionManager(scaffold.graph(), ready_op=scaffold.ready_op(), local_init_op=scaffold.local_init_op())
    with manager.prepare_session(muster.LocalMaster(), init_op=scaffold.init_op()) as session:
        yield scaffold, session


def train(seed):
    """In a process of a pool: the loss and the step, after some steps."""
    with model() as (scaffold, session):
        for _ in range(20):
            _, loss = session.run([scaffold.train_op(), "loss:0"], {"x:0": [1.0, seed], "y:0": [3.0, 2.0 * seed + 1]})
        return loss, int(session.run(scaffold.global_step()))


def fail(path):
    return muster.Scaffold.load(path)


def queue():
    """A graph in which "take" waits until "put" has run."""
    builder = muster.GraphBuilder()
    builder.node("FIFOQueueV2", "queue")
    builder.attr_types("component_types", [muster.DType.FLOAT])
    builder.constant("item", muster.Tensor(1.0))
    builder.node("QueueEnqueueV2", "put")
    builder.input("queue")
    builder.input("item")
    builder.attr_types("Tcomponents", [muster.DType.FLOAT])
    builder.node("QueueDequeueV2", "take")
    builder.input("queue")
    builder.attr_types("component_types", [muster.DType.FLOAT])
    return builder.end()


class Fixture(case.TestCase):
    def test_many_tests_leave_nothing(self):
        def held():
            gc.collect()
            return len(os.listdir("/proc/self/fd")), threading.active_count()

        for i in range(30):
            with model() as (scaffold, session):
                session.run(scaffold.train_op(), {"x:0": [1.0], "y:0": [2.0]})
                self.assertEqual(int(session.run(scaffold.global_step())), 1)
            if i == 4:
                before = held()
        self.assertEqual(held(), before)

    def test_a_failing_test_closes_its_session(self):
        with self.assertRaises(ZeroDivisionError):
            with model() as (scaffold, session):
                raise ZeroDivisionError
        with self.assertRaises(muster.StatusError):
            session.run(scaffold.global_step())


def use_pool(method):
    """The program of a test; it has used the library before it starts its pool."""
    expected = train(1)
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(train, [1, 2, 3, 4])
        assert [step for _, step in results] == [20] * 4, results
        assert results[0][0] == expected[0], (results, expected)
        try:
            pool.apply(fail, ["/none/none.meta"])
        except FileNotFoundError as error:
            assert isinstance(error, muster.NotFound) and error.filename == "/none/none.meta", repr(error)
        else:
            raise AssertionError("nothing was raised")
    assert train(1)[1] == 20


class Pool(case.TestCase):
    def test_of_processes_trains(self):
        for method in ("spawn", "fork", "forkserver"):
            with self.subTest(method=method):
                done = subprocess.run([sys.executable, __file__, method], timeout=PATIENCE, check=False, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
                self.assertEqual(done.returncode, 0, done.stdout)


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
    made = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters  # before Python 3.13
    made = interpreters.create()
interpreters.run_string(made, "try: import muster\\nexcept ImportError as error: print(error, flush=True)")
"""
STEP = """
import muster
builder = muster.GraphBuilder()
builder.constant("one", muster.Tensor(1.0))
print(float(muster.LocalMaster().create_session(builder.end()).run("one:0")))
"""


class Interpreter(case.TestCase):
    """Ways to start Python."""

    def said(self, *words):
        done = subprocess.run([sys.executable, *words], timeout=PATIENCE, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=pythons.environment(self.folder))
        return done.stdout

    def test_nothing_is_left_open(self):
        self.assertEqual(self.said("-OO", "-W", "error::ResourceWarning", "-c", STEP), "1.0\n")

    def test_a_subinterpreter_is_refused(self):
        self.assertIn("muster can't be imported in a subinterpreter", self.said("-c", SUBINTERPRETER))


class Asyncio(case.TestCase):
    def press_soon(self):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        self.addCleanup(timer.join)

    def test_ctrl_c_ends_an_await_and_leaves_the_session(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        session, ended = muster.LocalMaster().create_session(queue()), []

        async def take():
            try:
                self.press_soon()
                await session.run_async("take:0")
            finally:
                ended.append(True)

        with self.assertRaises(KeyboardInterrupt):
            asyncio.run(take())
        self.assertEqual(ended, [True])
        session.run("put")
        self.assertEqual(float(session.run("take:0")), 1)

    def test_steps_run_side_by_side_and_end_by_asyncios_timeout(self):
        session = muster.LocalMaster().create_session(queue())

        async def both():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(session.run_async("take:0"), 0.2)
            taken, _ = await asyncio.gather(session.run_async("take:0"), session.run_async("put"))
            return float(taken)

        self.assertEqual(asyncio.run(both()), 1)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in multiprocessing.get_all_start_methods():
        use_pool(sys.argv[1])
    else:
        case.main()
