#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what an earlier build says and writes, for earlier_test.py: record.py MUSTER COMMIT, from the root of the sources.

A proxy between that build's commands and its server writes each call to calls.json.gz, and a job of that build leaves its
directory in run/. Run it with the Python that has grpcio: ~/.cache/muster/tensorflow/bin/python.
"""
import concurrent.futures
import gzip
import json
import os
import shutil
import subprocess
import sys

import grpc
import numpy

SECONDS = 60
HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = "tests/fixtures/linreg.meta"
FOLDER = "/tmp/muster-recorded"
FEEDS = ["--feed=x:0=[1,2,3,4]", "--feed=y:0=[0,-1,-2,-3]"]
COMMANDS = {
    "prepare": ["--meta-graph=" + MODEL, "--model=m"],
    "wait": ["--meta-graph=" + MODEL, "--model=m", "--task=worker:1"],
    "run": ["--meta-graph=" + MODEL, "--fetch=loss:0", *FEEDS],
    "status": [],
    "train": ["--meta-graph=" + MODEL, "--model=trained", "--steps=5", *FEEDS],
}
TRAIN = ["train", "--meta-graph=" + MODEL, "--feed=x:0=@x.npy", "--feed=y:0=@y.npy", "--batch-size=2", "--master=local",
         "--checkpoint-dir=job", "--steps=20", "--save-every=5", "--save-blocking", "--keep=2", "--keep-every-steps=10",
         "--log-dir=events"]


def kept(metadata):
    return [[key, value] for key, value in metadata or () if key.startswith("muster") and isinstance(value, str)]


class Proxy(grpc.GenericRpcHandler):
    """Passes every call on, of any kind, and writes down its messages."""

    def __init__(self, target):
        self.channel, self.calls, self.command = grpc.insecure_channel(target), [], ""

    def service(self, details):
        call = {"command": self.command, "method": details.method, "metadata": kept(details.invocation_metadata),
                "requests": [], "responses": [], "code": None}
        self.calls.append(call)

        def noted(messages, to):
            for message in messages:
                to.append(message.hex())
                yield message

        def handle(requests, context):
            passed = self.channel.stream_stream(details.method)(
                noted(requests, call["requests"]),
                metadata=[pair for pair in context.invocation_metadata() if not pair[0].startswith(("user-agent", "grpc"))],
                timeout=min(context.time_remaining() or SECONDS, SECONDS))
            context.add_callback(passed.cancel)
            try:
                yield from noted(passed, call["responses"])
            except grpc.RpcError:
                pass
            call.update(code=passed.code().value[0], details=passed.details(), trailing=kept(passed.trailing_metadata()))
            context.set_trailing_metadata(passed.trailing_metadata() or ())
            context.set_code(passed.code())
            context.set_details(passed.details() or "")

        return grpc.stream_stream_rpc_method_handler(handle)


def main(muster, commit):
    muster = os.path.abspath(muster)
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.mkdir(FOLDER)
    server = subprocess.Popen([muster, "serve", "--listen=localhost:0"], stdout=subprocess.PIPE, text=True)
    target = server.stdout.readline().split()[1]
    proxy = Proxy(target.partition("//")[2])
    front = grpc.server(concurrent.futures.ThreadPoolExecutor(64), handlers=[proxy])
    port = front.add_insecure_port("localhost:0")
    front.start()
    try:
        for name, arguments in COMMANDS.items():
            proxy.command = name
            at = "grpc://localhost:%d" % port
            master = [at] if name == "status" else ["--master=" + at]
            subprocess.run([muster, name, *master, *arguments], check=True)
    finally:
        front.stop(0).wait()
        server.terminate()
        server.wait()
    with gzip.GzipFile(HERE + "/calls.json.gz", "w", mtime=0) as file:
        file.write(json.dumps({"commit": commit, "calls": proxy.calls}).encode())
    for name, values in (("x", range(8)), ("y", range(0, -8, -1))):
        numpy.save(FOLDER + "/" + name, numpy.array(values, "float32"))
    model = os.path.abspath(MODEL)
    subprocess.run([muster] + [word.replace(MODEL, model) for word in TRAIN], cwd=FOLDER, check=True)
    shutil.rmtree(HERE + "/run", ignore_errors=True)
    shutil.copytree(FOLDER + "/job", HERE + "/run", ignore=shutil.ignore_patterns("graph.pbtxt", ".muster.*"))
    for name in "xy":
        shutil.copy(FOLDER + "/%s.npy" % name, HERE)
    shutil.rmtree(FOLDER)


if __name__ == "__main__":
    main(*sys.argv[1:])
