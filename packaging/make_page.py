#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_page.py MUSTER FRAME: the manual page of the command, in roff, to stdout.

FRAME is the page without its commands; what stands in place of @commands@ and @common@ is what the command says of
itself with --help, so that the two never differ.
"""
import collections
import re
import sys

import options

# An option that so many commands share, with the same words, is listed once.
SHARED = 3


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def section(command, shared):
    yield ".SS %s" % escape(command.usage)
    yield from paragraphs(command.about)
    yield from told([option for option in command.options if option not in shared])
    common = [name for name, text in command.options if (name, text) in shared]
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


def told(pairs):
    for name, text in pairs:
        option, _, value = name.partition("=")
        yield ".TP"
        yield ".BI %s= \"%s\"" % (escape(option), escape(value)) if value else ".B " + escape(option)
        yield escape(text)


def main():
    muster, frame = sys.argv[1:]
    each = [leaf for command in options.commands(muster) for leaf in command.verbs or [command]]
    times = collections.Counter(option for command in each for option in command.options)
    shared = [option for option in times if times[option] >= SHARED]
    with open(frame, encoding="utf-8") as file:
        page = file.read()
    page = page.replace("@commands@", "\n".join(line for command in each for line in section(command, shared)))
    page = page.replace("@common@", "\n".join(told(shared)))
    sys.stdout.write(page)


main()
