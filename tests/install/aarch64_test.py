#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel for aarch64 that packaging/aarch64.sh has made in $MUSTER_AARCH64: what it holds, and what it does under qemu's emulation.

It needs the network, for NumPy.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import wheel_test
from wheel_test import output_of

MADE = os.environ.get("MUSTER_AARCH64", "")
ROOT = MADE + "/root"
PATIENCE = 600  # an emulated process takes ten times as long


def emulated(*words, **rest):
    return output_of("qemu-aarch64-static", "-L", ROOT, *words, timeout=PATIENCE, **rest)


class Aarch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        wheel, = glob.glob(MADE + "/muster-*_aarch64.whl")
        cls.size = os.path.getsize(wheel)
        platform = re.search(r"manylinux_2_\d+_aarch64", wheel).group()
        cls.folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        cls.packages = cls.folder + "/packages"
        output_of("/usr/bin/python3", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--only-binary=:all:", "--python-version=3.11",
                  "--platform=" + platform, "--platform=manylinux2014_aarch64", "--target=" + cls.packages, wheel, "numpy<2.3", timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_is_of_the_size_that_is_promised(self):
        self.assertLess(self.size, wheel_test.MOST_MB * 1e6)

    def test_holds_all_that_it_needs(self):
        carried = glob.glob(self.packages + "/muster/**/*.so*", recursive=True) + glob.glob(self.packages + "/muster/libexec/muster/*")
        for path in [*carried, self.packages + "/bin/muster"]:
            said = output_of("readelf", "--file-header", "--dynamic", path)
            self.assertRegex(said, r"Machine: +AArch64", path)
            for name in re.findall(r"\(NEEDED\).*\[(.*)\]", said):
                self.assertTrue(wheel_test.SYSTEM.match(name) or os.path.exists(self.packages + "/muster/lib/" + name), "%s needs %s" % (path, name))

    def test_command_trains_the_example(self):
        said = emulated(self.packages + "/bin/muster", "train", "--example", "--checkpoint-dir=run", cwd=self.folder)
        self.assertIn("trained digits to step 1120", said)

    def test_python_trains_the_readmes_first_model(self):
        own = tempfile.mkdtemp(dir=self.folder)
        for name in ("digits.meta", "images.npy", "labels.npy"):
            os.symlink("%s/share/muster/examples/%s" % (self.packages, name), own + "/" + name)
        with open("README.md", encoding="utf-8") as file:
            program = re.search(r"### In Python.*?```python\n(.*?)```", file.read(), re.S).group(1)
        said = emulated(ROOT + "/usr/bin/python3.11", "-c", program, cwd=own, env={**os.environ, "PYTHONPATH": self.packages})
        self.assertRegex(said, r"^loss 0\.\d+, saved \S+/model.ckpt-100\n$")


if __name__ == "__main__":
    if not os.path.isdir(ROOT) or not shutil.which("qemu-aarch64-static"):
        print("SKIPPED: needs qemu-user-static and, in MUSTER_AARCH64, a folder of packaging/aarch64.sh")
        sys.exit(0)
    unittest.main()
