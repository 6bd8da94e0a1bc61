#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""doc_test.py DOCUMENT.md… [--installed=PREFIX | --wheel=VENV] [TEST…]: every block of code in the documents is compiled and run.

A block is fenced and says its language:

    c        compiled against the installed library and run; it must end with 0
    python   run; with TensorFlow where it imports it, else with python3-gi
    sh       each command must end with 0; a `muster serve` or `tensorboard` goes on until the block ends
    console  each "$ " command runs, and what all of them print is what stands there, but for numbers, times and hosts; lines may
             come again, and one that ends in "…" is any number of lines that begin so; muster lies below /usr
    json     parsed
    ini      parsed
    pbtxt    read as TensorFlow's checkpoint file
    mermaid  the drawing of the modules: tests/bazel/structure_test.py
    text     drawings and formats: nothing to run

What a reader doesn't need stands before a block in an HTML comment:

    <!-- before: SHELL -->       commands, as of sh
    <!-- after: SHELL -->        the same, after the block: what it must have done
    <!-- around: PROGRAM -->     what the block is a part of; "..." is its place
    <!-- file: NAME -->          what the block is saved as, instead of job.c or job.py
    <!-- first: NAME -->         the nearest block before that is saved as NAME runs first, in the same folder
                                 and, where several are, those that name it run after each of them
    <!-- follows: WHY -->        the block before this one runs first, in the same folder
    <!-- with: OLD=NEW … -->     the programs above run after it, too, with these names changed
    <!-- not run: REASON -->

A comment without a colon marks a place, for other programs.

Each block has a folder of its own with digits.meta, digits_ps.meta, images.npy and labels.npy, and free ports for those in its text.
$PREFIX is where muster is installed: from the build, or where --installed says that it is already. With --wheel it is a virtual
environment that has the wheel, whose Python runs all of Python, and C isn't compiled.
"""
import configparser
import copy
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, "tests/tensorflow")
import peer

PATIENCE = 120
LANGUAGES = ("c", "python", "sh", "console", "json", "ini", "mermaid", "pbtxt", "text")
DRAWINGS = ("mermaid", "text")
PROGRAMS = {"c": "job.c", "python": "job.py"}
MOST_UNRUN = 6  # of a document
FILES = {"digits.meta": "digits.meta", "digits_ps.meta": "digits_ps.meta", "digits_x.npy": "images.npy", "digits_y.npy": "labels.npy"}
TENSORFLOW = os.path.expanduser("~/.cache/muster/tensorflow/bin/python")


# --- reading a document ---

class Block:
    def __init__(self, language, line):
        self.language, self.line = language, line
        self.text = ""
        self.before = self.after = self.around = self.file = self.reason = self.renames = self.first = self.follows = None


def read_blocks(source):
    """The blocks of a document; raises where code isn't fenced or says no language."""
    notes, blocks, block, comment, blank, in_list = {}, [], None, None, True, False
    for number, line in enumerate(source.split("\n"), 1):
        if block is not None:
            if line.strip() == "```":
                blocks.append(block)
                block = None
            else:
                block.text += line + "\n"
        elif comment is not None or line.startswith("<!--"):
            comment = (comment or "") + line + "\n"
            if "-->" in line:
                kind, colon, text = comment.strip()[len("<!--"):-len("-->")].partition(":")
                if colon:  # <!-- modules --> and its like only mark a place
                    notes[kind.strip()] = text.strip("\n ")
                comment = None
        elif line.startswith("```"):
            block = Block(line[3:].strip(), number)
            if block.language not in LANGUAGES:
                raise ValueError("line %d: a block without a language of %s" % (number, ", ".join(LANGUAGES)))
            block.before, block.after, block.around, block.file, block.reason, block.renames, block.first = (
                notes.pop(kind, None) for kind in ("before", "after", "around", "file", "not run", "with", "first"))
            if block.first is not None:
                named = [each for each in blocks if each.file == block.first]
                if not named:
                    raise ValueError("line %d: no block before is saved as %s" % (number, block.first))
                block.follows = named[-1]
            if notes.pop("follows", None) is not None:
                block.follows = blocks[-1]
        else:
            in_list = bool(re.match(r"\s*([-*]|\d+\.) ", line)) or (in_list and (not line.strip() or line.startswith("  ")))
            if line.startswith("    ") and blank and not in_list:
                raise ValueError("line %d: code that isn't fenced" % number)
            if line.strip() and notes:
                raise ValueError("line %d: a comment (%s) without a block" % (number, ", ".join(notes)))
        blank = not line.strip()
    return blocks


