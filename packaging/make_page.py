#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_page.py MUSTER FRAME: the manual page of the command, in roff, to stdout.

FRAME is the page without its commands; what stands in place of @commands@ and @common@ is what the command says of
itself with --help, so that the two never differ.
"""
import collections
import re
import subprocess
import sys

# An option that so many commands share, with the same words, is listed once.
SHARED = 3


def help_of(muster, *words):
    return subprocess.run([muster, *words, "--help"], check=True, text=True, capture_output=True).stdout


def listed(text):
    """The names in a list of commands, "  NAME …   what it does"."""
    return [name for name in re.findall(r"^  ([a-z]+)(?: .*?)?  +\S", text, re.M) if name != "help"]


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


class Command:
    def __init__(self, muster, words):
        text = help_of(muster, *words)
        self.name = " ".join(words)
        self.usage = re.search(r"muster .*", text).group()
        body = text[text.index(self.usage) + len(self.usage):]
        self.about, _, options = body.partition("\nOptions:")
        self.options = [option for option in re.findall(r"^  (--\S+) {2,}(.+)", options, re.M) if option[0] != "--help"]

    def roff(self, shared):
        yield ".SS %s" % escape(self.usage)
        yield from paragraphs(self.about)
        yield from told([option for option in self.options if option not in shared])
        common = [name for name, text in self.options if (name, text) in shared]
        if common:
            yield ".PP"
            yield "Also %s." % escape(", ".join(re.sub("=.*", "", name) for name in common))


def paragraphs(text):
    """Text as it is; what is indented keeps its lines."""
    for paragraph in re.split(r"\n\n+", text.strip("\n")):
        yield ".PP"
        lines = [line for line in paragraph.split("\n") if line]
        for i, line in enumerate(lines):
            kept = line.startswith("  ")
            before = i > 0 and lines[i - 1].startswith("  ")
            if kept and not before:
                yield ".RS 2\n.nf"
            if before and not kept:
                yield ".fi\n.RE"
            yield escape(line[2:] if kept else line)
        if lines and lines[-1].startswith("  "):
            yield ".fi\n.RE"


def told(options):
    for name, text in options:
        option, _, value = name.partition("=")
        yield ".TP"
        yield ".BI %s= \"%s\"" % (escape(option), escape(value)) if value else ".B " + escape(option)
        yield escape(text)


def main():
    muster, frame = sys.argv[1:]
    commands = []
    for name in listed(help_of(muster).partition("Commands:")[2].partition("\n\n")[0]):
        command = Command(muster, [name])
        verbs = listed(command.about) if not command.options else []
        commands += [Command(muster, [name, verb]) for verb in verbs] or [command]
    times = collections.Counter(option for command in commands for option in command.options)
    shared = [option for option in times if times[option] >= SHARED]
    with open(frame, encoding="utf-8") as file:
        page = file.read()
    page = page.replace("@commands@", "\n".join(line for command in commands for line in command.roff(shared)))
    page = page.replace("@common@", "\n".join(told(shared)))
    sys.stdout.write(page)


main()
