#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How muster prints, whatever it prints: as wide as the terminal, in the locale's characters, each amount alike wherever it is
told; JSON as short as it is read back alike; and what the help says of each command."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

MUSTER = os.path.abspath("cli/muster")
DIGITS, LINREG = "--meta-graph=tests/fixtures/digits.meta", "--meta-graph=tests/fixtures/linreg.meta"
FILES = ["--feed=x:0=@tests/fixtures/digits_x.npy", "--feed=y:0=@tests/fixtures/digits_y.npy"]
PATIENCE = 60
UTF8, ASCII = {"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C"}
COMMANDS = [["serve"], ["prepare"], ["wait"], ["train"], ["evaluate"], ["status"], ["doctor"], ["run"], ["save"], ["drain"], ["finish"], ["certs"],
            *[["checkpoint", verb] for verb in ("list", "show", "latest", "verify", "diff", "prune", "pin",
                                               "unpin", "mark")]]


def run(*words, code=0, **environment):
    done = subprocess.run([MUSTER, *words], capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environment})
    if code is not None and done.returncode != code:
        raise AssertionError("%s: exit %d: %s" % (words, done.returncode, done.stdout + done.stderr))
    return done


def text(*words, **rest):
    return run(*words, **rest).stdout.decode()


def on_terminal(columns, *words, **environment):
    """What it writes on a terminal so wide, without control codes."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.environ.update(TERM="xterm", NO_COLOR="1", **(environment or UTF8))
        os.execv(MUSTER, [MUSTER, *words])
    seen, end = b"", time.monotonic() + PATIENCE
    while select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        seen += data
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        raise AssertionError("ended by %d: %r" % (status, seen))
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode()).replace("\r", "")


class Case(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        server = subprocess.Popen([MUSTER, "serve", "--listen=127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.end, server)
        cls.target = server.stdout.readline().split()[1]
        cls.model = [DIGITS, "--master=" + cls.target]
        cls.prepared = text("prepare", *cls.model, "--checkpoint-dir=" + cls.folder)
        cls.saved = text("save", *cls.model, "--checkpoint-dir=" + cls.folder, "--keep=-1")
        cls.prefix = cls.folder + "/model.ckpt-0"
        for step in (99999, 100000, 12345678):
            cls.copy(cls.prefix, cls.folder + "/model.ckpt-%d" % step)

    @classmethod
    def end(cls, server):
        server.terminate()
        server.communicate(timeout=PATIENCE)

    @classmethod
    def copy(cls, prefix, to):
        for end in (".index", ".data-00000-of-00001", ".meta"):
            with open(prefix + end, "rb") as source, open(to + end, "wb") as copy:
                copy.write(source.read())

    def damaged(self):
        prefix = self.folder + "/model.ckpt-99999"
        os.truncate(prefix + ".data-00000-of-00001", 40)
        self.addCleanup(self.copy, self.prefix, prefix)
        return prefix


class Tables(Case):
    def test_list_is_straight_whatever_the_step(self):
        self.damaged()
        lines = text("checkpoint", "list", self.folder).splitlines()
        self.assertEqual(len(lines), 5)
        starts = [[match.start() for match in re.finditer(r"(?<=  )\S", line)][:4] for line in lines]
        self.assertEqual(starts, [starts[0]] * len(lines), "\n".join(lines))

    def test_what_list_prints_can_be_pasted(self):
        *_, prefix = sorted(line.split()[0] for line in text("checkpoint", "list", self.folder).splitlines()[1:])
        self.assertTrue(prefix.startswith(self.folder + "/"), prefix)
        text("checkpoint", "show", prefix)
        latest = text("checkpoint", "latest", self.folder).strip()
        row, = [line for line in text("checkpoint", "list", self.folder).splitlines() if "latest" in line]
        self.assertEqual(row.split()[0], latest)

    def test_nothing_is_wider_than_the_terminal_and_no_prefix_is_truncated(self):
        prefix = self.damaged()
        other = self.folder + "/other"
        self.copy(self.prefix, other)
        self.addCleanup(lambda: [os.unlink(other + end) for end in (".index", ".data-00000-of-00001", ".meta")])
        for columns in (40, 80, 120):
            for words in (["list", self.folder], ["verify", self.folder], ["show", self.prefix],
                          ["prune", self.folder, "--keep=1", "--dry-run"], ["show", self.prefix, "hidden/kernel"]):
                seen = on_terminal(columns, "checkpoint", *words)
                table = [line for line in seen.splitlines() if not line.startswith(("would ", "  min ", "hidden/kernel  "))]
                table = [line for line in table if not line.startswith(self.prefix + ":")]  # a sentence
                if columns < 80:  # prefixes are longer, and whole
                    table = [line for line in table if self.folder not in line and not line.endswith(" damaged")]
                self.assertLessEqual(max(map(len, table)), columns, "%s at %d:\n%s" % (words, columns, seen))
                if words[0] in ("list", "verify"):
                    self.assertRegex(seen, r"(?m)^%s(  |$)" % re.escape(prefix))
            for words in (["status", self.target], ["help"], ["help", "checkpoint"], *[["help", *it] for it in COMMANDS]):
                seen = on_terminal(columns, *words)
                about, options, rest = seen.partition("Options:\n")
                kept = ("ready ", "Usage: ", "Each has ", *(["  "] if options else ["  muster "]))  # those lines stay as they are
                table = [line for line in about.splitlines() if not line.startswith(kept)] + rest.splitlines()
                self.assertLessEqual(max(map(len, table)), columns, "%s at %d:\n%s" % (words, columns, seen))

    def test_prefixes_are_whole_where_they_are_wider_than_the_terminal(self):
        seen = on_terminal(20, "checkpoint", "list", self.folder)
        self.assertIn("\n%s\n" % self.prefix, seen)


class Locale(Case):
    def outputs(self):
        """Commands whose text has more than ASCII in a UTF-8 locale."""
        other = self.folder + "/changed"
        yield ["help"]
        for command in COMMANDS:
            yield ["help", *command]
        yield ["checkpoint", "show", self.prefix, "hidden/kernel"]
        yield ["status", self.target]
        yield ["checkpoint", "list", other]

    def test_prints_ascii_where_the_locale_is_ascii(self):
        for words in self.outputs():
            done = run(*words, code=None, **ASCII)
            self.assertTrue((done.stdout + done.stderr).isascii(), "%s: %r" % (words, done.stdout + done.stderr))
            self.assertNotIn(b"OPTION?", done.stdout)
        for columns in (60, 100):
            seen = on_terminal(columns, "wait", DIGITS, "--master=" + self.target, "--model=nobody", "--timeout=300ms", **ASCII)
            self.assertTrue(seen.isascii(), seen)

    def test_prints_utf8_where_the_locale_has_it(self):
        self.assertIn("[OPTION…]", text("help", "wait", **UTF8))
        self.assertIn("…", text("checkpoint", "show", self.prefix, "hidden/kernel", **UTF8))
        self.assertIn("...", text("checkpoint", "show", self.prefix, "hidden/kernel", **ASCII))

    def test_json_is_the_same_in_either(self):
        words = ["checkpoint", "list", self.folder + "/ä\t模\U0001f600", "--json"]
        os.makedirs(words[2], exist_ok=True)
        self.copy(self.prefix, words[2] + "/m-1")
        plain, utf8 = run(*words, **ASCII).stdout, run(*words, **UTF8).stdout
        self.assertTrue(plain.isascii(), plain)
        self.assertEqual(json.loads(plain), json.loads(utf8.decode()))
        self.assertEqual(json.loads(plain)["prefix"], words[2] + "/m-1")

    def test_a_tab_is_a_blank(self):
        self.assertIn("no checkpoints in %s/a b\n" % self.folder, self.said_of("a\tb"))
        self.assertIn("no checkpoints in %s/a?b\n" % self.folder, self.said_of("a\x1bb"))

    def said_of(self, name):
        os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        return text("checkpoint", "list", os.path.join(self.folder, name))


class Numbers(Case):
    def jsons(self):
        yield text("status", self.target, "--json")
        yield text("wait", *self.model, "--json")
        yield text("prepare", *self.model, "--overwrite", "--json")
        yield text("run", *self.model, *FILES, "--fetch=logits:0", "--json")
        yield text("checkpoint", "list", self.folder, "--json")
        yield text("checkpoint", "show", self.prefix, "output/kernel", "--json")
        yield text("train", DIGITS, "--master=local", *FILES, "--steps=50", "--json")

    def test_json_has_numbers_as_short_as_they_are_read_back_alike(self):
        n = 0
        for out in self.jsons():
            for token in re.findall(r"(?<=[:\[,])-?\d+\.\d+(?:e[-+]\d+)?|(?<=[:\[,])-?\d+e[-+]\d+", re.sub(r'"(\\.|[^"\\])*"', '""', out)):
                n += 1
                self.assertLessEqual(len(token), len(repr(float(token))), token)
        self.assertGreater(n, 1000)

    def test_a_float_is_written_with_the_digits_that_a_float_has(self):
        out = text("run", *self.model, *FILES, "--fetch=logits:0", "--json")
        tokens = re.findall(r"-?\d+\.\d+(?:e[-+]\d+)?", out)
        self.assertEqual(len(tokens), 17970)
        self.assertLessEqual(max(len(re.sub(r"e.*|\D", "", token).lstrip("0")) for token in tokens), 9)

    def test_what_is_no_number_is_json_all_the_same(self):
        out = text("run", LINREG, "--master=local", "--feed=x:0=[1]", "--feed=y:0=[1e30]", "--fetch=loss:0", "--json")
        self.assertEqual(json.loads(out, parse_constant=self.fail), {"loss:0": "inf"})

    def test_a_checkpoint_has_one_size(self):
        size = re.search(r", durable, (\S+ \S+) in", self.saved).group(1)
        self.assertRegex(text("checkpoint", "list", self.folder), r"(?m)^%s .* %s " % (self.prefix, size))
        self.assertIn(", %s, 1 shard" % size, text("checkpoint", "show", self.prefix))
        self.assertIn(" tensors, %s in " % size, text("checkpoint", "verify", self.prefix))
        self.assertIn("  %s  " % size, text("checkpoint", "prune", self.folder, "--keep=1", "--dry-run"))
        restored = text("prepare", *self.model, "--checkpoint=" + self.prefix)
        self.assertIn("restored %s, %s in " % (self.prefix, size), restored)
        trained = text("train", DIGITS, "--master=local", *FILES, "--steps=1", "--no-positions", "--checkpoint-dir=" + self.trained())
        self.assertIn("restored %s/model.ckpt-0, %s in " % (self.trained(), size), trained)

    def trained(self):
        other = self.folder + "/trained"
        if not os.path.exists(other):
            os.makedirs(other)
            self.copy(self.prefix, other + "/model.ckpt-0")
            with open(other + "/checkpoint", "w", encoding="utf-8") as file:
                file.write('model_checkpoint_path: "model.ckpt-0"\n')
        return other

    def test_rates_have_one_form(self):
        out = text("train", DIGITS, "--master=local", *FILES, "--steps=3000")
        self.assertRegex(out, r"\(\d{1,3}(,\d{3})* steps/s\)")
        self.assertRegex(text("status", self.target), r", [\d.,]+ steps/s \(\d+ in all\)")

    def test_shows_a_phase_under_a_millisecond_only_alone_and_none_that_did_not_happen(self):
        waited = text("wait", *self.model)
        trained = text("train", DIGITS, "--master=local", *FILES, "--steps=50", "--checkpoint-dir=" + self.folder + "/new")
        for out in (self.prepared, waited, trained.splitlines()[0]):
            for shown in re.findall(r"\((\w[\w ]* [\d.]+ (?:s|ms|µs)(?:, \w[\w ]* [\d.]+ (?:s|ms|µs))*)\)", out):
                phases = shown.split(", ")
                self.assertTrue(len(phases) == 1 or not any(re.search(r" (0\.\d ms|\d+ µs)$", phase) for phase in phases), out)
            self.assertNotIn("restore ", out)
            self.assertNotIn("()", out)
        result = json.loads(text("prepare", *self.model, "--overwrite", "--checkpoint-dir=" + self.folder + "/none", "--json"))
        self.assertNotIn("restore", result["phases"])

    def test_there_is_no_bar_in_a_pipe(self):
        server = [MUSTER, "train", DIGITS, "--master=local", *FILES, "--steps=1000000000"]
        with subprocess.Popen(server, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **UTF8}) as it:
            try:
                for line in it.stdout:
                    if line.startswith("training"):
                        break
            finally:
                it.kill()
        self.assertRegex(line, r"^training  step \d+ of 1000000000, [\d,]+ steps/s, ")


class Help(Case):
    def test_help_of_a_command_is_its_own_help(self):
        for command in COMMANDS + [["checkpoint"]]:
            self.assertEqual(text("help", *command), text(*command, "--help"))
            self.assertIn("muster " + " ".join(command), text("help", *command))
        self.assertEqual(text("help"), text("--help"))
        self.assertIn("unknown command 'prepar'; did you mean 'prepare'?", run("help", "prepar", code=3).stderr.decode())

    def test_a_misspelt_word_is_told_with_the_nearest(self):
        for words, said in ((["statsu"], "unknown command 'statsu'; did you mean 'status'?"),
                            (["xyz"], "unknown command 'xyz'; `muster help` lists the commands"),
                            (["checkpoint", "lst"], "unknown verb 'lst'; did you mean 'list'?"),
                            (["checkpoint", "vaporise"], "unknown verb 'vaporise'\n"),
                            (["train", "--stesp=3"], "train: Unknown option --stesp=3; did you mean '--steps'?\n"),
                            (["checkpoint", "list", "--varify", "run"], "Unknown option --varify; did you mean '--verify'?\n"),
                            (["status", "--master=grpc://h:1"], "--master=grpc://h:1; give TARGET without the option: `muster status grpc://h:1`\n"),
                            (["doctor", "--master", "grpc://h:1"], "--master; give TARGET without the option: `muster doctor TARGET`\n"),
                            (["doctor", "--checkpoint-dir=run"], "give DIR without the option: `muster doctor run`\n"),
                            (["checkpoint", "list", "--checkpoint-dir=run"], "give DIR without the option: `muster checkpoint list run`\n"),
                            (["inspect", "--master=local"], "inspect: Unknown option --master=local\n"),
                            (["wait", "--elsewhere"], "wait: Unknown option --elsewhere\n")):
            self.assertIn(said, run(*words, code=3).stderr.decode())

    def test_every_option_with_a_value_has_its_default_or_is_required(self):
        for command in COMMANDS:
            options = text("help", *command).partition("Options:\n")[2].splitlines()
            for line in options:
                if re.match(r"  --[a-z-]+=", line):
                    self.assertRegex(line, r"\(([^()]*; )?(default: [^)]|required)", command)

    def test_the_defaults_are_true(self):
        limits = {it["name"].replace("_", "-"): it["limit"] for it in json.loads(text("status", self.target, "--json"))["limits"]}
        units = {"": 1, " GiB": 1 << 30}
        seen = re.findall(r"--max-([a-z-]+)=N .*\(default: (\d+)( GiB)?\)", text("help", "serve"))
        self.assertGreaterEqual(len(seen), 5)
        for name, number, unit in seen:
            self.assertAlmostEqual(limits[name], int(number) * units[unit], delta=1, msg=name)


class Usage(Case):
    def test_an_empty_value_is_refused_by_its_option(self):
        for command in COMMANDS:
            options = re.findall(r"^  (--[a-z-]+)=", text("help", *command), re.M)
            self.assertGreater(len(options), 0, command)
            for option in options:
                said = run(*command, option + "=", code=3).stderr.decode()
                self.assertRegex(said, re.escape(option) + r"( is empty; is a variable of the script unset\?|: |$)")
        for option in "--ready", "--watch":
            said = run("status", option + "=", "grpc://localhost:1", code=3).stderr.decode()
            self.assertEqual(said, "muster: status: %s is empty; is a variable of the script unset?\n" % option)

    def test_a_master_of_its_own_is_refused_where_others_have_a_part(self):
        for words in (["wait", DIGITS], ["save", DIGITS, "--checkpoint-dir=" + self.folder], ["finish", "--model=digits"]):
            for master in ("local", "tensorflow"):
                said = run(*words, "--master=" + master, "--timeout=20", code=3).stderr.decode()
                self.assertIn("--master=%s exists only in this process" % master, said)
                self.assertIn("use grpc://HOST:PORT", said)

    def test_run_and_train_take_the_same_feeds(self):
        def train(*feeds, **rest):
            return run("train", DIGITS, "--master=local", "--steps=1", *feeds, **rest)

        def step(*feeds, **rest):
            return run("run", DIGITS, "--master=local", "--fetch=loss:0", *feeds, **rest)

        image, label = json.dumps([[0.5] * 64, [0.25] * 64]), "[1, 2]"
        for feeds in (FILES, ["--feed=x=@tests/fixtures/digits_x.npy", FILES[1]], ["--feed=x:0=" + image, "--feed=y:0=" + label],
                      [*FILES, "--rows=0:40"]):
            for command in train, step:
                command(*feeds)
        for feed, why in (("x", "invalid --feed 'x' (use NAME=VALUE or NAME=@FILE.npy)"), ("z=1", "the graph has no tensor 'z'"),
                          ("x:0=images.npy", "or @FILE.npy)"), ("x:0=@nowhere.npy", "nowhere.npy")):
            for command in train, step:
                self.assertIn(why, command("--feed=" + feed, code=3).stderr.decode(), (command, feed))


if __name__ == "__main__":
    unittest.main()