# --- ports ---

class Ports:
    """A port for each that a block names, held so that no other test is given it; ps0, worker1 and their like are machines of their
    own, all others are this one."""

    def __init__(self):
        self.taken = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for held in self.taken.values():
            held.close()

    def place(self, match):
        host, port = match.groups()
        machine = host if re.fullmatch(r"[a-z]+\d", host) else ""
        if (machine, port) not in self.taken:
            self.taken[machine, port] = peer.hold_port()
        return "localhost:%d" % peer.port_of(self.taken[machine, port])

    def replace(self, text):
        text = re.sub(r"--port=(\d{4,5})\b", lambda found: "--port=" + self.replace("localhost:" + found.group(1)).split(":")[1], text)
        return re.sub(r"\b([A-Za-z][\w.-]*|0\.0\.0\.0|127\.0\.0\.1):(\d{4,5})\b", self.place, text)


# --- running ---

def continued(text):
    """Commands, lines that end in a backslash joined."""
    return [line for line in text.replace("\\\n", " ").split("\n") if line.strip() and not line.lstrip().startswith("#")]


def is_server(command):
    return re.match(r"muster serve\b|tensorboard --logdir", command.split("#")[0].strip()) is not None


def is_serving(line):
    return re.match(r"serving |TensorBoard \S+ at http://", line) is not None


