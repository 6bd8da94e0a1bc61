# SPDX-License-Identifier: Apache-2.0
"""docs/cluster.md word by word, and its examples for Kubernetes and Slurm, on machines that know each other by name."""
import concurrent.futures
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys

import machines
import peer

peer.enter_namespace(machines.NEED)
sys.path.insert(0, "tests/docs")

import doc_test

doc_test.PATIENCE = peer.WATCHDOG_SECONDS
STEPS = "--steps=20000"  # of the examples
FEWER = "--steps=500"
EXAMPLES = "/usr/share/muster/examples"
EXAMPLE = "examples/cluster"
PAGE = "docs/cluster.md"
# What Slurm has on each node: the names in a list of nodes, and a task on each but the first.
SCONTROL = """#!/bin/sh
[ "$*" = "show hostnames node[1-3]" ] && printf 'node%s\\n' 1 2 3
"""
SRUN = """#!/bin/bash
[ "$1 $2" = "--relative=1 --nodes=2" ] || exit 3
n=0 worst=0
for process in $OTHER_NODES; do
  SLURM_PROCID=$n nsenter -t "$process" -n -m bash -c "cd $PWD; task" >task-$n.log 2>&1 &
  started[n++]=$!
done
for one in "${started[@]}"; do
  wait "$one" || worst=$?
done
exit $worst
"""
AS_JSON = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"


def has_yaml():
    return subprocess.run(["/usr/bin/python3", "-c", "import yaml"], stderr=subprocess.DEVNULL, check=False).returncode == 0


