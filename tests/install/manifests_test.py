#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The example's manifests: each command line is one that muster takes, and what belongs together agrees."""
import configparser
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

MUSTER = os.path.abspath("cli/muster")
PATIENCE = 60


def muster(*arguments):
    return subprocess.run([MUSTER, *arguments], text=True, capture_output=True, timeout=PATIENCE)


def documents():
    for path in sorted(glob.glob("examples/kubernetes/*.yaml")):
        with open(path, encoding="utf-8") as file:
            yield from (document for document in yaml.safe_load_all(file) if document)


def pods():
    for document in documents():
        template = document["spec"].get("template") if "spec" in document else None
        if template:
            yield document, template["spec"]


def containers():
    for document, pod in pods():
        for container in pod.get("initContainers", []) + pod["containers"]:
            yield document, pod, container


def words(container):
    return [word.replace("$(JOB_COMPLETION_INDEX)", "1") for word in container["command"] + container.get("args", [])]


def configuration():
    """The text of the master's file of options."""
    return next(document["data"]["muster.conf"] for document in documents() if document["kind"] == "ConfigMap")


def option(container, name):
    said = next((word.partition("=")[2] for word in words(container) if word.startswith("--%s=" % name)), None)
    if said is None and any(word.startswith("--config=") for word in words(container)):
        parser = configparser.ConfigParser()
        parser.read_string(configuration())
        said = parser["serve"].get(name)
    return said


class Manifests(unittest.TestCase):
    def test_there_are_a_master_equal_tasks_and_a_chief_with_workers(self):
        self.assertEqual([document["metadata"]["name"] for document, _ in pods()],
                         ["digits", "digits-chief", "digits-workers", "digits-master"])

    def test_each_command_line_has_only_options_that_the_command_knows(self):
        for _, _, container in containers():
            command, verb, *arguments = words(container)
            self.assertEqual(command, "muster")
            known = dict(re.findall(r"^  (?:-\w, )?--([a-z-]+)(=?)", muster(verb, "--help").stdout, re.M))
            for argument in arguments:
                name, equals, value = argument[2:].partition("=")
                self.assertTrue(argument.startswith("--"), argument)
                self.assertIn(name, known, "muster %s" % verb)
                self.assertEqual((equals, bool(value)), (known[name], bool(known[name])), argument)

    def test_each_command_line_lacks_nothing_but_its_files(self):
        for _, _, container in containers():
            _, *arguments = words(container)
            done = muster(*arguments)
            self.assertEqual(done.returncode, 3, arguments)
            self.assertIn("No such file or directory", done.stderr + done.stdout)

    def test_probes_ask_the_health_service_where_it_is(self):
        for _, _, container in containers():
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                if container["name"] == "master":
                    self.assertEqual(str(container[kind]["grpc"]["port"]), option(container, "health-listen").split(":")[1])

    def test_ports_and_names_agree(self):
        service = next(document for document in documents() if document["kind"] == "Service")
        address = "grpcs://%s:%d" % (service["metadata"]["name"], service["spec"]["ports"][0]["port"])
        for document, pod, container in containers():
            mounted = {volume["name"] for volume in pod["volumes"]}
            self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, mounted)
            if container["name"] == "master":
                self.assertEqual(option(container, "listen"), "0.0.0.0:%d" % service["spec"]["ports"][0]["port"])
                self.assertEqual(document["spec"]["template"]["metadata"]["labels"], service["spec"]["selector"])
            else:
                self.assertEqual(option(container, "master"), address)

    def test_the_master_takes_its_configuration(self):
        with tempfile.TemporaryDirectory(dir=os.environ["TEST_TMPDIR"]) as folder:
            self.assertEqual(muster("certs", folder).returncode, 0)
            text = re.sub(r"0\.0\.0\.0:\d+", "localhost:0", configuration())
            for there, here in (("/tls/tls.crt", "server.pem"), ("/tls/tls.key", "server.key"), ("/token/token", "run.token"),
                                ("/checkpoints", "")):
                self.assertIn("=" + there, text)
                text = text.replace("=" + there, "=%s/%s" % (folder, here))
            with open(folder + "/muster.conf", "w", encoding="utf-8") as file:
                file.write(text)
            done = muster("serve", "--config=%s/muster.conf" % folder, "--check-config")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_pods_run_as_the_images_user(self):
        with open("packaging/container/Containerfile", encoding="utf-8") as file:
            user, group = re.search(r"^USER (\d+):(\d+)$", file.read(), re.M).groups()
        for _, pod in pods():
            context = pod["securityContext"]
            self.assertEqual((context["runAsUser"], context["runAsGroup"], context["fsGroup"]), (int(user), int(group), int(group)))
            self.assertTrue(context["runAsNonRoot"])

    def test_master_and_chief_are_evicted_one_by_one(self):
        budget = next(document["spec"] for document in documents() if document["kind"] == "PodDisruptionBudget")
        wanted = {each["key"]: each["values"] for each in budget["selector"]["matchExpressions"]}
        chosen = []
        for document, _ in pods():
            labels = document["spec"]["template"]["metadata"]["labels"]
            if all(labels.get(key) in values for key, values in wanted.items()):
                chosen.append((document["metadata"]["name"], document["spec"].get("replicas", 1)))
        self.assertEqual(chosen, [("digits-chief", 1), ("digits-master", 1)])
        self.assertEqual(budget["minAvailable"], 1)

    def test_a_pod_waits_longer_than_what_runs_in_it(self):
        for _, pod, container in containers():
            grace = option(container, "grace")
            if grace:
                self.assertLess(int(grace.rstrip("s")), pod["terminationGracePeriodSeconds"])

    def test_exit_codes_are_those_of_the_command(self):
        told = muster("--help").stdout.partition("Exit codes:")[2]
        codes = {int(code): text for code, text in re.findall(r"(\d) ([^,.\d]+)", told)}
        self.assertIn("preempted", codes[6])
        for document, pod in pods():
            rules = document["spec"].get("podFailurePolicy", {"rules": []})["rules"]
            by_action = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules if "onExitCodes" in rule}
            if document["kind"] == "Job":
                self.assertEqual(by_action["Ignore"], [6])
                is_elastic = "--task=auto" in words(pod["containers"][0])
                self.assertEqual(by_action["FailJob"], [3] if is_elastic else [3, 5])
                self.assertEqual(document["spec"]["template"]["spec"]["restartPolicy"], "Never")
            self.assertLessEqual({code for values in by_action.values() for code in values}, set(codes))

    def test_workers_wait_before_they_begin(self):
        _, pod = next((document, pod) for document, pod in pods() if document["metadata"]["name"] == "digits-workers")
        waiter = pod["initContainers"][0]
        self.assertEqual(words(waiter)[1], "wait")
        for name in ("meta-graph", "master", "task"):
            self.assertEqual(option(waiter, name), option(pod["containers"][0], name))


if __name__ == "__main__":
    sys.exit(unittest.main())
