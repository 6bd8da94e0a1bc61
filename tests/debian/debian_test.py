#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""debian_test.py 12|13: muster on a Debian of that release that has nothing but what the README says.

The steps of Containerfile.build make the packages, those of Containerfile an image with them; then the README's two commands,
and the packages' own tests on a system that has only them. It needs root, mmdebstrap and the network, gigabytes and an hour.
MUSTER_DEBIAN_PACKAGES: a folder of packages that were built on that release; what builds there is left out.
MUSTER_DEBIAN_TESTS: the targets that are tested, instead of all. MUSTER_DEBIAN_DIR: where the systems are made, and kept.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from root import CODENAMES, Machine, Root, build, take_release

# Beside the repository's other files, wherever the test is run from.
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


PACKAGES = os.environ.get("MUSTER_DEBIAN_PACKAGES")
built = unittest.skipIf(PACKAGES, "the packages are given")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def snapshot(to):
    """The work tree's files, as a clone would have them."""
    names = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "-co", "--exclude-standard"], check=True, capture_output=True).stdout
    os.makedirs(to, exist_ok=True)
    for name in names.decode().split("\0"):
        source = os.path.join(TOP, name)
        if name and os.path.lexists(source):
            os.makedirs(os.path.dirname(os.path.join(to, name)), exist_ok=True)
            shutil.copy2(source, os.path.join(to, name), follow_symlinks=False)


