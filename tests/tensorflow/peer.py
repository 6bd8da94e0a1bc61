# SPDX-License-Identifier: Apache-2.0
"""What the tests against TensorFlow share: processes of both sides, and a report for Bazel.

Every process ends with the test, whatever happens to it: TensorFlow's server when its standard
input closes, muster by the kernel's parent-death signal, and the test itself by a watchdog.
"""
import contextlib
import ctypes
import faulthandler
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import xml.etree.ElementTree as ET

MUSTER = os.path.abspath("cli/muster")
FIXTURES = os.path.abspath("tests/fixtures")
# Before Bazel's own, which would tell nothing.
WATCHDOG_SECONDS = int(os.environ.get("TEST_TIMEOUT", 300)) * 9 // 10
COMMAND_SECONDS = 60
IN_NAMESPACE = "MUSTER_TEST_NAMESPACE"

_SERVER = """
import os, sys
import tensorflow as tf
config = tf.compat.v1.ConfigProto(device_count={"CPU": int(sys.argv[1])})
server = tf.distribute.Server({"worker": ["localhost:0"]}, job_name="worker", task_index=0, config=config, start=True)
print(server.target, flush=True)
sys.stdin.read()
os._exit(0)
"""


def fixture(name):
    return os.path.join(FIXTURES, name)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def first_line(process, what):
    line = process.stdout.readline().decode().strip()
    if not line:
        raise RuntimeError("%s ended with %s before it served" % (what, process.wait()))
    return line


def end(process):
    """Asks, then insists."""
    if process.stdin:
        process.stdin.close()
    else:
        process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    process.stdout.close()


@contextlib.contextmanager
def muster_process(*arguments):
    """`muster serve` on a free port; gives its target and its process."""
    process = subprocess.Popen([MUSTER, "serve", "--listen=localhost:0", *arguments],
                               stdout=subprocess.PIPE, preexec_fn=die_with_parent)
    try:
        line = first_line(process, "muster serve")
        assert line.startswith(("serving grpc://", "serving grpcs://")), line
        yield line.split()[1], process.pid
    finally:
        end(process)


@contextlib.contextmanager
def muster_server(*arguments):
    """Its target alone."""
    with muster_process(*arguments) as (target, _):
        yield target


def fail_with(process, what, is_ending):
    """Ends the test when a server ends before its time: TensorFlow's client may wait for one that has died without limit,
    in calls that nothing interrupts. Names the operation that was under way."""
    with contextlib.suppress(ChildProcessError):  # who ended it has asked for its status already
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    if is_ending.is_set():
        return
    stack = traceback.extract_stack(sys._current_frames()[threading.main_thread().ident])
    own = [frame for frame in stack if "site-packages" not in frame.filename]
    print("%s has ended by itself with %s, during '%s'\n%s" % (
        what, process.wait(), own[-1].line, "".join(traceback.format_list(stack))), file=sys.stderr, flush=True)
    os._exit(1)


@contextlib.contextmanager
def tensorflow_server(cpus=1):
    """TensorFlow's own server on a free port, with so many devices; gives its target."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER, str(cpus)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, preexec_fn=die_with_parent)
    is_ending = threading.Event()
    try:
        target = first_line(process, "TensorFlow's server")
        threading.Thread(target=fail_with, args=(process, "TensorFlow's server", is_ending), daemon=True).start()
        yield target
    finally:
        is_ending.set()
        end(process)


def muster(*arguments, code=0):
    """Runs a muster command and returns what it printed; any other exit code than wanted fails."""
    done = subprocess.run([MUSTER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=COMMAND_SECONDS, stdin=subprocess.DEVNULL)
    if done.returncode != code:
        raise AssertionError("muster %s ended with %d, not %d\n%s%s" % (
            " ".join(arguments), done.returncode, code, done.stdout, done.stderr))
    return done.stdout if code == 0 else done.stderr


def muster_json(*arguments):
    return json.loads(muster(*arguments, "--json"))


def is_running(pid):
    """False for a zombie, too."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end between the opening and the reading
        return False


