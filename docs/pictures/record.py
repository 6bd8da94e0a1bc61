#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""record.py [demo] [wait] [elastic]: draws the pictures of README.md and operating.md from runs on this machine.

    bazel build //cli:muster //:demo && docs/pictures/record.py

Each command runs in a terminal of 100 columns. What the terminal shows is drawn as it is; only the host's name is replaced, by
"node1".
"""
import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from xml.sax.saxutils import escape

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
MUSTER = os.path.join(ROOT, "bazel-bin/cli/muster")
DEMO = os.path.join(ROOT, "bazel-bin/examples/digits/demo")
MODEL = os.path.join(ROOT, "tests/fixtures/digits.meta")
ROWS, COLUMNS = 60, 100
PATIENCE_S = 60
WAIT_BEFORE_CHIEF_S = 2.5
ELASTIC_S = 3

FONT, WIDTH, HEIGHT, MARGIN = 13, 7.83, 18, 16
BACKGROUND, FOREGROUND = "#1e1e2e", "#cdd6f4"
COLOURS = {"31": "#f38ba8", "32": "#a6e3a1", "33": "#f9e2af", "34": "#89b4fa", "35": "#cba6f7", "36": "#94e2d5", "2": "#7f849c"}
SEQUENCE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]")


class Screen:
    """A terminal: lines of (character, colour)."""

    def __init__(self):
        self.lines, self.row, self.column, self.colour = [[]], 0, 0, FOREGROUND

    def write(self, text):
        for match in SEQUENCE.finditer(text):
            if match.group(2):
                self.control(match.group(1), match.group(2))
            elif match.group() == "\r":
                self.column = 0
            elif match.group() == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append([])
            else:
                self.put(match.group())

    def put(self, character):
        line = self.lines[self.row]
        line.extend([(" ", FOREGROUND)] * (self.column + 1 - len(line)))
        line[self.column] = (character, self.colour)
        self.column += 1

    def control(self, arguments, what):
        if what == "m":
            for argument in (arguments or "0").split(";"):
                self.colour = COLOURS.get(argument, FOREGROUND)
        elif what == "A":
            self.row = max(0, self.row - int(arguments or 1))
        elif what in "JK":
            del self.lines[self.row][self.column:]
            if what == "J":
                del self.lines[self.row + 1:]

    def shown(self):
        lines = [list(line) for line in self.lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def plain(text, colour=FOREGROUND):
    return [(character, colour) for character in text]


def run(command, at_frame=None, folder=None):
    """What the command leaves on the terminal; at_frame is called with each screen on the way."""
    process, terminal = pty.fork()
    if process == 0:
        if folder is not None:
            os.chdir(folder)
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
        os.environ.pop("NO_COLOR", None)
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    signal.alarm(PATIENCE_S)
    screen, rest = Screen(), b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        rest += data
        text = rest.decode("utf-8", "ignore").replace(socket.gethostname() + ":", "node1:")
        # Each redraw of a block begins with going up: a frame ends there.
        screen = Screen()
        for part in re.split(r"(?=\x1b\[\d+A)", text):
            if at_frame is not None:
                at_frame(screen.shown())
            screen.write(part)
    signal.alarm(0)
    if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) != 0:
        sys.exit("%s failed" % " ".join(command))
    return screen.shown()


def text_of(lines):
    return "\n".join("".join(character for character, _ in line) for line in lines)


def draw(name, title, lines):
    height = 2 * MARGIN + HEIGHT * len(lines)
    width = 2 * MARGIN + WIDTH * (2 + max(len(line) for line in lines))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">'
           % (width, height, width, height),
           "<!-- drawn by docs/pictures/record.py from a run -->",
           "<title>%s</title>" % escape(title),
           '<rect width="100%%" height="100%%" rx="8" fill="%s"/>' % BACKGROUND,
           '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="%d" fill="%s" xml:space="preserve">'
           % (FONT, FOREGROUND)]
    for number, line in enumerate(lines):
        y = MARGIN + HEIGHT * number + FONT
        for run_of in spans(line):
            text = "".join(line[at][0] for at in run_of)
            if text.strip():
                out.append('<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>' % (
                    MARGIN + WIDTH * run_of[0], y, WIDTH * len(text),
                    "" if line[run_of[0]][1] == FOREGROUND else ' fill="%s"' % line[run_of[0]][1],
                    escape(text.replace(" ", "\u00a0"))))
    out += ["</g>", "</svg>", ""]
    with open(os.path.join(ROOT, "docs/pictures", name + ".svg"), "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def spans(line):
    """Ranges of one colour, without the spaces around them."""
    begin = 0
    for end in range(1, len(line) + 1):
        if end == len(line) or line[end][1] != line[begin][1]:
            kept = [at for at in range(begin, end) if line[at][0] != " "]
            if kept:
                yield range(kept[0], kept[-1] + 1)
            begin = end


def record_demo():
    lines = run([DEMO], folder=DEMO + ".runfiles/muster")
    draw("demo", "bazel run //:demo", [plain("$ bazel run //:demo")] + lines)


def record_wait():
    """The last frame for each state of the chief."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([MUSTER, "serve", "--listen=localhost:2222"], stdout=subprocess.PIPE, text=True)
        server.stdout.readline()
        chief = None
        try:
            chief = subprocess.Popen(["sh", "-c", 'sleep %g; exec "$@"' % WAIT_BEFORE_CHIEF_S, "sh", MUSTER, "prepare",
                                      "--meta-graph=" + MODEL, "--master=grpc://localhost:2222", "--checkpoint-dir=" + folder],
                                     stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            frames = {}

            def keep(lines):
                found = re.search(r"ever registered, for|initialising", text_of(lines))
                if found:
                    frames[found.group()] = lines

            last = run([MUSTER, "wait", "--meta-graph=" + MODEL, "--master=grpc://localhost:2222", "--timeout=10m"], keep)
            chief.wait(PATIENCE_S)
        finally:
            for process in (chief, server):
                if process is not None and process.poll() is None:
                    process.terminate()
                    process.wait(PATIENCE_S)
    grey = COLOURS["2"]
    lines = [plain("$ muster wait --meta-graph=digits.meta --master=grpc://localhost:2222 --timeout=10m")]
    for heading, frame in (("no chief yet", frames.get("ever registered, for")),
                           ("the chief has started", frames.get("initialising")), ("the model is ready", last)):
        if frame:
            lines += [[], plain("# " + heading, grey)] + frame
    draw("wait", "muster wait", lines)


def members(target):
    status = subprocess.run([MUSTER, "status", "--json", target], stdout=subprocess.PIPE, text=True, check=True)
    return {member["task"]: member for job in json.loads(status.stdout)["jobs"] for member in job["members"]}


def await_true(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            sys.exit("it took too long")
        time.sleep(0.05)


def record_elastic():
    """The status of an elastic job before and after its chief is killed."""
    target = "grpc://localhost:2222"
    command = [MUSTER, "train", "--task=auto", "--meta-graph=" + MODEL, "--master=" + target, "--steps=1000000000",
               "--feed=x:0=@%s/tests/fixtures/digits_x.npy" % ROOT, "--feed=y:0=@%s/tests/fixtures/digits_y.npy" % ROOT]
    with tempfile.TemporaryDirectory() as folder:
        processes = [subprocess.Popen([MUSTER, "serve", "--listen=localhost:2222"], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)]
        try:
            processes[0].stdout.readline()
            for i in range(3):
                processes.append(subprocess.Popen([*command, "--checkpoint-dir=run"], cwd=folder, stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.DEVNULL, env={**os.environ, "SLURM_PROCID": str(i)}))
                await_true(lambda: len(members(target)) == i + 1)  # in the order of their slots
            time.sleep(ELASTIC_S)
            frames = [run([MUSTER, "status", target])]
            processes[1].kill()
            await_true(lambda: any(member["role"] == "chief" for task, member in members(target).items() if task != "task:0"))
            time.sleep(ELASTIC_S)
            frames.append(run([MUSTER, "status", target]))
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(PATIENCE_S)
    lines = []
    for heading, frame in zip(("three tasks", "the chief was killed"), frames):
        lines += [[], plain("# " + heading, COLOURS["2"]), plain("$ muster status " + target)] + frame
    draw("elastic", "muster status of an elastic job", lines[1:])


if __name__ == "__main__":
    records = {"demo": record_demo, "wait": record_wait, "elastic": record_elastic}
    for name in sys.argv[1:] or records:
        records[name]()
