#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exports: writes the version script of a library, so that it exports what its public headers declare and no more.

usage: exports.py OUTPUT NODE [--users=ARCHIVE] HEADER...
NODE has all names that the headers have outside of comments. What the archives of another
library of ours use besides is in NODE's private one: nobody else may rely on it.
"""
import re
import subprocess
import sys

NAME = re.compile(r"\bmuster_[a-z0-9_]+")
DECLARED_TYPE = re.compile(r"\bG_DECLARE_\w+ \(\w+,\s*(muster_\w+),")


def declared(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)
    return set(NAME.findall(text)) | {prefix + "_get_type" for prefix in DECLARED_TYPE.findall(text)}


def used(archives):
    """What these archives need of ours and don't have."""
    needs, has = set(), set()
    for line in subprocess.run(["nm", "-P", *archives], check=True, capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        if len(words) >= 2 and NAME.fullmatch(words[0]):
            (needs if words[1] == "U" else has).add(words[0])
    return needs - has


def node(name, names):
    return "%s {\n  global:\n%s  local: *;\n};\n" % (name, "".join("    %s;\n" % one for one in sorted(names)))


def main(output, name, *words):
    archives = [word.split("=", 1)[1] for word in words if word.startswith("--users=")]
    public = set().union(*(declared(word) for word in words if not word.startswith("--users=")))
    private = used(archives) - public if archives else set()
    with open(output, "w", encoding="utf-8") as file:
        file.write(node(name, public))
        if private:
            file.write(node(name.replace("MUSTER_", "MUSTER_PRIVATE_"), private).replace("  local: *;\n", ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
