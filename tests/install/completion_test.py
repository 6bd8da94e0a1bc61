#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Completion in bash, zsh and fish, by the shells themselves: bash and zsh at a terminal, fish by what it says."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PATIENCE = 60
PACKAGING = os.path.abspath("packaging")
# What is typed before the Tab key, and the line after it. In the folder are data.npy, digits.meta and run/.
LINES = {
    "muster se": "muster serve ",
    "muster checkpoint ver": "muster checkpoint verify ",
    "muster help ser": "muster help serve ",
    "muster help checkpoint ver": "muster help checkpoint verify ",
    "muster wait --recov": "muster wait --recovery-wait=",
    "muster wait --progr": "muster wait --progress ",
    "muster checkpoint prune --keep-b": "muster checkpoint prune --keep-best=",
    "muster train --meta-graph=dig": "muster train --meta-graph=digits.meta ",
    "muster train --checkpoint-dir=": "muster train --checkpoint-dir=run/",
    "muster train --loss=x --save-every=a": "muster train --loss=x --save-every=auto ",
    "muster serve --master=grpcs": "muster serve --master=grpcs://",
    "muster status te": "muster status tensorflow ",
    "muster checkpoint latest ": "muster checkpoint latest run/",
    "muster doctor un": "muster doctor unix:/",
    "muster doctor ru": "muster doctor run/",
    "muster checkpoint diff dig": "muster checkpoint diff digits.meta ",
    "muster status --rea": "muster status --ready ",
    "muster run --pro": "muster run --pro",
    "muster nothing --js": "muster nothing --js",
}


def help_of(*words):
    return subprocess.run(["cli/muster", *words, "--help"], check=True, text=True, capture_output=True, timeout=PATIENCE).stdout


def commands():
    """Every command with its options."""
    for name in re.findall(r"^  ([a-z]+) ", help_of().partition("Commands:")[2].partition("\n\n")[0], re.M):
        text = "" if name == "help" else help_of(name)
        if "\nOptions:" in text:
            yield name, re.findall(r"^  (--[a-z-]+)", text.partition("\nOptions:")[2], re.M)
        else:
            for verb in re.findall(r"^  ([a-z]+) ", text, re.M):
                yield name + " " + verb, re.findall(r"^  (--[a-z-]+)", help_of(name, verb).partition("\nOptions:")[2], re.M)


class Shell:
    """A shell at a terminal. Control-X prints the line that is being typed and empties it."""

    def __init__(self, folder, *command):
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "ZDOTDIR": folder, "TERM": "dumb", "LC_ALL": "C.UTF-8"}
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)

    def until(self, pattern):
        end = time.monotonic() + PATIENCE
        said = ""
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 1)[0]:
                said += os.read(self.terminal, 65536).decode(errors="replace")
            found = re.search(pattern, said)
            if found:
                return found
        raise AssertionError("no %s in %r" % (pattern, said))

    def run(self, *lines):
        for line in lines:
            os.write(self.terminal, line.encode() + b"\n")
        os.write(self.terminal, b"echo set''up\n")
        self.until("setup")

    def completed(self, line):
        os.write(self.terminal, line.encode() + b"\t\x18")
        return self.until(r"<<(.*)>>").group(1)


class Completion(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ["TEST_TMPDIR"])
        os.mkdir(cls.folder.name + "/run")
        for name in ("data.npy", "digits.meta"):
            with open(os.path.join(cls.folder.name, name), "w", encoding="utf-8"):
                pass

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def at_terminal(self, command, *setup):
        shell = Shell(self.folder.name, *command)
        try:
            shell.run(*setup)
            self.assertEqual({line: shell.completed(line) for line in LINES}, LINES)
        finally:
            shell.close()

    def read(self, name):
        with open("packaging/" + name, encoding="utf-8") as file:
            return file.read()

    def test_bash_completes(self):
        self.at_terminal(["bash", "--norc", "-i"], "PS1= PS2=", ". %s/muster.bash" % PACKAGING, "bind 'set bell-style none'",
                         "said() { echo \"<<$READLINE_LINE>>\"; READLINE_LINE=; }", "bind -x '\"\\C-x\": said'")

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh_completes(self):
        self.at_terminal(["zsh", "-f", "-i"], "unsetopt zle_bracketed_paste beep auto_remove_slash prompt_cr; PS1=", "autoload -Uz compinit; compinit -D -u",
                         "_muster_first() { . %s/_muster }" % PACKAGING, "compdef _muster_first muster",
                         "said() { print -r -- \"<<$BUFFER>>\"; BUFFER= }; zle -N said; bindkey '^X' said")

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish_completes(self):
        for line, after in LINES.items():
            done = subprocess.run(["fish", "--no-config", "-c", "source %s/muster.fish; complete -C %r" % (PACKAGING, line)], cwd=self.folder.name,
                                  env={"PATH": os.environ["PATH"], "HOME": self.folder.name, "LC_ALL": "C.UTF-8"},
                                  text=True, capture_output=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            words = [word.partition("\t")[0].rpartition("=")[2] or word.partition("\t")[0] for word in done.stdout.splitlines()]
            last = after.strip().rpartition(" ")[2]
            expected = [] if line == after else [last.rstrip("=").rpartition("=")[2]]
            self.assertEqual(words, expected, line)

    def test_every_option_of_every_command_is_there(self):
        bash, zsh, fish = self.read("muster.bash"), self.read("_muster"), self.read("muster.fish")
        for name, options in commands():
            self.assertIn("--help", options, name)
            known = re.search("'%s'\\) echo '(.*)' ;;" % name, bash).group(1).split()
            self.assertEqual([option.rstrip("=") for option in known], options, name)
            part = re.search(r"^ +%s\)\n((?:.*\n)*?)^ +;;$" % name.split()[-1], zsh, re.M).group(1)
            self.assertEqual(re.findall(r"^ *'\*?(--[a-z-]+)", part, re.M), options, name)
            self.assertEqual(["--" + option for option in re.findall(r"__muster_is %s' -l ([a-z-]+)" % name, fish)] + ["--help"], options, name)


if __name__ == "__main__":
    sys.exit(unittest.main())
