#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""described.py [--write] GIR… HEADER…: every public symbol has a description.

A description is a comment above the declaration that begins with two asterisks and the symbol's name. A function's says
also what its parameters and its result are; a struct's what its fields are, unless they are private; an enumeration's what
its values are. Symbols that introspection leaves out count, too: those are read from the headers.

undescribed.txt lists the symbols that have none yet. It may only shrink; --write writes it.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import gir

LIST = os.path.join(os.path.dirname(os.path.realpath(__file__)), "undescribed.txt")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DESCRIBED = re.compile(r"/\*\*\s*\n?\s*\*?\s*(\w+):?(.*?)\*/", re.DOTALL)
FUNCTION = re.compile(r"^(?!#|static|typedef)[\w][\w \t*]*?[ *](muster_\w+) \(", re.MULTILINE)
STRUCT = re.compile(r"^\} (Muster\w+);", re.MULTILINE)
MACRO = re.compile(r"^#define (MUSTER_\w+)(\(?)", re.MULTILINE)
# Of GObject's type system: what they do is the same for every type.
OF_THE_TYPE_SYSTEM = re.compile(r"MUSTER_(?:[A-Z]+_)*(?:TYPE|IS)_|_get_type$|_CLASS$|_GET_IFACE$")


def declared(text):
    """The names that a header declares."""
    code = COMMENT.sub("", text)
    names = [match.group(1) for pattern in (FUNCTION, STRUCT, MACRO) for match in pattern.finditer(code)]
    return [name for name in names if not OF_THE_TYPE_SYSTEM.search(name)]


def described_in(text):
    """The names that a header's comments describe."""
    found = set()
    for match in DESCRIBED.finditer(text):
        words = re.sub(r"^\s*\*", "", match.group(2), flags=re.MULTILINE)
        words = re.sub(r"\([a-z-]+[^)]*\)", "", words, count=3)
        if re.search(r"\w", words):
            found.add(match.group(1))
    return found


def fields_described_in(text):
    """The fields, TYPE.NAME, that a header's comments describe; introspection drops those of functions."""
    found = set()
    for match in DESCRIBED.finditer(text):
        for field in re.finditer(r"^\s*\*\s*@(\w+):(?:\s*\([^)]*\))*:?\s*\w", match.group(2), re.MULTILINE):
            found.add("%s.%s" % (match.group(1), field.group(1)))
    return found


def missing_of(symbol):
    """The lines that a symbol is in undescribed.txt with."""
    if symbol.kind in ("property", "signal"):
        name = "%s%s%s" % (symbol.of, "::" if symbol.kind == "signal" else ":", symbol.name.rsplit(".", 1)[-1])
    else:
        name = symbol.name
    if OF_THE_TYPE_SYSTEM.search(name):
        return []
    return ([name] if not symbol.doc else []) + ["%s %s" % (name, part) for part in symbol.undocumented]


def undescribed(girs, headers):
    """What has no description; headers: path -> text."""
    missing, known = set(), set()
    for path in girs:
        for symbol in gir.read(path)[1]:
            known.add(symbol.name)
            missing.update(missing_of(symbol))
    for text in headers.values():
        described = described_in(text)
        missing -= fields_described_in(text)
        missing.update(name for name in declared(text) if name not in known and name not in described)
    return sorted(missing)


def read_all(paths):
    girs = [path for path in paths if path.endswith(".gir")]
    headers = {}
    for path in paths:
        if path.endswith(".h"):
            with open(path, encoding="utf-8") as file:
                headers[path] = file.read()
    return girs, headers


def listed():
    with open(LIST, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]


def compare(missing, allowed):
    """What is wrong, a line each."""
    return (["%s has no description" % name for name in missing if name not in set(allowed)] +
            ["%s is described: take it out of undescribed.txt (described.py --write does)" % name
             for name in allowed if name not in set(missing)])


def main():
    missing = undescribed(*read_all([word for word in sys.argv[1:] if word != "--write"]))
    if "--write" in sys.argv:
        with open(LIST, "w", encoding="utf-8") as file:
            file.write("# Public symbols without a description; the list may only shrink.\n")
            file.writelines(line + "\n" for line in missing)
    problems = compare(missing, listed())
    print("\n".join(problems))
    print("%d parts of the public API have no description" % len(missing))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