class Debian(unittest.TestCase):
    """In order: each test uses what the one before has made."""

    @classmethod
    def setUpClass(cls):
        cls.suites = {"debian:%s-slim" % RELEASE: CODENAMES[RELEASE]}
        cls.folder = os.environ.get("MUSTER_DEBIAN_DIR") or tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        cls.tree = cls.folder + "/tree"
        cls.packages = PACKAGES
        snapshot(cls.tree)

    @classmethod
    def tearDownClass(cls):
        if not os.environ.get("MUSTER_DEBIAN_DIR"):
            shutil.rmtree(cls.folder)

    def containerfile(self, name, context):
        return build(os.path.join(TOP, "packaging/container", name), context, self.folder, self.suites, DEBIAN=RELEASE)

    @built
    def test_1_a_container_builds_the_packages(self):
        image, stages = self.containerfile("Containerfile.build", self.tree)
        type(self).packages, type(self).builder = image.root.folder, stages["build"].root
        self.assertEqual(sorted(os.listdir(self.packages)), ["gir1.2-muster-0.deb", "libmuster-dev.deb", "libmuster0.deb", "muster-doc.deb", "muster.deb", "python3-muster.deb"])

    def test_2_a_container_serves(self):
        image, _ = self.containerfile("Containerfile", self.packages)
        self.assertEqual(image.cmd[0], "serve")
        server = image.start("serve", "--listen=localhost:0", stdout=subprocess.PIPE, text=True)
        try:
            asked = image.start("status", server.stdout.readline().split()[1], stdout=subprocess.PIPE)
            asked.communicate()
            self.assertEqual(asked.returncode, 0)
        finally:
            server.kill()
            server.communicate()

    def test_3_the_packages_pass_their_own_tests(self):
        root = Root.debian(self.folder + "/installed", CODENAMES[RELEASE])
        shutil.copytree(self.tree, root.at("tree"), dirs_exist_ok=True)
        shutil.copytree(self.packages, root.at("deb"), dirs_exist_ok=True)
        root.shell("apt-get -qq update && apt-get -qq -y --no-install-recommends install /deb/*.deb >/dev/null")
        with open(os.path.join(TOP, "packaging/debian/tests/control"), encoding="utf-8") as file:
            tests = re.findall(r"^Tests: (\w+)\nDepends: (.*)$", file.read(), re.M)
        self.assertEqual(len(tests), len(glob.glob(TOP + "/packaging/debian/tests/*")) - 1)
        for name, needs in tests:
            with self.subTest(name):
                root.shell("apt-get -qq -y --no-install-recommends install %s >/dev/null" % needs.replace(",", ""))
                root.shell("mkdir -p /tmp/%s" % name)
                root.run(["packaging/debian/tests/" + name], cwd="/tree", environment={"AUTOPKGTEST_TMP": "/tmp/" + name})

    def test_4_an_upgrade_restarts_the_service_and_loses_no_step(self):
        root = Root(self.folder + "/installed")
        root.shell("apt-get -qq -y --no-install-recommends install systemd systemd-sysv dbus >/dev/null && dpkg -i /deb/muster.deb")
        # What a sandbox doesn't allow: devices of its own, more files.
        os.makedirs(root.at("/etc/systemd/system/muster-serve.service.d"), exist_ok=True)
        with open(root.at("/etc/systemd/system/muster-serve.service.d/here.conf"), "w", encoding="ascii") as file:
            file.write("[Service]\nLimitNOFILE=\nPrivateDevices=no\n")
        machine = Machine(root)
        try:
            machine.shell("systemctl start muster-serve && install -d -o muster /var/lib/muster/run")
            chief = machine.start("cd /usr/share/muster/examples && exec setpriv --reuid=muster --regid=muster --clear-groups muster train"
                                  " --master=grpc://localhost:2222 --meta-graph=digits.meta --feed=x:0=@images.npy --feed=y:0=@labels.npy"
                                  " --steps=12000 --save-secs=600 --checkpoint-dir=/var/lib/muster/run", stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
            line = ""
            while not line.startswith("saved "):  # step 0
                line = chief.stdout.readline()
                self.assertTrue(line, "the chief ended")
            machine.shell("systemctl reload muster-serve && dpkg -i /deb/muster.deb && systemctl is-active muster-serve")
            said, _ = chief.communicate()
            self.assertEqual(chief.returncode, 0, said)
            self.assertIn("the job is drained; saving", said)
            restored = re.findall(r"^restored /var/lib/muster/run/model.ckpt-(\d+)", said, re.M)
            self.assertEqual(len(restored), 1, said)
            before, _, _ = machine.ask("journalctl -u muster-serve -o cat").rpartition("stopping")
            self.assertRegex(before, "'digits' is durable at step %s\n" % restored[0])
            machine.shell("dpkg -r muster")
            self.assertEqual(machine.ask("systemctl is-active muster-serve").strip(), "inactive")
        finally:
            machine.off()

    def test_5_a_newcomer_needs_nothing_but_the_packages(self):
        """The command alone first; then docs/getting-started.md, word by word, its installation included."""
        root = Root.debian(self.folder + "/newcomer", CODENAMES[RELEASE])
        shutil.copytree(self.packages, root.at("deb"), dirs_exist_ok=True)
        shutil.copytree(self.tree, root.at("tree"), dirs_exist_ok=True)
        install = re.search(r"^```sh\nsudo (apt install .*)\n```$", read(TOP + "/docs/getting-started.md"), re.M).group(1)
        root.shell("apt-get -qq update && apt-get -qq -y --no-install-recommends install ./muster.deb >/dev/null", cwd="/deb")
        root.shell("cd \"$(mktemp -d)\" && muster train --example --steps=100 --checkpoint-dir=run && muster train --example --steps=200 --checkpoint-dir=run >said 2>&1"
                   " && grep -F 'restored run/model.ckpt-100' said && muster checkpoint verify run")
        root.shell(install.replace("apt ", "apt-get -qq -y ") + " >/dev/null", cwd="/deb")
        root.run(["/usr/bin/python3", "tests/docs/doc_test.py", "docs/getting-started.md", "--installed=/usr"], cwd="/tree")
        root.shell("cc hook/hook.c -o /tmp/hook $(pkg-config --cflags --libs muster-engine)", cwd="/usr/share/doc/muster/examples")

    @built
    def test_6_the_demo_runs(self):
        self.builder.shell("bazel/setup && bazel run //:demo", cwd="/muster")

    @built
    def test_7_the_tests_pass(self):
        targets = os.environ.get("MUSTER_DEBIAN_TESTS", "//...")
        self.builder.shell("bazel/setup --tests && bazel test %s" % targets, cwd="/muster")


if __name__ == "__main__":
    RELEASE = take_release()
    sys.exit(unittest.main(failfast=True, verbosity=2))