def await_true(condition, what):
    end = time.monotonic() + COMMAND_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it never came true that " + what)
        time.sleep(0.01)


def stop(pid):
    """Returns when the process stands still: each of its threads goes on until the kernel has come to it."""
    def stands():
        try:
            states = set()
            for thread in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/stat" % (pid, thread), encoding="ascii", errors="replace") as stat:
                    states.add(stat.read().rpartition(") ")[2][0])
            return states == {"T"}
        except (FileNotFoundError, ProcessLookupError):  # a thread has ended
            return False
    os.kill(pid, signal.SIGSTOP)
    await_true(stands, "it stands still")


def enter_namespace(need):
    """Starts over in a network namespace of its own, with the loopback up, if the system gives one in which the command
    succeeds. IN_NAMESPACE is set there."""
    if IN_NAMESPACE in os.environ:
        return
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    for way in (["unshare", "-n"], ["unshare", "-rn"]):
        probe = subprocess.run([*way, "sh", "-c", "ip link set lo up && " + need], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=False)
        if probe.returncode == 0:
            os.environ[IN_NAMESPACE] = "1"
            os.execvp(way[0], [*way, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv])
    os.environ[IN_NAMESPACE] = ""


def needs_namespace(test):
    return unittest.skipUnless(os.environ.get(IN_NAMESPACE), "no network namespace to be had here")(test)


def hold_port():
    """A socket that keeps a port for the test's own servers, which come and go: nobody else is given it, while a server that
    asks for it by its number gets it. Close it at the end. It is below those that the system gives to connections: one of
    them, by IPv6, would keep a server from it."""
    for _ in range(1000):
        port = random.randrange(12000, 32000)
        with socket.socket() as alone:
            try:
                alone.bind(("", port))
            except OSError:
                continue
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC's own: they share it while this one doesn't listen
        held.bind(("127.0.0.1", port))
        return held
    raise RuntimeError("no port is free")


def port_of(held):
    return held.getsockname()[1]


def secrets(folder):
    """Files for a secured server: its certificate, its key, and a token that begins with "a-secret"."""
    cert, key, token = (os.path.join(folder, name) for name in ("cert", "key", "token"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "36500", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    with open(token, "w") as file:
        file.write("a-secret-of-the-test\n")
    os.chmod(token, 0o600)
    return cert, key, token


class TestCase(unittest.TestCase):
    def folder(self):
        """A fresh folder, removed after the test."""
        path = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        return path

    def serve(self, *arguments):
        """A `muster serve` of this test's own; its target."""
        return self.enterContext(muster_server(*arguments))


class _Result(unittest.TextTestResult):
    """Collects what Bazel's test.xml holds."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.suite = ET.Element("testsuite", name=os.path.basename(sys.argv[0]))

    def startTest(self, test):
        super().startTest(test)
        self._started = time.monotonic()
        names = test.id().split(".")
        self._case = ET.SubElement(self.suite, "testcase", name=names[-1], classname=names[-2])

    def stopTest(self, test):
        self._case.set("time", "%.3f" % (time.monotonic() - self._started))
        super().stopTest(test)

    def _mark(self, kind, text):
        ET.SubElement(self._case, kind, message=text.strip().splitlines()[-1]).text = text

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._mark("failure", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        if not hasattr(self, "_case"):  # in setUpClass
            self._case = ET.SubElement(self.suite, "testcase", name="setup", classname="setup")
        self._mark("error", self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._mark("failure", str(subtest))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._mark("skipped", reason)


def main():
    faulthandler.dump_traceback_later(WATCHDOG_SECONDS, exit=True)
    runner = unittest.TextTestRunner(verbosity=2, resultclass=_Result)
    result = unittest.main(module="__main__", testRunner=runner, exit=False).result
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        suites = ET.Element("testsuites")
        suites.append(result.suite)
        ET.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)
    sys.stdout.flush()
    sys.stderr.flush()
    # TensorFlow's channels may keep the interpreter from ending.
    os._exit(0 if result.wasSuccessful() else 1)
