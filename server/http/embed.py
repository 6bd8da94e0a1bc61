#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py NAME FILE: prints a C header with the file's text as a string, NAME."""
import sys


def main():
    name, path = sys.argv[1:]
    print("// Made from %s." % path.rsplit("/", 1)[-1])
    print("static const char %s[] =" % name)
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
        print('    "%s\\n"%s' % (escaped, ";" if number == len(lines) - 1 else ""))


if __name__ == "__main__":
    main()