class Shell:
    """A bash that is told one command after the other; all that its commands print is collected. The words before it start it
    elsewhere."""

    def __init__(self, folder, environment, before=()):
        self.lines, self.ended, self.changed = [], {}, threading.Condition()
        self.process = subprocess.Popen([*before, "bash"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.n = 0

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                end = re.fullmatch(r"--- (\d+) ended with (\d+)\n", line)
                if end:
                    self.ended[int(end.group(1))] = int(end.group(2))
                else:
                    self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def wait_for(self, condition, what):
        with self.changed:
            if not self.changed.wait_for(condition, PATIENCE):
                raise AssertionError("%s, in vain; it printed:\n%s" % (what, "\n".join(self.lines)))

    def run(self, command):
        """A foreground command to its end; one in the background has begun."""
        self.n += 1
        n = self.n
        self.process.stdin.write("{ %s\n} </dev/null\necho '---' %d ended with $?\n" % (command, n))
        self.process.stdin.flush()
        self.wait_for(lambda: n in self.ended, "waited for `%s`" % command)
        return self.ended[n]

    def run_well(self, command):
        """One that must end with 0; a server goes on, once it serves."""
        if not is_server(command):
            code = self.run(command)
            if code != 0:
                raise AssertionError("`%s` ended with %d:\n%s" % (command, code, "\n".join(self.lines)))
            return
        n = len([line for line in self.lines if is_serving(line)])
        self.run(command.split("#")[0].rstrip().rstrip("&") + " &")
        self.wait_for(lambda: len([line for line in self.lines if is_serving(line)]) > n, "waited for `%s`" % command)

    def end(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(10)
        self.reader.join(10)
        self.process.stdin.close()
        self.process.stdout.close()


# Printed every ten seconds, or of what takes two.
SLOW = ("training  step N", "preparing digits at TARGET (for T)",
        *("%s digits at TARGET: up, but CreateSession has had no answer" % verb for verb in ("preparing", "waiting for")))

TIME = r"(?:\d+h\d\dm|\d+m\d\ds|[\d.,]+ (?:s|ms|µs))"
PHASES = r" \((?:(?:connect|create|claim|rest|reset|devices|restore|init|local init|waiting|ready) T(?:, )?)+\)"


def shape(line):
    """A line without what is another each time: numbers, times, hosts, the widths of columns, phases that take no time."""
    line = re.sub(r"\b(?:grpcs?|https?)://[\w.\[\]:-]+", "TARGET", line)
    line = re.sub(r"\bname [\w.-]+ -> [\w.:]+", "ADDRESS", line)
    line = re.sub(r"\b\d+\.\d+\.\d+\.\d+(?=, TCP)", "ADDRESS", line)
    line = re.sub(r"\b[A-Za-z][\w.-]*:\d{2,}\b", "HOST", line)
    line = re.sub(r"just now|%s ago" % TIME, "AGO", line)
    line = re.sub(TIME, "T", line)
    line = re.sub(r"\b[\d.]+ [KMGT]?B\b", "SIZE", line)
    line = re.sub(r" \(SIZE/s\)", "", line)
    line = re.sub(PHASES, "", line)
    line = re.sub(r"^(initialised \d+ variables) in T$", r"\1", line)
    line = re.sub(r"(?:\d[\d.,]*\d|\d)(?:e[-+]\d+)?", "N", line)
    return re.sub(r" {2,}", "  ", line).strip()


def chain_of(block):
    """The blocks that run for this one, which is the last of them."""
    return (chain_of(block.follows) if block.follows is not None else []) + [block]


def followed_by(blocks):
    """The first, and what follows it at once."""
    n = 1
    while n < len(blocks) and blocks[n].follows is not None and blocks[n].follows is blocks[n - 1]:
        n += 1
    return blocks[:n]


def after_another(blocks, block):
    """The blocks that name this block's file, and those that follow them, where a later block has the same name."""
    if block.file is None or all(each.file != block.file for each in blocks[blocks.index(block) + 1:]):
        return []
    after = []
    for each in blocks:
        if each.first == block.file or each.follows in after:
            after.append(each)
    return after


def renamed(blocks, block):
    """The programs above a block, with the names that it gives."""
    programs = [copy.copy(each) for each in blocks[:blocks.index(block)] if each.language in PROGRAMS and each.around is None]
    for each in programs:
        for name in block.renames.split():
            each.text = each.text.replace(*name.split("="))
        each.follows = each.before = each.after = None
    return programs


def needs_tensorflow(blocks):
    everything = "\n".join(filter(None, (part for each in blocks for part in (each.before, each.around, each.text))))
    return re.search(r"import tensorflow|^tensorboard |\$TENSORFLOW|--master=tensorflow", everything, re.M) is not None


def sections_of(text):
    """(command, lines that it prints, or that those in the background print meanwhile)"""
    sections = []
    for line in re.sub(r"\\\n\s*", " ", text).rstrip("\n").split("\n"):
        if line.startswith("$ "):
            sections.append((line[2:], []))
        elif not sections:
            raise AssertionError("'%s' stands before any command" % line)
        else:
            sections[-1][1].append(line)
    return sections


class Runner:
    def __init__(self, installed, is_wheel):
        self.installed, self.is_wheel = installed, is_wheel
        self.environment = {**os.environ, "LC_ALL": "C.UTF-8", "PREFIX": installed, "PATH": installed + "/bin:" + os.environ.get("PATH", "/usr/bin:/bin")}
        if not is_wheel:
            self.environment.update(LD_LIBRARY_PATH=installed + "/lib", PKG_CONFIG_PATH=installed + "/lib/pkgconfig",
                                    GI_TYPELIB_PATH=installed + "/lib/girepository-1.0", PYTHONPATH=installed + "/lib/python3/dist-packages")
        self.environment.pop("TF_CONFIG", None)
        self.tensorflow = installed + "/bin/python" if is_wheel else TENSORFLOW
        self.has_tensorflow = glob.glob(installed + "/lib/python3*/site-packages/tensorflow") if is_wheel else os.path.exists(TENSORFLOW)
        if self.has_tensorflow:
            self.environment.update(TENSORFLOW=self.tensorflow, VIRTUAL_ENV=self.tensorflow.removesuffix("/bin/python"))
            self.environment["PATH"] += ":" + os.path.dirname(self.tensorflow)

    def run(self, blocks):
        if not self.has_tensorflow and needs_tensorflow(blocks):
            print("skipped: needs TensorFlow, which `bazel/setup --tests` installs")
            return
        with Ports() as ports, tempfile.TemporaryDirectory() as folder:
            for name, to in FILES.items():
                shutil.copy(peer.fixture(name), os.path.join(folder, to))
            for i in range(len(blocks)):
                if blocks[i].follows is not None and blocks[i].follows is blocks[i - 1]:
                    continue
                shell = Shell(folder, self.environment)  # what the blocks before have left running has ended
                try:
                    for each in followed_by(blocks[i:]):
                        self.run_one(each, ports, shell, folder)
                finally:
                    shell.end()

    def run_one(self, block, ports, shell, folder):
        text = ports.replace(block.text)
        if block.around is not None:
            text = re.sub(r"^\.\.\.$", lambda _: text, ports.replace(block.around), count=1, flags=re.M)
        for command in continued(ports.replace(block.before or "")):
            shell.run_well(command)
        run = getattr(self, "run_" + block.language)
        if block.language in PROGRAMS:
            run(text, shell, folder, block)
        else:
            run(text.replace("/usr/share/muster/", self.installed + "/share/muster/"), shell, folder)
        for command in continued(ports.replace(block.after or "")):
            shell.run_well(command)

    def run_sh(self, text, shell, folder):
        for command in continued(text):
            shell.run_well(command)

    def run_console(self, text, shell, folder):
        def as_packaged(line):
            return line.replace(self.installed, "/usr")

        first = len(shell.lines)
        matched = set()

        def find(wanted):
            for i in range(first, len(shell.lines)):
                if i not in matched and shape(as_packaged(shell.lines[i])) == wanted:
                    return i
            return None

        sections = sections_of(text)
        shown = [as_packaged(line) for _, lines in sections for line in lines]
        alike = {shape(line) for line in shown}
        begins = tuple(shape(line[:-1]) for line in shown if line.endswith("…")) + SLOW
        for command, lines in sections:
            shell.run(command)
            for line in map(as_packaged, lines):
                if line.endswith("…"):
                    continue
                shell.wait_for(lambda: find(shape(line)) is not None, "`%s` should print '%s' (%s)" % (command, line, shape(line)))
                matched.add(find(shape(line)))
        more = [line for i, line in enumerate(map(as_packaged, shell.lines[first:]), first)
                if i not in matched and shape(line) not in alike and not shape(line).startswith(begins)]
        if more:
            raise AssertionError("it printed also:\n" + "\n".join(more))

    def write(self, block, text, folder):
        name = block.file or PROGRAMS[block.language]
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def run_c(self, text, shell, folder, block):
        if self.is_wheel:
            return
        name = self.write(block, text, folder)
        shell.run_well("cc -Wall -Wextra -Werror %s -o job $(pkg-config --cflags --libs muster-engine)" % name)
        shell.run_well("./job")

    def run_python(self, text, shell, folder, block):
        name = self.write(block, text, folder)
        has_own = self.is_wheel or "import tensorflow" in text
        python = "env -u LD_LIBRARY_PATH " + shlex.quote(self.tensorflow) if has_own else "/usr/bin/python3"
        shell.run_well("TF_CPP_MIN_LOG_LEVEL=2 %s %s" % (python, name))

    def run_json(self, text, shell, folder):
        json.loads(text)

    def run_ini(self, text, shell, folder):
        configparser.ConfigParser(strict=True).read_string(text)

    def run_pbtxt(self, text, shell, folder):
        os.makedirs(os.path.join(folder, "run"))
        with open(os.path.join(folder, "run", "checkpoint"), "w", encoding="utf-8") as file:
            file.write(text)
        said = subprocess.run(["muster", "checkpoint", "latest", "run"], cwd=folder, env=self.environment, text=True,
                              capture_output=True, timeout=PATIENCE)
        if "Couldn't match files for checkpoint 'run/" not in said.stderr:
            raise AssertionError(said)


# --- the tests ---

class Reading(unittest.TestCase):
    def test_finds_blocks_with_what_stands_before_them(self):
        source = "text\n\n<!-- before:\nls\n-->\n<!-- around:\na\n...\nb\n-->\n```c\nint x;\n```\n\n<!-- not run: why -->\n```sh\nrm\n```\n"
        first, second = read_blocks(source)
        self.assertEqual((first.language, first.text, first.before, first.around), ("c", "int x;\n", "ls", "a\n...\nb"))
        self.assertEqual((second.reason.strip(), second.text, second.before), ("why", "rm\n", None))

    def test_a_block_may_need_one_that_is_saved_by_its_name(self):
        source = "<!-- file: a.c -->\n```c\nx\n```\n\n```sh\nls\n```\n\n<!-- first: a.c -->\n<!-- after: ps -->\n```sh\n./a\n```\n"
        first, _, third = read_blocks(source)
        self.assertEqual((first.file, chain_of(third), third.after), ("a.c", [first, third], "ps"))
        with self.assertRaises(ValueError):
            read_blocks(source.replace("file: a.c", "file: b.c"))

    def test_a_block_may_follow_the_one_before(self):
        source = "```python\nx\n```\n\n<!-- follows: it lists -->\n```sh\nls\n```\n\n```sh\nps\n```\n"
        first, second, third = read_blocks(source)
        self.assertEqual([chain_of(block) for block in (first, second, third)], [[first], [first, second], [third]])

    def test_refuses_code_that_would_not_be_run(self):
        for source in ("text\n\n    $ muster\n", "```\nx\n```\n", "```ruby\nx\n```\n", "<!-- before:\nls\n-->\ntext\n"):
            with self.assertRaises(ValueError, msg=source):
                read_blocks(source)
        self.assertEqual(read_blocks("- item\n\n      of it\n"), [])

    def test_lines_are_alike_but_for_what_is_another_each_time(self):
        for a, b in (("ready: digits at step 0 (create 4 ms)", "ready: digits at step 12 (claim 2 ms, local init 12 ms)"),
                     ("ready after 3.1 s (create 2 ms, waiting 3.1 s)", "ready after 12m31s"),
                     ("  chief     host:4711  prepared the model and exited, 1.1 s ago", "  chief  vm:28847  prepared the model and exited, 328 ms ago"),
                     ("saved run/model.ckpt-1120, durable, 121 KB in 4 ms", "saved run/model.ckpt-9, durable, 3.4 GB in 2.9 s (1.2 GB/s)"),
                     ("to step 40000, loss 0", "to step 7, loss 4.84e-08"),
                     ("serving grpc://localhost:2222", "serving grpc://localhost:43127")):
            self.assertEqual(shape(a), shape(b))
        for a, b in (("ready: digits at step 0", "ready: mnist at step 0"), ("saved x, durable", "saved x"),
                     ("run/model.ckpt-5  1 s ago  1 B  1  good", "run/model.ckpt-5  1 s ago  1 B  1  damaged")):
            self.assertNotEqual(shape(a), shape(b))


    def test_programs_run_after_each_block_of_a_name_that_they_need(self):
        source = "<!-- file: a -->\n```c\nx\n```\n\n<!-- file: a -->\n```c\ny\n```\n\n<!-- first: a -->\n```sh\n./a\n```\n\n" \
            "<!-- follows: it -->\n```sh\n./b\n```\n"
        blocks = read_blocks(source)
        self.assertEqual(after_another(blocks, blocks[0]), blocks[2:])
        self.assertEqual(after_another(blocks, blocks[1]), [])

    def test_programs_run_with_other_names(self):
        blocks = read_blocks("```c\nload (1, 2)\n```\n\n```sh\nls\n```\n\n<!-- with: 1=x 2=y -->\n```python\nz\n```\n")
        self.assertEqual([each.text for each in renamed(blocks, blocks[2])], ["load (x, y)\n"])


class Document(unittest.TestCase):
    def test_few_blocks_are_not_run_and_each_says_why(self):
        for document, blocks in BLOCKS.items():
            unrun = [block for block in blocks if block.reason is not None]
            self.assertLessEqual(len(unrun), MOST_UNRUN, document)
            for block in unrun:
                self.assertGreater(len(block.reason.split()), 3, "%s:%d" % (document, block.line))

    def test_no_drawing_is_code(self):
        for document, blocks in BLOCKS.items():
            for block in blocks:
                if block.language in DRAWINGS:
                    self.assertNotRegex(block.text, r"(?m)^(\$ |muster |bazel |#include|import )", "%s:%d" % (document, block.line))


def test_of(document, block, blocks):
    def test(self):
        RUNNER.run(blocks)

    test.__doc__ = "%s:%d: %s" % (document, block.line, block.language)
    return test


def add_tests(document, blocks):
    stem = os.path.splitext(os.path.basename(document))[0]
    for block in blocks:
        if block.language in DRAWINGS or block.reason is not None:
            continue
        name = "test_%s_line_%03d_%s" % (re.sub(r"\W", "_", stem), block.line, block.language)
        setattr(Document, name, test_of(document, block, chain_of(block)))
        more = after_another(blocks, block) + (renamed(blocks, block) if block.renames is not None else [])
        if more:
            setattr(Document, name + "_and_more", test_of(document, block, chain_of(block) + more))


def main():
    global BLOCKS, RUNNER
    BLOCKS = {}
    for document in [word for word in sys.argv[1:] if word.endswith(".md")]:
        with open(document, encoding="utf-8") as file:
            BLOCKS[document] = read_blocks(file.read())
        add_tests(document, BLOCKS[document])
    given = [word.partition("=") for word in sys.argv[1:] if word.startswith(("--installed=", "--wheel="))]
    words = [word for word in sys.argv if not word.startswith(("--installed=", "--wheel=")) and not word.endswith(".md")]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        if not given:
            subprocess.run(["./install", "--prefix=" + folder], check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
        RUNNER = Runner(given[0][2] if given else folder, bool(given) and given[0][0] == "--wheel")
        unittest.main(argv=words, verbosity=2)


if __name__ == "__main__":
    main()