@peer.needs_namespace
class Walk(peer.TestCase):
    def setUp(self):
        self.network = machines.Network(self)
        self.share = self.folder()
        for name, to in doc_test.FILES.items():
            shutil.copy(peer.fixture(name), os.path.join(self.share, to))

    def shell(self, machine, folder=None):
        environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        environment.update(PATH="%s:%s" % (os.path.dirname(peer.MUSTER), os.environ["PATH"]), VIRTUAL_ENV=sys.prefix)
        shell = doc_test.Shell("/", environment, machine.enter)
        self.addCleanup(shell.end)
        shell.run_well("cd " + (folder or self.folder()))
        return shell

    def each(self, commands):
        """Runs the commands of each shell, all shells at once."""
        def run(shell):
            for command in commands[shell]:
                shell.run_well(command)

        with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
            for done in [pool.submit(run, shell) for shell in commands]:
                done.result()

    def await_line(self, shell, pattern):
        shell.wait_for(lambda: any(re.search(pattern, line) for line in shell.lines), "waited for '%s'" % pattern)

    def test_two_machines(self):
        with open(PAGE, encoding="utf-8") as file:
            text = file.read().partition("## Two machines")[2].partition("```sh\n")[2].partition("```")[0]
        shells = {name: self.shell(self.network.machine(name)) for name in ("one", "two")}
        commands = {shell: [] for shell in shells.values()}
        for line in doc_test.continued(text.replace(EXAMPLES, self.share)):
            command, _, where = line.partition(" # on ")
            for name in shells if where == "both" else [where]:
                commands[shells[name]].append(command)
        self.each(commands)
        for shell in shells.values():
            self.await_line(shell, "^trained digits_ps to step ")

    # --- Kubernetes ---

    def documents(self):
        done = subprocess.run(["/usr/bin/python3", "-c", AS_JSON, EXAMPLE + "/kubernetes.yaml"], stdout=subprocess.PIPE, check=True, text=True)
        return json.loads(done.stdout)

    def command(self, container, index, config):
        """Of a container, as one line of a shell."""
        self.assertEqual(container["envFrom"], [{"configMapRef": {"name": config["metadata"]["name"]}}])
        line = " ".join(container["command"] + container["args"]).replace("$(JOB_COMPLETION_INDEX)", str(index)).replace(STEPS, FEWER)
        return line.replace("/model/", self.share + "/").replace("=/checkpoints", "=" + self.checkpoints)

    def pods(self, documents):
        """(name, commands) of each pod."""
        config = next(each for each in documents if each["kind"] == "ConfigMap")
        for document in documents:
            spec = document["spec"]["template"]["spec"] if "template" in document.get("spec", {}) else None
            if spec is None:
                continue
            containers = spec.get("initContainers", []) + spec["containers"]
            subdomain = document["spec"].get("serviceName") or spec["subdomain"]
            for index in range(document["spec"].get("replicas") or document["spec"]["completions"]):
                export = "export TF_CONFIG='%s'" % " ".join(config["data"]["TF_CONFIG"].split())
                yield ("%s-%d.%s" % (document["metadata"]["name"], index, subdomain),
                       [export] + [self.command(each, index, config) for each in containers])

    @peer.unittest.skipUnless(has_yaml(), "needs python3-yaml")
    def test_kubernetes(self):
        """The parameter server's pod is killed as well, and comes back with another address."""
        self.checkpoints = self.folder()
        documents = self.documents()
        pods = dict(self.pods(documents))
        self.assertEqual(sorted(re.findall(r'"([^"]*):2222"', documents[2]["data"]["TF_CONFIG"])), sorted(pods))
        shells = {name: self.shell(self.network.machine(name)) for name in pods}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(self.each, {shells[name]: commands for name, commands in pods.items()})
            self.await_line(shells["digits-chief-0.digits"], "^saved ")
            ps = "digits-ps-0.digits"
            peer.await_true(lambda: any("serving" in line for line in shells[ps].lines), "it serves")
            os.killpg(shells[ps].process.pid, signal.SIGKILL)
            self.each({self.shell(self.network.machine(ps)): pods[ps]})
            job.result()
        self.await_line(shells["digits-chief-0.digits"], "^restored .*/model.ckpt-")
        for name in "digits-chief-0.digits", "digits-worker-0.digits", "digits-worker-1.digits":
            self.await_line(shells[name], "^trained digits_ps to step ")

    @peer.unittest.skipUnless(has_yaml(), "needs python3-yaml")
    def test_kubernetes_lets_in_only_the_jobs_pods(self):
        documents = self.documents()
        policy, service = documents[0]["spec"], documents[1]["spec"]
        labels = policy["podSelector"]["matchLabels"]
        self.assertEqual(policy["ingress"], [{"from": [{"podSelector": {"matchLabels": labels}}], "ports": [{"port": 2222}]}])
        self.assertEqual(service["selector"], labels)
        for document in documents[3:]:
            self.assertLessEqual(labels.items(), document["spec"]["template"]["metadata"]["labels"].items())

    # --- Slurm ---

    def test_slurm(self):
        folder, tools = self.folder(), self.folder()
        for name in os.listdir(self.share):
            shutil.copy(os.path.join(self.share, name), folder)
        nodes = [self.network.machine("node%d" % number) for number in (1, 2, 3)]
        with open(EXAMPLE + "/slurm.sh", encoding="utf-8") as file:
            script = file.read()
        self.assertIn(STEPS, script)
        for name, text in (("scontrol", SCONTROL), ("srun", SRUN), ("slurm.sh", script.replace(STEPS, FEWER))):
            path = os.path.join(tools, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, stat.S_IRWXU)
        shell = self.shell(nodes[0], folder)
        shell.run_well("export PATH=%s:$PATH SLURM_JOB_ID=4711 SLURM_JOB_NODELIST='node[1-3]' OTHER_NODES='%s'" % (
            tools, " ".join(str(node.process.pid) for node in nodes[1:])))
        shell.run_well("slurm.sh")
        for number in range(2):
            with open(os.path.join(folder, "task-%d.log" % number), encoding="utf-8") as file:
                self.assertRegex(file.read(), r"(?m)^trained digits_ps to step ")


if __name__ == "__main__":
    peer.main()
