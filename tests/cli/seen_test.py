#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a person sees on a terminal, and what a program reads: the live block, the cursor, JSON, the trace.

Every wait is bounded; the server is ended by its id.
"""
import codecs
import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import fcntl

MUSTER = "cli/muster"
MODEL = "tests/fixtures/digits.meta"
LIMIT_S = 60
PATIENCE = "8s"  # of a wait that must hear what is missing before its time is over
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"

failures = []


def check(held, what, seen=""):
    if not held:
        failures.append(what)
        print("FAILED: %s; seen: %r" % (what, seen))


class Terminal:
    """A command on a terminal of its own; what it writes is collected until `words` or its end."""

    def __init__(self, words, columns=80, **environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", **environment)
            os.execv(words[0], words)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.seen = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a character

    def read_until(self, words=None):
        end = time.monotonic() + LIMIT_S
        while words is None or words not in self.seen:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                check(False, "no end in time", self.seen)
                os.kill(self.pid, signal.SIGKILL)
                return
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            self.seen += self.decoder.decode(data)

    def end(self):
        self.read_until()
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def run(*words, **environment):
    done = subprocess.run([MUSTER, *words], capture_output=True, text=True, timeout=LIMIT_S,
                          env=dict(os.environ, **environment))
    return done.returncode, done.stdout, done.stderr


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def draws_a_block_and_takes_it_away(model):
    it = Terminal([MUSTER, "wait", *model, "--timeout=" + PATIENCE], columns=60)
    code = it.end()
    *drawn, last = re.split(r"\x1b\[\dA\r\x1b\[J", it.seen)
    blocks = [block for block in drawn if "chief" in block]
    check(code == 1, "exit 1", code)
    check(drawn[0].startswith(HIDE + "waiting for digits at grpc://"), "the first line", drawn[0])
    check(len(blocks) >= 2, "redrawn while it waits", it.seen)
    check(" left" in blocks[0].splitlines()[0], "the countdown", blocks[0])
    check("  chief      no chief has ever registered" in plain(blocks[0]), "what it waits for", blocks[0])
    check("  variables  0 of 15    missing 15: global_step" in plain(blocks[0]), "what is missing", blocks[0])
    for block in blocks:
        lines = plain(block).splitlines()
        check(max(map(len, lines)) < 60, "none wraps", lines)
        below = " ".join(line.strip() for line in lines if line.startswith(" " * 24))
        check(len(lines) >= 5 and below.startswith("hidden/kernel, hidden/bias, …"), "names go on below themselves", lines)
    check(last.startswith(SHOW + "muster: not ready after "), "the end", last)
    check(": no chief has ever registered at grpc://" in last, "why", last)
    check("\x1b[32mserver\x1b[0m     up" in it.seen, "colour", it.seen)


def brings_the_cursor_back(model):
    for number in signal.SIGINT, signal.SIGTERM:
        it = Terminal([MUSTER, "wait", *model], NO_COLOR="1")
        it.read_until("missing 15")
        os.kill(it.pid, number)
        code = it.end()
        check(code == -number, "ended by the signal", code)
        check(it.seen.count(HIDE) == it.seen.count(SHOW) and it.seen.rindex(SHOW) > it.seen.rindex(HIDE), "the cursor", it.seen)
        check(it.seen.endswith("muster wait: ended by %s\r\n" % number.name), "the signal's name", it.seen)
        check("  server     up\r\n" in it.seen, "no colour", it.seen)


def prints_lines_when_piped(model):
    code, out, err = run("wait", *model, "--timeout=" + PATIENCE)
    reason = "no chief has ever registered; variables missing: 15"
    check(code == 1 and out == "", "nothing on stdout", (code, out))
    check(sum(line.endswith(reason) for line in err.splitlines()) == 1, "one line for one reason", err)
    check("\x1b" not in err, "no control codes", err)


def says_nothing_but_a_failure_when_quiet(model):
    for who in model, ["--model=digits", model[1]]:
        code, out, err = run("wait", *who, "--timeout=" + PATIENCE, "--quiet")
        check(code == 1 and out == "", "not ready", (code, out))
        check(err.startswith("muster: not ready after ") and "waiting for" not in err, "only why", err)
    code, _, err = run("wait", *model, "--quiet", "--json", "--progress")
    check(code == 3 and "--progress" in err, "either", err)
    it = Terminal([MUSTER, "wait", *model, "--timeout=" + PATIENCE, "--quiet"])
    code = it.end()
    check(code == 1 and it.seen.startswith("muster: not ready after "), "on a terminal, too", it.seen)


def is_quiet_about_success(model):
    """Of a model that is ready."""
    for who in model, ["--model=digits", model[1]]:
        check(run("wait", *who, "--quiet") == (0, "", ""), "nothing", who)
    code, out, err = run("wait", *model, "--quiet", "--json")
    check((code, err) == (0, "") and json.loads(out)["outcome"] == "ready", "the result", (out, err))


def names_the_chief_of_a_cluster(model):
    """Its worker's own master isn't where the chief is to be started."""
    own = model[1].split("//")[1]
    task = {"cluster": {"chief": ["chief0:2222"], "worker": [own]}, "task": {"type": "worker", "index": 0}}
    code, _, err = run("wait", model[0], "--timeout=" + PATIENCE, TF_CONFIG=json.dumps(task))
    check(code == 1, "not ready", code)
    hint = "try: start chief:0 with `muster prepare` and its own TF_CONFIG, for its server at chief0:2222"
    check(hint in err and "--master" not in err, "which chief, and where", err)


def says_why_while_nobody_answers():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = "grpc://127.0.0.1:%d" % silent.getsockname()[1]
        code, _, err = run("wait", "--meta-graph=" + MODEL, "--master=" + target, "--timeout=" + PATIENCE)
        for others in (["run", "--meta-graph=" + MODEL, "--fetch=loss:0"], ["finish", "--model=digits"],
                       ["save", "--meta-graph=" + MODEL, "--checkpoint-dir=x"]):
            other, _, said = run(*others, "--master=" + target, "--timeout=4")
            check(other == 2, "never answered " + others[0], other)
            check("no answer from" in said and "not connected" not in said, "what happened", said)
    told = [line for line in err.splitlines() if line.startswith("waiting for digits")]
    check(code == 2, "never answered", code)
    check(any("no HTTP/2 settings received" in line for line in told), "why, before the end", err)


def wakes_for_nothing_while_nobody_listens(folder):
    """Very many may wait: gRPC, whose threads wake by themselves, comes in with the first who listens."""
    own = {"muster", "live", "gmain"}
    names = set()
    bound = socket.socket()  # which nobody else can listen to meanwhile
    bound.bind(("127.0.0.1", 0))
    target = "grpc://127.0.0.1:%d" % bound.getsockname()[1]
    token = os.path.join(folder, "token")
    with open(token, "w", encoding="utf-8") as file:
        file.write("secret")
    os.chmod(token, 0o600)
    for more in [], ["--token-file=" + token]:
        waiter = subprocess.Popen([MUSTER, "wait", "--meta-graph=" + MODEL, "--master=" + target, *more],
                                  stderr=subprocess.PIPE, text=True)
        try:
            check("no process listens" in waiter.stderr.readline(), "waits", target)
            for task in os.listdir("/proc/%d/task" % waiter.pid):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended
                    with open("/proc/%d/task/%s/comm" % (waiter.pid, task), encoding="utf-8") as file:
                        names.add(file.read().strip())
        finally:
            waiter.kill()
            waiter.communicate()
        check("live" in names and names <= own, "its own threads alone", names)
    bound.close()


def draws_one_story_as_text_and_json(model):
    code, out, _ = run("wait", *model, "--timeout=" + PATIENCE, "--json", "--progress")
    lines = [json.loads(line) for line in out.splitlines()]
    check(code == 1 and len(lines) >= 2, "a line for each change and one at the end", out)
    check("waiting" in lines[0] and lines[0]["reasons"], "a change", lines[0])
    result = lines[-1]
    check(result["outcome"] == "not ready" and result["error"]["code"] == "deadline exceeded", "outcome", result)
    reasons = {it["component"]: it for it in result["reasons"]}
    check(reasons["chief"]["state"] == "never-registered" and reasons["chief"]["hint"], "the chief", reasons)
    check(reasons["server"]["state"] == "up" and reasons["server"]["well"], "the server", reasons)
    variables = reasons["variables"]
    check(variables["missing"] == variables["total"] == len(variables["names"]) == 15, "variables", variables)
    check(variables["since"] >= 0 and variables["text"].startswith("missing 15: "), "since and text", variables)
    check(set(result["retries"]) >= {"unreachable", "lost session"}, "retries by class", result["retries"])
    check("waiting" in [it["name"] for it in result["timeline"]], "the timeline", result["timeline"])


def writes_a_trace(model, folder):
    path = os.path.join(folder, "trace.json")
    code, _, err = run("prepare", *model, "--overwrite", "--trace=" + path, "--task=worker:0")
    check(code == 0, "prepared", err)
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    check(events[0]["ph"] == "M" and events[0]["args"]["name"] == "muster prepare digits as worker:0", "named", events[0])
    spans = events[1:]
    names = [it["name"] for it in spans]
    check("create" in names and "init" in names and "ready" in names, "the phases", names)
    end = 0
    for it in spans:
        check(it["ph"] == "X" and {"ts", "dur", "pid", "tid", "cat", "args"} <= set(it), "complete events", it)
        check(isinstance(it["ts"], int) and isinstance(it["dur"], int) and it["dur"] >= 0, "microseconds", it)
        check(it["ts"] >= end, "in order, one after the other", spans)
        end = it["ts"] + it["dur"]
    code, _, err = run("wait", *model, "--trace=" + os.path.join(folder, "none", "trace.json"))
    check(code == 0 and "warning: can't write the trace" in err, "a trace that can't be written is a warning", err)


def status(model):
    code, out, err = run("status", model[1].removeprefix("--master="), "--json")
    check(code == 0, "status", err)
    return json.loads(out)


def tells_a_services_manager(model, folder):
    """What `wait` says to $NOTIFY_SOCKET, from its first reason to the end."""
    path = os.path.join(folder, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(LIMIT_S)
        environment = dict(os.environ, NOTIFY_SOCKET=path, WATCHDOG_USEC="100000")
        waiter = subprocess.Popen([MUSTER, "wait", *model, "--json"], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        told = []
        try:
            reason = "STATUS=no chief has ever registered"
            while "WATCHDOG=1" not in told or not any(reason in it for it in told):
                told.append(manager.recv(4096).decode())
            # beside it: what is told while nobody reads is lost when the socket's queue is full
            chief = subprocess.Popen([MUSTER, "prepare", *model], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not told[-1].startswith("READY=1"):
                told.append(manager.recv(4096).decode())
            check(chief.wait(LIMIT_S) == 0, "prepared", told)
            check(waiter.wait(LIMIT_S) == 0, "waited", told)
        except TimeoutError:
            check(False, "told in time", told)
        finally:
            waiter.kill()
            waiter.wait()


def status_once_the_chief_is_gone(model):
    """The server hears a moment later that a command has ended."""
    end = time.monotonic() + LIMIT_S
    while (seen := status(model))["models"][0]["alive"] and time.monotonic() < end:
        pass
    return seen


def follows_the_chief_to_the_end_of_its_job(model):
    it = Terminal([MUSTER, "wait", *model, "--task=worker:3"], columns=100)
    it.read_until("no chief has ever registered")
    waiters = status(model)["waiters"]
    check([it["task"] for it in waiters] == ["worker:3"] and waiters[0]["model"] == "digits"
          and waiters[0]["waits_for"] and waiters[0]["why"], "who waits for what", waiters)

    code, _, err = run("prepare", *model, "--task=worker:0")
    check(code == 0, "prepared", err)
    check(it.end() == 0 and "ready after " in it.seen.rsplit(SHOW, 1)[-1], "ready", it.seen)
    seen = status_once_the_chief_is_gone(model)
    chief = seen["models"][0]
    check(chief["model"] == "digits" and chief["task"] == "worker:0" and chief["prepared"]
          and not chief["alive"] and chief["epoch"] == 1, "the chief", chief)
    check(seen["sessions"] == 0, "a command that has ended leaves no session", seen)
    check(seen["steps"] > 0 and seen["limits"] and seen["memory_bytes"] > 0, "the load", seen)

    code, out, err = run("run", *model, "--fetch=global_step/Read/ReadVariableOp:0", "--ends-job")
    check(code == 0 and out.endswith("finished digits at step 0\n"), "run ends the job", (code, out, err))
    code, out, err = run("wait", *model, "--json")
    result = json.loads(out)
    check(code == 5 and result["outcome"] == "over" and result["final_step"] == 0, "over", result)
    check(err.startswith("muster: digits is finished: its chief ended the job at step 0, "), "over, for people", err)
    check(err.count("\n") == 1, "said once", err)
    check(run("prepare", *model, "--overwrite")[0] == 0, "begun again")


@contextlib.contextmanager
def served():
    """The options for a model on a master of its own."""
    server = subprocess.Popen([MUSTER, "serve", "--listen=127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        target = server.stdout.readline().split()[1]
        yield ["--meta-graph=" + MODEL, "--master=" + target]
    finally:
        server.terminate()
        server.wait(LIMIT_S)


def main():
    with served() as model, tempfile.TemporaryDirectory() as folder:
        draws_a_block_and_takes_it_away(model)
        brings_the_cursor_back(model)
        prints_lines_when_piped(model)
        says_nothing_but_a_failure_when_quiet(model)
        names_the_chief_of_a_cluster(model)
        draws_one_story_as_text_and_json(model)
        follows_the_chief_to_the_end_of_its_job(model)
        writes_a_trace(model, folder)
        is_quiet_about_success(model)
    with served() as model, tempfile.TemporaryDirectory() as folder:
        tells_a_services_manager(model, folder)
        wakes_for_nothing_while_nobody_listens(folder)
    says_why_while_nobody_answers()
    return 1 if failures else 0


sys.exit(main())
