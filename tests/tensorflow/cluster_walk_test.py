# SPDX-License-Identifier: Apache-2.0
"""docs/cluster.md word by word, and its examples for Kubernetes and Slurm, on machines that know each other by name."""
import concurrent.futures
import contextlib
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
FEWER, ENDLESS = "--steps=500", "--steps=1000000000"
EXAMPLES = '"$PREFIX"/share/muster/examples'
EXAMPLE = "examples/cluster"
PAGE = "docs/cluster.md"
# What Slurm has on each node. srun takes from sbatch's environment what the command line doesn't set, and refuses more tasks than
# the nodes take. It writes the process group of each task to TASKS. What a task leaves behind is killed.
SCONTROL = """#!/bin/sh
[ "$*" = "show hostnames $SLURM_JOB_NODELIST" ] && seq -f node%.0f "$SLURM_NNODES"
"""
SRUN = """#!/bin/bash
relative=0 nodes=$SLURM_NNODES ntasks=$SLURM_NTASKS each=$SLURM_NTASKS_PER_NODE
while [[ $1 == --* ]]; do
  case $1 in
    --relative=*) relative=${1#*=} ;;
    --nodes=*) nodes=${1#*=} ;;
    --ntasks=*) ntasks=${1#*=} ;;
    --ntasks-per-node=*) each=${1#*=} ;;
    --kill-on-bad-exit=0 | --wait=0 | --output=task-%t.log) ;;
    *) exit 1 ;;
  esac
  shift
done
[ $((relative + nodes)) -le "$SLURM_NNODES" ] && [ "$ntasks" -le $((nodes * each)) ] || { echo "srun: $ntasks tasks on $nodes nodes" >&2; exit 1; }
machines=($MACHINES)
for ((n = 0; n < ntasks; n++)); do
  SLURM_PROCID=$n setsid nsenter -t "${machines[relative + n]}" -n -m bash -c 'cd "$0" && exec "$@"' "$PWD" "$@" >task-$n.log 2>&1 &
  groups[n]=-$!
done
echo "${groups[@]}" >"$TASKS"
worst=0
for group in "${groups[@]}"; do
  wait "${group#-}"
  code=$?
  kill -KILL -- "$group" 2>/dev/null
  [ $code -le $worst ] || worst=$code
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
        line = " ".join(container["command"] + container["args"]).replace("$(JOB_COMPLETION_INDEX)", str(index)).replace(STEPS, ENDLESS)
        return line.replace("/model/", self.share + "/").replace("=/checkpoints", "=" + self.checkpoints).replace("=/files", "=" + self.folder())

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
        trains = [name for name in pods if "ps" not in name]
        self.each({shells[name]: [*commands[:-1], commands[-1] + (" &" if name in trains else "")] for name, commands in pods.items()})
        self.await_line(shells["digits-chief-0.digits"], "^saved ")
        ps = "digits-ps-0.digits"
        os.killpg(shells[ps].process.pid, signal.SIGKILL)
        joined = {name: len(self.ready(shells[name])) for name in trains}
        self.each({self.shell(self.network.machine(ps)): pods[ps]})
        for name in trains:
            shells[name].wait_for(lambda: len(self.ready(shells[name])) > joined[name], name + " is ready again")
        self.await_line(shells["digits-chief-0.digits"], "^restored .*/model.ckpt-")
        for name in reversed(trains):
            self.assertEqual(shells[name].run("kill $!; wait $!"), 6, shells[name].lines)

    @staticmethod
    def ready(shell):
        return [line for line in shell.lines if re.match("ready after |restored |initialised ", line)]

    @peer.unittest.skipUnless(has_yaml(), "needs python3-yaml")
    def test_kubernetes_confines_the_runtimes(self):
        """Graphs open files in the pods' volumes only, and there is no token."""
        for document in self.documents()[3:]:
            spec = document["spec"]["template"]["spec"]
            self.assertIs(spec["automountServiceAccountToken"], False)
            runtime = [*spec.get("initContainers", []), *spec["containers"]][0]
            mounts = {mount["mountPath"] for mount in runtime["volumeMounts"]}
            self.assertTrue(mounts & {word.removeprefix("--data-dir=") for word in runtime["args"]}, runtime)
            for command in spec["containers"][:len(spec.get("initContainers", []))]:  # which looks for the gateway's socket
                self.assertIn({"name": "gateway", "mountPath": "/tmp"}, command["volumeMounts"])
                self.assertIn({"name": "gateway", "mountPath": "/tmp"}, runtime["volumeMounts"])

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

    def submit(self, n_nodes, steps=FEWER):
        """The shell of the batch script, on the first node."""
        self.job, tools = self.folder(), self.folder()
        for name in os.listdir(self.share):
            shutil.copy(os.path.join(self.share, name), self.job)
        with open(EXAMPLE + "/slurm.sh", encoding="utf-8") as file:
            script = file.read()
        self.assertIn(STEPS, script)
        self.assertIn("\n#SBATCH --exclusive\n", script)  # another job has the same ports
        each = int(re.search(r"^#SBATCH --ntasks-per-node=(\d+)$", script, re.M).group(1))
        for name, text in (("scontrol", SCONTROL), ("srun", SRUN), ("slurm.sh", script.replace(STEPS, steps))):
            path = os.path.join(tools, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, stat.S_IRWXU)
        nodes = [self.network.machine("node%d" % (number + 1)) for number in range(n_nodes)]
        self.tasks = os.path.join(tools, "tasks")
        shell = self.shell(nodes[0], self.job)
        self.addCleanup(self.end_tasks, signal.SIGKILL)
        shell.run_well("export PATH=%s:$PATH SLURM_JOB_NODELIST='node[1-%d]' SLURM_NNODES=%d SLURM_NTASKS=%d "
                           "SLURM_NTASKS_PER_NODE=%d TASKS=%s MACHINES='%s'" % (
                               tools, n_nodes, n_nodes, n_nodes * each, each, self.tasks,
                               " ".join(str(machine.process.pid) for machine in nodes)))
        return shell

    def end_tasks(self, number):
        """All processes of each task get the signal."""
        if os.path.exists(self.tasks):
            with open(self.tasks, encoding="utf-8") as file:
                for group in file.read().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(-int(group), number)

    def log(self, number):
        try:
            with open(os.path.join(self.job, "task-%d.log" % number), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def test_slurm(self):
        self.submit(3).run_well("slurm.sh")
        for number in range(2):
            self.assertRegex(self.log(number), r"(?m)^trained digits_ps to step ")

    def test_slurm_saves_before_the_time_limit(self):
        shell = self.submit(3, ENDLESS)
        shell.run("slurm.sh &")
        peer.await_true(lambda: "\nsaved " in self.log(0) and "\nready after" in self.log(1), "both train")
        self.end_tasks(signal.SIGTERM)
        self.assertEqual(shell.run("wait $!"), 6, shell.lines)
        for number in range(2):
            self.assertIn("\npreempted (Terminated)", self.log(number))

    def test_slurm_ends_when_a_server_does(self):
        shell = self.submit(3, ENDLESS)
        shell.run("slurm.sh &")
        peer.await_true(lambda: "ready after" in self.log(1), "the worker trains")
        self.assertEqual(shell.run("kill -KILL $(pgrep -f -P $! 'muster serve'); wait $!"), 4, shell.lines)

    def test_slurm_needs_three_nodes(self):
        shell = self.submit(2)
        self.assertEqual(shell.run("slurm.sh"), 3)
        self.assertIn("needs 3 nodes", shell.lines[-1])
        self.assertFalse(os.path.exists(self.tasks))


if __name__ == "__main__":
    peer.main()
