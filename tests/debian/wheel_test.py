#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""wheel_test.py 12|13: the wheel in a Debian of that release that has Python and nothing else, for a user without a network.

It needs root, mmdebstrap and, outside that Debian, the network. MUSTER_WHEEL: the wheel, which has to be for that release's Python; else it
is made for this machine's.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from root import CODENAMES, Root, take_release

PYTHONS = {"12": "3.11", "13": "3.13"}
DOCUMENTS = ["README.md", "docs/python.md", "docs/operating/checkpoints.md"]
# Beside the repository's other files, wherever the test is run from.
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
INSTALL = """
set -e
python3 -m venv venv
. venv/bin/activate
pip install --quiet --disable-pip-version-check --no-index --find-links=/wheels /wheels/muster-*.whl
muster --version
python -c 'import sys, muster; print("muster", muster.__version__, "in Python", sys.version.split()[0])'
"""
CALL = """
set -e
. venv/bin/activate
serve() { # serve FIFO FLAG...
  mkfifo "$1"
  muster serve --listen=localhost:0 "${@:2}" >"$1" &
  read -r _ target <"$1"
}
muster certs certs >/dev/null
serve plain
plain=$target
serve secure --tls-cert=certs/server.pem --tls-key=certs/server.key --token-file=certs/tokens
python /tree/tests/python/beside_tensorflow.py "load_muster call_muster" "$plain" "${target/grpc:/grpcs:}" certs/ca.pem certs/run.token
"""


class Wheel(unittest.TestCase):
    """In order: each test uses what the one before has made."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("MUSTER_DEBIAN_DIR") or os.environ["TEST_TMPDIR"])
        wheels = cls.folder + "/wheels"
        os.mkdir(wheels)
        if "MUSTER_WHEEL" in os.environ:
            shutil.copy(os.environ["MUSTER_WHEEL"], wheels)
        else:
            subprocess.run(["./wheel", "--output=" + wheels], check=True)
        made, = glob.glob(wheels + "/muster-*.whl")
        if "cp" + PYTHONS[RELEASE].replace(".", "") not in made:
            raise unittest.SkipTest("%s isn't for Python %s: name one that is in MUSTER_WHEEL" % (os.path.basename(made), PYTHONS[RELEASE]))
        subprocess.run([sys.executable, "-m", "pip", "--quiet", "download", "--only-binary=:all:", "--python-version=" + PYTHONS[RELEASE], "--dest=" + wheels, "numpy"],
                       check=True)
        cls.root = Root.debian(cls.folder + "/root", CODENAMES[RELEASE], "python3-venv")
        shutil.copytree(wheels, cls.root.at("wheels"))
        for path in ("README.md", "docs", "tests/docs", "tests/fixtures", "tests/tensorflow", "tests/python"):
            source, to = os.path.join(TOP, path), os.path.join(cls.root.at("tree"), path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, to)
        cls.root.shell("useradd --create-home user")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def shell(self, text, cwd="/home/user"):
        self.root.run(["bash", "-c", text], cwd=cwd, user="1000:1000", environment={"HOME": "/home/user"})

    def test_1_pip_installs_it(self):
        self.assertIn("not found", subprocess.run(["/usr/sbin/chroot", self.root.folder, "sh", "-c", "cc --version"], capture_output=True, text=True).stderr)
        self.shell(INSTALL)

    def test_2_it_does_what_the_documents_say(self):
        """In Python and on the command line, but for what needs TensorFlow."""
        self.shell("python3 tests/docs/doc_test.py --wheel=/home/user/venv -k '*_python' -k '*_console' " + " ".join(DOCUMENTS), cwd="/tree")

    def test_3_it_calls_over_grpc_and_tls(self):
        self.shell(CALL)


if __name__ == "__main__":
    RELEASE = take_release()
    sys.exit(unittest.main(failfast=True, verbosity=2))
