#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An earlier build beside this one: its commands at this server, these commands at its server, its directory.

record.py wrote what it said. No call is of this build, so a change of a message that an earlier build would
misunderstand fails here.
"""
import collections
import concurrent.futures
import configparser
import gzip
import json
import os
import shutil
import sys
import threading

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.abspath("tests/tensorflow"))
import peer  # noqa: E402
import record  # noqa: E402

STREAMS = ("/muster.Readiness/Claim", "/muster.Readiness/Watch", "/muster.Readiness/Join")  # the client ends these
RUN_STEP = "/tensorflow.MasterService/RunStep"
with gzip.open(HERE + "/calls.json.gz") as recorded:
    CALLS = json.load(recorded)["calls"]


def fields(message):
    """The fields of a message, by number: numbers and bytes."""
    found, at = collections.defaultdict(list), 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            at += 1
            value |= (message[at - 1] & 127) << shift
            shift += 7
            if message[at - 1] < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            found[tag >> 3].append(varint())
        else:
            size = varint() if tag & 7 == 2 else {1: 8, 5: 4}[tag & 7]
            found[tag >> 3].append(message[at:at + size])
            at += size
    return found


def messages(call, of):
    return [bytes.fromhex(one) for one in call[of]]


def step_of(request):
    """What a RunStep fetches and runs."""
    names = fields(request)
    return tuple(names[3]), tuple(names[4])


class EarlierCommands:
    """Says to a server what they said to theirs, in the same order."""

    def __init__(self, test, target):
        self.test, self.open = test, []
        self.channel = grpc.insecure_channel(target.partition("//")[2])
        self.handles = {}

    def same(self, message):
        for theirs, ours in self.handles.items():
            message = message.replace(theirs, ours)
        return message

    def say(self, call):
        requests = [self.same(one) for one in messages(call, "requests")]
        stream = self.channel.stream_stream(call["method"])(
            iter(requests), metadata=[tuple(pair) for pair in call["metadata"]], timeout=peer.COMMAND_SECONDS)
        if call["method"] in STREAMS:
            self.open.append(stream)
            return [next(stream) for _ in call["responses"]]
        answers = list(stream)
        self.test.assertEqual(stream.code().value[0], call["code"], call["method"])
        return answers

    def repeat(self, call):
        theirs, ours = messages(call, "responses"), self.say(call)
        self.test.assertEqual(len(ours), len(theirs), call["method"])
        for their, our in zip(theirs, ours):
            if call["method"].endswith("/CreateSession"):
                self.handles[fields(their)[1][0]] = fields(our)[1][0]
            if call["method"] == RUN_STEP:
                self.test.assertEqual(our, self.same(their), step_of(messages(call, "requests")[0]))
            else:
                self.test.assertLessEqual(set(fields(their)), set(fields(our)), call["method"])

    def end(self):
        while self.open:
            self.open.pop().cancel()


class EarlierServer(grpc.GenericRpcHandler):
    """Answers a command as that server answered the same command."""

    def __init__(self, command):
        self.answers, self.lock = collections.defaultdict(list), threading.Lock()
        for call in CALLS:
            if call["command"] == command:
                self.answers[self.key(call["method"], messages(call, "requests")[0])].append(call)

    @staticmethod
    def key(method, request):
        return (method, *step_of(request)) if method == RUN_STEP else (method,)

    def service(self, details):
        def handle(requests, context):
            key = self.key(details.method, next(requests))
            with self.lock:
                known = self.answers.get(key)
                call = known and (known.pop(0) if len(known) > 1 else known[0])
            if not call:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "%s isn't known to this server" % (key,))
            yield from messages(call, "responses")
            if details.method in STREAMS:
                gone = threading.Event()
                context.add_callback(gone.set)
                gone.wait(peer.COMMAND_SECONDS)
            elif call["code"]:
                context.abort(next(code for code in grpc.StatusCode if code.value[0] == call["code"]), call["details"])

        return grpc.stream_stream_rpc_method_handler(handle)


class Earlier(peer.TestCase):
    def test_its_commands_find_a_server(self):
        commands = EarlierCommands(self, self.serve())
        of = None
        for call in CALLS:
            if call["command"] != of:
                commands.end()
            of = call["command"]
            with self.subTest(of, method=call["method"]):
                commands.repeat(call)
        commands.end()

    def run_at(self, command, *arguments):
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), handlers=[EarlierServer(command)])
        target = "grpc://localhost:%d" % server.add_insecure_port("localhost:0")
        server.start()
        self.addCleanup(server.stop, 0)
        master = [target] if command == "status" else ["--master=" + target]
        return peer.muster(command, *master, *record.COMMANDS[command], *arguments)

    def test_its_server_serves_commands(self):
        for command, said in (("prepare", "initialised 4 variables"), ("wait", "ready after"),
                              ("run", "loss:0 float[] = 10.375"), ("status", "prepared the model and exited"),
                              ("train", "trained trained to step 5")):
            with self.subTest(command):
                self.assertIn(said, self.run_at(command))

    def job(self):
        folder = self.folder()
        shutil.copytree(HERE + "/run", folder + "/run")
        for name in "xy":
            shutil.copy(HERE + "/%s.npy" % name, folder)
        return folder

    def train(self, folder, steps):
        words = [word.replace("@", "@%s/" % folder).replace("-dir=", "-dir=%s/" % folder) for word in record.TRAIN]
        words = [word for word in words if not word.startswith("--steps")]
        return peer.muster(*words, "--steps=%d" % steps).replace("/job", "/run")

    def side_file(self, folder):
        file = configparser.ConfigParser(strict=True, interpolation=None)
        file.read(folder + "/run/checkpoint.muster")
        return file

    def listed(self, directory):
        lines = peer.muster("checkpoint", "list", directory, "--json").splitlines()
        return [json.loads(line)["step"] for line in lines]

    def test_its_job_goes_on(self):
        folder = self.job()
        self.assertEqual(self.listed(folder + "/run"), [20, 15, 10, 0])
        peer.muster("checkpoint", "verify", folder + "/run")
        shutil.move(folder + "/run", folder + "/job")
        self.assertIn("to step 40", self.train(folder, 40))
        self.assertEqual(self.listed(folder + "/job"), [40, 35, 30, 20, 10, 0])

    def test_it_would_understand_the_directory(self):
        theirs, folder = self.job(), self.folder()
        for name in "xy":
            shutil.copy(HERE + "/%s.npy" % name, folder)
        self.train(folder, 20)
        os.rename(folder + "/job", folder + "/run")
        theirs, ours = self.side_file(theirs), self.side_file(folder)
        self.assertEqual(ours["directory"]["version"], theirs["directory"]["version"])
        self.assertEqual(ours.sections(), theirs.sections())
        for section in theirs.sections():
            self.assertLessEqual(set(theirs[section]), set(ours[section]), section)


if __name__ == "__main__":
    peer.main()
