#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The job of examples/slurm under Slurm: tasks that are killed, scancel, the time limit, and a task that doesn't come back.

A cluster of one node, in a network namespace of its own, where nothing else can be reached."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests/tensorflow")
import peer

PATIENCE = 60
EPOCHS, BATCHES = 400, 1797 // 32
LONG = 10**6
os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
MISSING = [name for name in ("slurmctld", "slurmd", "sbatch", "unshare", "ip") if not shutil.which(name)]
IN_NAMESPACE = "MUSTER_SLURM_NAMESPACE"

CONFIGURATION = """
ClusterName=muster
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
"""


def enter_namespace():
    """Starts over in a network namespace. Slurm looks for addresses beside those of the loopback, so there is another."""
    if MISSING or os.geteuid() != 0 or IN_NAMESPACE in os.environ:
        return
    os.environ[IN_NAMESPACE] = "1"
    setup = 'ip link set lo up && ip address add 192.0.2.1/32 dev lo && exec "$@"'
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", setup, "sh", sys.executable, *sys.argv])


def run(*words, check=True):
    return subprocess.run(words, check=check, stdout=subprocess.PIPE, text=True, timeout=PATIENCE).stdout


@unittest.skipIf(MISSING, "needs %s: install slurmctld, slurmd and slurm-client" % ", ".join(MISSING))
@unittest.skipUnless(os.geteuid() == 0, "needs root, as which Slurm's daemons run")
class SlurmTest(peer.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(dir="/tmp")  # Slurm's sockets have short paths
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.host = socket.gethostname().split(".")[0]
        for name in ("state", "spool", "bin", "job"):
            os.mkdir(os.path.join(self.folder, name))
        os.symlink(peer.MUSTER, os.path.join(self.folder, "bin", "muster"))
        with open(os.path.join(self.folder, "slurm.conf"), "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(host=self.host, folder=self.folder))
        os.environ["SLURM_CONF"] = file.name
        os.environ["PATH"] = "%s/bin:%s" % (self.folder, os.environ["PATH"])
        for name in "slurmctld", "slurmd":
            self.start(name)
        self.addCleanup(self.cancel_all)
        peer.await_true(lambda: "idle" in run("sinfo", "-h", "-o", "%T", check=False), "the node is idle")

    def start(self, name):
        with open(os.path.join(self.folder, name + ".log"), "w", encoding="utf-8") as log:
            daemon = subprocess.Popen([name, "-D"], stdout=log, stderr=log, preexec_fn=peer.die_with_parent)

        def end():
            daemon.terminate()
            try:
                daemon.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait(PATIENCE)

        self.addCleanup(end)

    def cancel_all(self):
        run("scancel", "--signal=KILL", "--full", "--user=root")
        run("scancel", "--user=root")
        peer.await_true(lambda: run("squeue", "-h") == "", "no job is left")

    def submit(self, epochs):
        folder = os.path.join(self.folder, "job")
        for name, fixture in ("digits.meta", "digits.meta"), ("images.npy", "digits_x.npy"), ("labels.npy", "digits_y.npy"):
            shutil.copy(peer.fixture(fixture), os.path.join(folder, name))
        with open("examples/slurm/job.sh", encoding="utf-8") as file:
            script = file.read()
        self.assertIn("--epochs=400", script)
        with open(os.path.join(folder, "job.sh"), "w", encoding="utf-8") as file:
            file.write(script.replace("--epochs=400", "--epochs=%d" % epochs))
        self.job = run("sbatch", "--parsable", "--chdir=" + folder, file.name).strip()
        self.target = "grpc://%s:%d" % (self.host, 20000 + int(self.job) % 10000)

    def state(self):
        """As JobState=COMPLETED, ExitCode=0:0 and others."""
        return dict(word.split("=", 1) for word in run("scontrol", "show", "job", self.job).split() if "=" in word)

    def await_state(self, *states):
        peer.await_true(lambda: self.state()["JobState"] in states, "the job is " + " or ".join(states))

    def members(self):
        status = subprocess.run([peer.MUSTER, "status", "--json", self.target], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE, check=False)
        jobs = json.loads(status.stdout)["jobs"] if status.returncode == 0 else []
        return {member["task"]: member for member in jobs[0]["members"]} if jobs else {}

    def await_training(self):
        def trains():
            members = self.members()
            return len(members) == 4 and all(member["batches"] > 0 for member in members.values())

        peer.await_true(trains, "four tasks train")
        return self.members()

    def pid(self, member):
        return int(member["who"].rsplit(":", 1)[1])

    def read(self, name):
        with open(os.path.join(self.folder, "job", name), encoding="utf-8") as file:
            return file.read()

    def logs(self):
        return [self.read("task-%d.log" % i) for i in range(4)]

    def expect_trained(self, epochs):
        for log in self.logs():
            self.assertIn("trained digits to step %d" % (epochs * BATCHES), log)

    def test_a_killed_task_comes_back_and_another_is_chief_meanwhile(self):
        self.submit(epochs=LONG)
        members = self.await_training()
        self.assertEqual(sorted(members), ["task:0", "task:1", "task:2", "task:3"])
        chief = next(task for task, member in members.items() if member["role"] == "chief")
        worker = next(task for task, member in members.items() if member["role"] == "worker")
        for task in worker, chief:
            before = self.pid(members[task])
            os.kill(before, signal.SIGKILL)
            peer.await_true(lambda: task in self.members() and self.pid(self.members()[task]) != before, task + " is back")
        peer.await_true(lambda: any(member["role"] == "chief" for member in self.members().values()), "there is a chief")
        self.assertEqual(self.state()["JobState"], "RUNNING")

    def test_ends_well_without_a_task_that_does_not_come_back(self):
        self.submit(epochs=EPOCHS)
        member = self.await_training()["task:2"]
        with open("/proc/%d/stat" % self.pid(member), encoding="utf-8") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        os.kill(parent, signal.SIGKILL)
        os.kill(self.pid(member), signal.SIGKILL)
        self.await_state("COMPLETED", "FAILED")
        self.assertEqual((self.state()["JobState"], self.state()["ExitCode"]), ("COMPLETED", "0:0"), self.logs())

    def test_scancel_saves(self):
        self.submit(epochs=LONG)
        self.await_training()
        run("scancel", self.job)
        self.await_state("CANCELLED")
        peer.await_true(lambda: "stopped after" in self.read("slurm-%s.out" % self.job), "the server has stopped")
        self.assertEqual(self.state()["ExitCode"], "6:0")
        self.assertEqual(sum("was durable after" in log for log in self.logs()), 1, self.logs())
        self.assertEqual(sum("preempted (Terminated): nothing to save" in log for log in self.logs()), 3, self.logs())
        self.assertEqual(self.state()["Restarts"], "0")

    def test_is_queued_again_before_its_time_limit_and_resumes(self):
        self.submit(epochs=EPOCHS)
        self.await_training()
        run("scancel", "--signal=TERM", self.job)  # as Slurm does 120 s before the limit: the tasks alone
        peer.await_true(lambda: self.state()["Restarts"] == "1", "it is queued again")
        self.assertEqual(sum("was durable after" in log for log in self.logs()), 1, self.logs())
        peer.await_true(lambda: self.state()["JobState"] == "PENDING", "it is pending")
        run("scontrol", "update", "JobId=" + self.job, "StartTime=now")
        self.await_state("COMPLETED", "FAILED")
        self.assertEqual(self.state()["ExitCode"], "0:0", self.logs())
        self.expect_trained(EPOCHS)
        self.assertEqual(sum("restored run/model.ckpt-" in log for log in self.logs()), 1, self.logs())


if __name__ == "__main__":
    enter_namespace()
    peer.main()
