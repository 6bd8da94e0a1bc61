#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The compose file: its services, run as processes of this machine, train the example's model to its end."""
import os
import subprocess
import sys
import tempfile
import unittest

import yaml

MUSTER = os.path.abspath("cli/muster")
FIXTURES = os.path.abspath("tests/fixtures")
PATIENCE = 120


def containerfile(name):
    """The instructions of a Containerfile, as pairs of an instruction and its argument."""
    with open("packaging/container/" + name, encoding="utf-8") as file:
        lines = "".join(line for line in file if not line.startswith("#")).replace("\\\n", " ").splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line]


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open("packaging/container/compose.yaml", encoding="utf-8") as file:
            cls.file = yaml.safe_load(file)
        cls.services = cls.file["services"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ["TEST_TMPDIR"])
        self.addCleanup(folder.cleanup)
        self.volume = folder.name
        self.examples = folder.name + "/examples"
        os.mkdir(self.examples)
        for name, fixture in (("digits.meta", "digits.meta"), ("images.npy", "digits_x.npy"), ("labels.npy", "digits_y.npy")):
            os.symlink(os.path.join(FIXTURES, fixture), os.path.join(self.examples, name))

    def words(self, words, address=None):
        """A service's command on this machine."""
        for there, here in (("0.0.0.0:2222", "localhost:0"), ("grpc://master:2222", address), ("grpc://localhost:2222", address),
                            ("/usr/share/muster/examples", self.examples), ("/var/lib/muster", self.volume)):
            words = [word.replace(there, here) if here else word for word in words]
        return [MUSTER, *words]

    def begin(self, words, address=None, stderr=subprocess.STDOUT):
        process = subprocess.Popen(self.words(words, address), text=True, stderr=stderr, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_the_services_train_to_the_end(self):
        master = self.begin(self.services["master"]["command"], stderr=None)
        address = master.stdout.readline().split()[1]
        tasks = {name: self.begin(service["command"], address) for name, service in self.services.items() if name != "master"}
        self.assertEqual(set(tasks), {"chief", "worker-0", "worker-1"})
        for name, task in tasks.items():
            said, _ = task.communicate(timeout=PATIENCE)
            self.assertEqual(task.returncode, 0, "%s: %s" % (name, said))
        healthy = self.words(self.services["master"]["healthcheck"]["test"][2:], address)
        self.assertEqual(subprocess.run(healthy, timeout=PATIENCE, capture_output=True).returncode, 0)
        latest = subprocess.run([MUSTER, "checkpoint", "latest", self.volume + "/run"], text=True, capture_output=True, timeout=PATIENCE)
        self.assertIn("/run/model.ckpt-", latest.stdout)

    def test_each_of_its_tasks_is_one_of_the_job(self):
        commands = [service["command"] for service in self.services.values() if service["command"][0] == "train"]
        self.assertEqual({word for words in commands for word in words if word.startswith("--tasks=")}, {"--tasks=%d" % len(commands)})
        self.assertEqual(len({word for words in commands for word in words if word.startswith("--task=")}), len(commands))

    def test_files_lie_where_the_image_has_them(self):
        instructions = dict(containerfile("Containerfile"))
        self.assertEqual({volume for service in self.services.values() for volume in service.get("volumes", [])},
                         {"checkpoints:" + instructions["WORKDIR"]})
        self.assertEqual(instructions["ENTRYPOINT"], '["muster"]')
        for service in self.services.values():
            self.assertEqual(service["networks"], ["job"])
        self.assertTrue(self.file["networks"]["job"]["internal"])
        self.assertIn("--insecure", self.services["master"]["command"])


if __name__ == "__main__":
    sys.exit(unittest.main())
